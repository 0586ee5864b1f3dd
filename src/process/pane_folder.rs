//! The folder in which the wrapper of a pane and its monitors meet: the launch, a socket, and the notes of the end.

use std::io;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::event::PollFd;

use super::note::SupervisorNote;
use crate::files::atomic::{self, Durability};
use crate::files::{FileError, own};
use crate::platform::backend::is_portable;
use crate::platform::calls::FolderWatch;
use crate::platform::handle::ProcessHandle;
use crate::platform::ready::is_any_ready_by;
use crate::platform::socket;

/// The launch, with an environment that may hold secrets: it is removed as soon as it is read.
const LAUNCH: &str = "launch";
/// The wrapper's socket.
const SOCKET: &str = "socket";
/// Its name until the wrapper listens.
const SOCKET_TO_BE: &str = "socket.new";
/// The notes of a program that has ended, as lines.
const END: &str = "end";
/// The limit is above the kernel's for a program's words and variables.
const LAUNCH_LIMIT: u64 = 64 << 20;
const END_LIMIT: u64 = 64 << 10;

/// How often names in the folder are looked for where the kernel does not tell of them.
const LOOK: Duration = Duration::from_millis(20);

/// The folder of one pane. Only its user can access it: a listener there is trusted to be the wrapper.
#[derive(Debug)]
pub(super) struct PaneFolder {
    path: PathBuf,
}

impl PaneFolder {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        if !path.symlink_metadata()?.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(Self { path: path.to_owned() })
    }

    /// Writes the launch for the wrapper, replacing everything of an earlier one.
    pub(super) fn prepare(&self, launch: &[u8]) -> Result<(), FileError> {
        for name in [SOCKET, SOCKET_TO_BE, END, LAUNCH] {
            remove(&self.path.join(name)).map_err(FileError::at(&self.path.join(name)))?;
        }
        atomic::write_own(&self.path.join(LAUNCH), launch, Durability::Atomic).map(drop)
    }

    /// Reads the launch, and removes it.
    pub(super) fn take_launch(&self) -> io::Result<Vec<u8>> {
        let path = self.path.join(LAUNCH);
        let launch = own::read(&path, LAUNCH_LIMIT);
        remove(&path)?;
        launch
    }

    /// Removes the launch unread: no wrapper has come.
    pub(super) fn take_back(&self) -> io::Result<()> {
        remove(&self.path.join(LAUNCH))
    }

    /// Listens for monitors. The socket gets its name only when it is ready.
    pub(super) fn listen(&self) -> io::Result<UnixListener> {
        let listener = socket::listen(&self.path.join(SOCKET_TO_BE))?;
        listener.set_nonblocking(true)?;
        std::fs::rename(self.path.join(SOCKET_TO_BE), self.path.join(SOCKET))?;
        Ok(listener)
    }

    /// A connection to the wrapper; `None` if there is none.
    pub(super) fn connect(&self) -> io::Result<Option<UnixStream>> {
        match socket::connect(&self.path.join(SOCKET)) {
            Ok(socket) => Ok(Some(socket)),
            Err(error)
                if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Writes the notes of an ended program. A missing folder is not created again.
    pub(super) fn keep(&self, notes: &str) -> Result<(), FileError> {
        if self.path.is_dir() {
            atomic::write_own(&self.path.join(END), notes.as_bytes(), Durability::Atomic)?;
        }
        Ok(())
    }

    /// The kept notes; none while the program runs.
    pub(super) fn kept(&self) -> io::Result<Vec<SupervisorNote>> {
        match own::read(&self.path.join(END), END_LIMIT) {
            Ok(notes) => {
                Ok(String::from_utf8_lossy(&notes).lines().filter_map(SupervisorNote::parse).collect())
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// Removes the socket.
    pub(super) fn close(&self) {
        let _ = remove(&self.path.join(SOCKET));
    }

    /// Waits until `look` finds something, checking whenever a name appears here; `None` if `deadline` is reached
    /// first, or the end of `maker`, the process that creates it.
    pub(super) fn wait_for<T>(
        &self,
        maker: Option<&ProcessHandle>,
        deadline: Instant,
        mut look: impl FnMut() -> io::Result<Option<T>>,
    ) -> io::Result<Option<T>> {
        let watch = if is_portable() { None } else { Some(FolderWatch::of(&self.path)?) };
        loop {
            // Checked first: what the process has left is there by then.
            let has_ended = maker.map_or(Ok(false), |maker| maker.ends_by(Instant::now()))?;
            let found = look()?;
            if found.is_some() || has_ended {
                return Ok(found);
            }
            let Some(watch) = &watch else {
                let left = deadline.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Ok(None);
                }
                std::thread::sleep(left.min(LOOK));
                continue;
            };
            let mut awaited: Vec<PollFd<'_>> =
                [Some(watch.notice()), maker.and_then(ProcessHandle::end)].into_iter().flatten().collect();
            if !is_any_ready_by(&mut awaited, deadline)? {
                return Ok(None);
            }
            watch.forget();
        }
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}
