//! Who may have a server do something at the same time as others.
//!
//! tmux (3.3a) tells all clients in control mode of sessions that come and go, also one that has not introduced itself to the
//! end. That crashes the server, and every agent in it is lost: fifty workers could not be started at once. So nobody of ours
//! has a server do anything while such a client is being attached. What users do at that very moment is not in our hands.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use rustix::io::Errno;

use super::server::{LIMIT, Server};

/// How soon one looks again whose turn has not come.
const AGAIN: Duration = Duration::from_millis(5);

/// A turn; it is over when this is dropped, or by the kernel's hand with the process.
#[derive(Debug)]
pub(super) struct Turn {
    /// The folder of the server's socket, locked. `None`: it cannot be, and nobody waits for anybody.
    _folder: Option<OwnedFd>,
}

impl Server {
    /// Waits for a turn that others may have as well.
    pub(super) fn turn(&self) -> Turn {
        Turn::take(&self.folder(), FlockOperation::NonBlockingLockShared)
    }

    /// Waits for a turn that nobody else has.
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
        // One that is stopped in the middle of its turn must not hold everybody up.
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
    fn without_a_folder_nobody_waits() {
        let server = Server::new("/nowhere/at/all");
        drop([server.turn_alone(), server.turn_alone()]);
    }
}
