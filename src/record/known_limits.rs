//! The usage limits of logins that all loops of this machine know: a small file for each in the user's state folder, so that no loop
//! makes an attempt that another one has learned to be in vain.

use std::fs::{self, OpenOptions};
use std::path::PathBuf;
use std::time::Duration;

use chrono::{DateTime, Utc};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::engine::board::LoginLimits;
use crate::files::atomic::{self, Durability};
use crate::files::own;
use crate::text::digest::sha256;

/// Larger files are not ours, in bytes.
const LARGEST: u64 = 1 << 16;

/// Those limits. What cannot be read or written is not known to others, which costs an attempt.
#[derive(Debug)]
pub struct KnownLimits {
    /// The folder of the files.
    pub folder: PathBuf,
    /// The longest wait of the loops here. A limit that lasts longer is not taken from others: an attempt shows whether it holds.
    pub longest: Duration,
}

/// A file.
#[derive(Debug, Serialize, Deserialize)]
struct Known {
    login: String,
    until: DateTime<Utc>,
}

impl KnownLimits {
    fn file(&self, login: &str) -> PathBuf {
        self.folder.join(format!("{}.json", &sha256(login.as_bytes())[..16]))
    }

    fn read(&self, login: &str) -> Option<Known> {
        let bytes = own::read(&self.file(login), LARGEST).ok()?;
        serde_json::from_slice(&bytes).ok().filter(|known: &Known| known.login == login)
    }
}

impl LoginLimits for KnownLimits {
    fn close(&self, login: &str, until: DateTime<Utc>) {
        let known = Known { login: login.to_owned(), until };
        // Text and times can always be written as JSON.
        let text = serde_json::to_string(&known).unwrap_or_default();
        if own::make_folders(&self.folder).is_err() {
            return;
        }
        // A login may have limits of several kinds: the one that lasts longest counts. Another process may be about to write one.
        let lock =
            own::open(&self.folder.join("lock"), OpenOptions::new().create(true).truncate(false).write(true));
        let _locked = lock.as_ref().is_ok_and(|lock| flock(lock, FlockOperation::LockExclusive).is_ok());
        if self.read(login).is_none_or(|known| known.until < until) {
            let _ = atomic::write_own(&self.file(login), text.as_bytes(), Durability::Atomic);
        }
    }

    fn closed_until(&self, login: &str) -> Option<DateTime<Utc>> {
        let Known { until, .. } = self.read(login)?;
        let left = (until - Utc::now()).to_std().ok()?;
        (!left.is_zero() && left <= self.longest).then_some(until)
    }

    fn open(&self, login: &str) {
        let _ = fs::remove_file(self.file(login));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_known_by_its_login_until_it_ends() {
        let dir = tempfile::tempdir().unwrap();
        let limits = KnownLimits { folder: dir.path().join("limits"), longest: Duration::from_hours(6) };
        assert_eq!(limits.closed_until("claude/me"), None);
        let soon = Utc::now() + Duration::from_hours(1);
        limits.close("claude/me", soon);
        assert_eq!(limits.closed_until("claude/me"), Some(soon));
        assert_eq!(limits.closed_until("codex/me"), None);
        limits.close("claude/me", Utc::now() + Duration::from_mins(5));
        assert_eq!(limits.closed_until("claude/me"), Some(soon), "the longest of several limits counts");
        limits.close("claude/me", Utc::now() + Duration::from_hours(7));
        assert_eq!(limits.closed_until("claude/me"), None, "no loop here waits so long");
        limits.open("claude/me");
        limits.close("claude/me", Utc::now() - Duration::from_hours(1));
        assert_eq!(limits.closed_until("claude/me"), None);
        limits.close("claude/me", soon);
        limits.open("claude/me");
        assert_eq!(limits.closed_until("claude/me"), None);
        fs::write(limits.file("claude/me"), "{").unwrap();
        assert_eq!(limits.closed_until("claude/me"), None);
    }
}
