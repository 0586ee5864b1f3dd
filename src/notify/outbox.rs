//! Messages that a webhook has not taken yet, as files in the user's state folder: one per message, removed when it
//! is taken. The sending process locks the file, so that no other one sends it, and the next process finds it if that
//! one dies.

use std::fs::{self, File, OpenOptions};
use std::path::PathBuf;

use chrono::{TimeDelta, Utc};
use rustix::fs::{FlockOperation, flock};

use super::message::Message;
use crate::files::atomic::{self, Durability};
use crate::files::{FileId, own};
use crate::project::Project;
use crate::text::digest::sha256;

/// Older messages are not sent any more.
const OLDEST: TimeDelta = TimeDelta::hours(24);
/// Larger files are not ours, in bytes.
const LARGEST: u64 = 4 << 20;

/// The waiting messages of one project.
#[derive(Debug)]
pub(super) struct Outbox {
    /// `None` if the user has no home: messages are lost with the process.
    folder: Option<PathBuf>,
}

/// A waiting message and its file.
#[derive(Debug)]
pub(super) struct QueuedMessage {
    pub(super) message: Message,
    /// The file's path, and the lock on it.
    file: Option<(PathBuf, File)>,
}

/// The messages that were found.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// The messages, oldest first.
    pub(super) entries: Vec<QueuedMessage>,
    /// How many were too old, or could not be read.
    pub(super) dropped: usize,
}

impl Outbox {
    /// The outbox of a project; its branches and workers share it.
    pub(super) fn of(project: &Project) -> Self {
        use std::os::unix::ffi::OsStrExt as _;
        let root = project.main_root().unwrap_or_else(|| project.root().to_owned());
        let name = &sha256(root.as_os_str().as_bytes())[..16];
        Self { folder: project.outboxes().map(|outboxes| outboxes.join(name)) }
    }

    /// Keeps a message until it is taken. `None` if another process has taken it over.
    pub(super) fn keep(&self, message: Message) -> (Option<QueuedMessage>, Option<String>) {
        let Some(folder) = &self.folder else { return (Some(QueuedMessage { message, file: None }), None) };
        let path = folder.join(format!("{}.json", message.id));
        // Text and times can always be written as JSON.
        let text = serde_json::to_string(&message).unwrap_or_default();
        let written = own::make_folders(folder).map_err(|error| error.to_string()).and_then(|()| {
            atomic::write_own(&path, text.as_bytes(), Durability::Synced).map_err(|error| error.to_string())
        });
        match written {
            Err(error) => (Some(QueuedMessage { message, file: None }), Some(error)),
            Ok(_) => (lock(&path).map(|file| QueuedMessage { message, file: Some((path, file)) }), None),
        }
    }

    /// Takes over the messages of other processes.
    pub(super) fn take_over(&self) -> Found {
        let mut found = Found::default();
        let Some(folder) = &self.folder else { return found };
        let mut paths = own::entries(folder).unwrap_or_default();
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
        paths.sort();
        for path in paths {
            let Some(file) = lock(&path) else { continue };
            let message = own::read(&path, LARGEST).ok();
            let message = message.and_then(|bytes| serde_json::from_slice::<Message>(&bytes).ok());
            if let Some(message) = message.filter(|message| Utc::now() - message.at < OLDEST) {
                found.entries.push(QueuedMessage { message, file: Some((path, file)) });
            } else {
                found.dropped += 1;
                let _ = fs::remove_file(path);
            }
        }
        found
    }
}

impl QueuedMessage {
    /// Removes the message's file.
    pub(super) fn remove(self) {
        if let Some((path, _lock)) = &self.file {
            let _ = fs::remove_file(path);
        }
    }

    /// Whether it outlives this process.
    pub(super) fn is_kept(&self) -> bool {
        self.file.is_some()
    }
}

/// Unlocks explicitly: a child that this process is just starting has inherited the lock, and would keep it until it
/// executes its own program.
impl Drop for QueuedMessage {
    fn drop(&mut self) {
        if let Some((_, lock)) = &self.file {
            let _ = flock(lock, FlockOperation::Unlock);
        }
    }
}

/// Locks the file; `None` if another process has locked it, or has sent it.
fn lock(path: &std::path::Path) -> Option<File> {
    let file = own::open(path, OpenOptions::new().read(true)).ok()?;
    flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
    FileId::of(&file).ok()?.is_at(path).then_some(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_is_found_once_and_the_old_and_torn_are_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("outbox");
        let outbox = Outbox { folder: Some(folder.clone()) };
        let ours = outbox.keep(Message { id: "2".into(), ..Message::test("p") }).0.unwrap();
        let old = Message { id: "1".into(), at: Utc::now() - TimeDelta::hours(25), ..Message::test("p") };
        drop(outbox.keep(old).0.unwrap());
        fs::write(folder.join("3.json"), "{").unwrap();
        fs::write(folder.join("4.json.x.tmp"), "{").unwrap();

        let found = outbox.take_over();
        assert_eq!((found.entries.len(), found.dropped), (0, 2), "ours is locked");
        let message = ours.message.clone();
        drop(ours);
        let mut found = outbox.take_over().entries;
        assert_eq!(found[0].message, message);
        found.remove(0).remove();
        assert!(outbox.take_over().entries.is_empty());
    }
}
