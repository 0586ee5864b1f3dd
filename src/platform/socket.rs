//! Sockets in folders of ours, by paths of any length.

use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use tempfile::TempDir;

use super::backend::is_portable;
use super::calls::{OPEN_FILES, STANDS_FOR};

/// What every kernel accepts of a path, in bytes: macOS has 104, with the NUL byte.
const ACCEPTED: usize = 103;

/// A path to a socket that the kernel accepts, as long as this lives.
struct Short {
    path: PathBuf,
    _folder: Option<OwnedFd>,
    _link: Option<TempDir>,
}

impl Short {
    fn of(socket: &Path) -> io::Result<Self> {
        let (Some(folder), Some(name)) = (socket.parent(), socket.file_name()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        if socket.as_os_str().len() <= ACCEPTED {
            return Ok(Self { path: socket.to_owned(), _folder: None, _link: None });
        }
        if is_portable() {
            let link = tempfile::Builder::new().prefix("ralph-").tempdir_in("/tmp")?;
            let path = link.path().join("folder");
            std::os::unix::fs::symlink(folder, &path)?;
            return Ok(Self { path: path.join(name), _folder: None, _link: Some(link) });
        }
        let flags = STANDS_FOR | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let open = rustix::fs::open(folder, flags, Mode::empty())?;
        let path = Path::new(OPEN_FILES).join(open.as_raw_fd().to_string()).join(name);
        Ok(Self { path, _folder: Some(open), _link: None })
    }
}

/// Listens at this path, where nothing may be.
///
/// # Errors
/// If the socket cannot be made.
pub fn listen(socket: &Path) -> io::Result<UnixListener> {
    UnixListener::bind(&Short::of(socket)?.path)
}

/// Connects to the process that listens at this path.
///
/// # Errors
/// If no process does.
pub fn connect(socket: &Path) -> io::Result<UnixStream> {
    UnixStream::connect(&Short::of(socket)?.path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_may_be_longer_than_the_kernel_accepts() {
        let guard = tempfile::tempdir().unwrap();
        for folder in [guard.path().to_owned(), guard.path().join("x".repeat(200)).join("y".repeat(200))] {
            std::fs::create_dir_all(&folder).unwrap();
            let _listener = listen(&folder.join("socket")).unwrap();
            connect(&folder.join("socket")).unwrap();
        }
        assert!(connect(&guard.path().join("none")).is_err());
    }
}
