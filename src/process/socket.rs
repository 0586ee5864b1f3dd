//! Sockets in folders of ours, by paths of any length.

use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

/// A folder that is open, so that a socket in it has a short path: the kernel accepts only 107 bytes.
fn folder(socket: &Path) -> io::Result<(OwnedFd, PathBuf)> {
    let (Some(folder), Some(name)) = (socket.parent(), socket.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let descriptor = rustix::fs::open(folder, flags, Mode::empty())?;
    let short = Path::new("/proc/self/fd").join(descriptor.as_raw_fd().to_string()).join(name);
    Ok((descriptor, short))
}

/// Listens at this path, where nothing may be.
///
/// # Errors
/// If the socket cannot be made.
pub fn listen(socket: &Path) -> io::Result<UnixListener> {
    let (_open, short) = folder(socket)?;
    UnixListener::bind(short)
}

/// Connects to the one who listens at this path.
///
/// # Errors
/// If no process does.
pub fn connect(socket: &Path) -> io::Result<UnixStream> {
    let (_open, short) = folder(socket)?;
    UnixStream::connect(short)
}
