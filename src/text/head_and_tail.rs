//! The beginning and the end of a long text, as one of them usually has the error.

/// The beginning and the end of `text`, at most `room` bytes together, with a line about what is left out.
#[must_use]
pub(crate) fn head_and_tail(text: &str, room: usize) -> String {
    if text.len() <= room {
        return text.to_owned();
    }
    let head = text.floor_char_boundary(room / 2);
    let tail = text.ceil_char_boundary(text.len() - room / 2);
    around_gap(&text[..head], tail - head, &text[tail..])
}

/// A beginning and an end, with a line about how many bytes are left out between them.
#[must_use]
pub(crate) fn around_gap(head: &str, left_out: usize, tail: &str) -> String {
    format!("{head}\n[… {left_out} bytes left out …]\n{tail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_keeps_head_and_tail() {
        let text = format!("begin{}end", "é".repeat(100));
        assert_eq!(head_and_tail(&text, 20), "beginéé\n[… 190 bytes left out …]\néééend");
        assert_eq!(head_and_tail("short", 20), "short");
    }
}
