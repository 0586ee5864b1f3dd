//! Linux. Sources: `proc(5)` and its pages for each file, `prctl(2)`, `pidfd_open(2)`, `inotify(7)`.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use nix::unistd::{getpgid, getsid};
use rustix::event::{PollFd, PollFlags};
use rustix::fs::OFlags;
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::net::{RecvFlags, SendFlags};
use rustix::pipe::fcntl_setpipe_size;
use rustix::process::{
    Pid, PidfdFlags, Signal, getppid, parent_process_death_signal, pidfd_open, pidfd_send_signal,
    set_child_subreaper, set_parent_process_death_signal, test_kill_process,
};
use rustix::time::ClockId;

use super::{Mount, Stat, TcpSocket};

/// The folder of the kernel's own files.
pub const KERNEL: &str = "/proc";
/// What root could set in it.
pub const KERNEL_SETTINGS: [&str; 5] =
    ["/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs"];
/// The folder of our own open files.
pub const OPEN_FILES: &str = "/proc/self/fd";
/// A descriptor that only stands for a file: it reads nothing, and no right to read is needed.
pub const STANDS_FOR: OFlags = OFlags::PATH;

/// The clock of the start times of processes, which runs on while the machine sleeps.
pub const SINCE_BOOT: ClockId = ClockId::Boottime;
/// The clock that files get their times from: it lags by up to a tick of the kernel.
pub const OF_FILES: ClockId = ClockId::RealtimeCoarse;

/// A connection that is closed is an error of what is sent, and no signal.
pub const NO_SIGNAL: SendFlags = SendFlags::NOSIGNAL;
/// Open files that are received are inherited by no program, from the start.
pub const NOT_INHERITED: RecvFlags = RecvFlags::CMSG_CLOEXEC;

/// The name of the limit of file locks in a process's list of limits.
const FILE_LOCKS: &str = "Max file locks";
/// The states of a connected and a listening socket. Source: `include/net/tcp_states.h`.
const CONNECTED: &str = "01";
const LISTENS: &str = "0A";
/// Where no list of processes can be read, pids up to this much above the newest one are tried.
const PIDS_ABOVE: u32 = 1 << 15;

/// Whether the kernel shows processes here: `/proc` may not be mounted.
#[must_use]
pub fn shows_processes() -> bool {
    static SHOWN: OnceLock<bool> = OnceLock::new();
    *SHOWN.get_or_init(|| Path::new("/proc/self/stat").exists())
}

/// A file of a process.
fn of(pid: u32, name: &str) -> PathBuf {
    format!("/proc/{pid}/{name}").into()
}

/// Our pid in the list of processes, which may be of another namespace.
#[must_use]
pub fn own_pid() -> u32 {
    let listed = fs::read_link("/proc/self").ok().and_then(|pid| pid.to_str()?.parse().ok());
    listed.unwrap_or_else(std::process::id)
}

/// Every process, in the order of pids.
#[must_use]
pub fn pids() -> Box<dyn Iterator<Item = u32>> {
    match fs::read_dir(KERNEL) {
        Ok(folder) if shows_processes() => {
            Box::new(folder.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()))
        }
        _ => Box::new(1..=newest_pid() + PIDS_ABOVE),
    }
}

/// The newest pid: threads get theirs from the same numbers. A program that we have started has a lower one, unless
/// the numbers began anew since then.
fn newest_pid() -> u32 {
    let number = || rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
    let newest = std::thread::Builder::new().spawn(number).ok().and_then(|thread| thread.join().ok());
    newest.unwrap_or_default().max(std::process::id())
}

/// Describes a process; `None` if it has ended, or cannot be read.
#[must_use]
pub fn stat(pid: u32) -> Option<Stat> {
    if !shows_processes() {
        return asked(pid);
    }
    // A program's name may hold any bytes; only the fields after it are used.
    let bytes = fs::read(of(pid, "stat")).ok()?;
    parse(&String::from_utf8_lossy(&bytes))
}

/// What system calls say of a process where none is shown.
fn asked(pid: u32) -> Option<Stat> {
    let raw = Pid::from_raw(i32::try_from(pid).ok()?)?;
    test_kill_process(raw).ok()?;
    let number = |pid: Pid| pid.as_raw_nonzero().get().unsigned_abs();
    let parent = (pid == std::process::id()).then(|| getppid().map(number)).flatten();
    // The numbers of a group and a session may be 0, which no other type holds.
    let same = nix::unistd::Pid::from_raw(raw.as_raw_nonzero().get());
    let known = |pid: nix::unistd::Pid| u32::try_from(pid.as_raw()).unwrap_or_default();
    Some(Stat {
        pid,
        ppid: parent.unwrap_or_default(),
        group: getpgid(Some(same)).map(known).unwrap_or_default(),
        session: getsid(Some(same)).map(known).unwrap_or_default(),
        state: b'?',
        own_ticks: 0,
        reaped_ticks: 0,
        start_ticks: 0,
    })
}

/// The second field is the program's name in parentheses and may hold blanks and parentheses itself, so fields are
/// counted from the last `)`.
fn parse(line: &str) -> Option<Stat> {
    let (head, rest) = line.rsplit_once(')')?;
    let pid = head.split(' ').next()?.parse().ok()?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    // Field 3 (state) is the first one after the name.
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    Some(Stat {
        pid,
        ppid: u32::try_from(number(4)?).ok()?,
        group: u32::try_from(number(5)?).ok()?,
        session: u32::try_from(number(6)?).ok()?,
        state: *fields.first()?.as_bytes().first()?,
        own_ticks: number(14)? + number(15)?,
        reaped_ticks: number(16)? + number(17)?,
        start_ticks: number(22)?,
    })
}

/// The command line of a process, whose words end in NUL bytes; empty if it has ended.
#[must_use]
pub fn command_line(pid: u32) -> Vec<u8> {
    fs::read(of(pid, "cmdline")).unwrap_or_default()
}

/// The environment with which a process was started, likewise; empty also if it is not ours to read.
#[must_use]
pub fn environment(pid: u32) -> Vec<u8> {
    fs::read(of(pid, "environ")).unwrap_or_default()
}

/// The soft limit of a process's file locks.
#[must_use]
pub fn limit_of_locks(pid: u32) -> Option<u64> {
    let limits = fs::read_to_string(of(pid, "limits")).ok()?;
    limits.lines().find_map(|line| line.strip_prefix(FILE_LOCKS)?.split_whitespace().next())?.parse().ok()
}

/// What a process has open, each as the kernel names it: a path, `socket:[7]`, a path with ` (deleted)` behind it.
pub fn open_files(pid: u32) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(of(pid, "fd")).into_iter().flatten().flatten();
    entries.filter_map(|entry| fs::read_link(entry.path()).ok())
}

/// The numbers of the sockets that a process has open.
pub fn open_sockets(pid: u32) -> impl Iterator<Item = u64> {
    open_files(pid)
        .filter_map(|file| file.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok())
}

/// The TCP sockets of the network that a process is in.
#[must_use]
pub fn tcp_sockets(pid: u32) -> Vec<TcpSocket> {
    let tables = ["net/tcp", "net/tcp6"].map(|table| fs::read_to_string(of(pid, table)));
    let socket = |line: &str| {
        let mut fields = line.split_ascii_whitespace();
        let port = u16::from_str_radix(fields.nth(1)?.rsplit_once(':')?.1, 16).ok()?;
        let state = fields.nth(1)?;
        let (listens, is_connected) = (state == LISTENS, state == CONNECTED);
        Some(TcpSocket { port, listens, is_connected, inode: fields.nth(5)?.parse().ok()? })
    };
    tables.iter().flatten().flat_map(|table| table.lines()).filter_map(socket).collect()
}

/// The working directory of a process.
///
/// # Errors
/// If it has ended, or is not ours to read.
pub fn working_directory(pid: u32) -> io::Result<PathBuf> {
    fs::read_link(of(pid, "cwd"))
}

/// The program file of a process.
///
/// # Errors
/// If it has ended, or is not ours to read.
pub fn program_of(pid: u32) -> io::Result<PathBuf> {
    fs::read_link(of(pid, "exe"))
}

/// A path that leads to what this absolute path is for a process, which may see other file systems than we.
#[must_use]
pub fn as_seen_by(pid: u32, path: &Path) -> Option<PathBuf> {
    Some(of(pid, "root").join(path.strip_prefix("/").ok()?))
}

/// How many bytes a process has written so far, to files, pipes and sockets.
#[must_use]
pub fn written(pid: u32) -> u64 {
    let io = fs::read_to_string(of(pid, "io")).unwrap_or_default();
    io.lines().find_map(|line| line.strip_prefix("wchar: ")?.parse().ok()).unwrap_or_default()
}

/// Our own program file, for starting ourselves. Unlike its path, this stays right when the file is replaced while a
/// loop runs.
#[must_use]
pub fn own_executable() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| {
        if shows_processes() {
            return "/proc/self/exe".into();
        }
        // The path by which the kernel was told to start us.
        let started = OsStr::from_bytes(rustix::param::linux_execfn().to_bytes());
        std::path::absolute(started).unwrap_or_else(|_| started.into())
    })
}

/// The path of our own program file for other processes to start, as long as we live.
#[must_use]
pub fn own_executable_for_others() -> PathBuf {
    let path = of(std::process::id(), "exe");
    if shows_processes() { path } else { own_executable().to_owned() }
}

/// The number of our pid namespace (a container); 0 if it is unknown.
///
/// # Errors
/// If the kernel does not say it, although it shows processes.
pub fn pid_namespace() -> io::Result<u64> {
    if shows_processes() { Ok(fs::metadata("/proc/self/ns/pid")?.ino()) } else { Ok(0) }
}

/// Whether a pid namespace is the outermost one (`PROC_PID_INIT_INO` of the kernel).
#[must_use]
pub fn is_outermost(pid_namespace: u64) -> bool {
    pid_namespace == 0xEFFF_FFFC
}

/// The kernel's random id of this boot; empty if it is unknown.
///
/// # Errors
/// If the kernel does not say it, although it shows processes.
pub fn boot_id() -> io::Result<String> {
    match fs::read_to_string("/proc/sys/kernel/random/boot_id") {
        Err(_) if !shows_processes() => Ok(String::new()),
        id => Ok(id?.trim_end().to_owned()),
    }
}

/// A setting of the kernel, such as `user/max_user_namespaces`.
#[must_use]
pub fn kernel_setting(name: &str) -> Option<String> {
    fs::read_to_string(Path::new("/proc/sys").join(name)).ok()
}

/// The set of signals that we were started to ignore, bit N-1 for signal N; empty if that is unknown.
#[must_use]
pub fn ignored_signals() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default()
}

/// The numbers of our own open files.
///
/// # Errors
/// If they cannot be listed.
pub fn own_descriptors() -> io::Result<Vec<i32>> {
    Ok(fs::read_dir(OPEN_FILES)?
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect())
}

/// Makes this user and group the only ones of our new user namespace.
///
/// # Errors
/// If the kernel refuses it.
pub fn map_user(user: u32, group: u32) -> io::Result<()> {
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1"))
}

/// The table of mounts. Paths lead to the last one of those in a place.
///
/// # Errors
/// If it cannot be read.
pub fn mounts() -> io::Result<Vec<Mount>> {
    let table = fs::read("/proc/self/mountinfo")?;
    let mount = |line: &[u8]| {
        let mut fields = line.split(|byte| *byte == b' ');
        let (place, options) = (fields.nth(4)?, fields.next()?);
        // Fields that may be there end with a dash.
        let mut rest = fields.skip_while(|field| *field != b"-").skip(1);
        let mut text = || OsString::from_vec(unescaped(rest.next()?)).into_string().ok();
        let place = PathBuf::from(OsString::from_vec(unescaped(place)));
        let (kind, source) = (text().unwrap_or_default(), text().unwrap_or_default());
        Some(Mount { place, options: options.to_owned(), kind, source })
    };
    Ok(table.split(|byte| *byte == b'\n').filter_map(mount).collect())
}

/// Decodes the kernel's octal escapes of blanks, newlines and backslashes.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, tail @ ..] = rest {
        let digits = tail.get(..3).filter(|_| *first == b'\\');
        let byte = digits.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &tail[3..] } else { tail };
    }
    bytes
}

/// A process by a descriptor: a signal to it cannot reach another process that got its pid.
///
/// # Errors
/// If there is none with that pid, or the kernel has no such descriptors.
pub fn hold(pid: Pid) -> io::Result<OwnedFd> {
    Ok(pidfd_open(pid, PidfdFlags::empty())?)
}

/// Sends a signal to a process that is held.
///
/// # Errors
/// If it has ended, or the kernel refuses it.
pub fn send(held: &OwnedFd, signal: Signal) -> io::Result<()> {
    Ok(pidfd_send_signal(held, signal)?)
}

/// The process at the other end of a connection.
///
/// # Errors
/// If the kernel does not say it.
pub fn peer(socket: &UnixStream) -> io::Result<Pid> {
    Ok(rustix::net::sockopt::socket_peercred(socket)?.pid)
}

/// Makes us the parent of what our children leave behind, or no longer.
///
/// # Errors
/// If the kernel refuses it.
pub fn adopt(orphans: bool) -> io::Result<()> {
    Ok(set_child_subreaper(orphans.then(rustix::process::getpid))?)
}

/// Has the kernel send us a signal when our parent dies.
///
/// # Errors
/// If the kernel refuses it.
pub fn signal_at_parents_death(signal: Signal) -> io::Result<()> {
    Ok(set_parent_process_death_signal(Some(signal))?)
}

/// Whether the kernel knows signals at the death of a parent.
#[must_use]
pub fn tells_parents_death() -> bool {
    parent_process_death_signal().is_ok()
}

/// Has a pipe hold this many bytes, if the kernel allows it: without that there are more system calls.
pub fn widen(pipe: impl AsFd, capacity: usize) {
    let _ = fcntl_setpipe_size(pipe, capacity);
}

/// The number of the device that a file is on.
#[must_use]
pub fn device(file: &rustix::fs::Stat) -> u64 {
    file.st_dev
}

/// Notices names that appear in a folder.
#[derive(Debug)]
pub struct FolderWatch(OwnedFd);

impl FolderWatch {
    /// Watches this folder from here on.
    ///
    /// # Errors
    /// If the kernel refuses it.
    pub fn of(folder: &Path) -> io::Result<Self> {
        let watch = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        inotify::add_watch(&watch, folder, WatchFlags::MOVED_TO | WatchFlags::ONLYDIR)?;
        Ok(Self(watch))
    }

    /// A descriptor to poll.
    #[must_use]
    pub fn notice(&self) -> PollFd<'_> {
        PollFd::new(&self.0, PollFlags::IN)
    }

    /// Forgets what was noticed; what it was does not matter.
    pub fn forget(&self) {
        while rustix::io::read(&self.0, &mut [0; 4096]).is_ok_and(|count| count > 0) {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_does_not_shift_the_fields() {
        for name in ["cat", "a b", ") S 1 2", "((x", "tmux: server", "\u{fc}) Z (", ""] {
            let line = format!("42 ({name}) S 7 1 1 0 -1 4194560 1 2 3 4 100 20 30 4 20 0 1 0 12345 1 2 3\n");
            let stat = parse(&line).unwrap();
            assert_eq!((stat.pid, stat.ppid, stat.state), (42, 7, b'S'), "{name}");
            assert_eq!((stat.own_ticks, stat.reaped_ticks, stat.start_ticks), (120, 34, 12345), "{name}");
        }
        for nonsense in ["", "7", "7 (x", "7 (x)", "7 (x) S", "7 (x) S 1 2 3"] {
            assert_eq!(parse(nonsense), None, "{nonsense}");
        }
    }

    #[test]
    fn paths_are_read_as_the_kernel_writes_them() {
        for (written, path) in [("/a", "/a"), ("/a\\040b\\134c", "/a b\\c"), ("/x\\", "/x\\"), ("\\0", "\\0")]
        {
            assert_eq!(unescaped(written.as_bytes()), path.as_bytes(), "{written}");
        }
    }

    #[test]
    fn system_calls_say_less_of_a_process_than_the_list() {
        let (listed, asked) = (stat(std::process::id()).unwrap(), asked(std::process::id()).unwrap());
        let common = |stat: &Stat| (stat.pid, stat.ppid, stat.group, stat.session);
        assert_eq!(common(&listed), common(&asked));
    }

    #[test]
    fn the_root_is_mounted() {
        let mounts = mounts().unwrap();
        let root = mounts.iter().rev().find(|mount| mount.place == Path::new("/")).unwrap();
        assert!(!root.kind.is_empty() && (root.has("rw") || root.has("ro")), "{root:?}");
    }
}
