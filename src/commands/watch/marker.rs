//! Files that mark used terminals: a killed `ralph watch` could not restore its terminal, and the next command says so.

use std::ffi::OsString;
use std::fs;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use rustix::termios::ttyname;

use crate::commands::output::remark;
use crate::files::atomic::{self, Durability};
use crate::files::own;
use crate::platform::identity::ProcessIdentity;
use crate::project::Project;
use crate::project::file_name::encoded;

/// A larger file is not our mark, in bytes.
const LARGEST: u64 = 4096;

/// The mark of a terminal: the process that uses it.
#[derive(Debug)]
pub(super) struct Marker {
    /// `None` if the terminal is unknown, or there is no place for the mark.
    path: Option<PathBuf>,
}

impl Marker {
    /// The mark of the terminal on standard error, which later commands share.
    pub(super) fn of_terminal(folder: Option<PathBuf>) -> Self {
        Self { path: folder.and_then(|folder| path(&folder)) }
    }

    /// Marks the terminal as used. An error only costs a hint.
    pub(super) fn set(&self) {
        let (Some(path), Ok(me)) = (&self.path, ProcessIdentity::of_self()) else { return };
        let made = path.parent().is_some_and(|folder| own::make_folders(folder).is_ok());
        if let Some(text) = toml::to_string(&me).ok().filter(|_| made) {
            let _ = atomic::write_own(path, text.as_bytes(), Durability::Atomic);
        }
    }

    /// Removes the mark.
    pub(super) fn unset(&self) {
        let Some(path) = &self.path else { return };
        let is_ours = |owner: ProcessIdentity| owner.pid == std::process::id();
        if read(path).is_some_and(is_ours) {
            let _ = fs::remove_file(path);
        }
    }
}

/// The folder of the marks.
pub(super) fn folder_of(project: &Project) -> Option<PathBuf> {
    project.watched_terminals()
}

fn path(folder: &Path) -> Option<PathBuf> {
    let name = ttyname(std::io::stdin(), Vec::new()).ok()?;
    Some(folder.join(encoded(name.to_str().ok()?)))
}

fn read(path: &Path) -> Option<ProcessIdentity> {
    toml::from_str(&String::from_utf8(own::read(path, LARGEST).ok()?).ok()?).ok()
}

/// Shows once how to restore a terminal that a killed `ralph watch` has used.
pub fn hint() {
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return;
    }
    let env = |name: &str| -> Option<OsString> { std::env::var_os(name) };
    let Some(path) = Project::watched_terminals_of(&env).and_then(|folder| path(&folder)) else { return };
    if read(&path).is_some_and(|owner| !owner.is_alive()) && fs::remove_file(&path).is_ok() {
        remark("a 'ralph watch' on this terminal was killed: if the terminal behaves oddly, type 'reset'");
    }
}
