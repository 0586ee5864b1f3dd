//! `session-….events.jsonl`: every fact of a session, as versioned JSON lines.

use std::path::Path;

use super::event_line::line_of;
use crate::engine::event::Stamped;
use crate::files::{FileError, RecordFile};

/// The events log of one session.
#[derive(Debug)]
pub struct EventsLog(RecordFile);

impl EventsLog {
    /// Creates the log of a new session.
    pub fn create(path: &Path) -> Result<Self, FileError> {
        RecordFile::create_new(path).map(Self)
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Its length in bytes.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.0.length()
    }

    /// Continues in a new file if this one was removed or replaced; returns whether it was.
    pub fn keep(&mut self) -> Result<bool, FileError> {
        self.0.keep()
    }

    /// Waits until the disk has all of it.
    pub fn sync(&self) -> Result<(), FileError> {
        self.0.sync()
    }

    /// Writes one fact. Facts that arrive together are written together.
    pub fn take(&mut self, stamped: &Stamped<'_>) -> Result<(), FileError> {
        self.0.write(line_of(stamped).as_bytes())?;
        if stamped.goes_on { Ok(()) } else { self.0.flush() }
    }
}
