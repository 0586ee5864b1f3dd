//! A link to our own program file, or a copy of it, in the user's state folder: other programs can start it by its path after a
//! package manager has replaced or removed the file.

use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{Access, access};

use super::{own, temporary};
use crate::text::digest::sha256;

/// What it is called, in a folder of its own for each program file.
const NAME: &str = "ralph";
/// How often it is made again that another process has removed just then.
const TRIES: usize = 3;
/// The mode of a copy.
const MODE: u32 = 0o700;

/// Those that must not be removed as long as this process lives.
static KEPT: Mutex<Vec<File>> = Mutex::new(Vec::new());

/// The path of the program file `running`, whose own path is `exe`, for others to start as long as this process lives: in `folder`,
/// where those are removed that no process keeps any more.
///
/// # Errors
/// If it can be neither linked nor copied to there, or programs cannot be started there.
pub fn keep(folder: &Path, running: &Path, exe: &Path) -> io::Result<PathBuf> {
    let original = File::open(running)?;
    let found = original.metadata()?;
    let place = folder.join(identity(&found));
    let path = place.join(NAME);
    for _ in 0..TRIES {
        own::make_folders(&place)?;
        // Many starts make one copy.
        let alone = File::open(&place)?;
        // Some file systems have no locks.
        let _ = alone.lock();
        temporary::sweep(&place);
        if !is_whole(&path, &found) {
            temporary::remove(&path);
            make(&path, exe, &original, &found)?;
        }
        drop(alone);
        let Ok(kept) = own::open_to_read(&path) else { continue };
        let _ = kept.lock_shared();
        if !is_same(&path, &kept) {
            continue;
        }
        access(&path, Access::EXEC_OK).map_err(|_| {
            io::Error::new(ErrorKind::PermissionDenied, "programs cannot be started there (noexec)")
        })?;
        KEPT.lock().unwrap_or_else(PoisonError::into_inner).push(kept);
        sweep(folder, &place);
        return Ok(path);
    }
    Err(io::Error::new(ErrorKind::NotFound, "something removes it"))
}

/// Whether the program is there, as far as its size and mode tell.
fn is_whole(path: &Path, original: &Metadata) -> bool {
    let is_program = |there: Metadata| {
        there.is_file() && there.size() == original.size() && there.permissions().mode() & 0o100 != 0
    };
    path.symlink_metadata().is_ok_and(is_program)
}

/// Tells program files apart. Their contents would take longer to read than all else at a start.
fn identity(found: &Metadata) -> String {
    let (device, inode, size) = (found.dev(), found.ino(), found.size());
    let identity = format!("{device} {inode} {size} {} {}", found.mtime(), found.mtime_nsec());
    sha256(identity.as_bytes())[..16].to_owned()
}

/// Makes a link to the file at `exe` if that is still the one that runs, or else a copy.
fn make(path: &Path, exe: &Path, original: &File, found: &Metadata) -> io::Result<()> {
    // Not if it lies on another file system, or belongs to another user.
    if fs::hard_link(exe, path).is_ok() {
        let linked = path.symlink_metadata()?;
        if (linked.dev(), linked.ino()) == (found.dev(), found.ino()) {
            return Ok(());
        }
        fs::remove_file(path)?;
    }
    let made = own::create_filled(path, |into| {
        io::copy(&mut &*original, &mut File::options().write(true).open(into)?)?;
        fs::set_permissions(into, fs::Permissions::from_mode(MODE))
    });
    if let Some(folder) = path.parent() {
        // Or a power cut would leave it under its temporary name.
        File::open(folder)?.sync_all()?;
    }
    match made {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

fn is_same(path: &Path, file: &File) -> bool {
    let both = path.symlink_metadata().and_then(|there| Ok((there, file.metadata()?)));
    both.is_ok_and(|(there, opened)| (there.dev(), there.ino()) == (opened.dev(), opened.ino()))
}

/// Removes those that no process keeps.
fn sweep(folder: &Path, own: &Path) {
    for other in own::entries(folder).unwrap_or_default() {
        let path = other.join(NAME);
        if other == own {
            continue;
        }
        // One that is made just now has its folder locked. What stays is removed by a later start.
        let Ok(Ok(_alone)) = File::open(&other).map(|folder| folder.try_lock().map(|()| folder)) else {
            continue;
        };
        let is_free = own::open_to_read(&path).map_or(true, |file| file.try_lock().is_ok());
        if is_free {
            temporary::sweep(&other);
            temporary::remove(&path);
            let _ = fs::remove_dir(&other);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    struct Installed {
        _guard: tempfile::TempDir,
        exe: PathBuf,
        folder: PathBuf,
    }

    fn installed() -> Installed {
        let guard = tempfile::tempdir().unwrap();
        let exe = guard.path().join("installed");
        fs::write(&exe, "#!/bin/sh\necho old\n").unwrap();
        fs::set_permissions(&exe, fs::Permissions::from_mode(0o755)).unwrap();
        let folder = guard.path().join("state/programs");
        Installed { _guard: guard, exe, folder }
    }

    fn said(program: &Path) -> String {
        String::from_utf8(Command::new(program).output().unwrap().stdout).unwrap()
    }

    #[test]
    fn it_can_be_started_after_the_file_was_replaced_and_removed() {
        let Installed { exe, folder, .. } = &installed();
        let kept = keep(folder, exe, exe).unwrap();
        assert_eq!(kept.metadata().unwrap().ino(), exe.metadata().unwrap().ino(), "it is a link");
        assert_eq!(keep(folder, exe, exe).unwrap(), kept);
        let new = exe.with_extension("new");
        fs::write(&new, "#!/bin/sh\necho new\n").unwrap();
        fs::set_permissions(&new, fs::Permissions::from_mode(0o755)).unwrap();
        fs::rename(&new, exe).unwrap();
        let other = keep(folder, exe, exe).unwrap();
        assert_ne!(other, kept);
        fs::remove_file(exe).unwrap();
        assert_eq!((said(&kept), said(&other)), ("old\n".to_owned(), "new\n".to_owned()));
    }

    #[test]
    fn whatever_stands_in_its_place_is_no_program() {
        let Installed { exe, folder, .. } = &installed();
        let place = folder.join(identity(&exe.metadata().unwrap()));
        let path = place.join(NAME);
        for other in ["fifo", "folder", "other", "link"] {
            fs::create_dir_all(&place).unwrap();
            match other {
                "fifo" => assert!(Command::new("mkfifo").arg(&path).status().unwrap().success()),
                "folder" => fs::create_dir(&path).unwrap(),
                "other" => fs::write(&path, "").unwrap(),
                _ => std::os::unix::fs::symlink(folder, &path).unwrap(),
            }
            assert_eq!(said(&keep(folder, exe, exe).unwrap()), "old\n", "{other}");
            fs::remove_dir_all(&place).unwrap();
        }
    }

    #[test]
    fn what_no_process_keeps_is_removed_and_what_was_removed_is_copied() {
        let Installed { exe, folder, .. } = &installed();
        let forgotten = folder.join("0000/ralph");
        fs::create_dir_all(forgotten.parent().unwrap()).unwrap();
        fs::write(&forgotten, "").unwrap();
        // The running file has no path of its own any more.
        let gone = exe.with_file_name("gone");
        let kept = keep(folder, exe, &gone).unwrap();
        assert_ne!(kept.metadata().unwrap().ino(), exe.metadata().unwrap().ino(), "it is a copy");
        assert_eq!((said(&kept), forgotten.parent().unwrap().exists()), ("old\n".to_owned(), false));
    }
}
