//! The folder of a run: what one start of a command leaves of all its loops, whatever becomes of their work trees.
//!
//! `run.json` says what was started, `end.json` what it came to; beside them are the logs of its loop, or a folder with
//! those of each of its branches.

use std::io;
use std::path::{Path, PathBuf};

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Serialize};

use super::state::Setup;
use crate::engine::event::LoopIdentity;
use crate::files::atomic::{self, Durability};
use crate::files::{FileError, if_there, own};
use crate::process::identity::ProcessIdentity;
use crate::project::Project;

/// The version of `run.json`.
const VERSION: u32 = 1;
/// What was started.
const START: &str = "run.json";
/// What it came to: a line as in the events log.
const END: &str = "end.json";
/// The report of all its loops, made from their logs.
pub(super) const SUMMARY: &str = "summary.json";
/// A larger file is none of ours, in bytes.
const LARGEST: u64 = 16 << 20;

/// A command that was started, `run.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunStart {
    /// Version of the format.
    pub v: u32,
    /// Unique id of the run, the name of its folder.
    pub run: String,
    /// The words of the command line that start such loops, as in `loop build`.
    pub verb: String,
    /// When, in UTC.
    #[serde(serialize_with = "milliseconds")]
    pub started_at: DateTime<Utc>,
    /// The command line.
    pub argv: Vec<String>,
    /// Where it was started.
    pub cwd: PathBuf,
    /// Which process it is.
    pub process: ProcessIdentity,
    /// How its loop is set up, by which a state that is lost is made anew; `None` for a command with a loop for each branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup: Option<Box<Setup>>,
    /// Which loop that is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<LoopIdentity>,
    /// How many iterations it may begin; `None`: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_iterations: Option<u64>,
}

impl RunStart {
    /// A run of this process with this command line, that begins now.
    #[must_use]
    pub fn now(run: &str, verb: &str, argv: &[String], process: ProcessIdentity) -> Self {
        Self {
            v: VERSION,
            run: run.to_owned(),
            verb: verb.to_owned(),
            started_at: Utc::now(),
            argv: argv.to_vec(),
            cwd: std::env::current_dir().unwrap_or_default(),
            process,
            setup: None,
            identity: None,
            max_iterations: None,
        }
    }

    /// The same of one loop that is set up so.
    #[must_use]
    pub fn of_loop(self, identity: &LoopIdentity, setup: &Setup, max_iterations: Option<u64>) -> Self {
        let (identity, setup) = (Some(identity.clone()), Some(Box::new(setup.clone())));
        Self { setup, identity, max_iterations, ..self }
    }

    /// Makes the folder of the run, and writes this into it.
    ///
    /// # Errors
    /// When that cannot be done.
    pub fn write(&self, project: &Project) -> Result<(), FileError> {
        self.write_into(&project.run(&self.run), Durability::Synced)
    }

    /// Makes a folder, and writes this into it.
    ///
    /// # Errors
    /// When that cannot be done.
    pub fn write_into(&self, folder: &Path, durability: Durability) -> Result<(), FileError> {
        own::make_folders(folder).map_err(FileError::at(folder))?;
        let mut text =
            serde_json::to_string(self).map_err(std::io::Error::from).map_err(FileError::at(folder))?;
        text.push('\n');
        atomic::write_own(&folder.join(START), text.as_bytes(), durability).map(drop)
    }

    /// What was started in this folder of a run; `None` where that cannot be read.
    #[must_use]
    pub fn read(folder: &Path) -> Option<Self> {
        let text = own::read(&folder.join(START), LARGEST).ok()?;
        serde_json::from_slice::<Self>(&text).ok().filter(|start| start.v <= VERSION)
    }
}

/// Writes what a run came to: one line as in the events log, `loop_ended` or `build_ended`.
///
/// # Errors
/// When that cannot be done.
pub fn write_end(project: &Project, run: &str, line: &str) -> Result<(), FileError> {
    let folder = project.run(run);
    own::make_folders(&folder).map_err(FileError::at(&folder))?;
    // One that was killed is told of anew.
    let _ = std::fs::remove_file(folder.join(SUMMARY));
    write_end_beside(&folder, line)
}

/// Writes beside the logs of a branch what it came to, where its build cannot tell.
///
/// # Errors
/// When that cannot be done.
pub fn write_end_beside(folder: &Path, line: &str) -> Result<(), FileError> {
    atomic::write_own(&folder.join(END), line.as_bytes(), Durability::Synced).map(drop)
}

/// The line that tells what a run came to; `None` while it runs, and where it was killed or cannot be read.
#[must_use]
pub fn read_end(folder: &Path) -> Option<String> {
    let text = if_there(own::read(&folder.join(END), LARGEST)).ok()??;
    String::from_utf8(text).ok()
}

/// The events logs in a folder of logs, the oldest first: one that was removed while its loop ran goes on in another.
#[must_use]
pub fn event_logs(folder: &Path) -> Vec<PathBuf> {
    let is_log = |path: &PathBuf| path.to_string_lossy().ends_with(".events.jsonl");
    let mut logs: Vec<PathBuf> =
        own::entries(folder).unwrap_or_default().into_iter().filter(is_log).collect();
    // Shorter names are older.
    logs.sort_by_key(|path| (path.as_os_str().len(), path.clone()));
    logs
}

/// The folders in that of a run which have logs: its own, or one for each of its branches.
///
/// # Errors
/// When the folder cannot be read.
pub fn loop_folders(run: &Path) -> io::Result<Vec<PathBuf>> {
    let is_folder = |path: &PathBuf| path.symlink_metadata().is_ok_and(|found| found.is_dir());
    let mut folders: Vec<PathBuf> = own::entries(run)?.into_iter().filter(is_folder).collect();
    folders.push(run.to_owned());
    folders.retain(|folder| !event_logs(folder).is_empty());
    folders.sort();
    Ok(folders)
}

fn milliseconds<S: serde::Serializer>(at: &DateTime<Utc>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&at.to_rfc3339_opts(SecondsFormat::Millis, true))
}
