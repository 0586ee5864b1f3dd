//! Sigils: markers in the assistant's own text, found as the text streams by.
//!
//! A sigil is a name in angle brackets, a short body, and the name again: `<promise>COMPLETE</promise>`. It is a *claim* where
//! it ends its line, else a *mention*: agents talk about their markers while they think. After it only closing decoration
//! may come. In a code span or a quotation only a label may stand before it: `Status: "<promise>COMPLETE</promise>"`. Whether
//! a claim counts depends on the message in which it was made, see [`super::speech`].

mod place;

use std::fmt;

use place::{Line, is_decoration};

/// The assistant claims that everything is done.
pub const COMPLETE: &str = "<promise>COMPLETE</promise>";
/// The assistant says that the plan no longer fits.
pub const REPLAN: &str = "<promise>REPLAN</promise>";

/// How many different sigils of one attempt are kept; an agent that says more is talking about them.
const MOST: usize = 1000;

/// A kind of sigil.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SigilKind {
    /// The name between the brackets.
    pub name: &'static str,
    /// The longest body, in bytes; what is longer is none.
    pub longest: usize,
}

/// What the assistant has to say about the work as a whole.
pub const PROMISE: SigilKind = SigilKind { name: "promise", longest: 32 };
/// The kinds that every agent's text is scanned for.
pub const KINDS: &[SigilKind] = &[PROMISE];

/// One sigil.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sigil {
    /// The name of its kind.
    pub name: &'static str,
    /// What stands between the names.
    pub body: String,
}

impl fmt::Display for Sigil {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, body } = self;
        write!(f, "<{name}>{body}</{name}>")
    }
}

/// A sigil, and how it was said: all its occurrences together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// The sigil.
    pub sigil: Sigil,
    /// It ended its line.
    pub claimed: bool,
    /// It had a line for itself.
    pub alone: bool,
}

/// The sigils of one attempt, in the order in which they were first said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sigils(Vec<Said>);

impl Sigils {
    /// Whether [`COMPLETE`] was claimed.
    #[must_use]
    pub fn complete(&self) -> bool {
        self.claims(PROMISE, "COMPLETE")
    }

    /// Whether [`REPLAN`] was claimed.
    #[must_use]
    pub fn replan(&self) -> bool {
        self.claims(PROMISE, "REPLAN")
    }

    fn claims(&self, kind: SigilKind, body: &str) -> bool {
        let is_it = |said: &&Said| said.sigil.name == kind.name && said.sigil.body == body;
        self.0.iter().find(is_it).is_some_and(|said| said.claimed)
    }

    /// Those that were said and not claimed.
    pub fn mentions(&self) -> impl Iterator<Item = &Sigil> {
        self.0.iter().filter(|said| !said.claimed).map(|said| &said.sigil)
    }

    /// Those that had a line for themselves, claimed or not.
    pub fn alone(&self) -> impl Iterator<Item = &Sigil> {
        self.0.iter().filter(|said| said.alone).map(|said| &said.sigil)
    }

    /// Takes this one for claimed, if it was said.
    pub fn claim(&mut self, sigil: &Sigil) {
        if let Some(said) = self.0.iter_mut().find(|said| said.sigil == *sigil) {
            said.claimed = true;
        }
    }

    /// One more that was said.
    pub(super) fn add(&mut self, said: Said) {
        if let Some(known) = self.0.iter_mut().find(|known| known.sigil == said.sigil) {
            known.claimed |= said.claimed;
            known.alone |= said.alone;
        } else if self.0.len() < MOST {
            self.0.push(said);
        }
    }

    /// The same, none of them claimed.
    pub(super) fn mentioned(self) -> impl Iterator<Item = Said> {
        self.0.into_iter().map(|said| Said { claimed: false, ..said })
    }
}

impl IntoIterator for Sigils {
    type Item = Said;
    type IntoIter = std::vec::IntoIter<Said>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl FromIterator<Sigil> for Sigils {
    /// These are claimed.
    fn from_iter<I: IntoIterator<Item = Sigil>>(sigils: I) -> Self {
        let mut all = Self::default();
        sigils.into_iter().for_each(|sigil| all.add(Said { sigil, claimed: true, alone: false }));
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
    line: Line,
    /// The last sigil, while only decoration follows it on its line.
    last: Option<Said>,
}

impl Default for SigilScanner {
    /// Looks for [`KINDS`].
    fn default() -> Self {
        Self::new(KINDS)
    }
}

/// What begins at a `<`.
enum Start {
    /// Nothing of ours.
    Nothing,
    /// It takes more text to tell.
    Unknown,
    /// A sigil that ends after so many bytes.
    Sigil(Sigil, usize),
}

impl SigilScanner {
    /// A scanner for sigils of these kinds.
    #[must_use]
    pub fn new(kinds: &'static [SigilKind]) -> Self {
        Self { kinds, found: Sigils::default(), open: String::new(), line: Line::default(), last: None }
    }

    /// Scans the next piece of the text.
    pub fn push(&mut self, piece: &str) {
        if self.open.is_empty() {
            self.scan(piece);
        } else {
            let mut text = std::mem::take(&mut self.open);
            text.push_str(piece);
            self.scan(&text);
        }
    }

    /// What was found, if the text ends here.
    #[must_use]
    pub fn sigils(&self) -> Sigils {
        let mut ended = self.clone();
        let open = std::mem::take(&mut ended.open);
        ended.read(&open);
        ended.end_line();
        ended.found
    }

    fn scan(&mut self, text: &str) {
        let mut rest = text;
        while let Some(at) = rest.find('<') {
            self.read(&rest[..at]);
            rest = &rest[at..];
            match self.start(rest) {
                Start::Nothing => {
                    self.read("<");
                    rest = &rest[1..];
                }
                Start::Unknown => return rest.clone_into(&mut self.open),
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
        let first = text.split('\n').next().unwrap_or_default();
        if !first.chars().all(is_decoration) {
            self.mention_last();
        }
        if let Some((_, last)) = text.rsplit_once('\n') {
            self.end_line();
            self.line.read(last);
        } else {
            self.line.read(text);
        }
    }

    fn take(&mut self, sigil: Sigil) {
        self.mention_last();
        let (alone, claimed) = (self.line.is_blank(), self.line.clone().lets_count());
        self.last = Some(Said { sigil, claimed, alone });
        self.line.read_sigil();
    }

    /// Something is said after the last sigil.
    fn mention_last(&mut self) {
        if let Some(last) = self.last.take() {
            self.found.add(Said { claimed: false, alone: false, ..last });
        }
    }

    /// Nothing is said after the last sigil.
    fn end_line(&mut self) {
        if let Some(last) = self.last.take() {
            self.found.add(last);
        }
        self.line = Line::default();
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

impl SigilKind {
    fn start(self, text: &str) -> Start {
        let Self { name, longest } = self;
        let begun = &text[1..];
        let Some(inside) = begun.strip_prefix(name).and_then(|rest| rest.strip_prefix('>')) else {
            let may_come = name.starts_with(begun);
            return if may_come { Start::Unknown } else { Start::Nothing };
        };
        let (opening, closing) = (format!("<{name}>"), format!("</{name}>"));
        let most = longest + closing.len();
        let window = &inside[..inside.floor_char_boundary(most)];
        match (window.find(&closing), window.find(&opening)) {
            // One that begins again begins there.
            (Some(end), again) if end <= longest && again.is_none_or(|again| end < again) => {
                let sigil = Sigil { name, body: inside[..end].to_owned() };
                Start::Sigil(sigil, opening.len() + end + closing.len())
            }
            (None, None) if inside.len() < most => Start::Unknown,
            _ => Start::Nothing,
        }
    }
}

#[cfg(test)]
mod tests;
