//! Decides from the line before a sigil whether the sigil can be a claim.

use super::denial::Denial;
use super::element::{Element, ElementLine};
use super::fence::{Fence, FenceLine};
use super::{Objection, QUOTES, SINGLE_QUOTES, Sigil, is_decoration};

/// The most words of a label: `Status of the loop:`.
const LABEL: u32 = 4;

/// A part of the text in which markers are examples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Block {
    Fence(Fence),
    Element(Element),
}

/// The state of a line up to the current position. Its size does not depend on the line's length.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own about the line")]
pub(super) struct LineState {
    words: u32,
    /// It contains the end of a sentence or clause.
    has_sentence: bool,
    /// Its last character except decoration is a colon.
    ends_in_colon: bool,
    last: Option<char>,
    /// The number of backticks that opened a code span.
    code: Option<u32>,
    /// The number of backticks at its end.
    backticks: u32,
    /// Whether a quotation is open.
    quoted: bool,
    single: Single,
    /// Whether it is a Markdown quotation, with a `>`.
    block_quoted: bool,
    denial: Denial,
    fence: FenceLine,
    element: ElementLine,
}

/// The state of single quotes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Single {
    #[default]
    Closed,
    Open,
    /// The last character closes it, unless a letter follows, which makes it an apostrophe.
    Closing,
}

impl LineState {
    /// Reads text without newlines.
    pub(super) fn read(&mut self, text: &str) {
        text.chars().for_each(|char| self.take(char));
    }

    /// Reads a sigil, which counts as text.
    pub(super) fn read_sigil(&mut self) {
        self.read("x");
    }

    /// Whether there is no text before, and no quotation.
    pub(super) fn is_alone(&self) -> bool {
        self.words == 0 && !self.is_quoted()
    }

    /// Why a sigil here cannot be a claim; `None` if it can.
    pub(super) fn objection(&self, sigil: &Sigil) -> Option<Objection> {
        let mut line = self.clone();
        line.settle_backticks();
        let is_label = line.ends_in_colon && !line.has_sentence && line.words <= LABEL;
        let is_apart = line.words == 0 || line.code.is_none() || is_label;
        if !is_apart || line.is_quoted() {
            Some(Objection::Quoted)
        } else {
            line.denial.denies(sigil).then_some(Objection::Denied)
        }
    }

    /// The state for the next line. A denial before a colon at the end applies there, too, and one whose sentence goes
    /// on there: "I will not say".
    pub(super) fn next(self) -> Self {
        let goes_on = self.words == 0 || self.ends_in_colon || self.denial.is_about_to_say();
        let denial = if goes_on { self.denial.on_next_line() } else { Denial::default() };
        Self { denial, ..Self::default() }
    }

    /// The open block after this line; `open` is the one before it. There is none inside another one.
    pub(super) fn block_behind(&self, open: Option<Block>) -> Option<Block> {
        let fence = |open| self.fence.behind(open).map(Block::Fence);
        let element = |open| self.element.behind(open).map(Block::Element);
        match open {
            Some(Block::Fence(open)) => fence(Some(open)),
            Some(Block::Element(open)) => element(Some(open)),
            None => fence(None).or_else(|| element(None)),
        }
    }

    fn is_quoted(&self) -> bool {
        self.quoted || self.single == Single::Open || self.block_quoted
    }

    fn take(&mut self, char: char) {
        self.fence.take(char);
        self.element.take(char);
        self.denial.take(char);
        // An arrow is not a quotation.
        let is_first = self.words == 0 && self.last.is_none_or(|last| last.is_whitespace() || last == '>');
        self.block_quoted |= char == '>' && is_first;
        if char == '`' {
            self.backticks += 1;
        } else {
            self.settle_backticks();
        }
        self.quoted ^= QUOTES.contains(&char);
        self.take_single(char);
        if char.is_alphanumeric() && !self.last.is_some_and(char::is_alphanumeric) {
            self.words = self.words.saturating_add(1);
        }
        if !is_decoration(char) {
            self.has_sentence |= matches!(char, '.' | '!' | '?' | ';' | ',');
            self.ends_in_colon = char == ':';
        }
        self.last = Some(char);
    }

    fn take_single(&mut self, char: char) {
        if self.single == Single::Closing {
            self.single = if char.is_alphanumeric() { Single::Open } else { Single::Closed };
        }
        if SINGLE_QUOTES.contains(&char) {
            self.single = match self.single {
                Single::Open => Single::Closing,
                // After a letter it is an apostrophe.
                Single::Closed if !self.last.is_some_and(char::is_alphanumeric) => Single::Open,
                other => other,
            };
        }
    }

    /// Backticks open a code span, which the same number of them closes.
    fn settle_backticks(&mut self) {
        match (std::mem::take(&mut self.backticks), self.code) {
            (0, _) => {}
            (count, None) => self.code = Some(count),
            (count, Some(open)) if count == open => self.code = None,
            _ => {}
        }
    }
}
