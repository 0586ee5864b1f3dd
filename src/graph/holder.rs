//! The holder of a claim on a task.

use std::fs;
use std::io;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::platform::identity::ProcessIdentity;

/// The holder of a claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// The id of the run.
    pub run: String,
    /// Its process.
    pub process: ProcessIdentity,
    /// The machine that the process is on: `/etc/machine-id`, else the host's name.
    pub machine: String,
    /// Made anew for each claim; empty otherwise.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub nonce: String,
    /// The name of the gate of a process that lands; empty without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<String>,
}

impl Holder {
    /// The calling process as the holder of claims.
    pub fn of_self(run: &str) -> io::Result<Self> {
        Ok(Self {
            run: run.to_owned(),
            process: ProcessIdentity::of_self()?,
            machine: machine(),
            nonce: String::new(),
            gate: None,
        })
    }

    /// Whether the claim still holds. A claim of this machine and pid namespace holds as long as its process lives,
    /// whatever its lease says: the machine may have slept. Any other claim holds as long as its lease.
    #[must_use]
    pub fn holds(&self, lease_until: DateTime<Utc>, now: DateTime<Utc>) -> bool {
        if self.machine == machine() && self.process.is_of_our_namespace() {
            self.process.is_alive()
        } else {
            now < lease_until
        }
    }
}

fn machine() -> String {
    let id = fs::read_to_string("/etc/machine-id").map(|id| id.trim().to_owned());
    id.ok()
        .filter(|id| !id.is_empty())
        .unwrap_or_else(|| rustix::system::uname().nodename().to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    #[test]
    fn here_the_process_counts_and_elsewhere_the_lease() {
        let now = Utc::now();
        let (over, left) = (now - TimeDelta::hours(1), now + TimeDelta::hours(1));
        let ours = Holder::of_self("run-1").unwrap();
        assert!(ours.holds(over, now) && ours.holds(left, now));

        let mut dead = ours.clone();
        dead.process.start_ticks += 1;
        assert!(!dead.holds(left, now));

        let elsewhere = Holder { machine: "another".into(), ..dead.clone() };
        assert!(elsewhere.holds(left, now) && !elsewhere.holds(over, now));
        dead.process.pid_namespace = 1;
        assert!(dead.holds(left, now) && !dead.holds(over, now));
    }
}
