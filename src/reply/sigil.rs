//! Sigils: markers in the assistant's own text, found as the text streams by.

use serde::{Deserialize, Serialize};

/// The assistant claims that everything is done.
pub const COMPLETE: &str = "<promise>COMPLETE</promise>";
/// The assistant says that the plan no longer fits.
pub const REPLAN: &str = "<promise>REPLAN</promise>";

/// As much of the text before a piece as a sigil across the seam can need.
const KEEP: usize = COMPLETE.len() - 1;

/// The sigils found so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sigils {
    /// [`COMPLETE`] stands in the text.
    pub complete: bool,
    /// [`REPLAN`] stands in the text.
    pub replan: bool,
}

/// Finds sigils in text that arrives in pieces, as if the pieces were one text without anything between them.
#[derive(Clone, Debug, Default)]
pub struct SigilScanner {
    sigils: Sigils,
    /// The last bytes of the text so far, at most [`KEEP`].
    tail: Vec<u8>,
}

impl SigilScanner {
    /// Scans the next piece of the text.
    pub fn push(&mut self, piece: &str) {
        let bytes = piece.as_bytes();
        self.tail.extend_from_slice(&bytes[..bytes.len().min(KEEP)]);
        let seam = |sigil: &str| self.tail.windows(sigil.len()).any(|window| window == sigil.as_bytes());
        self.sigils.complete |= seam(COMPLETE) || piece.contains(COMPLETE);
        self.sigils.replan |= seam(REPLAN) || piece.contains(REPLAN);
        if bytes.len() > KEEP {
            self.tail.clear();
            self.tail.extend_from_slice(&bytes[bytes.len() - KEEP..]);
        } else {
            self.tail.drain(..self.tail.len().saturating_sub(KEEP));
        }
    }

    /// What was found so far.
    #[must_use]
    pub fn sigils(&self) -> Sigils {
        self.sigils
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn scan<'a>(pieces: impl IntoIterator<Item = &'a str>) -> Sigils {
        let mut scanner = SigilScanner::default();
        pieces.into_iter().for_each(|piece| scanner.push(piece));
        scanner.sigils()
    }

    #[test]
    fn finds_exact_sigils_only() {
        let both = Sigils { complete: true, replan: true };
        assert_eq!(scan([format!("a{REPLAN}b{COMPLETE}").as_str()]), both);
        for near in ["<promise>complete</promise>", "<promise> COMPLETE </promise>", "COMPLETE", "<promise>"]
        {
            assert_eq!(scan([near]), Sigils::default(), "{near}");
        }
    }

    proptest! {
        #[test]
        fn any_split_finds_what_contains_finds(
            parts in prop::collection::vec(
                prop_oneof![
                    Just(COMPLETE), Just(REPLAN), Just("<promise>COMP"), Just("LETE</promise>"), Just("<promise>RE"),
                    Just("PLAN</promise>"), Just("<"), Just("é"), Just("\n"), Just("x long text that is longer than a sigil"),
                ],
                0..8,
            ),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        ) {
            let text = parts.concat();
            let mut cuts: Vec<usize> = cuts
                .iter()
                .map(|cut| cut.index(text.len() + 1))
                .filter(|cut| text.is_char_boundary(*cut))
                .chain([0, text.len()])
                .collect();
            cuts.sort_unstable();
            let found = scan(cuts.windows(2).map(|cut| &text[cut[0]..cut[1]]));
            prop_assert_eq!(found.complete, text.contains(COMPLETE));
            prop_assert_eq!(found.replan, text.contains(REPLAN));
        }
    }
}
