//! `last_agent_output`: the raw bytes of the latest attempt, for debugging.

use std::path::{Path, PathBuf};

use crate::engine::event::{Stamped, Stream};
use crate::engine::fact::Fact;
use crate::files::{FileError, RecordFile};

/// The raw output file, emptied when an attempt begins.
#[derive(Debug)]
pub struct RawOutput {
    path: PathBuf,
    file: Option<RecordFile>,
}

impl RawOutput {
    /// Does not touch the file before the first attempt.
    #[must_use]
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), file: None }
    }

    /// Empties the file when an attempt begins.
    pub fn take(&mut self, stamped: &Stamped<'_>) -> Result<(), FileError> {
        if let Fact::AttemptStarted { .. } = stamped.fact {
            self.file = Some(RecordFile::truncate(&self.path)?);
        }
        Ok(())
    }

    /// Writes bytes of the agent.
    pub fn take_raw(&mut self, stream: Stream, bytes: &[u8]) -> Result<(), FileError> {
        let Some(file) = self.file.as_mut().filter(|_| stream == Stream::Stdout) else { return Ok(()) };
        file.write(bytes)?;
        file.flush()
    }
}
