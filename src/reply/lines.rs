//! Splits a stream of bytes, cut anywhere, into lines.

use std::io::BufRead as _;

/// Longer lines, in bytes, are counted and not parsed, unless [another limit](Lines::of_at_most) was set.
pub const MAX_LINE: usize = 16 << 20;

/// How much of an oversized line is kept, in bytes: enough to see its type.
const HEAD: usize = 4096;
/// A buffer larger than this, in bytes, is freed after a long line.
const KEEP_BUFFER: usize = 1 << 20;

/// A line without its newline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamLine<'a> {
    /// A whole line.
    Whole(&'a [u8]),
    /// The beginning of an oversized line.
    Head(&'a [u8]),
}

/// Splits a stream into lines. A line that arrives whole is not copied.
#[derive(Debug)]
pub struct Lines {
    /// The start of an unfinished line.
    partial: Vec<u8>,
    /// The current line is oversized; its end is awaited.
    skipping: bool,
    limit: usize,
}

impl Default for Lines {
    fn default() -> Self {
        Self::of_at_most(MAX_LINE)
    }
}

impl Lines {
    /// Lines with another limit in bytes.
    #[must_use]
    pub fn of_at_most(limit: usize) -> Self {
        Self { partial: Vec::new(), skipping: false, limit }
    }

    /// Takes the next bytes, and passes on each line that they complete.
    pub fn take(&mut self, mut bytes: &[u8], mut line: impl FnMut(StreamLine<'_>)) {
        while !bytes.is_empty() {
            let mut rest = bytes;
            // Searching a slice cannot fail.
            let length = rest.skip_until(b'\n').unwrap_or(bytes.len());
            let (piece, ended) = match bytes[..length].strip_suffix(b"\n") {
                Some(piece) => (piece, true),
                None => (&bytes[..length], false),
            };
            self.piece(piece, ended, &mut line);
            bytes = rest;
        }
    }

    /// Ends the stream: passes on a last line without a newline.
    pub fn finish(&mut self, mut line: impl FnMut(StreamLine<'_>)) {
        self.piece(b"", true, &mut line);
    }

    /// Takes a piece of one line.
    fn piece(&mut self, piece: &[u8], ended: bool, line: &mut impl FnMut(StreamLine<'_>)) {
        if !self.skipping && self.partial.len() + piece.len() > self.limit {
            self.skipping = true;
            let missing = HEAD.saturating_sub(self.partial.len()).min(piece.len());
            self.partial.extend_from_slice(&piece[..missing]);
            self.partial.truncate(HEAD);
            self.partial.shrink_to_fit();
        } else if !self.skipping && ended && self.partial.is_empty() {
            return line(StreamLine::Whole(piece));
        } else if !self.skipping {
            self.partial.extend_from_slice(piece);
        }
        if ended {
            line(if self.skipping {
                StreamLine::Head(&self.partial)
            } else {
                StreamLine::Whole(&self.partial)
            });
            self.skipping = false;
            self.partial.clear();
            if self.partial.capacity() > KEEP_BUFFER {
                self.partial = Vec::new();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_line_that_is_too_long_its_head_is_told() {
        let long = [b"head".as_slice(), &vec![b'x'; 2 * HEAD]].concat();
        let text = [b"one\n".as_slice(), &long, b"\ntwo\n\n", &long].concat();
        for cut in [1, 7, HEAD, text.len()] {
            let mut lines = Lines::of_at_most(HEAD + 1);
            let mut told = Vec::new();
            let mut hear = |line: StreamLine<'_>| {
                told.push(match line {
                    StreamLine::Whole(line) => (line.to_vec(), true),
                    StreamLine::Head(head) => (head.to_vec(), false),
                });
            };
            text.chunks(cut).for_each(|piece| lines.take(piece, &mut hear));
            lines.finish(&mut hear);
            let begin = long[..HEAD].to_vec();
            let expected = [
                (b"one".to_vec(), true),
                (begin.clone(), false),
                (b"two".to_vec(), true),
                (Vec::new(), true),
                (begin, false),
            ];
            assert_eq!(told, expected, "{cut}");
        }
    }
}
