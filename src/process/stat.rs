//! A process as `/proc` shows it.

/// The fields of `/proc/PID/stat` that ralph uses. Source: `proc_pid_stat(5)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stat {
    /// Process id.
    pub pid: u32,
    /// Process id of the parent.
    pub ppid: u32,
    /// Process id of its process group's leader; 0 if that is outside of our namespace, see [`super::group`].
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

/// The current time on the clock of process start times: clock ticks since the boot.
#[must_use]
pub fn ticks_now() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let per_second = rustix::param::clock_ticks_per_second();
    let nanoseconds = u64::try_from(now.tv_nsec).unwrap_or_default();
    u64::try_from(now.tv_sec).unwrap_or_default() * per_second + nanoseconds * per_second / 1_000_000_000
}

/// The content of a process's file in `/proc`, such as `cmdline`, whose words end in NUL bytes; empty if the process
/// has ended.
#[must_use]
pub fn says(pid: u32, file: &str) -> Vec<u8> {
    std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default()
}

impl Stat {
    /// Reads one process; `None` if it has ended, or cannot be read.
    #[must_use]
    pub fn read(pid: u32) -> Option<Self> {
        // A program's name may hold any bytes; only the fields after it are used.
        let bytes = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
        Self::parse(&String::from_utf8_lossy(&bytes))
    }

    /// Every process on the machine, each read when the iterator reaches it.
    pub fn all() -> impl Iterator<Item = Self> {
        let folder = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = folder.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.filter_map(Self::read)
    }

    /// Whether the process has ended and was not reaped.
    #[must_use]
    pub fn is_dead(&self) -> bool {
        matches!(self.state, b'Z' | b'X' | b'x')
    }

    /// The second field is the program's name in parentheses and may hold blanks and parentheses itself, so fields
    /// are counted from the last `)`.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let (head, rest) = line.rsplit_once(')')?;
        let pid = head.split(' ').next()?.parse().ok()?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        // Field 3 (state) is the first one after the name.
        let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
        Some(Self {
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_does_not_shift_the_fields() {
        for name in ["cat", "a b", ") S 1 2", "((x", "tmux: server", "\u{fc}) Z (", ""] {
            let line = format!("42 ({name}) S 7 1 1 0 -1 4194560 1 2 3 4 100 20 30 4 20 0 1 0 12345 1 2 3\n");
            let stat = Stat::parse(&line).unwrap();
            assert_eq!((stat.pid, stat.ppid, stat.state), (42, 7, b'S'), "{name}");
            assert_eq!((stat.own_ticks, stat.reaped_ticks, stat.start_ticks), (120, 34, 12345), "{name}");
        }
        for nonsense in ["", "7", "7 (x", "7 (x)", "7 (x) S", "7 (x) S 1 2 3"] {
            assert_eq!(Stat::parse(nonsense), None, "{nonsense}");
        }
    }

    #[test]
    fn this_process_is_among_all() {
        let pid = std::process::id();
        assert!(Stat::all().any(|stat| stat.pid == pid));
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let before = ticks_now();
        let started = Stat::read(child.id()).unwrap().start_ticks;
        assert!((before - 100..=before).contains(&started), "{started} {before}");
        child.wait().unwrap();
    }
}
