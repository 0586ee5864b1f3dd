//! Serialises commands that a server cannot handle together.
//!
//! tmux (3.3a) notifies all clients in control mode about new and ended sessions, including a client that has not
//! finished its handshake. That crashes the server, and every agent in it is lost: fifty workers could not be started
//! at once. So no ralph process changes the server while such a client is being attached. Commands of users at that
//! moment cannot be prevented.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use rustix::io::Errno;

use super::server::{LIMIT, Server};

/// How soon a waiting process tries again.
const AGAIN: Duration = Duration::from_millis(5);

/// A turn; it ends when this is dropped, or when the process ends.
#[derive(Debug)]
pub(super) struct Turn {
    /// The locked folder of the server's socket. `None` if it cannot be locked; then there is no waiting.
    _folder: Option<OwnedFd>,
}

impl Server {
    /// Waits for a shared turn.
    pub(super) fn turn(&self) -> Turn {
        Turn::take(&self.folder(), FlockOperation::NonBlockingLockShared)
    }

    /// Waits for an exclusive turn.
    pub(super) fn turn_alone(&self) -> Turn {
        Turn::take(&self.folder(), FlockOperation::NonBlockingLockExclusive)
    }
}

impl Turn {
    fn take(folder: &Path, operation: FlockOperation) -> Self {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        // Without the folder there is no server.
        let Ok(folder) = rustix::fs::open(folder, flags, Mode::empty()) else {
            return Self { _folder: None };
        };
        // A process that is stopped during its turn must not block all others.
        let until = Instant::now() + LIMIT;
        while flock(&folder, operation) == Err(Errno::WOULDBLOCK) && Instant::now() < until {
            thread::sleep(AGAIN);
        }
        Self { _folder: Some(folder) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_alone_keeps_others_waiting_and_is_kept_by_them() {
        let folder = tempfile::tempdir().unwrap();
        let server = Server::new(folder.path().join("socket"));
        let waits = |turn: fn(&Server) -> Turn, other: fn(&Server) -> Turn| {
            let held = turn(&server);
            thread::scope(|scope| {
                let other = scope.spawn(|| drop(other(&server)));
                thread::sleep(Duration::from_millis(300));
                let waits = !other.is_finished();
                drop(held);
                waits
            })
        };
        assert!(waits(Server::turn_alone, Server::turn));
        assert!(waits(Server::turn, Server::turn_alone));
        assert!(waits(Server::turn_alone, Server::turn_alone));
        drop([server.turn(), server.turn()]);
    }

    #[test]
    fn without_a_folder_there_is_no_waiting() {
        let server = Server::new("/nowhere/at/all");
        drop([server.turn_alone(), server.turn_alone()]);
    }
}
