//! What the user and the agents have said about a piece, kept in a file until it is written: nobody has to say it twice.

use std::fs;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::engine::outcome::End;
use crate::files::atomic::{self, Durability};
use crate::files::{FileError, own};
use crate::prompt::authoring::Turn;

/// A longer talk is none of ours, in bytes.
const LONGEST: u64 = 16 << 20;

/// A talk.
pub(super) struct Talk {
    turns: Vec<Turn>,
    file: PathBuf,
    /// The last question was asked before this process began, and is not on the screen.
    pub(super) is_old: bool,
}

/// As it is kept.
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
    /// What was said about it before, as far as that can be read.
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

    /// What was said, in its order.
    pub(super) fn turns(&self) -> &[Turn] {
        &self.turns
    }

    /// One more turn.
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

    /// It has led to what it was about.
    pub(super) fn forget(&self) {
        // One that cannot be removed is told again, and says what was said.
        let _ = fs::remove_file(&self.file);
    }
}
