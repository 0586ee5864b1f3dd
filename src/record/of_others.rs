//! Keeps the records of loops that ran in the work tree of a branch and are not the branch's own: they outlive the
//! tree.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use crate::files::{atomic, own};
use crate::project::Project;
use crate::text::timestamp;

/// The files that a loop keeps beside its logs.
const FILES: [&str; 3] = ["iterations.log", "last_agent_output", "state.toml"];

/// Moves these records from the ralph dir of the work tree of a `branch` to the project's.
///
/// # Errors
/// If something cannot be moved. Nothing is lost, and the next call continues.
pub fn keep(branch: &Project) -> io::Result<()> {
    let Some(kept) = branch.records_of_others() else { return Ok(()) };
    let in_tree = branch.ralph_dir();
    for log in fs::read_dir(in_tree.join("logs")).into_iter().flatten().flatten() {
        carry(&log.path(), &kept)?;
    }
    FILES.iter().try_for_each(|file| carry(&in_tree.join(file), &kept))
}

/// Moves a regular file into a folder, under a free name. Any other file stays.
fn carry(file: &Path, folder: &Path) -> io::Result<()> {
    let Some(name) = file.file_name().filter(|_| file.symlink_metadata().is_ok_and(|found| found.is_file()))
    else {
        return Ok(());
    };
    own::make_folders(folder)?;
    let mut number = 1;
    let target: PathBuf = loop {
        let target = folder.join(timestamp::numbered(&name.to_string_lossy(), number));
        if target.symlink_metadata().is_err() {
            break target;
        }
        number += 1;
    };
    match fs::rename(file, &target) {
        // Work trees may be on another disk.
        Err(error) if error.kind() == ErrorKind::CrossesDevices => {
            atomic::copy_own(file, &target)?;
            fs::remove_file(file)
        }
        result => result,
    }
}
