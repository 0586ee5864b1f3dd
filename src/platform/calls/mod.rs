//! Calls that only one kernel has, in one file for each: the other rooms of the house see what is declared here.

use std::path::PathBuf;

#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(target_os = "linux")]
mod linux;

#[cfg(not(target_os = "linux"))]
pub use elsewhere::*;
#[cfg(target_os = "linux")]
pub use linux::*;

/// A process as the kernel describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stat {
    /// Process id.
    pub pid: u32,
    /// Process id of the parent.
    pub ppid: u32,
    /// Process id of its process group's leader; 0 if that is outside of our namespace, see
    /// [`group`](crate::process::group).
    pub group: u32,
    /// Process id of its session's leader; may be 0 like the group.
    pub session: u32,
    /// One letter: `R`, `S`, `D`, `T`, `Z` …
    pub state: u8,
    /// CPU time of the process itself, in clock ticks.
    pub own_ticks: u64,
    /// CPU time of its children that have been waited for, in clock ticks.
    pub reaped_ticks: u64,
    /// Start time after boot, in clock ticks. Together with the pid it identifies one process.
    pub start_ticks: u64,
}

/// One line of the table of mounts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Where it is mounted.
    pub place: PathBuf,
    /// The options of this place, by commas.
    pub options: Vec<u8>,
    /// The kind of file system.
    pub kind: String,
    /// What is mounted: a device, a share, a word.
    pub source: String,
}

impl Mount {
    /// Whether its place has this option.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.options.split(|byte| *byte == b',').any(|option| option == name.as_bytes())
    }
}

/// A TCP socket of the kernel's table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TcpSocket {
    /// Its own port.
    pub port: u16,
    /// It waits for connections.
    pub listens: bool,
    /// It has a connection.
    pub is_connected: bool,
    /// The number of the socket, as [`open_sockets`] has it.
    pub inode: u64,
}
