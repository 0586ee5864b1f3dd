//! The talk between user and agents about a piece, kept in a file until the piece is written, so that a restart
//! repeats no question.

use std::fs;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::engine::outcome::End;
use crate::files::atomic::{self, Durability};
use crate::files::{FileError, own};
use crate::prompt::authoring::Turn;

/// Longer files are not talks, in bytes.
const LONGEST: u64 = 16 << 20;

/// A talk.
pub(super) struct Talk {
    turns: Vec<Turn>,
    file: PathBuf,
    /// Whether the last question was asked by an earlier process, and is not on the screen.
    pub(super) is_old: bool,
}

/// The file's content.
#[derive(Serialize, Deserialize)]
struct Kept {
    version: u32,
    turns: Vec<KeptTurn>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum KeptTurn {
    Agent(String),
    User(String),
}

const VERSION: u32 = 1;

impl Talk {
    /// Reads the earlier talk, if it is readable.
    pub(super) fn open(file: PathBuf) -> Self {
        let kept =
            own::read(&file, LONGEST).ok().and_then(|bytes| serde_json::from_slice::<Kept>(&bytes).ok());
        let turns = kept.filter(|kept| kept.version == VERSION).map(|kept| kept.turns).unwrap_or_default();
        let turn = |turn| match turn {
            KeptTurn::Agent(text) => Turn::Agent(text),
            KeptTurn::User(text) => Turn::User(text),
        };
        let turns: Vec<Turn> = turns.into_iter().map(turn).collect();
        Self { is_old: !turns.is_empty(), turns, file }
    }

    /// The turns in order.
    pub(super) fn turns(&self) -> &[Turn] {
        &self.turns
    }

    /// Adds a turn.
    pub(super) fn push(&mut self, turn: Turn) -> Result<(), End> {
        self.turns.push(turn);
        self.is_old = false;
        let turn = |turn: &Turn| match turn {
            Turn::Agent(text) => KeptTurn::Agent(text.clone()),
            Turn::User(text) => KeptTurn::User(text.clone()),
        };
        let kept = Kept { version: VERSION, turns: self.turns.iter().map(turn).collect() };
        let bytes = serde_json::to_vec(&kept).map_err(|error| FileError::at(&self.file)(error.into()))?;
        let folder = self.file.parent().unwrap_or(&self.file);
        own::make_folders(folder).map_err(FileError::at(folder))?;
        atomic::write_own(&self.file, &bytes, Durability::Synced)?;
        Ok(())
    }

    /// Removes the file after its piece is written.
    pub(super) fn forget(&self) {
        // If it stays, the talk is only repeated in a later prompt.
        let _ = fs::remove_file(&self.file);
    }
}
