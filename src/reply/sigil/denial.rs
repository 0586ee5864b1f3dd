//! The words before a sigil on its line: whether they deny it, as in "I cannot say yet that it is".

use super::Sigil;
use super::kind::{PROMISE, REVIEW_PASS, TASK_DONE, VERIFY_PASS};

/// What denies the rest of its sentence. So does a word with `n't` at its end.
const NEGATIONS: [&str; 10] =
    ["not", "cannot", "never", "neither", "nor", "unable", "refuse", "decline", "dont", "cant"];
/// What denies only what stands right behind it: "no tasks are left" is no denial.
const BEFORE_IT: [&str; 3] = ["no", "without", "than"];
/// What agents do with a marker.
const SAYING: [&str; 18] = [
    "say", "saying", "output", "emit", "write", "print", "claim", "answer", "declare", "report", "reply",
    "respond", "return", "send", "signal", "use", "include", "with",
];
/// Longer words are none of these, in bytes.
const LONGEST_WORD: usize = 12;

/// What is known of the words on a line. It takes as much memory for many as for a few.
#[derive(Clone, Debug, Default)]
pub(super) struct Denial {
    /// The last word, lowercase; one that is too long is cut.
    word: String,
    /// The word is at its end.
    ended: bool,
    /// Its sentence denies something.
    negated: bool,
}

impl Denial {
    pub(super) fn take(&mut self, char: char) {
        if matches!(char, '.' | '!' | '?' | ';') {
            *self = Self::default();
        } else if char.is_alphanumeric() || matches!(char, '\'' | '’') && !self.word.is_empty() && !self.ended
        {
            if self.ended {
                self.word.clear();
                self.ended = false;
            }
            if self.word.len() < LONGEST_WORD {
                self.word.extend(if char == '’' { '\''.to_lowercase() } else { char.to_lowercase() });
            }
        } else {
            self.end_word();
        }
    }

    /// Whether a sigil that comes next is denied. That something fails is no denial of a sigil that says so, unless the sigil
    /// itself is what is not said.
    pub(super) fn denies(mut self, sigil: &Sigil) -> bool {
        self.end_word();
        let word = self.word.as_str();
        let is_right_before = is_negation(word) || BEFORE_IT.contains(&word);
        is_right_before || self.negated && (says_well(sigil) || SAYING.contains(&word))
    }

    fn end_word(&mut self) {
        if !self.ended {
            // What follows is said in spite of it.
            self.negated = self.word != "but" && (self.negated || is_negation(&self.word));
            self.ended = true;
        }
    }
}

fn is_negation(word: &str) -> bool {
    word.ends_with("n't") || NEGATIONS.contains(&word)
}

/// Whether a sigil says that the work is as it should be.
fn says_well(sigil: &Sigil) -> bool {
    let kinds = [TASK_DONE, VERIFY_PASS, REVIEW_PASS];
    sigil.name == PROMISE.name && sigil.body == "COMPLETE" || kinds.iter().any(|kind| kind.name == sigil.name)
}
