//! Lines out of bytes that come cut anywhere.

use std::io::BufRead as _;

/// A longer line, in bytes, is counted and not parsed.
pub const MAX_LINE: usize = 16 << 20;

/// A buffer that grew beyond this, in bytes, for one long line is given back.
const KEEP_BUFFER: usize = 1 << 20;

/// Takes a stream apart. A line that came whole is not copied.
#[derive(Debug, Default)]
pub struct Lines {
    /// The start of a line whose end has not come yet.
    partial: Vec<u8>,
    /// The current line is too long; its end is awaited.
    skipping: bool,
}

impl Lines {
    /// Takes the next bytes, and hands each line over that they end, without its newline. Answers how many lines have become
    /// longer than [`MAX_LINE`]; these are skipped.
    pub fn take(&mut self, mut bytes: &[u8], mut line: impl FnMut(&[u8])) -> u64 {
        let mut oversized = 0;
        while !bytes.is_empty() {
            let mut rest = bytes;
            // Searching a slice cannot fail.
            let length = rest.skip_until(b'\n').unwrap_or(bytes.len());
            let (piece, ended) = match bytes[..length].strip_suffix(b"\n") {
                Some(piece) => (piece, true),
                None => (&bytes[..length], false),
            };
            oversized += u64::from(self.piece(piece, ended, &mut line));
            bytes = rest;
        }
        oversized
    }

    /// Ends the stream: hands a last line over that has no newline.
    pub fn finish(&mut self, mut line: impl FnMut(&[u8])) {
        self.piece(b"", true, &mut line);
    }

    /// Takes a piece of one line. `true`: it has become too long.
    fn piece(&mut self, piece: &[u8], ended: bool, line: &mut impl FnMut(&[u8])) -> bool {
        let is_too_long = !self.skipping && self.partial.len() + piece.len() > MAX_LINE;
        if is_too_long {
            self.skipping = true;
            self.partial = Vec::new();
        }
        match (self.skipping, ended) {
            (true, _) => self.skipping = !ended,
            (false, false) => self.partial.extend_from_slice(piece),
            (false, true) if self.partial.is_empty() => line(piece),
            (false, true) => {
                self.partial.extend_from_slice(piece);
                line(&self.partial);
                self.partial.clear();
                if self.partial.capacity() > KEEP_BUFFER {
                    self.partial = Vec::new();
                }
            }
        }
        is_too_long
    }
}
