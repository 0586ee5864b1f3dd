//! Records that earlier versions kept in the work tree of a branch: they go to where they outlive it.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::state::{self, Extent, Found};
use crate::files::{atomic, own};
use crate::project::Project;
use crate::text::timestamp;

/// The files that were beside the state file, which is the last to go: what is cut off goes on by it.
const FILES: [&str; 3] = ["iterations.log", "last_agent_output", "state.toml"];

/// Whether there are such records in the ralph dir of a branch's work tree.
#[must_use]
pub fn are_there(branch: &Project) -> bool {
    let old = branch.ralph_dir();
    FILES.iter().chain(&["logs"]).any(|name| old.join(name).symlink_metadata().is_ok())
}

/// Moves the records in the ralph dir of the work tree of the branch `name` to those of `branch`. What is another
/// loop's is moved to the earlier records `with_others`, and else stays where it is.
///
/// # Errors
/// When something cannot be moved. Nothing is lost then, and the next call goes on.
pub fn adopt(branch: &Project, name: &str, with_others: bool) -> io::Result<()> {
    let old = branch.ralph_dir();
    let Some(earlier) = branch.earlier_records() else { return Ok(()) };
    let is_others = match state::read(&old.join("state.toml"), Extent::Whole)? {
        Found::State(state) => state.name != name,
        Found::Damaged(_) | Found::Unknown(_) => false,
        // Whose they are nobody knows.
        Found::Nothing => true,
    };
    let earlier = match (is_others, with_others) {
        (true, false) => return Ok(()),
        (true, true) => earlier.join("others"),
        (false, _) => earlier,
    };
    let is_taken_up = !is_others && !branch.state().exists();
    for log in fs::read_dir(old.join("logs")).into_iter().flatten().flatten() {
        carry(&log.path(), &earlier)?;
    }
    // Another one's folder in it stays, and so does this one.
    let _ = fs::remove_dir(old.join("logs"));
    for file in FILES {
        carry(&old.join(file), if is_taken_up { branch.records() } else { earlier.clone() }.as_path())?;
    }
    Ok(())
}

/// Moves a file into a folder, under a name that is free there. What is no regular file stays.
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
        // The work trees may be on another disk.
        Err(error) if error.kind() == ErrorKind::CrossesDevices => {
            atomic::copy_own(file, &target)?;
            fs::remove_file(file)
        }
        result => result,
    }
}
