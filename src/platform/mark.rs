//! Marks of programs: what tells, for ever, which run or pane a process belongs to.
//!
//! A mark is in the environment, which a process can drop (`env -i`), and in something that it inherits all the same:
//! with the Linux backend a resource limit that no kernel enforces, with the portable one an open file.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{Mode, OFlags};
use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};
use rustix::process::{Resource, Rlimit, getrlimit, getuid, setrlimit};

use super::backend::is_portable;
use super::calls::{OPEN_FILES, environment, limit_of_locks, open_files, own_descriptors};
use super::home;
use super::stat::Stat;

/// The environment variable that carries the run mark.
pub const RUN_MARK: &str = "RALPH_RUN";
/// The environment variable that carries the pid of the supervisor: with the run mark it identifies one program of a
/// run and its descendants.
pub const SUPERVISOR_MARK: &str = "RALPH_SUPERVISOR";
/// The environment variable that carries the mark of a pane. Its program outlives the run that started it and does
/// not belong to the run: no sweep of a run touches it.
pub const PANE_MARK: &str = "RALPH_PANE";

/// The limit whose soft value carries the mark: how many file locks a process may hold. No kernel since Linux 2.4
/// enforces it, so any value is possible; children inherit it, and programs have no reason to change it. Source:
/// `getrlimit(2)`.
#[cfg(target_os = "linux")]
const LIMIT_MARK: Resource = Resource::Locks;
/// Not used: only the portable backend is there.
#[cfg(not(target_os = "linux"))]
const LIMIT_MARK: Resource = Resource::Core;
/// The low bits of the limit with the supervisor's pid: pids are below 2^22. Source: `proc_sys_kernel(5)`.
const PID_BITS: u32 = 22;

/// The folder of the files whose holders are marked, in the user's state folder.
const FILES: &str = "ralph/marks";
/// The descriptor of such a file: high, as shell scripts use low ones for themselves.
const DESCRIPTOR: u64 = 200;

/// A mark to search for: of a whole run, of one program of it by the pid of its supervisor, or of the program of a
/// pane.
#[derive(Debug, Clone)]
pub struct Mark {
    /// The variable that carries it.
    name: &'static str,
    /// Its value. An empty one marks nothing.
    value: String,
    supervisor: Option<u32>,
}

/// The mark of the calling process, as far as it is known: its run cannot be derived from it, only compared.
#[derive(Debug)]
pub struct Carried {
    /// From the environment.
    run: Option<String>,
    /// From the limit, or from the name of the open file.
    number: Option<u64>,
}

impl Carried {
    /// The mark of this process; `None` if it has none.
    #[must_use]
    pub fn by_us() -> Option<Self> {
        let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        // The run mark alone proves nothing; with the supervisor's, it marks a program of the run.
        let run = variable(RUN_MARK).filter(|_| variable(SUPERVISOR_MARK).is_some());
        // Limits that users set have no hash in them.
        let limit = || getrlimit(LIMIT_MARK).current.filter(|value| value >> PID_BITS != 0);
        let file = || open_files(std::process::id()).find_map(|file| number_of(&file));
        // Whichever backend has marked us: a variable of ours may name another one.
        let number = limit().or_else(file);
        (run.is_some() || number.is_some()).then_some(Self { run, number })
    }

    /// Whether it is the mark of this run.
    #[must_use]
    pub fn is_of_run(&self, run: &str) -> bool {
        let hash = |value: u64| value >> PID_BITS;
        self.run.as_deref() == Some(run)
            || self.number.is_some_and(|number| hash(number) == hash(Mark::of_run(run).number(0)))
    }
}

impl Mark {
    /// The mark of a whole run.
    #[must_use]
    pub fn of_run(mark: &str) -> Self {
        Self { name: RUN_MARK, value: mark.to_owned(), supervisor: None }
    }

    /// The mark of a pane.
    #[must_use]
    pub fn of_pane(mark: &str) -> Self {
        Self { name: PANE_MARK, value: mark.to_owned(), supervisor: None }
    }

    /// The mark of what one supervisor has started, whatever its run is.
    #[must_use]
    pub fn of_any_run(supervisor: u32) -> Self {
        Self { name: SUPERVISOR_MARK, value: supervisor.to_string(), supervisor: Some(supervisor) }
    }

    /// The mark of one program, by the pid of its supervisor. Processes in the session that the supervisor leads count
    /// as well, even without a mark: no other session can have its pid as its id.
    #[must_use]
    pub fn below(self, supervisor: u32) -> Self {
        Self { supervisor: Some(supervisor), ..self }
    }

    /// Whether no process can carry it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.value.is_empty() && self.supervisor.is_none()
    }

    /// Starts one program and marks it; the caller is a supervisor without other threads that start programs.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn spawn(&self, command: &mut Command) -> io::Result<Child> {
        if self.value.is_empty() {
            return command.spawn();
        }
        command.env(self.name, &self.value);
        if self.name == RUN_MARK {
            command.env(SUPERVISOR_MARK, std::process::id().to_string());
        }
        if is_portable() {
            // Where there can be no file, the variables have to be enough.
            let _inherited = self.held_file();
            return command.spawn();
        }
        let limit = getrlimit(LIMIT_MARK);
        // If the hard limit is lower, the variables have to be enough.
        let _ = setrlimit(LIMIT_MARK, Rlimit { current: Some(self.number(std::process::id())), ..limit });
        let child = command.spawn();
        let _ = setrlimit(LIMIT_MARK, limit);
        child
    }

    /// The number that marks one program: 41 bits of a hash (FNV-1a) of the mark, and the supervisor's pid.
    #[must_use]
    pub fn number(&self, supervisor: u32) -> u64 {
        let fold = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        let bytes = self.name.bytes().chain([b'=']).chain(self.value.bytes());
        let hash = bytes.fold(0xcbf2_9ce4_8422_2325, fold);
        (hash >> (PID_BITS + 1) << PID_BITS) | u64::from(supervisor)
    }

    /// Whether this number marks a process that is searched for.
    fn is_number(&self, number: u64) -> bool {
        match self.supervisor {
            // Its run is not known.
            Some(supervisor) if self.name == SUPERVISOR_MARK => {
                number & ((1 << PID_BITS) - 1) == u64::from(supervisor)
            }
            Some(supervisor) => number == self.number(supervisor),
            None => number >> PID_BITS == self.number(0) >> PID_BITS,
        }
    }

    /// Whether a process carries it.
    #[must_use]
    pub fn is_carried_by(&self, stat: &Stat) -> bool {
        Some(stat.session) == self.supervisor
            || !self.value.is_empty() && (self.is_in_environment(stat.pid) || self.is_inherited_by(stat.pid))
    }

    fn is_in_environment(&self, pid: u32) -> bool {
        let environment = environment(pid);
        let carries =
            |mark: String| environment.split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes());
        carries(format!("{}={}", self.name, self.value))
            && self.supervisor.is_none_or(|supervisor| carries(format!("{SUPERVISOR_MARK}={supervisor}")))
    }

    fn is_inherited_by(&self, pid: u32) -> bool {
        if !is_portable() {
            return limit_of_locks(pid).is_some_and(|value| self.is_number(value));
        }
        open_files(pid).any(|file| number_of(&file).is_some_and(|number| self.is_number(number)))
    }

    /// Its file, open for one child to inherit.
    fn held_file(&self) -> Option<OwnedFd> {
        folders().find_map(|folder| self.held_file_in(&folder).ok())
    }

    fn held_file_in(&self, folder: &Path) -> io::Result<OwnedFd> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let flags = OFlags::RDONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let path = folder.join(name_of(self.number(std::process::id())));
        let file = rustix::fs::open(path, flags, Mode::from_raw_mode(0o600))?;
        let most = getrlimit(Resource::Nofile).current.unwrap_or(DESCRIPTOR + 1);
        let least = i32::try_from(DESCRIPTOR.min(most.saturating_sub(1))).unwrap_or_default();
        let held = fcntl_dupfd_cloexec(&file, least)?;
        fcntl_setfd(&held, FdFlags::empty())?;
        Ok(held)
    }

    /// Removes its files. Call it when no process carries it.
    pub fn remove_files(&self) {
        let entries = folders().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
        for path in entries.map(|entry| entry.path()) {
            if number_of(&path).is_some_and(|number| self.is_number(number)) {
                let _ = fs::remove_file(path);
            }
        }
    }
}

/// Where the files of marks may lie, the first choice first: in the state folder, or, if that cannot be written, in a folder of the
/// user's for temporary files.
fn folders() -> impl Iterator<Item = PathBuf> {
    let state = home::of(&|name| std::env::var_os(name), home::STATE);
    let temporary = std::env::temp_dir().join(format!("ralph-{}", getuid().as_raw()));
    state.into_iter().chain([temporary]).map(|folder| folder.join(FILES))
}

/// The name of the file that stands for this number.
fn name_of(number: u64) -> String {
    format!("{number:016x}")
}

/// The number for which an open file stands, which may have been removed; `None` if it is not a mark. In whose state
/// folder it lies does not matter: a process need not know where that is.
fn number_of(file: &Path) -> Option<u64> {
    let name = file.file_name().filter(|_| file.parent().is_some_and(|folder| folder.ends_with(FILES)))?;
    let name = name.as_bytes();
    let name = str::from_utf8(name.strip_suffix(b" (deleted)").unwrap_or(name)).ok()?;
    u64::from_str_radix(name, 16).ok().filter(|number| name_of(*number) == name)
}

/// Closes the open files that others have left to us, except the standard ones and these.
///
/// # Errors
/// If they cannot be listed.
pub fn close_inherited(except: &[i32]) -> io::Result<()> {
    for number in own_descriptors()?.into_iter().filter(|number| *number > 2 && !except.contains(number)) {
        // The one that has listed them is closed already.
        let _ = nix::unistd::close(number);
    }
    Ok(())
}

/// The open files by which this process is marked.
#[must_use]
pub fn inherited() -> Vec<i32> {
    let file = |number: &i32| fs::read_link(Path::new(OPEN_FILES).join(number.to_string())).ok();
    let is_mark = |number: &i32| file(number).is_some_and(|file| number_of(&file).is_some());
    own_descriptors().unwrap_or_default().into_iter().filter(is_mark).collect()
}

/// Removes the mark of a run around us from the calling process, as far as it is not in the environment: a supervisor
/// has to survive the sweep of that run.
pub fn drop_own() {
    if is_portable() {
        for number in inherited() {
            let _ = nix::unistd::close(number);
        }
    } else {
        let limit = getrlimit(LIMIT_MARK);
        let _ = setrlimit(LIMIT_MARK, Rlimit { current: limit.maximum, ..limit });
    }
}

/// Runs `start`, which starts a process that outlives every run (a tmux server), without the mark of a run around us.
#[must_use]
pub fn without_own<T>(start: impl FnOnce() -> T) -> T {
    /// Two calls at the same time would not restore the limit.
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let limit = getrlimit(LIMIT_MARK);
    drop_own();
    let result = start();
    if !is_portable() {
        let _ = setrlimit(LIMIT_MARK, limit);
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_a_limit_for_every_run_and_pid() {
        for run in ["a", "20261121-120000-7", "x".repeat(500).as_str()] {
            for mark in [Mark::of_run(run), Mark::of_pane(run)] {
                let value = mark.number((1 << PID_BITS) - 1);
                assert!(value < 1 << 63 && value >> PID_BITS == mark.number(0) >> PID_BITS, "{run}");
            }
            assert_ne!(Mark::of_run(run).number(0), Mark::of_pane(run).number(0));
        }
        assert_ne!(Mark::of_run("a").number(1), Mark::of_run("b").number(1));
    }

    #[test]
    fn an_open_file_stands_for_a_number_also_when_it_was_removed() {
        let folder = Path::new("/home/a b/ralph/marks");
        let number = Mark::of_run("r").number(77);
        let file = folder.join(name_of(number));
        let removed = PathBuf::from(format!("{} (deleted)", file.display()));
        for file in [&file, &removed] {
            assert_eq!(number_of(file), Some(number), "{}", file.display());
        }
        for other in ["/home/a b/ralph/marks/x", "/home/a b/ralph/marks/7", "socket:[7]", "/0000000000000007"]
        {
            assert_eq!(number_of(Path::new(other)), None, "{other}");
        }
        let all = Mark::of_run("r");
        assert!(all.is_number(number) && all.clone().below(77).is_number(number));
        assert!(Mark::of_any_run(77).is_number(number) && !Mark::of_any_run(78).is_number(number));
        assert!(!all.below(78).is_number(number) && !Mark::of_run("s").is_number(number));
    }
}
