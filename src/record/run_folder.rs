//! The folder of a run: the logs and results of all loops of one command, which outlive their work trees.
//!
//! `run.json` says what was started, `end.json` how it ended; beside them are the logs of its loop, or a folder of
//! logs per branch.

use std::io;
use std::path::{Path, PathBuf};

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Serialize};

use super::event_line::is_events_log;
use super::state::Setup;
use crate::engine::event::LoopIdentity;
use crate::files::atomic::{self, Durability};
use crate::files::{FileError, if_there, own};
use crate::platform::identity::ProcessIdentity;
use crate::project::Project;
use crate::version;

/// What the loops of jobs on one graph are called before their numbers, and the folder of their work trees.
pub const JOBS: &str = "tasks";
/// The name of the work tree in which the work of jobs is gated.
pub const GATE: &str = "gate";

/// Whether the loop of this name is one of several jobs, whose work lands by itself.
#[must_use]
pub fn is_job(name: &str) -> bool {
    let number = name.strip_prefix(JOBS).and_then(|rest| rest.strip_prefix('/'));
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The version of `run.json`.
pub(super) const VERSION: u32 = 1;
/// The file with the command.
pub(super) const START: &str = "run.json";
/// The file with the end: a line as in the events log.
pub(super) const END: &str = "end.json";
/// The report of all its loops, made from their logs.
pub(super) const SUMMARY: &str = "summary.json";
/// Larger files are not ours, in bytes.
pub(super) const LARGEST: u64 = 16 << 20;

/// The start of a command, `run.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunStart {
    /// Version of the format.
    pub v: u32,
    /// The ralph that has written it; empty in files of the first versions.
    #[serde(default)]
    pub ralph: String,
    /// Unique id of the run, the name of its folder.
    pub run: String,
    /// The words of the command line that start such loops, as in `loop build`.
    pub verb: String,
    /// When it started, in UTC.
    #[serde(serialize_with = "milliseconds")]
    pub started_at: DateTime<Utc>,
    /// The command line.
    pub argv: Vec<String>,
    /// Its working directory.
    pub cwd: PathBuf,
    /// Its process.
    pub process: ProcessIdentity,
    /// The setup of its loop, from which a lost state is rebuilt; `None` for a command with one loop per branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup: Option<Box<Setup>>,
    /// The identity of that loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<LoopIdentity>,
    /// How many iterations it may begin; `None`: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_iterations: Option<u64>,
}

impl RunStart {
    /// A run of this process with this command line that starts now.
    #[must_use]
    pub fn now(run: &str, verb: &str, argv: &[String], process: ProcessIdentity) -> Self {
        Self {
            v: VERSION,
            ralph: version::NUMBER.to_owned(),
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

    /// Adds the identity and setup of the run's one loop.
    #[must_use]
    pub fn of_loop(self, identity: &LoopIdentity, setup: &Setup, max_iterations: Option<u64>) -> Self {
        let (identity, setup) = (Some(identity.clone()), Some(Box::new(setup.clone())));
        Self { setup, identity, max_iterations, ..self }
    }

    /// Creates the folder of the run, and writes this into it.
    ///
    /// # Errors
    /// If that fails.
    pub fn write(&self, project: &Project) -> Result<(), FileError> {
        self.write_into(&project.run(&self.run), Durability::Synced)
    }

    /// Creates a folder, and writes this into it.
    ///
    /// # Errors
    /// If that fails.
    pub fn write_into(&self, folder: &Path, durability: Durability) -> Result<(), FileError> {
        own::make_folders(folder).map_err(FileError::at(folder))?;
        let mut text =
            serde_json::to_string(self).map_err(std::io::Error::from).map_err(FileError::at(folder))?;
        text.push('\n');
        atomic::write_own(&folder.join(START), text.as_bytes(), durability).map(drop)
    }

    /// The start that the folder of a run has; `None` if it cannot be read.
    #[must_use]
    pub fn read(folder: &Path) -> Option<Self> {
        let text = own::read(&folder.join(START), LARGEST).ok()?;
        serde_json::from_slice::<Self>(&text).ok().filter(|start| start.v <= VERSION)
    }
}

/// Writes the end of a run: one line as in the events log, `loop_ended` or `build_ended`.
///
/// # Errors
/// If that fails.
pub fn write_end(project: &Project, run: &str, line: &str) -> Result<(), FileError> {
    let folder = project.run(run);
    own::make_folders(&folder).map_err(FileError::at(&folder))?;
    // The summary of a killed run is written again.
    let _ = std::fs::remove_file(folder.join(SUMMARY));
    write_end_beside(&folder, line)
}

/// Writes the end of a branch beside its logs, if its build cannot report it.
///
/// # Errors
/// If that fails.
pub fn write_end_beside(folder: &Path, line: &str) -> Result<(), FileError> {
    atomic::write_own(&folder.join(END), line.as_bytes(), Durability::Synced).map(drop)
}

/// The line with the end of a run; `None` while it runs, and if it was killed or cannot be read.
#[must_use]
pub fn read_end(folder: &Path) -> Option<String> {
    let text = if_there(own::read(&folder.join(END), LARGEST)).ok()??;
    String::from_utf8(text).ok()
}

/// The events logs in a folder of logs, the oldest first: if one is removed while its loop runs, the loop continues
/// in another.
#[must_use]
pub fn event_logs(folder: &Path) -> Vec<PathBuf> {
    let mut logs = own::entries(folder).unwrap_or_default();
    logs.retain(|path| is_events_log(path));
    // Shorter names are older.
    logs.sort_by_key(|path| (path.as_os_str().len(), path.clone()));
    logs
}

/// The folders of logs in a run: its own, or one per branch.
///
/// # Errors
/// If the folder cannot be read.
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
