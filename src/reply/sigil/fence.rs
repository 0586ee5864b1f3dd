//! Fences of code blocks.

/// The beginning of a line, as far as a fence may be there.
#[derive(Clone, Copy, Debug)]
enum Beginning {
    /// Only blanks, list signs and quotation signs.
    Signs,
    /// A number, which is a list sign if a full stop or a bracket follows.
    Number,
    /// This many backticks or tildes.
    Marks(Fence),
    /// Text after those.
    Text { fence: Fence, has_backtick: bool, is_blank: bool },
    /// Anything else.
    Other,
}

/// An open code block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fence {
    mark: char,
    count: u32,
    /// The number of characters before it on its line.
    indent: u32,
    /// Whether it is in a quotation, which also ends it.
    quoted: bool,
    /// The number of blocks open inside it. `CommonMark` has none, but agents print them.
    inner: u32,
}

/// The least number of marks of a fence.
const LEAST: u32 = 3;
/// A line indented by this many blanks more than its block is code, and ends no block.
const CODE_INDENT: u32 = 4;

/// The state of a line that may be a fence.
#[derive(Clone, Debug)]
pub(super) struct FenceLine {
    beginning: Beginning,
    indent: u32,
    quoted: bool,
}

impl Default for FenceLine {
    fn default() -> Self {
        Self { beginning: Beginning::Signs, indent: 0, quoted: false }
    }
}

impl FenceLine {
    pub(super) fn take(&mut self, char: char) {
        self.beginning = match self.beginning {
            Beginning::Signs if matches!(char, '`' | '~') => {
                let Self { indent, quoted, .. } = *self;
                Beginning::Marks(Fence { mark: char, count: 1, indent, quoted, inner: 0 })
            }
            Beginning::Signs if char.is_whitespace() || matches!(char, '-' | '*' | '+' | '>') => {
                self.quoted |= char == '>';
                Beginning::Signs
            }
            Beginning::Signs | Beginning::Number if char.is_ascii_digit() => Beginning::Number,
            Beginning::Number if matches!(char, '.' | ')') => Beginning::Signs,
            Beginning::Marks(fence) if char == fence.mark => {
                Beginning::Marks(Fence { count: fence.count.saturating_add(1), ..fence })
            }
            Beginning::Marks(fence) if fence.count >= LEAST => {
                Beginning::Text { fence, has_backtick: char == '`', is_blank: char.is_whitespace() }
            }
            Beginning::Text { fence, has_backtick, is_blank } => Beginning::Text {
                fence,
                has_backtick: has_backtick || char == '`',
                is_blank: is_blank && char.is_whitespace(),
            },
            _ => Beginning::Other,
        };
        self.indent = self.indent.saturating_add(1);
    }

    /// The open block after this line; `open` is the one before it. Source: `CommonMark`, "Fenced code blocks".
    ///
    /// A fence after more than three blanks counts as well, because it may be in a list. At worst that costs a claim.
    pub(super) fn behind(&self, open: Option<Fence>) -> Option<Fence> {
        let open = open.filter(|open| !open.quoted || self.quoted);
        let (fence, has_backtick, is_blank) = match self.beginning {
            Beginning::Marks(fence) if fence.count >= LEAST => (fence, false, true),
            Beginning::Text { fence, has_backtick, is_blank } => (fence, has_backtick, is_blank),
            _ => return open,
        };
        // Backticks later in the line make it a code span.
        let is_fence = fence.mark == '~' || !has_backtick;
        let Some(open) = open else { return is_fence.then_some(fence) };
        if !is_fence || fence.quoted != open.quoted || fence.mark != open.mark || fence.count < open.count {
            return Some(open);
        }
        match (is_blank, open.inner) {
            (false, inner) => Some(Fence { inner: inner.saturating_add(1), ..open }),
            (true, 0) => (fence.indent >= open.indent.saturating_add(CODE_INDENT)).then_some(open),
            (true, inner) => Some(Fence { inner: inner - 1, ..open }),
        }
    }
}
