//! Detects words before a sigil that deny it, as in "I cannot say yet that it is".
//!
//! Both errors have a price: a believed denial ends the loop with work undone; a disbelieved claim costs an
//! iteration. So in doubt a success is denied, and any other sigil is believed.

use super::Sigil;
use super::is_decoration;
use super::kind::{PROMISE, REVIEW_PASS, TASK_DONE, VERIFY_PASS};

/// Words that deny the rest of their sentence, like any word ending in `n't`.
const NEGATIONS: [&str; 10] =
    ["not", "cannot", "never", "neither", "nor", "unable", "refuse", "decline", "dont", "cant"];
/// Words that deny only a success.
const DOUBTS: [&str; 9] =
    ["far", "premature", "incomplete", "unfinished", "almost", "nearly", "until", "unless", "instead"];
/// Two words that deny only a success.
const DOUBTS_OF_TWO: [[&str; 2]; 3] = [["too", "early"], ["too", "soon"], ["in", "progress"]];
/// Words that begin a condition.
const CONDITIONS: [&str; 3] = ["if", "when", "once"];
/// Words for another time or place; like a condition, they deny a success.
const ELSEWHERE: [&str; 2] = ["tomorrow", "wrong"];
/// After a negation these cancel it: "not only", "not needed", "not a single".
const HARMLESS: [&str; 7] = ["only", "just", "needed", "required", "necessary", "one", "single"];
/// These deny what is affirmed in the same clause: "nothing works", but "nothing is left".
const NONE: [&str; 9] = ["no", "none", "nothing", "nobody", "hardly", "barely", "only", "few", "half"];
/// Words right before a success that deny it, or attribute it to another speaker.
const BEFORE_IT: [&str; 12] = [
    "no", "without", "than", "before", "hardly", "barely", "scarcely", "todo", "says", "reads", "asks",
    "wants",
];
/// Words that begin another clause, like a comma, a dash or a closing bracket.
const JOINTS: [&str; 6] = ["but", "so", "therefore", "thus", "hence", "and"];
/// A later clause with a word of both kinds affirms what was denied before: "all tests pass".
const WHOLE: [&str; 5] = ["all", "everything", "every", "both", "now"];
const AFFIRMATIONS: [&str; 14] = [
    "done",
    "complete",
    "completed",
    "finished",
    "pass",
    "passes",
    "passed",
    "passing",
    "works",
    "green",
    "fixed",
    "ready",
    "does",
    "succeeds",
];
/// What agents do with a marker.
const SAYING: [&str; 18] = [
    "say", "saying", "output", "emit", "write", "print", "claim", "answer", "declare", "report", "reply",
    "respond", "return", "send", "signal", "use", "include", "with",
];
/// The last letters of "e.g." and "i.e.", and other abbreviations whose full stop ends no sentence.
const ABBREVIATIONS: [&str; 4] = ["g", "e", "etc", "vs"];
/// Longer words are none of these, in bytes.
const LONGEST_WORD: usize = 12;
/// How many words are kept: "I do not want to say" needs the most.
const KEPT: usize = 6;

/// The state of a sentence. Its size does not depend on the number of words.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own about the sentence")]
pub(super) struct Denial {
    /// The current word, lowercase; a long one is cut.
    word: String,
    /// The last words before it, the latest at the end. An empty one marks the end of a clause.
    words: [String; KEPT],
    /// The sentence ends here if white space follows.
    stops: bool,
    /// Whether the last character is white space.
    is_apart: bool,
    /// An earlier clause of the sentence denies something.
    denied: bool,
    /// The previous clause is a condition.
    on_condition: bool,
    /// The sentence has a condition, or another time.
    elsewhere: bool,
    clause: Clause,
}

/// A clause, as far as it matters for a success.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each says which kind of word stands in it")]
struct Clause {
    begun: bool,
    conditional: bool,
    denied: bool,
    none: bool,
    whole: bool,
    affirmed: bool,
}

impl Denial {
    pub(super) fn take(&mut self, char: char) {
        if self.stops && char.is_whitespace() {
            *self = Self::default();
        }
        self.stops &= is_decoration(char);
        if char.is_alphanumeric() || matches!(char, '\'' | '’') && !self.word.is_empty() {
            if self.word.len() < LONGEST_WORD {
                self.word.extend(if char == '’' { '\''.to_lowercase() } else { char.to_lowercase() });
            }
        } else {
            self.end_word();
            match char {
                '.' | '!' | '?' | ';' => self.stops = !ABBREVIATIONS.contains(&self.words[KEPT - 1].as_str()),
                ',' | ')' | '—' | '–' => self.end_clause(),
                '-' if self.is_apart => self.end_clause(),
                // The text after a colon explains the text before.
                ':' => {
                    self.clause.none = false;
                    self.keep("");
                }
                _ => {}
            }
        }
        self.is_apart = char.is_whitespace();
    }

    /// The state for the next line if this one ends in a colon, or in the middle of a sentence.
    pub(super) fn on_next_line(mut self) -> Self {
        self.end_word();
        if !self.is_about_to_say() {
            self.end_clause();
        }
        self
    }

    /// Whether the text ends in the middle of a sentence, before what is to be said: "I will not output".
    pub(super) fn is_about_to_say(&self) -> bool {
        let mut ended = self.clone();
        ended.end_word();
        !ended.stops && SAYING.contains(&ended.words[KEPT - 1].as_str())
    }

    /// Whether a sigil that follows directly is denied.
    pub(super) fn denies(&self, sigil: &Sigil) -> bool {
        let mut ended = self.clone();
        ended.end_word();
        if is_success(sigil) { ended.denies_success() } else { ended.refuses_to_say() }
    }

    fn denies_success(&self) -> bool {
        let is_last = |words: &[&str]| {
            let last = self.words.iter().rfind(|word| !word.is_empty());
            last.is_some_and(|word| words.contains(&word.as_str()))
        };
        let is_conditional = if self.clause.begun { self.clause.conditional } else { self.on_condition };
        let is_said_elsewhere = self.elsewhere && is_last(&SAYING);
        self.denied || self.clause.denied || is_conditional || is_said_elsewhere || is_last(&BEFORE_IT)
    }

    /// Whether the speaker refuses to say the sigil: a failure sigil after "does not work" is not denied.
    fn refuses_to_say(&self) -> bool {
        let clause = self.words.rsplit(String::is_empty).next().unwrap_or_default();
        let Some((last, before)) = clause.split_last() else { return false };
        let i_do_not = || {
            let negation = before.iter().rposition(|word| is_negation(word))?;
            let speaks = before[..negation].iter().rev().take(2).any(|word| is_speaker(word));
            Some(speaks && before.len() - negation <= 3)
        };
        is_negation(last)
            || matches!(last.as_str(), "no" | "without")
            || SAYING.contains(&last.as_str()) && i_do_not().unwrap_or_default()
    }

    fn end_word(&mut self) {
        let word = std::mem::take(&mut self.word);
        let word = word.trim_end_matches('\'');
        if word.is_empty() {
            return;
        }
        let is_condition = CONDITIONS.contains(&word);
        if JOINTS.contains(&word) {
            self.end_clause();
            // An addition to a condition is one, too.
            self.clause.conditional = word == "and" && self.on_condition;
        } else {
            self.clause.conditional |= is_condition && !self.clause.begun;
            self.clause.begun = true;
        }
        self.elsewhere |= is_condition || ELSEWHERE.contains(&word);
        let clause = &mut self.clause;
        if HARMLESS.contains(&word) && self.words[KEPT - 2..].iter().any(|word| is_negation(word)) {
            (clause.denied, clause.none) = (false, matches!(word, "one" | "single"));
        } else {
            clause.none |= NONE.contains(&word);
        }
        clause.whole |= WHOLE.contains(&word);
        // "Nothing is left to be done."
        let is_to_be = self.words[KEPT - 2..] == ["to", "be"];
        let affirms = AFFIRMATIONS.contains(&word) && !is_to_be;
        // "No unfinished tasks."
        let is_doubt =
            DOUBTS.contains(&word) || DOUBTS_OF_TWO.contains(&[self.words[KEPT - 1].as_str(), word]);
        let doubts = is_doubt && !clause.none;
        clause.affirmed |= affirms;
        clause.denied |= is_negation(word) || doubts || clause.none && affirms;
        self.denied &= !(clause.whole && clause.affirmed) || clause.denied;
        self.keep(word);
    }

    fn end_clause(&mut self) {
        let clause = std::mem::take(&mut self.clause);
        self.denied |= clause.denied;
        if clause.begun {
            self.on_condition = clause.conditional;
        }
        self.keep("");
    }

    fn keep(&mut self, word: &str) {
        self.words.rotate_left(1);
        word.clone_into(&mut self.words[KEPT - 1]);
    }
}

fn is_negation(word: &str) -> bool {
    word.ends_with("n't") || NEGATIONS.contains(&word)
}

/// `I`, `we`, `I'm`, `we'll`.
fn is_speaker(word: &str) -> bool {
    matches!(word.split('\'').next(), Some("i" | "we"))
}

/// Whether a sigil reports success.
fn is_success(sigil: &Sigil) -> bool {
    let kinds = [TASK_DONE, VERIFY_PASS, REVIEW_PASS];
    sigil.name == PROMISE.name && sigil.body == "COMPLETE" || kinds.iter().any(|kind| kind.name == sigil.name)
}
