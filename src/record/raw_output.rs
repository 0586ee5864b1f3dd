//! `last_agent_output`: the raw bytes of the latest attempt, for a person who wonders what happened.

use std::path::{Path, PathBuf};

use crate::engine::event::{Event, Stamped, Stream};
use crate::files::{FileError, RecordFile};

/// The raw output file, emptied when an attempt begins.
#[derive(Debug)]
pub struct RawOutput {
    path: PathBuf,
    file: Option<RecordFile>,
}

impl RawOutput {
    /// Nothing is touched before the first attempt.
    #[must_use]
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), file: None }
    }

    /// Takes one event.
    pub fn take(&mut self, stamped: &Stamped<'_>) -> Result<(), FileError> {
        match (stamped.event, &mut self.file) {
            (Event::AttemptStarted { .. }, _) => self.file = Some(RecordFile::truncate(&self.path)?),
            (Event::Output { stream: Stream::Stdout, bytes }, Some(file)) => {
                file.write(bytes)?;
                file.flush()?;
            }
            _ => {}
        }
        Ok(())
    }
}
