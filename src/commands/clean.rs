//! `ralph clean`: forgets loops that have ended. Logs stay.

use std::collections::HashSet;
use std::fs;
use std::io::ErrorKind::NotFound;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use super::output::{say, warn};
use super::{clean_worktrees, pointers, target, worker};
use crate::cli::CleanArgs;
use crate::files::{own, way_to_write};
use crate::git::left_locks;
use crate::job::workspace;
use crate::project::Project;
use crate::record::lookup::{self, Loop};
use crate::record::registry::LoopEntry;
use crate::record::state_read::{self, Extent};
use crate::record::{lock, recorder, requests};
use crate::tell::words;
use crate::text::line::shell_word;

/// `ralph clean`.
pub(super) fn run(args: &CleanArgs) -> anyhow::Result<u8> {
    if args.worktrees {
        return clean_worktrees::run(args);
    }
    let (here, loops) = if args.all {
        let here = workspace::locate_records(args.target.ralph_dir.as_ref())?;
        let loops = lookup::of_machine(&here, Extent::Head);
        (here, loops)
    } else {
        target::recorded(&args.target)?
    };
    let mut failed = false;
    let mut forgotten: HashSet<PathBuf> = HashSet::new();
    for found in &loops {
        let name = &found.name;
        let is_worker = found.project.is_of_worker();
        if found.alive().is_some() && !(is_worker && (args.all || args.target.name.is_some())) {
            let quoted = shell_word(name);
            let running = format!("loop '{name}' is running: end it first, with 'ralph cancel {quoted}'");
            if args.target.name.is_some() {
                bail!(running);
            }
            warn(&format!("{running}; it is left alone"));
        } else if let Err(error) = if is_worker { forget_worker(found) } else { forget(found) } {
            warn(&format!("loop '{name}' cannot be forgotten: {error:#}"));
            failed = true;
        } else {
            say(&format!("cleaned ralph state for {name}"));
            forgotten.insert(found.project.records());
        }
    }
    // All at once, because reading the registry reads all of it.
    let is_meant = |places: &Project| {
        forgotten.contains(&places.records())
            || args.target.name.is_none() && (args.all || places.root() == here.root())
    };
    let left = pointers::forget(&here, |entry, places| is_meant(places) && is_stale(entry, places))?;
    if loops.is_empty() && left == 0 {
        say("nothing to clean");
    }
    Ok(u8::from(failed))
}

/// Removes a worker's state. Its program goes on.
fn forget_worker(found: &Loop) -> anyhow::Result<()> {
    worker::clean_running(found)?;
    worker::forget_files(found, recorder::hold(&found.project, "clean")?)
}

/// Removes a loop's state and requests.
fn forget(found: &Loop) -> anyhow::Result<()> {
    let project = &found.project;
    // No loop can begin here meanwhile.
    let _lock = recorder::hold(project, "clean")?;
    let files = own::entries(&project.records());
    let files = files.with_context(|| format!("cannot read {}", project.records().display()))?;
    // Afterwards no start of this loop would remove them.
    let at_work = found.state.as_ref().ok().and_then(|state| state.last_at_work());
    for lock in at_work.iter().flat_map(|at_work| left_locks::remove(project.root(), at_work)) {
        say(&words::left_lock(&project.relative(&lock)));
    }
    // The state is removed last: until then the loop can be resumed.
    requests::clear(&project.requests())?;
    for path in files.iter().filter(|path| state_read::is_state(path)) {
        remove(path, |path| fs::remove_file(path))?;
    }
    // A folder with other files in it is not ours alone.
    let _ = fs::remove_dir(project.requests());
    Ok(())
}

fn remove(path: &Path, how: impl Fn(&Path) -> std::io::Result<()>) -> anyhow::Result<()> {
    match how(path) {
        Err(error) if error.kind() != NotFound => {
            bail!("cannot remove {}: {error}: {}", path.display(), way_to_write(&error))
        }
        _ => Ok(()),
    }
}

/// Whether an entry leads to nothing. A loop that has just begun holds its lock and has no state yet, hence the order of checks.
fn is_stale(entry: &LoopEntry, places: &Project) -> bool {
    let holder = lock::holder(&places.lock()).ok().flatten();
    let is_running = holder.is_some_and(|holder| holder.run_id == entry.run_id);
    !is_running && !places.state().exists()
}
