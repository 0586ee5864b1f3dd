//! Sigils: markers in the assistant's own text, found while the text streams in.
//!
//! A sigil is a name in angle brackets, a body, and the name again: `<promise>COMPLETE</promise>`; some have
//! attributes after the name, some are only a name: `<verify-pass/>`. It is a *claim* if it ends its line, else a
//! *mention*, because agents also talk about their markers. Only closing decoration may follow it. In a code span,
//! only a label may precede it: ``Status: `<promise>COMPLETE</promise>` ``. In a quotation, in a block for code or
//! examples, and after words that deny it, it is a mention; an [`Objection`] says why. Whether a claim counts depends
//! on its message, see [`super::speech`].

mod denial;
mod element;
mod fence;
mod kind;
mod place;

use std::fmt;

use kind::Start;
pub use kind::{JOURNAL, KINDS, KNOWLEDGE, NEXT_MODEL, PROMISE, SigilKind, TASK_DONE, TASK_FAILED};
pub use kind::{REVIEW_CHANGES, REVIEW_PASS, VERIFY_FAIL, VERIFY_PASS};
use place::{Block, LineState};

/// The assistant claims that everything is done.
pub const COMPLETE: &str = "<promise>COMPLETE</promise>";
/// The assistant says that the plan no longer fits.
pub const REPLAN: &str = "<promise>REPLAN</promise>";

/// The assistant says that it cannot continue at all.
pub const FAILURE: &str = "<promise>FAILURE</promise>";

/// Quotation marks; single ones are also apostrophes.
const QUOTES: [char; 6] = ['"', '“', '”', '„', '«', '»'];
const SINGLE_QUOTES: [char; 3] = ['\'', '‘', '’'];
/// The most different sigils of one attempt that are kept; an agent with more is talking about them.
const MOST: usize = 1000;
/// The limit for all their bodies in bytes.
const MOST_BYTES: usize = 1 << 20;

/// Whether a character around a sigil is only decoration.
fn is_decoration(char: char) -> bool {
    // U+FFFD replaces unreadable bytes.
    matches!(
        char,
        '*' | '_' | '`' | '(' | ')' | '[' | ']' | '{' | '}' | '<' | '>' | char::REPLACEMENT_CHARACTER
    ) || QUOTES.contains(&char)
        || SINGLE_QUOTES.contains(&char)
        || char.is_whitespace()
}

/// One sigil.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sigil {
    /// The name of its kind.
    pub name: &'static str,
    /// Its attributes in order.
    pub attributes: Vec<(String, String)>,
    /// The text between the names.
    pub body: String,
}

impl Sigil {
    /// The sigil of this kind with this body.
    #[must_use]
    pub fn new(kind: SigilKind, body: &str) -> Self {
        Self { name: kind.name, attributes: Vec::new(), body: body.to_owned() }
    }

    /// The value of an attribute.
    #[must_use]
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

impl fmt::Display for Sigil {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, attributes, body } = self;
        write!(f, "<{name}")?;
        for (name, value) in attributes {
            write!(f, " {name}=\"{value}\"")?;
        }
        if [VERIFY_PASS, REVIEW_PASS].iter().any(|kind| kind.name == *name) {
            f.write_str("/>")
        } else {
            write!(f, ">{body}</{name}>")
        }
    }
}

/// Why a sigil is a mention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Objection {
    /// It does not end its line, or is in an earlier message.
    Place,
    /// It is in a quotation, or in a code span after words that are no label.
    Quoted,
    /// It is in a fenced code block, or in an element such as `<pre>`.
    Code,
    /// The words before it deny it.
    Denied,
}

/// A sigil with all its occurrences.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// The sigil.
    pub sigil: Sigil,
    /// The line of its last claim; lines count through all messages.
    pub claimed: Option<u64>,
    /// Whether it had its own line, and was not quoted.
    pub alone: bool,
    /// The line of its last occurrence.
    pub line: u64,
    /// Why that occurrence was no claim.
    pub objection: Option<Objection>,
}

/// The sigils of one attempt, in the order of their first occurrence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sigils {
    all: Vec<Said>,
    /// The total size of their bodies.
    bytes: usize,
}

impl Sigils {
    /// Whether [`COMPLETE`] was claimed.
    #[must_use]
    pub fn complete(&self) -> bool {
        self.promises("COMPLETE")
    }

    /// Whether [`REPLAN`] was claimed.
    #[must_use]
    pub fn replan(&self) -> bool {
        self.promises("REPLAN")
    }

    /// Whether [`FAILURE`] was claimed.
    #[must_use]
    pub fn failure(&self) -> bool {
        self.promises("FAILURE")
    }

    fn promises(&self, body: &str) -> bool {
        self.claimed(PROMISE).any(|sigil| sigil.body == body)
    }

    /// The claimed sigils of a kind.
    pub fn claimed(&self, kind: SigilKind) -> impl Iterator<Item = &Sigil> {
        self.of(kind).filter(|said| said.claimed.is_some()).map(|said| &said.sigil)
    }

    /// Whether a sigil of a kind with this id as its body was claimed.
    #[must_use]
    pub fn names(&self, kind: SigilKind, id: &str) -> bool {
        self.claimed(kind).any(|sigil| sigil.body.trim() == id)
    }

    /// Whether the task with this id is claimed to be done, and not also to have failed: in doubt, the failure
    /// counts.
    #[must_use]
    pub fn claims_done(&self, id: &str) -> bool {
        self.names(TASK_DONE, id) && !self.names(TASK_FAILED, id)
    }

    /// The sigils of a kind, claimed or not.
    pub fn said(&self, kind: SigilKind) -> impl Iterator<Item = &Sigil> {
        self.of(kind).map(|said| &said.sigil)
    }

    fn of(&self, kind: SigilKind) -> impl Iterator<Item = &Said> {
        self.all.iter().filter(move |said| said.sigil.name == kind.name)
    }

    /// The verdict of a verifying agent: `Ok` if the task passed, else the reason. `None` without a verdict.
    #[must_use]
    pub fn verification(&self) -> Option<Result<(), &str>> {
        self.judgement(VERIFY_PASS, VERIFY_FAIL)
    }

    /// The verdict of a reviewing agent: `Ok` if it wants no changes, else the changes. `None` without a verdict.
    #[must_use]
    pub fn review(&self) -> Option<Result<(), &str>> {
        self.judgement(REVIEW_PASS, REVIEW_CHANGES)
    }

    /// The last claim counts; both claims on one line give no verdict.
    fn judgement(&self, pass: SigilKind, fail: SigilKind) -> Option<Result<(), &str>> {
        let failed = self.of(fail);
        let last = |said: &&Said| said.claimed;
        let passed = self.of(pass).filter_map(|said| said.claimed).max();
        let doubt = self.of(fail).find(|said| passed == Some(said.line));
        let failed = failed.filter(|said| said.claimed.is_some()).max_by_key(last);
        match (passed, failed.or(doubt)) {
            (None, None) => None,
            (Some(passed), Some(fail)) if Some(passed) > fail.claimed && doubt.is_none() => Some(Ok(())),
            (Some(_), None) => Some(Ok(())),
            (_, Some(fail)) => Some(Err(fail.sigil.body.trim())),
        }
    }

    /// The sigils that were not claimed.
    pub fn mentions(&self) -> impl Iterator<Item = &Said> {
        self.all.iter().filter(|said| said.claimed.is_none())
    }

    /// The sigils with a line of their own, claimed or not.
    pub fn alone(&self) -> impl Iterator<Item = &Sigil> {
        self.all.iter().filter(|said| said.alone).map(|said| &said.sigil)
    }

    /// Makes this sigil's last occurrence a claim, if it occurred.
    pub fn claim(&mut self, sigil: &Sigil) {
        if let Some(said) = self.all.iter_mut().find(|said| said.sigil == *sigil) {
            said.claimed = Some(said.line);
        }
    }

    /// Adds an occurrence.
    pub(super) fn add(&mut self, said: Said) {
        let bytes = self.bytes + said.sigil.body.len();
        if let Some(known) = self.all.iter_mut().find(|known| known.sigil == said.sigil) {
            known.claimed = known.claimed.max(said.claimed);
            known.alone |= said.alone;
            if said.line >= known.line {
                (known.line, known.objection) = (said.line, said.objection);
            }
        } else if self.all.len() < MOST && bytes <= MOST_BYTES {
            self.bytes = bytes;
            self.all.push(said);
        }
    }

    /// Replaces texts; claims stay claims.
    #[must_use]
    pub fn with_texts(mut self, words: impl Fn(&str) -> String) -> Self {
        for Said { sigil: Sigil { attributes, body, .. }, .. } in &mut self.all {
            *body = words(body);
            for (_, value) in attributes {
                *value = words(value);
            }
        }
        self
    }

    /// Turns all claims into mentions.
    pub(super) fn mentioned(self) -> impl Iterator<Item = Said> {
        self.all.into_iter().map(|said| Said {
            claimed: None,
            objection: said.objection.or(Some(Objection::Place)),
            ..said
        })
    }
}

impl IntoIterator for Sigils {
    type Item = Said;
    type IntoIter = std::vec::IntoIter<Said>;

    fn into_iter(self) -> Self::IntoIter {
        self.all.into_iter()
    }
}

impl FromIterator<Sigil> for Sigils {
    /// Each sigil becomes a claim on its own line.
    fn from_iter<I: IntoIterator<Item = Sigil>>(sigils: I) -> Self {
        let mut all = Self::default();
        for (sigil, line) in sigils.into_iter().zip(0..) {
            all.add(Said { sigil, claimed: Some(line), alone: false, line, objection: None });
        }
        all
    }
}

/// Finds sigils in text that arrives in pieces, as if the pieces were joined without a separator.
#[derive(Clone, Debug)]
pub struct SigilScanner {
    kinds: &'static [SigilKind],
    found: Sigils,
    /// The end of the text so far, from the possible beginning of a sigil.
    open: String,
    /// The state of the line before that.
    line: LineState,
    /// The number of that line.
    number: u64,
    /// The last sigil, as long as only decoration follows it on its line.
    last: Option<Said>,
    /// The block that was open before that line.
    block: Option<Block>,
}

impl Default for SigilScanner {
    /// Looks for [`KINDS`].
    fn default() -> Self {
        Self::new(KINDS)
    }
}

impl SigilScanner {
    /// A scanner for sigils of these kinds.
    #[must_use]
    pub fn new(kinds: &'static [SigilKind]) -> Self {
        let (found, open, line) = (Sigils::default(), String::new(), LineState::default());
        Self { kinds, found, open, line, number: 0, last: None, block: None }
    }

    /// Begins another text, with continued line numbers, and returns the sigils of the last one.
    pub(super) fn begin(&mut self) -> Sigils {
        self.end_text();
        let next = Self { number: self.number + 1, ..Self::new(self.kinds) };
        std::mem::replace(self, next).found
    }

    /// Scans the next piece of the text.
    pub fn push(&mut self, piece: &str) {
        if self.open.is_empty() {
            self.scan(piece, false);
        } else {
            let mut text = std::mem::take(&mut self.open);
            text.push_str(piece);
            self.scan(&text, false);
        }
    }

    /// The sigils, if the text ends here.
    #[must_use]
    pub fn sigils(&self) -> Sigils {
        let mut ended = self.clone();
        ended.end_text();
        ended.found
    }

    fn end_text(&mut self) {
        let open = std::mem::take(&mut self.open);
        self.scan(&open, true);
        self.end_line();
    }

    /// Scans text; `is_end` if nothing follows.
    fn scan(&mut self, text: &str, is_end: bool) {
        let mut rest = text;
        while let Some(at) = rest.find('<') {
            self.read(&rest[..at]);
            rest = &rest[at..];
            match self.start(rest) {
                Start::Unknown if !is_end => return rest.clone_into(&mut self.open),
                Start::Nothing | Start::Unknown => {
                    self.read("<");
                    rest = &rest[1..];
                }
                Start::Sigil(sigil, end) => {
                    self.take(sigil);
                    rest = &rest[end..];
                }
            }
        }
        self.read(rest);
    }

    /// Reads text without a sigil.
    fn read(&mut self, text: &str) {
        let mut lines = text.split('\n');
        let first = lines.next().unwrap_or_default();
        if !first.chars().all(is_decoration) {
            self.mention_last(Objection::Place);
        } else if first.contains(QUOTES)
            && let Some(last) = &mut self.last
        {
            // It closes a quotation of several lines, unless more than decoration follows.
            (last.claimed, last.alone, last.objection) = (None, false, Some(Objection::Quoted));
        }
        self.line.read(first);
        for line in lines {
            self.end_line();
            self.number += 1;
            self.line.read(line);
        }
    }

    fn take(&mut self, sigil: Sigil) {
        self.mention_last(Objection::Place);
        let objection = self.line.objection(&sigil);
        let alone = self.line.is_alone() && objection.is_none();
        // Its line is the one on which it ends.
        self.number += newlines(&sigil.body);
        let line = self.number;
        for text in sigil.body.split('\n').skip(1) {
            self.line = std::mem::take(&mut self.line).next();
            self.line.read(text);
        }
        self.last =
            Some(Said { sigil, claimed: objection.is_none().then_some(line), alone, line, objection });
        self.line.read_sigil();
    }

    /// Makes the last sigil a mention, for this reason.
    fn mention_last(&mut self, objection: Objection) {
        if let Some(last) = self.last.take() {
            self.found.add(Said { claimed: None, alone: false, objection: Some(objection), ..last });
        }
    }

    /// Settles the last sigil at the end of its line. In a code block it is an example.
    fn end_line(&mut self) {
        let open = self.line.block_behind(self.block);
        if self.block.is_some() || open.is_some() {
            self.mention_last(Objection::Code);
        } else if let Some(last) = self.last.take() {
            self.found.add(last);
        }
        self.block = open;
        self.line = std::mem::take(&mut self.line).next();
    }

    /// The sigil that begins with `text`, which begins with a `<`.
    fn start(&self, text: &str) -> Start {
        let mut start = Start::Nothing;
        for kind in self.kinds {
            match kind.start(text) {
                Start::Nothing => {}
                Start::Unknown => start = Start::Unknown,
                sigil @ Start::Sigil(..) => return sigil,
            }
        }
        start
    }
}

fn newlines(text: &str) -> u64 {
    text.bytes().filter(|&byte| byte == b'\n').count() as u64
}

#[cfg(test)]
mod tests;
