//! What must be known of a worker's pane after ralph was killed: where it is, and whether it has its prompt.

use std::io::ErrorKind::NotFound;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::files::atomic::{self, Durability};
use crate::files::{FileError, own};
use crate::tmux::window::Window;

/// A larger file is not ours, in bytes.
const LARGEST: u64 = 1 << 20;

/// A worker's pane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// Where it is.
    pub window: Window,
    /// The iteration that runs in it, or ran last.
    pub iteration: u64,
    /// The mark that only its processes carry.
    pub mark: String,
    /// Whether it has its prompt.
    pub given: Given,
    /// When it got its prompt, in clock ticks since the boot: what it has started by then is its own.
    pub given_at: Option<u64>,
    /// When the program was started.
    pub started: DateTime<Utc>,
}

/// Whether an agent has its prompt. It never gets it twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Given {
    /// It has not been given its prompt.
    No,
    /// Its prompt is being typed, or Enter is about to be pressed: only its screen shows how far that went.
    Typing,
    /// Enter was pressed.
    Yes,
}

impl Held {
    fn path(folder: &Path) -> PathBuf {
        folder.join("pane.json")
    }

    /// Reads the file of a worker's folder; `None`: it has no pane, or a power cut has damaged the file, which is not synchronised
    /// because no pane survives that.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn read(folder: &Path) -> Result<Option<Self>, FileError> {
        let path = Self::path(folder);
        match own::read(&path, LARGEST) {
            Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok()),
            Err(error) if error.kind() == NotFound => Ok(None),
            Err(error) => Err(FileError::at(&path)(error)),
        }
    }

    /// Writes the file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, folder: &Path) -> Result<(), FileError> {
        let path = Self::path(folder);
        let text = serde_json::to_vec(self).map_err(|error| FileError::at(&path)(error.into()))?;
        atomic::write_own(&path, &text, Durability::Atomic).map(drop)
    }

    /// Removes the file: the pane is closed.
    ///
    /// # Errors
    /// When the file cannot be removed.
    pub fn forget(folder: &Path) -> Result<(), FileError> {
        let path = Self::path(folder);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != NotFound => Err(FileError::at(&path)(error)),
            _ => Ok(()),
        }
    }
}
