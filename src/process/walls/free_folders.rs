//! Folders of programs behind walls that have ended, for the next ones: to make one on a disk, and to remove it, takes longer than all
//! else that walls need.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use super::parts::{FRESH, LAYERS, MASKS, WAY_OUT, numbered};
use super::plan::{Layer, Plan};
use crate::files::temporary::Folder;

/// Who may do what in a folder of temporary files.
const OF_ALL: u32 = 0o1777;
const MODES: u32 = 0o7777;
/// What else a program may have written about one: then it is not used again.
const MARKS: usize = 4 << 10;
const OF_USERS: [&[u8]; 2] = [b"user.", b"posix_acl"];

/// The folders that are free. They are removed with the last one that knows of them.
#[derive(Debug, Clone, Default)]
pub(super) struct FreeFolders(Arc<Mutex<Vec<ProgramFolder>>>);

/// One of them.
#[derive(Debug)]
pub(super) struct ProgramFolder {
    pub(super) folder: Folder,
    /// The plan that is written in it.
    pub(super) plan: Vec<u8>,
}

/// What is free is no part of what holds.
impl PartialEq for FreeFolders {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for FreeFolders {}

impl FreeFolders {
    /// A folder in this place with all its parts; `plan`: what they are for, which does not change.
    ///
    /// # Errors
    /// If none can be made.
    pub(super) fn take(&self, place: &Path, plan: &Plan) -> io::Result<ProgramFolder> {
        let free = || self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        while let Some(used) = free() {
            if clear(used.folder.path(), plan).is_ok() {
                return Ok(used);
            }
        }
        let folder = Folder::make_in(place)?;
        for part in [LAYERS, FRESH, MASKS] {
            fs::create_dir(folder.path().join(part))?;
        }
        (0..plan.layers.len()).try_for_each(|at| fs::create_dir(numbered(folder.path(), LAYERS, at)))?;
        for at in 0..fresh(plan) {
            let fresh = numbered(folder.path(), FRESH, at);
            fs::create_dir(&fresh)?;
            fs::set_permissions(&fresh, Permissions::from_mode(OF_ALL))?;
        }
        Ok(ProgramFolder { folder, plan: Vec::new() })
    }

    /// Gives one back, of which the program is gone. It is removed if it cannot be cleared, and without namespaces: there a program
    /// can change all of it, the plan, too.
    pub(super) fn give_back(&self, used: ProgramFolder, plan: &Plan) {
        if !plan.is_alone && clear(used.folder.path(), plan).is_ok() {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(used);
        }
    }
}

/// How many fresh folders a program gets: without namespaces one that the usual ones are shared beside.
fn fresh(plan: &Plan) -> usize {
    if plan.is_alone { 1 } else { plan.fresh.len() }
}

/// Removes all that a program has made. What holds the place of something stays.
fn clear(folder: &Path, plan: &Plan) -> io::Result<()> {
    let usual = mode(&folder.join(LAYERS))?;
    for (at, layer) in plan.layers.iter().enumerate() {
        let top = numbered(folder, LAYERS, at);
        if mode(&top)? != usual {
            fs::set_permissions(&top, Permissions::from_mode(usual))?;
        }
        for entry in fs::read_dir(&top)? {
            let entry = entry?;
            if !holds_a_place(&entry, layer) {
                remove(&entry)?;
            }
        }
    }
    for at in 0..fresh(plan) {
        let fresh = numbered(folder, FRESH, at);
        if mode(&fresh)? != OF_ALL {
            fs::set_permissions(&fresh, Permissions::from_mode(OF_ALL))?;
        }
        fs::read_dir(&fresh)?.try_for_each(|entry| remove(&entry?))?;
    }
    match fs::remove_file(folder.join(WAY_OUT)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Who may do what in a folder; an error if that is none, but perhaps a link to one.
fn mode(folder: &Path) -> io::Result<u32> {
    let metadata = fs::symlink_metadata(folder)?;
    let mut names = Vec::with_capacity(MARKS);
    let is_marked = match rustix::fs::llistxattr(folder, rustix::buffer::spare_capacity(&mut names)) {
        Ok(_) => OF_USERS.iter().any(|mark| names.windows(mark.len()).any(|name| name == *mark)),
        Err(error) => error != rustix::io::Errno::NOTSUP,
    };
    if metadata.is_dir() && !is_marked {
        Ok(metadata.permissions().mode() & MODES)
    } else {
        Err(io::ErrorKind::NotADirectory.into())
    }
}

/// Whether an entry of a top stands for one of the folder in whose place that top is.
fn holds_a_place(entry: &fs::DirEntry, layer: &Layer) -> bool {
    let name = entry.file_name();
    let real = layer.path.join(&name);
    let kinds = entry.file_type().ok().zip(real.symlink_metadata().ok().map(|real| real.file_type()));
    let is_copied = layer.copied.iter().any(|copied| name == **copied);
    kinds.is_some_and(|(kind, real_kind)| match (kind.is_symlink(), real_kind.is_symlink()) {
        (true, true) => fs::read_link(entry.path()).ok() == fs::read_link(&real).ok(),
        (false, false) => kind.is_dir() == real_kind.is_dir() && !is_copied,
        _ => false,
    })
}

fn remove(entry: &fs::DirEntry) -> io::Result<()> {
    let path = entry.path();
    if entry.file_type()?.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
}
