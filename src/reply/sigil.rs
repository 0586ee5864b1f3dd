//! Sigils: markers in the assistant's own text, found as the text streams by.
//!
//! A sigil is a name in angle brackets, a body, and the name again: `<promise>COMPLETE</promise>`; some have attributes behind
//! the name, some are nothing but a name: `<verify-pass/>`. It is a *claim* where it ends its line, else a *mention*: agents talk
//! about their markers while they think. After it only closing decoration may come. In a code span only a label may stand before
//! it: ``Status: `<promise>COMPLETE</promise>` ``. In a quotation, in a fenced block of code, and behind words that deny it, it is
//! a mention; an [`Objection`] says why. Whether a claim counts depends on the message in which it was made, see [`super::speech`].

mod denial;
mod fence;
mod kind;
mod place;

use std::fmt;

use fence::Fence;
use kind::Start;
pub use kind::{JOURNAL, KINDS, KNOWLEDGE, NEXT_MODEL, PROMISE, SigilKind, TASK_DONE, TASK_FAILED};
pub use kind::{REVIEW_CHANGES, REVIEW_PASS, VERIFY_FAIL, VERIFY_PASS};
use place::LineState;

/// The assistant claims that everything is done.
pub const COMPLETE: &str = "<promise>COMPLETE</promise>";
/// The assistant says that the plan no longer fits.
pub const REPLAN: &str = "<promise>REPLAN</promise>";

/// The assistant says that it cannot go on at all.
pub const FAILURE: &str = "<promise>FAILURE</promise>";

/// What opens and closes a quotation; single ones are also apostrophes.
const QUOTES: [char; 6] = ['"', '“', '”', '„', '«', '»'];
const SINGLE_QUOTES: [char; 3] = ['\'', '‘', '’'];
/// How many different sigils of one attempt are kept; an agent that says more is talking about them.
const MOST: usize = 1000;
/// How many bytes they may have together.
const MOST_BYTES: usize = 1 << 20;

/// What may stand around a sigil without saying anything.
fn is_decoration(char: char) -> bool {
    // What could not be read says nothing.
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
    /// What stands behind the first name, in the order in which it stands there.
    pub attributes: Vec<(String, String)>,
    /// What stands between the names.
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
    /// It does not end its line, or is in a message before the last one.
    Place,
    /// It is in a quotation, or in a code span behind words that are no label.
    Quoted,
    /// It is in a fenced block of code.
    Code,
    /// The words before it deny it.
    Denied,
}

/// A sigil, and how it was said: all its occurrences together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// The sigil.
    pub sigil: Sigil,
    /// The line that it ended the last time it was claimed; lines count through all messages.
    pub claimed: Option<u64>,
    /// It had a line for itself, and was not quoted.
    pub alone: bool,
    /// The line on which it was said last.
    pub line: u64,
    /// Why it was no claim there.
    pub objection: Option<Objection>,
}

/// The sigils of one attempt, in the order in which they were first said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sigils {
    all: Vec<Said>,
    /// How many bytes their bodies have.
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

    /// The sigils of a kind that were claimed.
    pub fn claimed(&self, kind: SigilKind) -> impl Iterator<Item = &Sigil> {
        self.of(kind).filter(|said| said.claimed.is_some()).map(|said| &said.sigil)
    }

    /// Whether a sigil of a kind was claimed whose body is this id.
    #[must_use]
    pub fn names(&self, kind: SigilKind, id: &str) -> bool {
        self.claimed(kind).any(|sigil| sigil.body.trim() == id)
    }

    /// Whether the task of this id is claimed to be done, and not to have failed as well: in doubt a problem is believed.
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

    /// What a verifying agent has found: `Ok` where it has passed, else why it has not. `None`: it said neither.
    #[must_use]
    pub fn verification(&self) -> Option<Result<(), &str>> {
        self.judgement(VERIFY_PASS, VERIFY_FAIL)
    }

    /// What a reviewing agent thinks: `Ok` where it wants no changes, else which. `None`: it said neither.
    #[must_use]
    pub fn review(&self) -> Option<Result<(), &str>> {
        self.judgement(REVIEW_PASS, REVIEW_CHANGES)
    }

    /// The last claim decides; who claims both on one line has not made up its mind.
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

    /// Those that were said and not claimed.
    pub fn mentions(&self) -> impl Iterator<Item = &Said> {
        self.all.iter().filter(|said| said.claimed.is_none())
    }

    /// Those that had a line for themselves, claimed or not.
    pub fn alone(&self) -> impl Iterator<Item = &Sigil> {
        self.all.iter().filter(|said| said.alone).map(|said| &said.sigil)
    }

    /// Takes this one for claimed where it was said last, if it was.
    pub fn claim(&mut self, sigil: &Sigil) {
        if let Some(said) = self.all.iter_mut().find(|said| said.sigil == *sigil) {
            said.claimed = Some(said.line);
        }
    }

    /// One more that was said.
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

    /// The same with other words in the place of theirs; what they claim stays.
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

    /// The same, none of them claimed.
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
    /// These are claimed, each on a line of its own.
    fn from_iter<I: IntoIterator<Item = Sigil>>(sigils: I) -> Self {
        let mut all = Self::default();
        for (sigil, line) in sigils.into_iter().zip(0..) {
            all.add(Said { sigil, claimed: Some(line), alone: false, line, objection: None });
        }
        all
    }
}

/// Finds sigils in text that arrives in pieces, as if the pieces were one text without anything between them.
#[derive(Clone, Debug)]
pub struct SigilScanner {
    kinds: &'static [SigilKind],
    found: Sigils,
    /// The end of the text so far, from where a sigil may have begun.
    open: String,
    /// The line before that.
    line: LineState,
    /// The number of that line.
    number: u64,
    /// The last sigil, while only decoration follows it on its line.
    last: Option<Said>,
    /// The block of code in which that line is.
    fence: Option<Fence>,
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
        Self { kinds, found, open, line, number: 0, last: None, fence: None }
    }

    /// Begins another text, whose lines come after those of this one, and returns what was found in this one.
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

    /// What was found, if the text ends here.
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

    /// Scans text, behind which nothing comes if `is_end`.
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

    /// Reads text without a sigil in it.
    fn read(&mut self, text: &str) {
        let mut lines = text.split('\n');
        let first = lines.next().unwrap_or_default();
        if !first.chars().all(is_decoration) {
            self.mention_last(Objection::Place);
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
        // It is where it ends.
        self.number += newlines(&sigil.body);
        let line = self.number;
        self.last =
            Some(Said { sigil, claimed: objection.is_none().then_some(line), alone, line, objection });
        self.line.read_sigil();
    }

    /// The last sigil is none that counts, for this reason.
    fn mention_last(&mut self, objection: Objection) {
        if let Some(last) = self.last.take() {
            self.found.add(Said { claimed: None, alone: false, objection: Some(objection), ..last });
        }
    }

    /// Nothing is said after the last sigil. In a block of code it is an example.
    fn end_line(&mut self) {
        let open = self.line.fence_behind(self.fence);
        if self.fence.is_some() || open.is_some() {
            self.mention_last(Objection::Code);
        } else if let Some(last) = self.last.take() {
            self.found.add(last);
        }
        self.fence = open;
        self.line = std::mem::take(&mut self.line).next();
    }

    /// What begins with `text`, which begins with a `<`.
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
