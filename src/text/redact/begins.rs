//! A quick look whether a form can begin at a place: what is held back at the end of each piece is looked for at every byte.

/// The pairs of bytes with which forms begin, a bit each: few bytes get past them.
pub(super) struct Begins(Box<[u64; 1 << 10]>);

impl Begins {
    pub(super) fn of<'a>(forms: impl Iterator<Item = &'a Vec<u8>>) -> Self {
        let mut pairs = Box::new([0; 1 << 10]);
        for form in forms {
            let (word, bit) = Self::place(form[0], form[1]);
            pairs[word] |= bit;
        }
        Self(pairs)
    }

    fn place(first: u8, second: u8) -> (usize, u64) {
        let pair = usize::from(u16::from_be_bytes([first, second]));
        (pair / 64, 1 << (pair % 64))
    }

    /// Whether some form may begin with these bytes, or they with a form. `false` is certain.
    pub(super) fn may_begin(&self, bytes: &[u8]) -> bool {
        match bytes {
            [first, second, ..] => {
                let (word, bit) = Self::place(*first, *second);
                self.0[word] & bit != 0
            }
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_bytes_tell_most_and_one_tells_nothing() {
        let forms = [b"sk-secret".to_vec(), b"\xff\xffsecret".to_vec()];
        let begins = Begins::of(forms.iter());
        for bytes in [&b"sk"[..], b"sky", b"\xff\xff", b"s", b"x", b""] {
            assert!(begins.may_begin(bytes), "{bytes:?}");
        }
        for bytes in [&b"ks"[..], b"s-", b"\0\0", b"\xff\xfe"] {
            assert!(!begins.may_begin(bytes), "{bytes:?}");
        }
    }
}
