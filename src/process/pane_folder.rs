//! The folder in which the wrapper of a pane and its monitors meet: the launch, a socket, and the notes of the end.

use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::fs::{Mode, OFlags};

use super::handle::ProcessHandle;
use super::note::SupervisorNote;
use super::ready::is_any_ready_by;
use crate::files::atomic::{self, Durability};
use crate::files::{FileError, own};

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

/// The folder of one pane. Only its user can access it: a listener there is trusted to be the wrapper.
#[derive(Debug)]
pub(super) struct PaneFolder {
    path: PathBuf,
    descriptor: OwnedFd,
}

impl PaneFolder {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let descriptor = rustix::fs::open(path, flags, Mode::empty())?;
        Ok(Self { path: path.to_owned(), descriptor })
    }

    /// A short path to a socket in it, as the kernel accepts only 107 bytes.
    fn short(&self, name: &str) -> PathBuf {
        format!("/proc/self/fd/{}/{name}", self.descriptor.as_raw_fd()).into()
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
        let listener = UnixListener::bind(self.short(SOCKET_TO_BE))?;
        listener.set_nonblocking(true)?;
        std::fs::rename(self.path.join(SOCKET_TO_BE), self.path.join(SOCKET))?;
        Ok(listener)
    }

    /// A connection to the wrapper; `None` if there is none.
    pub(super) fn connect(&self) -> io::Result<Option<UnixStream>> {
        match UnixStream::connect(self.short(SOCKET)) {
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
        let watch = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        inotify::add_watch(&watch, &self.path, WatchFlags::MOVED_TO | WatchFlags::ONLYDIR)?;
        loop {
            // Checked first: what the process has left is there by then.
            let has_ended = maker.map_or(Ok(false), |maker| maker.ends_by(Instant::now()))?;
            let found = look()?;
            if found.is_some() || has_ended {
                return Ok(found);
            }
            let mut awaited = vec![PollFd::new(&watch, PollFlags::IN)];
            awaited.extend(maker.map(ProcessHandle::end));
            if !is_any_ready_by(&mut awaited, deadline)? {
                return Ok(None);
            }
            // The content of the events does not matter.
            while rustix::io::read(&watch, &mut [0; 4096]).is_ok_and(|count| count > 0) {}
        }
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}
