//! Fences: lines that begin and end a block of code.

/// What a line begins with, as far as a fence may begin or end there.
#[derive(Clone, Copy, Debug, Default)]
enum Beginning {
    /// Only blanks and the sign of a list.
    #[default]
    Blank,
    /// So many backticks or tildes.
    Marks(Fence),
    /// Something behind those.
    Text { fence: Fence, has_backtick: bool, is_blank: bool },
    /// Something else.
    Other,
}

/// An open block of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fence {
    mark: char,
    count: u32,
}

/// How many marks make a fence.
const LEAST: u32 = 3;

/// A line, as far as it may be a fence.
#[derive(Clone, Debug, Default)]
pub(super) struct FenceLine(Beginning);

impl FenceLine {
    pub(super) fn take(&mut self, char: char) {
        self.0 = match self.0 {
            Beginning::Blank if matches!(char, '`' | '~') => Beginning::Marks(Fence { mark: char, count: 1 }),
            Beginning::Blank if char.is_whitespace() || matches!(char, '-' | '*' | '+') => Beginning::Blank,
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
    }

    /// The block that is open behind this line, where `open` was before it. Source: `CommonMark`, "Fenced code blocks".
    pub(super) fn behind(&self, open: Option<Fence>) -> Option<Fence> {
        let (fence, has_backtick, is_blank) = match self.0 {
            Beginning::Marks(fence) if fence.count >= LEAST => (fence, false, true),
            Beginning::Text { fence, has_backtick, is_blank } => (fence, has_backtick, is_blank),
            _ => return open,
        };
        match open {
            // With backticks behind it, it is a code span.
            None => (fence.mark == '~' || !has_backtick).then_some(fence),
            Some(open) => (fence.mark != open.mark || fence.count < open.count || !is_blank).then_some(open),
        }
    }
}
