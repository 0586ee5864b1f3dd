//! The file of a loop's state, written at every step.

use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};

use super::state::State;
use super::state_read::{Extent, Found, is_json, read};
use super::state_seal::SealKey;
use super::worker_file;
use crate::engine::event::Stamped;
use crate::engine::stop::Change;
use crate::engine::tally::Tally;
use crate::files::atomic::{self, Durability};
use crate::files::{FileError, FileId};

/// Keeps the state file up to date.
#[derive(Debug)]
pub struct StateFile {
    path: PathBuf,
    state: State,
    key: Option<SealKey>,
    /// The identity of the file that was last written; `None` before the first write.
    written: Option<FileId>,
}

impl StateFile {
    /// Writes nothing before the loop starts.
    #[must_use]
    pub fn new(path: &Path, state: State) -> Self {
        Self { path: path.to_owned(), state, key: None, written: None }
    }

    /// Seals each written file with the key, if there is one.
    pub(super) fn sealed_with(self, key: Option<SealKey>) -> Self {
        Self { key, ..self }
    }

    /// Sets when the loop began, if that was in an earlier process.
    pub fn set_started(&mut self, started: DateTime<Utc>) {
        self.state.started_at = started;
    }

    /// Writes the state again if the file was removed or replaced; returns whether it was.
    pub fn keep(&mut self) -> Result<bool, FileError> {
        if self.written.is_none_or(|written| written.is_at(&self.path)) || self.is_being_edited() {
            return Ok(false);
        }
        self.write(Durability::Atomic)?;
        Ok(true)
    }

    /// The current tally.
    #[must_use]
    pub fn tally(&self) -> &Tally {
        &self.state.tally
    }

    /// Applies one fact that is in the events log, whose length is `log_length`.
    pub fn take(&mut self, stamped: &Stamped<'_>, log_length: u64) -> Result<(), FileError> {
        self.keep_edits();
        let durability = self.state.take(stamped);
        self.state.log_read = log_length;
        durability.map_or(Ok(()), |durability| self.write(durability))
    }

    /// Whether the user may have replaced the file: a worker's state may be edited while it is paused.
    fn is_being_edited(&self) -> bool {
        self.state.holds() && is_json(&self.path) && self.path.exists()
    }

    /// Keeps the user's changes in the file, for `resume` to read.
    fn keep_edits(&mut self) {
        let edited = self.is_being_edited().then(|| read(&self.path, Extent::Whole));
        if let Some(Ok(Found::State(edited))) = edited
            && edited.run == self.state.run
            && let Some(watching) = edited.watching()
        {
            self.state.change(&Change { max_iterations: edited.max_iterations, watching: Some(watching) });
        }
    }

    /// Writes the state as it is.
    pub(super) fn write(&mut self, durability: Durability) -> Result<(), FileError> {
        let text = if is_json(&self.path) {
            worker_file::write(&self.state).map_err(std::io::Error::from)
        } else {
            let sealed = |text: String| match &self.key {
                Some(key) => key.seal(&text),
                None => text,
            };
            toml::to_string(&self.state).map(sealed).map_err(std::io::Error::other)
        };
        let text = text.map_err(|reason| FileError { path: self.path.clone(), reason })?;
        self.written = Some(atomic::write_own(&self.path, text.as_bytes(), durability)?);
        Ok(())
    }
}
