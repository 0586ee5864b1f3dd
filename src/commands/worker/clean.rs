//! `ralph clean` for workers: their state goes; their runs, and what `ralph attach` and `ralph kill` need, stay.

use std::fs;
use std::io::ErrorKind::NotFound;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;

use super::find;
use super::{monitor, tree};
use crate::agent::worker::{self, held::Held};
use crate::commands::output::warn;
use crate::engine::stop::Request;
use crate::files::own;
use crate::project::Project;
use crate::record::lock::Lock;
use crate::record::lookup::Loop;
use crate::record::recorder;
use crate::record::state_read;

/// How long a monitor may take to leave its agent alone.
const LEAVES: Duration = Duration::from_secs(10);

/// Ends the monitor of a running worker, and lets its program go on.
pub(in crate::commands) fn clean_running(found: &Loop) -> anyhow::Result<()> {
    let worker = find::named(&found.name)?;
    monitor::end(&worker, Request::Detach, LEAVES)?;
    if worker.runs() {
        warn(&format!("worker '{}' is still running (only ralph state removed)", worker.name));
    }
    Ok(())
}

/// Closes the panes of a monitor that was killed after the end of its loop was written. A running program is left alone.
pub(in crate::commands) fn close_left(found: &Loop) -> anyhow::Result<()> {
    let _lock = recorder::hold(&found.project, "resume")?;
    let worker = find::named(&found.name)?;
    if !worker.runs() {
        worker::close(worker.server().as_ref(), &found.project.records(), None)?;
    }
    Ok(())
}

/// Removes the records of a worker's loop, under its lock; all of them if no program runs in its pane.
pub(in crate::commands) fn forget_files(found: &Loop, lock: Lock) -> anyhow::Result<()> {
    let (project, folder) = (&found.project, found.project.records());
    let worker = find::named(&found.name)?;
    // A program whose pane was not recorded has no prompt, and could not be found later.
    if !worker.runs() || worker.held.is_none() {
        worker::close(worker.server().as_ref(), &folder, None)?;
    }
    let has_pane = Held::read(&folder)?.is_some();
    let known = found.state.as_ref().ok().and_then(|state| state.setup.worker.as_ref());
    if let Some(known) = known.and_then(|worker| worker.worktree.as_ref()).filter(|_| has_pane) {
        tree::keep(&folder, known)?;
    }
    if !has_pane {
        return remove_folder(project, lock);
    }
    let files = own::entries(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let logs = [project.iterations_log(), project.last_agent_output()];
    for path in files.iter().filter(|path| state_read::is_state(path) || logs.contains(path)) {
        removed(path, fs::remove_file(path))?;
    }
    let requests = project.requests();
    removed(&requests, fs::remove_dir_all(&requests))
}

/// Removes the folder of a worker, which holds nothing to keep.
pub(super) fn remove_folder(project: &Project, lock: Lock) -> anyhow::Result<()> {
    let folder = project.records();
    removed(&folder, fs::remove_dir_all(&folder))?;
    drop(lock);
    Ok(())
}

fn removed(path: &Path, result: std::io::Result<()>) -> anyhow::Result<()> {
    match result {
        Err(error) if error.kind() != NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}
