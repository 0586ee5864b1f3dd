//! The identity of a process: pids are reused, so a pid counts only together with its start time and the machine's
//! boot.

use std::fs::Metadata;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::calls::{as_seen_by, boot_id, pid_namespace};
use super::stat::Stat;

/// One process of one boot of this machine, distinct from later ones with the same pid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessIdentity {
    /// The process id.
    pub pid: u32,
    /// When it started, in clock ticks since the boot (see [`Stat`]).
    pub start_ticks: u64,
    /// The kernel's random id of this boot.
    pub boot_id: String,
    /// The inode of the pid namespace (a container) of the pid.
    pub pid_namespace: u64,
}

impl ProcessIdentity {
    /// The identity of the calling process.
    pub fn of_self() -> io::Result<Self> {
        Self::of(std::process::id())
    }

    /// The identity of a living process; an error if there is none with that pid.
    pub fn of(pid: u32) -> io::Result<Self> {
        match Stat::read(pid) {
            Some(stat) if !stat.is_dead() => Ok(Self {
                pid,
                start_ticks: stat.start_ticks,
                boot_id: boot_id()?,
                pid_namespace: pid_namespace()?,
            }),
            _ => Err(io::Error::from(io::ErrorKind::NotFound)),
        }
    }

    /// Whether this process still runs. A zombie does not. A process of another pid namespace is not seen.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.is_of_our_namespace()
            && Self::of(self.pid)
                .is_ok_and(|now| now.start_ticks == self.start_ticks && now.boot_id == self.boot_id)
    }

    /// Whether there is certainly no such process: its pid belongs to our pid namespace, and no process has it.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.is_of_our_namespace() && Stat::read(self.pid).is_none_or(|stat| stat.is_dead())
    }

    /// What is at an absolute path in the root of this process, which may see other file systems than ours; the inner
    /// `None` if there is nothing, the outer one if it cannot be read.
    #[must_use]
    pub fn look_at(&self, path: &Path) -> Option<Option<Metadata>> {
        if !self.is_alive() {
            return None;
        }
        match as_seen_by(self.pid, path)?.metadata() {
            Ok(found) => Some(Some(found)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Some(None),
            Err(_) => None,
        }
    }

    /// Whether its pid belongs to our pid namespace.
    #[must_use]
    pub fn is_of_our_namespace(&self) -> bool {
        pid_namespace().is_ok_and(|ours| ours == self.pid_namespace)
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn we_are_alive_and_stable() {
        let identity = ProcessIdentity::of_self().unwrap();
        assert_eq!(identity.pid, std::process::id());
        assert!(identity.is_alive());
        assert_eq!(identity, ProcessIdentity::of_self().unwrap());
    }

    #[test]
    fn another_start_or_boot_is_another_process() {
        let identity = ProcessIdentity::of_self().unwrap();
        assert!(!ProcessIdentity { start_ticks: identity.start_ticks + 1, ..identity.clone() }.is_alive());
        assert!(!ProcessIdentity { boot_id: "another".into(), ..identity.clone() }.is_alive());
        assert!(!ProcessIdentity { pid_namespace: 1, ..identity }.is_alive());
    }

    #[test]
    fn a_child_lives_until_it_ends_even_if_it_is_not_reaped() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let identity = ProcessIdentity::of(child.id()).unwrap();
        assert!(identity.is_alive());
        drop(child.stdin.take());
        // stdout ends when the process does; it becomes a zombie within the same exit, so wait for it by id.
        io::copy(child.stdout.as_mut().unwrap(), &mut io::sink()).unwrap();
        let pid = rustix::process::Pid::from_child(&child);
        let no_reap = rustix::process::WaitIdOptions::EXITED | rustix::process::WaitIdOptions::NOWAIT;
        rustix::process::waitid(rustix::process::WaitId::Pid(pid), no_reap).unwrap();
        assert!(!identity.is_alive(), "a zombie is dead");
        child.wait().unwrap();
        assert!(!identity.is_alive());
    }

    #[test]
    fn a_process_is_asked_what_it_sees() {
        let identity = ProcessIdentity::of_self().unwrap();
        let found = identity.look_at(Path::new("/proc/self")).flatten().unwrap();
        assert!(found.is_dir());
        assert!(identity.look_at(Path::new("/nowhere/at/all")).unwrap().is_none());
        assert!(identity.look_at(Path::new("relative")).is_none());
        let gone = ProcessIdentity { start_ticks: identity.start_ticks + 1, ..identity };
        assert!(gone.look_at(Path::new("/")).is_none());
    }

    #[test]
    fn there_is_no_such_process() {
        assert!(ProcessIdentity::of(u32::MAX).is_err());
    }
}
