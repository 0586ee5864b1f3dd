//! The kinds of sigils, and their syntax.

use super::Sigil;

/// A kind of sigil.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SigilKind {
    /// The name between the brackets.
    pub name: &'static str,
    /// Its syntax.
    pub shape: Shape,
}

/// The syntax of a sigil.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// `<name/>`, or `<name></name>`.
    Empty,
    /// `<name>body</name>`, with a body of at most this many bytes.
    Body(usize),
    /// `<name key="value">body</name>`, likewise.
    Attributes(usize),
}

/// An id, a model, a promise: one word.
const WORD: Shape = Shape::Body(64);
/// The longest body, in bytes.
const LONG: usize = 64 << 10;
/// The longest `<name key="value">`, in bytes.
const LONGEST_OPENING: usize = 1 << 10;

/// A statement about the work as a whole.
pub const PROMISE: SigilKind = SigilKind { name: "promise", shape: Shape::Body(32) };
/// The task of this id is done.
pub const TASK_DONE: SigilKind = SigilKind { name: "task-done", shape: WORD };
/// The task of this id cannot be done.
pub const TASK_FAILED: SigilKind = SigilKind { name: "task-failed", shape: WORD };
/// The model that the next iteration should have.
pub const NEXT_MODEL: SigilKind = SigilKind { name: "next-model", shape: WORD };
/// Notes about this iteration.
pub const JOURNAL: SigilKind = SigilKind { name: "journal", shape: Shape::Body(LONG) };
/// Knowledge for later iterations; with `tags` and a `title`.
pub const KNOWLEDGE: SigilKind = SigilKind { name: "knowledge", shape: Shape::Attributes(LONG) };
/// A verifying agent has found no problem.
pub const VERIFY_PASS: SigilKind = SigilKind { name: "verify-pass", shape: Shape::Empty };
/// A verifying agent has found this problem.
pub const VERIFY_FAIL: SigilKind = SigilKind { name: "verify-fail", shape: Shape::Body(LONG) };

/// A reviewing agent wants no changes.
pub const REVIEW_PASS: SigilKind = SigilKind { name: "review-pass", shape: Shape::Empty };
/// A reviewing agent wants these changes.
pub const REVIEW_CHANGES: SigilKind = SigilKind { name: "review-changes", shape: Shape::Body(LONG) };

/// The kinds that every agent's text is scanned for.
pub const KINDS: &[SigilKind] = &[
    PROMISE,
    TASK_DONE,
    TASK_FAILED,
    NEXT_MODEL,
    JOURNAL,
    KNOWLEDGE,
    VERIFY_PASS,
    VERIFY_FAIL,
    REVIEW_PASS,
    REVIEW_CHANGES,
];

/// What begins at a `<`.
pub(super) enum Start {
    /// No sigil.
    Nothing,
    /// More text is needed.
    Unknown,
    /// A sigil that ends after this many bytes.
    Sigil(Sigil, usize),
}

impl SigilKind {
    /// What begins with `text`, which begins with a `<`.
    pub(super) fn start(self, text: &str) -> Start {
        let begun = &text[1..];
        let Some(rest) = begun.strip_prefix(self.name) else {
            return if self.name.starts_with(begun) { Start::Unknown } else { Start::Nothing };
        };
        match self.shape {
            _ if rest.is_empty() => Start::Unknown,
            Shape::Empty => self.empty(text, rest),
            Shape::Body(longest) => match rest.strip_prefix('>') {
                Some(inside) => self.body(text, inside, Vec::new(), longest),
                None => Start::Nothing,
            },
            Shape::Attributes(longest) => match attributes(rest) {
                Opening::Nothing => Start::Nothing,
                Opening::Unknown => Start::Unknown,
                Opening::Attributes(attributes, inside) => self.body(text, inside, attributes, longest),
            },
        }
    }

    /// `rest` is the text after the name. `<name/>` and `<name></name>` are equal.
    fn empty(self, text: &str, rest: &str) -> Start {
        let end = rest.strip_prefix(' ').unwrap_or(rest);
        let closings = ["/>", &format!("></{}>", self.name)];
        match closings.iter().find_map(|closing| end.strip_prefix(closing)) {
            Some(after) => Start::Sigil(Sigil::new(self, ""), text.len() - after.len()),
            None if closings.iter().any(|closing| closing.starts_with(end)) => Start::Unknown,
            None => Start::Nothing,
        }
    }

    /// `inside` is the text after the opening.
    fn body(self, text: &str, inside: &str, attributes: Vec<(String, String)>, longest: usize) -> Start {
        let (again, closing) = (format!("<{}", self.name), format!("</{}>", self.name));
        let most = longest + closing.len();
        let window = &inside[..inside.floor_char_boundary(most)];
        // If the opening occurs again, the sigil begins there.
        let again = window.match_indices(&again).find_map(|(at, opening)| {
            let behind = window[at + opening.len()..].chars().next();
            behind.is_some_and(|next| next == '>' || next.is_whitespace()).then_some(at)
        });
        match (window.find(&closing), again) {
            (Some(end), again) if end <= longest && again.is_none_or(|again| end < again) => {
                let sigil = Sigil { name: self.name, attributes, body: inside[..end].to_owned() };
                Start::Sigil(sigil, text.len() - inside.len() + end + closing.len())
            }
            (None, None) if inside.len() < most => Start::Unknown,
            _ => Start::Nothing,
        }
    }
}

/// The part between a name and the body.
enum Opening<'a> {
    Nothing,
    Unknown,
    /// The attributes, and the text after them.
    Attributes(Vec<(String, String)>, &'a str),
}

/// Reads ` key="value" …>`, in single or double quotes, or without quotes for a single word.
fn attributes(text: &str) -> Opening<'_> {
    let mut found = Vec::new();
    let mut rest = text;
    let unknown = || if text.len() < LONGEST_OPENING { Opening::Unknown } else { Opening::Nothing };
    loop {
        let next = rest.trim_start();
        if let Some(inside) = next.strip_prefix('>') {
            // A longer one is refused, as it would be if it arrived in pieces.
            let is_short = text.len() - inside.len() <= LONGEST_OPENING;
            return if is_short { Opening::Attributes(found, inside) } else { Opening::Nothing };
        }
        if next.is_empty() {
            return unknown();
        }
        let is_apart = next.len() < rest.len();
        let end = next.find(|char: char| !char.is_ascii_alphanumeric() && char != '-' && char != '_');
        let Some(end) = end else { return unknown() };
        let (key, behind) = next.split_at(end);
        if !is_apart || key.is_empty() {
            return Opening::Nothing;
        }
        let Some(value) = behind.strip_prefix('=') else { return Opening::Nothing };
        let (value, after) = match value.chars().next() {
            None => return unknown(),
            Some(quote @ ('"' | '\'')) => match value[1..].split_once(quote) {
                Some(parts) => parts,
                None => return unknown(),
            },
            Some(_) => match value.find(|char: char| char == '>' || char.is_whitespace()) {
                Some(end) => value.split_at(end),
                None => return unknown(),
            },
        };
        found.push((key.to_owned(), value.to_owned()));
        rest = after;
    }
}
