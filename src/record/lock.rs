//! One loop per ralph dir: a lock that the kernel releases when its holder dies.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::files::{FileId, own};
use crate::platform::identity::ProcessIdentity;

/// The holder of a lock, or its last holder if that died. Written in the lock file for users and for `status`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// The id of the loop's run: the run mark (`RALPH_RUN`) that its processes carry.
    pub run_id: String,
    /// The loop's mode: `plan`, `build`, `prompt` …
    pub mode: String,
    /// The process of the loop.
    #[serde(flatten)]
    pub identity: ProcessIdentity,
}

/// The content of a lock file.
#[derive(Serialize, Deserialize)]
struct Content {
    #[serde(flatten)]
    holder: Holder,
    /// The lock file itself: in a copy of it (of a project) the holder means nothing.
    lock_file: FileId,
}

/// Why a lock was not acquired.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another loop runs in this ralph dir.
    #[error(
        "another loop is running here, {path}: {who}: wait for it, stop that process, or use another --ralph-dir",
        path = .path.display(),
        who = describe(.holder.as_deref())
    )]
    Held {
        /// The lock file.
        path: PathBuf,
        /// Its holder, if the file names one.
        holder: Option<Box<Holder>>,
    },
    /// The lock file cannot be opened, written or locked.
    #[error("lock, {path}: {reason}: fix it, or use another --ralph-dir", path = .path.display())]
    Io {
        /// The lock file.
        path: PathBuf,
        /// The system's message.
        reason: io::Error,
    },
}

fn describe(holder: Option<&Holder>) -> String {
    match holder {
        Some(holder) => format!("ralph {}, pid {}", holder.mode, holder.identity.pid),
        None => "another process holds the lock".to_owned(),
    }
}

/// A held lock. It is released when the guard is dropped, or by the kernel when the process ends.
///
/// The file stays, emptied: two loops could lock a removed file at once. Its descriptor is close-on-exec, as std
/// opens every file, so no child process keeps the lock.
#[derive(Debug)]
pub struct Lock {
    path: PathBuf,
    id: FileId,
    file: File,
    holder: Holder,
    previous: Option<Holder>,
}

impl Lock {
    /// Locks `path` for `holder`, creating the file if it is missing; does not wait for another holder.
    pub fn acquire(path: &Path, holder: &Holder) -> Result<Self, LockError> {
        let failed = |reason| LockError::Io { path: path.to_path_buf(), reason };
        let (mut file, id) = loop {
            let file = own::open(path, OpenOptions::new().read(true).write(true).create(true));
            let file = file.map_err(failed)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    let holder = wait_for_holder(path).map(Box::new);
                    // Another process may only have checked the lock for a moment.
                    if holder.is_some() || file.try_lock().is_err() {
                        return Err(LockError::Held { path: path.to_path_buf(), holder });
                    }
                }
                Err(TryLockError::Error(reason)) => return Err(failed(reason)),
            }
            let id = FileId::of(&file).map_err(failed)?;
            // A file that was removed between opening and locking excludes no other loop.
            if id.is_at(path) {
                break (file, id);
            }
        };
        let previous = read(&file).filter(|previous| !previous.identity.is_alive());
        write(&mut file, holder, id).map_err(failed)?;
        Ok(Self { path: path.to_path_buf(), id, file, holder: holder.clone(), previous })
    }

    /// Whether the file was removed or replaced, so that the lock excludes no other loop.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        !self.id.is_at(&self.path)
    }

    /// Takes a lost lock again.
    ///
    /// # Errors
    /// If another loop has taken it meanwhile, or it cannot be taken.
    pub fn take_again(&mut self) -> Result<(), LockError> {
        // A file system may report another identity for the same file; then our own lock was in the way.
        let _ = self.file.unlock();
        *self = Self::acquire(&self.path, &self.holder)?;
        Ok(())
    }

    /// The last owner, if it died without releasing the lock: its processes may still be running.
    #[must_use]
    pub fn previous(&self) -> Option<&Holder> {
        self.previous.as_ref()
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // An empty file means that the lock was released properly. If this fails, the next owner searches for
        // leftovers in vain.
        let _ = self.file.set_len(0);
        // Closing the file is not enough: a child between fork and exec still has a copy of the descriptor.
        let _ = self.file.unlock();
    }
}

/// The living holder of the lock at `path`, according to the file. The lock itself is not tried, so that a check
/// never blocks a loop that is starting; only if the holder's process cannot be checked, as in another pid or time
/// namespace (a container), the lock is tried.
///
/// # Errors
/// If another kind of file is at this path, or it cannot be read.
pub fn holder(path: &Path) -> Result<Option<Holder>, LockError> {
    match own::open_to_read(path) {
        Ok(file) => {
            let is_held = |file: &File| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock));
            // Who has just locked the file of a dead holder has not yet written its own name.
            let is_unseen = |holder: &Holder| !holder.identity.is_gone() && is_held(&file);
            let holds = |holder: &Holder| holder.identity.is_alive() || is_unseen(holder);
            Ok(read(&file).filter(holds))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(reason) => Err(LockError::Io { path: path.to_path_buf(), reason }),
    }
}

/// The holder may have taken the lock and not yet written its name.
fn wait_for_holder(path: &Path) -> Option<Holder> {
    (0..10).find_map(|round| {
        if round > 0 {
            thread::sleep(Duration::from_millis(10));
        }
        holder(path).ok().flatten()
    })
}

/// An empty, torn or foreign file has no holder; neither has a copy of a lock file.
fn read(mut file: &File) -> Option<Holder> {
    let mut content = String::new();
    (&mut file).take(64 * 1024).read_to_string(&mut content).ok()?;
    let Content { holder, lock_file } = toml::from_str(&content).ok()?;
    let id = FileId::of(file).ok()?;
    (lock_file == id).then_some(holder)
}

fn write(file: &mut File, holder: &Holder, id: FileId) -> io::Result<()> {
    let content = Content { holder: holder.clone(), lock_file: id };
    let content = toml::to_string(&content).map_err(io::Error::other)?;
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(content.as_bytes())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::fd::AsRawFd;
    use std::process::{Command, Stdio};

    use super::*;

    fn me(mode: &str) -> Holder {
        Holder { run_id: "r1".into(), mode: mode.into(), identity: ProcessIdentity::of_self().unwrap() }
    }

    #[test]
    fn a_second_loop_is_refused_and_told_who_holds_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let first = Lock::acquire(&path, &me("build")).unwrap();
        assert_eq!(holder(&path).unwrap(), Some(me("build")));

        let message = Lock::acquire(&path, &me("plan")).unwrap_err().to_string();
        assert!(message.contains(&format!("ralph build, pid {}", std::process::id())), "{message}");
        assert!(
            message.contains(path.to_str().unwrap()) && message.contains("another --ralph-dir"),
            "{message}"
        );

        drop(first);
        assert_eq!(holder(&path).unwrap(), None);
        assert_eq!(Lock::acquire(&path, &me("plan")).unwrap().previous(), None, "let go in good order");
    }

    #[test]
    fn a_dead_owner_is_no_obstacle_and_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let mut dead = me("build");
        dead.identity.start_ticks += 1;
        let mut file = File::create(&path).unwrap();
        let id = FileId::of(&file).unwrap();
        write(&mut file, &dead, id).unwrap();
        assert_eq!(holder(&path).unwrap(), None);

        let lock = Lock::acquire(&path, &me("plan")).unwrap();
        assert_eq!(lock.previous(), Some(&dead));
        assert_eq!(holder(&path).unwrap(), Some(me("plan")));
    }

    /// Between its lock and its name.
    #[test]
    fn the_next_owner_is_not_taken_for_a_dead_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let dead = Holder { identity: ProcessIdentity::of(child.id()).unwrap(), ..me("build") };
        let mut file = File::create(&path).unwrap();
        let id = FileId::of(&file).unwrap();
        write(&mut file, &dead, id).unwrap();
        file.try_lock().unwrap();
        assert_eq!(holder(&path).unwrap(), Some(dead));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(holder(&path).unwrap(), None);
    }

    #[test]
    fn garbage_in_the_file_is_no_obstacle() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        for content in [&b"\xff\xfe not toml"[..], b"pid = 'x'", &vec![b'x'; 200_000]] {
            fs::write(&path, content).unwrap();
            let lock = Lock::acquire(&path, &me("build")).unwrap();
            assert_eq!(lock.previous(), None);
            assert_eq!(holder(&path).unwrap(), Some(me("build")));
        }
    }

    #[test]
    fn a_holder_without_a_name_still_holds() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let other = File::create(&path).unwrap();
        other.try_lock().unwrap();
        let refused = Lock::acquire(&path, &me("build")).unwrap_err();
        assert!(matches!(refused, LockError::Held { holder: None, .. }), "{refused}");
    }

    #[test]
    fn children_do_not_keep_the_lock() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let lock = Lock::acquire(&path, &me("build")).unwrap();
        let fd = lock.file.as_raw_fd();
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        assert!(!Path::new(&format!("/proc/{}/fd/{fd}", child.id())).exists());
        drop(lock);
        Lock::acquire(&path, &me("plan")).unwrap();
        drop(child.stdin.take());
        child.wait().unwrap();
    }

    /// Run by the test below as a process of its own: it holds the lock until its stdin ends. Does nothing by itself.
    #[test]
    fn hold_until_killed() {
        let Some(path) = std::env::var_os("RALPH_TEST_LOCK") else { return };
        let _lock = Lock::acquire(Path::new(&path), &me("build")).unwrap();
        println!("held");
        let _ = io::stdin().read(&mut [0]);
    }

    #[test]
    fn another_process_holds_until_it_is_killed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "--nocapture", "record::lock::tests::hold_until_killed"])
            .env("RALPH_TEST_LOCK", &path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = io::BufReader::new(child.stdout.take().unwrap());
        assert!(io::BufRead::lines(stdout).any(|line| line.unwrap().contains("held")));

        let Err(LockError::Held { holder: Some(named), .. }) = Lock::acquire(&path, &me("plan")) else {
            panic!("the other process holds it");
        };
        assert_eq!(named.identity.pid, child.id());

        child.kill().unwrap();
        child.wait().unwrap();
        let lock = Lock::acquire(&path, &me("plan")).unwrap();
        assert_eq!(lock.previous().map(|owner| owner.identity.pid), Some(child.id()));
    }

    #[test]
    fn an_impossible_file_is_an_error_with_its_path() {
        let dir = tempfile::tempdir().unwrap();
        let message = Lock::acquire(dir.path(), &me("build")).unwrap_err().to_string();
        assert!(message.starts_with(&format!("lock, {}: ", dir.path().display())), "{message}");
    }
    #[test]
    fn a_lock_that_was_removed_or_replaced_is_taken_again_unless_another_has_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let mut lock = Lock::acquire(&path, &me("build")).unwrap();
        assert!(!lock.is_lost());
        fs::remove_file(&path).unwrap();
        assert!(lock.is_lost());
        lock.take_again().unwrap();
        assert!(!lock.is_lost());
        assert_eq!(holder(&path).unwrap(), Some(me("build")));

        fs::copy(&path, dir.path().join("backup")).unwrap();
        fs::rename(dir.path().join("backup"), &path).unwrap();
        assert!(lock.is_lost());
        lock.take_again().unwrap();
        assert_eq!(lock.previous(), None, "its own name is not that of a dead loop");

        fs::remove_file(&path).unwrap();
        let other = Lock::acquire(&path, &me("plan")).unwrap();
        assert!(
            matches!(lock.take_again(), Err(LockError::Held { holder: Some(named), .. }) if named.mode == "plan")
        );
        drop(lock);
        assert_eq!(holder(&path).unwrap(), Some(me("plan")), "the other's lock is not touched");
        drop(other);
    }

    #[test]
    fn what_is_no_lock_file_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let (path, target) = (dir.path().join("lock"), dir.path().join("target"));
        fs::write(&target, "the user's").unwrap();
        std::os::unix::fs::symlink(&target, &path).unwrap();
        for said in [Lock::acquire(&path, &me("build")).map(drop), holder(&path).map(drop)] {
            let said = said.unwrap_err().to_string();
            assert!(said.contains("lock: it is a symbolic link"), "{said}");
        }
        assert_eq!(fs::read(&target).unwrap(), b"the user's");
    }
}
