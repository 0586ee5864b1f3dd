//! Checks the project itself: git, folders, prompts, specs, space.

use std::io;
use std::path::Path;

use rustix::fs::Access;

use super::{DoctorOptions, Finding};
use crate::commands::worker;
use crate::files::{FIX_PERMISSIONS, temporary, theirs, way_to_write};
use crate::git::{self, left_locks};
use crate::project::{Project, ProjectError};
use crate::record::state_read::Extent;
use crate::record::{lock, lookup, newer, recorder};
use crate::text::line::shell_word;
use crate::text::{bytes, count};

/// Less free space than this is worth a warning, in bytes: logs of a long loop take hundreds of megabytes.
const ENOUGH_SPACE: u64 = 1 << 30;

/// Splits an error, "what, where: what to do": here the last part has a line of its own.
fn from_error(check: &'static str, error: &dyn std::error::Error) -> Finding {
    let message = error.to_string();
    let (detail, fix) = message.rsplit_once(": ").unwrap_or((&message, "fix it"));
    Finding::fail(check, detail, fix)
}

pub(super) fn check_git() -> Finding {
    match git::git_version().and_then(|found| git::unless_older(found, git::OLDEST)) {
        Ok(version) if git::unless_older(version.clone(), git::OLDEST_TO_LAND).is_err() => {
            let (major, minor) = git::OLDEST_TO_LAND;
            let detail = format!("{version}; tasks land side by side with {major}.{minor} and newer");
            Finding::warn("git", detail, "update git, if you want 'ralph run --jobs' or '--onto'")
        }
        Ok(version) => Finding::ok("git", version),
        Err(error) => from_error("git", &error),
    }
}

pub(super) fn check_repository(project: &Project) -> Finding {
    match project.require_git() {
        Ok(()) => Finding::ok("repository", project.root().display().to_string()),
        Err(error) => {
            let way_out = match error {
                ProjectError::NotARepository { .. } => "run 'git init' in the project's top folder",
                _ => "fix that first",
            };
            Finding::fail("repository", error.to_string(), way_out)
        }
    }
}

/// The folder at a path, or the nearest one above it, if files can be made there; else what keeps them out, and what to do. Nothing is
/// created.
fn writable(path: &Path) -> Result<&Path, (String, &'static str)> {
    let is_there = |folder: &&Path| folder.symlink_metadata().is_ok();
    let (shown, existing) = (path.display(), path.ancestors().find(is_there).unwrap_or(path));
    if !existing.is_dir() {
        return Err((format!("{shown}: {} is no folder", existing.display()), "move it away"));
    }
    rustix::fs::access(existing, Access::WRITE_OK | Access::EXEC_OK).map_err(|error| {
        let error = io::Error::from(error);
        let is_denied = error.kind() == io::ErrorKind::PermissionDenied;
        (format!("{shown}: {error}"), if is_denied { FIX_PERMISSIONS } else { way_to_write(&error) })
    })?;
    Ok(existing)
}

pub(super) fn check_ralph_dir(project: &Project) -> Finding {
    let path = project.ralph_dir();
    let shown = path.display();
    match writable(path) {
        Err((detail, fix)) => Finding::fail("ralph dir", detail, fix),
        Ok(existing) if existing == path => Finding::ok("ralph dir", shown.to_string()),
        Ok(_) => Finding::warn("ralph dir", format!("{shown} does not exist yet"), "run 'ralph init'"),
    }
}

/// The user's folder for what all projects share. Loops run without it.
pub(super) fn check_state_folder(project: &Project) -> Finding {
    const CHECK: &str = "state folder";
    let (Some(registry), Some(proofs)) = (project.registry(), project.proofs_of_all()) else {
        return Finding::warn(CHECK, "there is no home folder for it", "set HOME or XDG_STATE_HOME");
    };
    match writable(&registry).and(writable(&proofs)) {
        Err((detail, fix)) => Finding::warn(
            CHECK,
            format!("{detail}: loops are not listed, and no claim is proven in a clean checkout"),
            format!("{fix}, or set XDG_STATE_HOME to another folder"),
        ),
        Ok(_) => Finding::ok(CHECK, registry.parent().unwrap_or(&registry).display().to_string()),
    }
}

pub(super) fn check_prompt(project: &Project, mode: &'static str) -> Finding {
    let check = if mode == "plan" { "plan prompt" } else { "build prompt" };
    let path = project.prompt(mode);
    let shown = project.relative(&path).display().to_string();
    match theirs::read(&path, theirs::MAX_TEXT) {
        Ok(content) if content.trim_ascii().is_empty() => Finding::fail(
            check,
            format!("{shown} is empty"),
            "write it, or remove it to use the built-in one",
        ),
        Ok(_) => Finding::ok(check, shown),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Finding::ok(check, "built in"),
        Err(error) => Finding::fail(check, format!("{shown}: {error}"), "make it a readable file"),
    }
}

pub(super) fn check_specs(project: &Project, options: &DoctorOptions) -> Finding {
    let shown = options.specs_dir.display();
    let path = project.root().join(&options.specs_dir);
    let fix = "run 'ralph init' and write down there what you want, or set SPECS_DIR";
    match std::fs::read_dir(&path) {
        Err(error) => Finding::fail("specs", format!("{shown}: {error}"), fix),
        Ok(files) => {
            match files.filter_map(Result::ok).filter(|file| file.file_name() != "README.md").count() {
                0 => Finding::warn(
                    "specs",
                    format!("{shown}: nothing but the README"),
                    "write down there what you want",
                ),
                1 => Finding::ok("specs", format!("{shown}, 1 entry")),
                count => Finding::ok("specs", format!("{shown}, {count} entries")),
            }
        }
    }
}

pub(super) fn check_disk(project: &Project) -> Finding {
    let existing = project.ralph_dir().ancestors().find(|folder| folder.exists()).unwrap_or(project.root());
    match rustix::fs::statvfs(existing) {
        Err(error) => {
            Finding::warn("disk", io::Error::from(error).to_string(), "check the file system by hand")
        }
        Ok(disk) => {
            let free = disk.f_bavail.saturating_mul(disk.f_frsize);
            let detail = format!("{} free", bytes::short(free));
            if free < ENOUGH_SPACE {
                Finding::warn("disk", detail, "free some space: logs and work trees grow")
            } else {
                Finding::ok("disk", detail)
            }
        }
    }
}

pub(super) fn check_lock(project: &Project) -> Finding {
    match lock::holder(&project.lock()) {
        Err(error) => from_error("lock", &error),
        Ok(None) => Finding::ok("lock", "free"),
        Ok(Some(holder)) => Finding::warn(
            "lock",
            format!("a loop is running: ralph {}, pid {}", holder.mode, holder.identity.pid),
            "a second one in this ralph dir is refused until it ends",
        ),
    }
}

/// What killed processes have left: attempts that no state has, locks of git, and temporary files.
pub(super) fn check_records(project: &Project) -> Finding {
    if let Some(newer) = newer::of_loop(project) {
        return Finding::fail("records", newer, "loops are refused here until then");
    }
    let known = lookup::of_project(project, Extent::Whole);
    let behind = known.iter().find_map(|found| {
        let attempts = found.read_on.as_ref()?.attempts;
        (attempts > 0).then_some((found.name.as_str(), attempts))
    });
    if let Some((name, attempts)) = behind {
        return Finding::warn(
            "records",
            format!("the state of loop '{name}' lacks {} of its events log", count::of(attempts, "attempt")),
            format!("run 'ralph resume {}', which counts them", shell_word(name)),
        );
    }
    let left_lock = known.iter().filter(|found| found.alive().is_none()).find_map(|found| {
        let at_work = found.state.as_ref().ok()?.last_at_work()?;
        Some((found.name.as_str(), left_locks::left(found.project.root(), &at_work).into_iter().next()?))
    });
    if let Some((name, lock)) = left_lock {
        let lock = project.relative(&lock);
        return Finding::warn(
            "records",
            format!("{}: an agent that was ended inside of git left this lock", lock.display()),
            format!("the next start of loop '{name}' removes it"),
        );
    }
    let folders = recorder::litter(project).into_iter().chain(git::litter(project.root()));
    match folders.map(|folder| temporary::left_in(&folder).len()).sum::<usize>() {
        0 => Finding::ok("records", "complete"),
        left => Finding::warn(
            "records",
            format!("{} of processes that were killed", count::of(left as u64, "temporary file")),
            "the next start of a loop here removes them",
        ),
    }
}

/// Panes of workers that were left when their monitor was killed.
pub(super) fn check_panes() -> Finding {
    match worker::with_dead_pane() {
        Ok(dead) => match dead.as_slice() {
            [] => Finding::ok("panes", "none that is dead"),
            [name, ..] => Finding::warn(
                "panes",
                format!(
                    "nothing runs in {} any more: {}",
                    count::of(dead.len() as u64, "pane"),
                    dead.join(", ")
                ),
                format!("run 'ralph kill {name}'"),
            ),
        },
        Err(error) => Finding::warn("panes", format!("{error:#}"), "see to that, and look again"),
    }
}
