//! Systems of which nothing is known but POSIX. Nothing has ever run on one: this file lets the rest be type-checked.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::event::PollFd;
use rustix::fs::OFlags;
use rustix::net::{RecvFlags, SendFlags};
use rustix::process::{Pid, Signal, getpgid, getppid, getsid, test_kill_process};
use rustix::time::ClockId;

use super::{Mount, Stat, TcpSocket};

/// There is no folder of the kernel's own files.
pub const KERNEL: &str = "/dev/fd";
/// Nothing is set by files.
pub const KERNEL_SETTINGS: [&str; 0] = [];
/// The folder of our own open files.
pub const OPEN_FILES: &str = "/dev/fd";
/// A descriptor that stands for a file: here it has to be opened.
pub const STANDS_FOR: OFlags = OFlags::RDONLY;
/// The clock of the start times of processes.
pub const SINCE_BOOT: ClockId = ClockId::Monotonic;
/// The clock that files get their times from.
pub const OF_FILES: ClockId = ClockId::Realtime;

/// No program of ours ends by a closed connection: Rust ignores the signal.
pub const NO_SIGNAL: SendFlags = SendFlags::empty();
/// Open files that are received have to be closed to programs one by one.
pub const NOT_INHERITED: RecvFlags = RecvFlags::empty();

/// Where no list of processes can be read, pids up to this are tried.
const LAST_PID: u32 = 99_999;

fn unsupported<T>() -> io::Result<T> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Whether the kernel shows processes here.
#[must_use]
pub fn shows_processes() -> bool {
    false
}

/// Our pid in the list of processes.
#[must_use]
pub fn own_pid() -> u32 {
    std::process::id()
}

/// Every process, in the order of pids.
pub fn pids() -> impl Iterator<Item = u32> {
    1..=LAST_PID
}

/// Describes a process; `None` if it has ended, or cannot be read.
#[must_use]
pub fn stat(pid: u32) -> Option<Stat> {
    let raw = Pid::from_raw(i32::try_from(pid).ok()?)?;
    test_kill_process(raw).ok()?;
    let number = |pid: Pid| pid.as_raw_nonzero().get().unsigned_abs();
    let parent = (pid == own_pid()).then(|| getppid().map(number)).flatten();
    Some(Stat {
        pid,
        ppid: parent.unwrap_or_default(),
        group: getpgid(Some(raw)).map(number).unwrap_or_default(),
        session: getsid(Some(raw)).map(number).unwrap_or_default(),
        state: b'?',
        own_ticks: 0,
        reaped_ticks: 0,
        start_ticks: 0,
    })
}

/// The command line of a process: unknown.
#[must_use]
pub fn command_line(_: u32) -> Vec<u8> {
    Vec::new()
}

/// The environment of a process: unknown.
#[must_use]
pub fn environment(_: u32) -> Vec<u8> {
    Vec::new()
}

/// The soft limit of a process's file locks: there is none.
#[must_use]
pub fn limit_of_locks(_: u32) -> Option<u64> {
    None
}

/// What a process has open: unknown.
pub fn open_files(_: u32) -> impl Iterator<Item = PathBuf> {
    std::iter::empty()
}

/// The numbers of the sockets that a process has open: unknown.
pub fn open_sockets(_: u32) -> impl Iterator<Item = u64> {
    std::iter::empty()
}

/// The TCP sockets of the network that a process is in: unknown.
#[must_use]
pub fn tcp_sockets(_: u32) -> Vec<TcpSocket> {
    Vec::new()
}

/// The working directory of a process.
///
/// # Errors
/// It is unknown.
pub fn working_directory(_: u32) -> io::Result<PathBuf> {
    unsupported()
}

/// The program file of a process.
///
/// # Errors
/// It is unknown.
pub fn program_of(_: u32) -> io::Result<PathBuf> {
    unsupported()
}

/// A path that leads to what this path is for a process: all see the same files.
#[must_use]
pub fn as_seen_by(_: u32, path: &Path) -> Option<PathBuf> {
    path.is_absolute().then(|| path.to_owned())
}

/// How many bytes a process has written so far: unknown.
#[must_use]
pub fn written(_: u32) -> u64 {
    0
}

/// Our own program file, for starting ourselves.
#[must_use]
pub fn own_executable() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| std::env::current_exe().unwrap_or_else(|_| "ralph".into()))
}

/// The path of our own program file for other processes to start.
#[must_use]
pub fn own_executable_for_others() -> PathBuf {
    own_executable().to_owned()
}

/// The number of our pid namespace: there are none.
///
/// # Errors
/// Never.
pub fn pid_namespace() -> io::Result<u64> {
    Ok(0)
}

/// Whether a pid namespace is the outermost one.
#[must_use]
pub fn is_outermost(_: u64) -> bool {
    true
}

/// The id of this boot: unknown.
///
/// # Errors
/// Never.
pub fn boot_id() -> io::Result<String> {
    Ok(String::new())
}

/// A setting of the kernel: unknown.
#[must_use]
pub fn kernel_setting(_: &str) -> Option<String> {
    None
}

/// The set of signals that we were started to ignore: unknown.
#[must_use]
pub fn ignored_signals() -> u64 {
    0
}

/// The numbers of our own open files.
///
/// # Errors
/// If they cannot be listed.
pub fn own_descriptors() -> io::Result<Vec<i32>> {
    let entries = std::fs::read_dir(OPEN_FILES)?.flatten();
    Ok(entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect())
}

/// There are no user namespaces.
///
/// # Errors
/// Always.
pub fn map_user(_: u32, _: u32) -> io::Result<()> {
    unsupported()
}

/// The table of mounts.
///
/// # Errors
/// It is unknown.
pub fn mounts() -> io::Result<Vec<Mount>> {
    unsupported()
}

/// There are no descriptors of processes.
///
/// # Errors
/// Always.
pub fn hold(_: Pid) -> io::Result<OwnedFd> {
    unsupported()
}

/// There are no descriptors of processes.
///
/// # Errors
/// Always.
pub fn send(_: &OwnedFd, _: Signal) -> io::Result<()> {
    unsupported()
}

/// The process at the other end of a connection.
///
/// # Errors
/// It is unknown.
pub fn peer(_: &UnixStream) -> io::Result<Pid> {
    unsupported()
}

/// Orphans become children of init.
///
/// # Errors
/// Always.
pub fn adopt(_: bool) -> io::Result<()> {
    unsupported()
}

/// The kernel sends no signal when a parent dies.
///
/// # Errors
/// Always.
pub fn signal_at_parents_death(_: Signal) -> io::Result<()> {
    unsupported()
}

/// Whether the kernel knows signals at the death of a parent.
#[must_use]
pub fn tells_parents_death() -> bool {
    false
}

/// A pipe holds what the kernel has given it.
pub fn widen(_: impl AsFd, _: usize) {}

/// The number of the device that a file is on, as the standard library has it.
#[must_use]
#[expect(clippy::cast_sign_loss, reason = "the bits are what counts")]
pub fn device(file: &rustix::fs::Stat) -> u64 {
    file.st_dev as u64
}

/// Notices names that appear in a folder.
#[derive(Debug)]
pub struct FolderWatch(OwnedFd);

impl FolderWatch {
    /// Watches a folder.
    ///
    /// # Errors
    /// Always.
    pub fn of(_: &Path) -> io::Result<Self> {
        unsupported()
    }

    /// A descriptor to poll.
    #[must_use]
    pub fn notice(&self) -> PollFd<'_> {
        PollFd::new(&self.0, rustix::event::PollFlags::IN)
    }

    /// Forgets what was noticed.
    pub fn forget(&self) {}
}
