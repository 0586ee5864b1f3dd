//! The line before a sigil: whether it lets the sigil count.

use super::denial::Denial;
use super::fence::{Fence, FenceLine};
use super::{Objection, QUOTES, SINGLE_QUOTES, Sigil, is_decoration};

/// A label has at most this many words: `Status of the loop:`.
const LABEL: u32 = 4;

/// What is known of a line up to where it is read. It takes as much memory for a long line as for a short one.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own about the line")]
pub(super) struct LineState {
    words: u32,
    /// Something in it ends a sentence or a part of one.
    has_sentence: bool,
    /// The last character that is no decoration is a colon.
    ends_in_colon: bool,
    last: Option<char>,
    /// As many backticks have opened a code span.
    code: Option<u32>,
    /// As many backticks in a row stand at the end.
    backticks: u32,
    /// A quotation is open.
    quoted: bool,
    single: Single,
    /// It begins as a quotation does in Markdown, with a `>`.
    block_quoted: bool,
    denial: Denial,
    fence: FenceLine,
}

/// What single quotes have opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Single {
    #[default]
    Closed,
    Open,
    /// The last character closes it, unless a letter follows: then it is an apostrophe.
    Closing,
}

impl LineState {
    /// Reads on; `text` has no newline.
    pub(super) fn read(&mut self, text: &str) {
        text.chars().for_each(|char| self.take(char));
    }

    /// Reads a sigil: it says something, too.
    pub(super) fn read_sigil(&mut self) {
        self.read("x");
    }

    /// Nothing is said before, and nothing is quoted.
    pub(super) fn is_alone(&self) -> bool {
        self.words == 0 && !self.is_quoted()
    }

    /// Why this sigil may not count where it comes next; `None`: it may.
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

    /// The line after this one. What this one denies at its end, in a colon, it denies there.
    pub(super) fn next(self) -> Self {
        let goes_on = self.words == 0 || self.ends_in_colon;
        let denial = if goes_on { self.denial.on_next_line() } else { Denial::default() };
        Self { denial, ..Self::default() }
    }

    /// The block of code that is open behind this line, where `open` was before it.
    pub(super) fn fence_behind(&self, open: Option<Fence>) -> Option<Fence> {
        self.fence.behind(open)
    }

    fn is_quoted(&self) -> bool {
        self.quoted || self.single == Single::Open || self.block_quoted
    }

    fn take(&mut self, char: char) {
        self.fence.take(char);
        self.denial.take(char);
        // An arrow is none.
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
                // What follows a letter is an apostrophe.
                Single::Closed if !self.last.is_some_and(char::is_alphanumeric) => Single::Open,
                other => other,
            };
        }
    }

    /// Backticks open a code span, and as many of them close it.
    fn settle_backticks(&mut self) {
        match (std::mem::take(&mut self.backticks), self.code) {
            (0, _) => {}
            (count, None) => self.code = Some(count),
            (count, Some(open)) if count == open => self.code = None,
            _ => {}
        }
    }
}
