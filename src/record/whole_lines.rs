//! A log of an agent's stdout and stderr in which their lines are never mixed.

use crate::engine::event::Stream;
use crate::files::{FileError, RecordFile};

/// An unfinished line is held back until it is complete, up to this length; longer lines are written through.
const HELD_LINE: usize = 1024 * 1024;
/// How much of stderr is held back while a very long stdout line is being written.
const HELD_STDERR: usize = 8 * 1024 * 1024;

/// A file that receives the bytes of two pipes line by line.
#[derive(Debug)]
pub(super) struct WholeLines {
    file: RecordFile,
    /// The unfinished line of stdout, as far as it has not been written.
    stdout: Vec<u8>,
    /// Whether the file ends in a part of a stdout line.
    mid_line: bool,
    /// Held stderr: its unfinished line, or all of it while `mid_line`.
    stderr: Vec<u8>,
    /// Bytes of stderr that were dropped.
    dropped: usize,
}

impl WholeLines {
    /// Starts at the beginning of a line of `file`.
    #[must_use]
    pub(super) fn new(file: RecordFile) -> Self {
        Self { file, stdout: Vec::new(), mid_line: false, stderr: Vec::new(), dropped: 0 }
    }

    /// Its path.
    #[must_use]
    pub(super) fn path(&self) -> &std::path::Path {
        self.file.path()
    }

    /// Whether its file was removed or replaced.
    #[must_use]
    pub(super) fn is_lost(&self) -> bool {
        self.file.is_lost()
    }

    /// Continues in a new file if this one was removed or replaced; returns whether it was.
    pub(super) fn keep(&mut self) -> Result<bool, FileError> {
        self.file.keep()
    }

    /// Writes bytes of one of the pipes, cut anywhere.
    pub(super) fn output(&mut self, stream: Stream, bytes: &[u8]) -> Result<(), FileError> {
        match stream {
            Stream::Stdout => self.stdout(bytes),
            Stream::Stderr => self.stderr(bytes),
        }
    }

    /// Adds whole lines of ours, after [`WholeLines::end_lines`].
    pub(super) fn write(&mut self, text: &str) -> Result<(), FileError> {
        self.file.write(text.as_bytes())
    }

    /// Writes everything that is not held back.
    pub(super) fn flush(&mut self) -> Result<(), FileError> {
        self.file.flush()
    }

    fn stdout(&mut self, bytes: &[u8]) -> Result<(), FileError> {
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        if whole > 0 {
            self.file.write(&self.stdout)?;
            self.stdout.clear();
            self.file.write(&bytes[..whole])?;
            self.mid_line = false;
            self.release_stderr()?;
        }
        self.stdout.extend_from_slice(&bytes[whole..]);
        if self.stdout.len() > HELD_LINE {
            self.file.write(&self.stdout)?;
            self.stdout.clear();
            self.mid_line = true;
        }
        Ok(())
    }

    fn stderr(&mut self, bytes: &[u8]) -> Result<(), FileError> {
        let room = HELD_STDERR.saturating_sub(self.stderr.len());
        let kept = bytes.len().min(room);
        self.dropped += bytes.len() - kept;
        self.stderr.extend_from_slice(&bytes[..kept]);
        if self.mid_line { Ok(()) } else { self.release_stderr() }
    }

    /// Writes the whole lines of stderr; the file is at the start of a line.
    fn release_stderr(&mut self) -> Result<(), FileError> {
        let whole = self.stderr.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        self.file.write(&self.stderr[..whole])?;
        self.stderr.drain(..whole);
        if self.stderr.len() > HELD_LINE || self.dropped > 0 {
            self.file.write(&std::mem::take(&mut self.stderr))?;
            self.file.write(b"\n")?;
        }
        if self.dropped > 0 {
            let note = format!("[ralph] {} bytes of stderr are left out here\n", self.dropped);
            self.file.write(note.as_bytes())?;
            self.dropped = 0;
        }
        Ok(())
    }

    /// Writes what is held back, and adds missing newlines.
    pub(super) fn end_lines(&mut self) -> Result<(), FileError> {
        if self.mid_line || !self.stdout.is_empty() {
            self.file.write(&std::mem::take(&mut self.stdout))?;
            self.file.write(b"\n")?;
            self.mid_line = false;
        }
        self.release_stderr()?;
        if !self.stderr.is_empty() {
            self.file.write(&std::mem::take(&mut self.stderr))?;
            self.file.write(b"\n")?;
        }
        Ok(())
    }
}
