//! The two logs of one session, and the links to them.

use std::io::ErrorKind::AlreadyExists;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use chrono::Local;

use super::event_line::EVENTS_LOG;
use super::events_log::EventsLog;
use super::session_log::SessionLog;
use crate::files::{FileError, RecordFile, own};
use crate::project::Project;
use crate::text::timestamp;

/// The logs of one session.
#[derive(Debug)]
pub(super) struct Session {
    /// All output of the agents.
    pub(super) log: SessionLog,
    /// Every event.
    pub(super) events: EventsLog,
    /// The link to the log; `None` if it is only in the folder of its run.
    link: Option<PathBuf>,
}

impl Session {
    /// Creates the logs of a new session in the folder of its run. Two sessions in one second get two names.
    ///
    /// # Errors
    /// If they cannot be created.
    pub(super) fn open(project: &Project) -> Result<Self, FileError> {
        let folder = project.logs();
        own::make_folders(&folder).map_err(FileError::at(&folder))?;
        let links = (!project.is_of_branch()).then(|| project.links_to_logs());
        if let Some(links) = &links {
            own::make_folder(links).map_err(FileError::at(links))?;
        }
        let stamp = format!("session-{}", timestamp::for_names(Local::now()));
        let mut number = 0;
        loop {
            number += 1;
            let name = timestamp::numbered(&stamp, number);
            let (log, events) = (format!("{name}.log"), format!("{name}.{EVENTS_LOG}"));
            // Sessions of different runs share this folder.
            let is_taken = |links: &PathBuf| links.join(&log).symlink_metadata().is_ok();
            if links.as_ref().is_some_and(is_taken) {
                continue;
            }
            match RecordFile::create_new(&folder.join(&log)) {
                Ok(file) => {
                    let mut session = Self {
                        log: SessionLog::new(file),
                        events: EventsLog::create(&folder.join(&events))?,
                        link: None,
                    };
                    session.link =
                        links.filter(|links| session.link_from(links)).map(|links| links.join(&log));
                    return Ok(session);
                }
                Err(error) if error.reason.kind() == AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The path of the log for the user.
    pub(super) fn shown_path(&self) -> &Path {
        self.link.as_deref().unwrap_or(self.log.path())
    }

    /// Continues in new files if these were removed or replaced, restores the links, and returns what was lost.
    pub(super) fn keep(&mut self) -> Result<Vec<PathBuf>, FileError> {
        let mut lost = Vec::new();
        if self.log.keep()? {
            lost.push(self.log.path().to_owned());
        }
        if self.events.keep()? {
            lost.push(self.events.path().to_owned());
        }
        if let Some(links) = self.link.as_deref().and_then(Path::parent) {
            self.link_from(links);
        }
        Ok(lost)
    }

    /// Links to both logs from another folder beside that of the runs; returns whether the links exist. On a file
    /// system without links, the logs are only in the folder of their run.
    fn link_from(&self, links: &Path) -> bool {
        own::make_folder(links).is_ok()
            && [self.log.path(), self.events.path()].into_iter().all(|log| {
                let (Some(name), Some(target)) = (log.file_name(), target(links, log)) else { return false };
                match symlink(target, links.join(name)) {
                    Err(error) => error.kind() == AlreadyExists,
                    Ok(()) => true,
                }
            })
    }
}

/// The target of a link in the folder `links` to `log`, relative so that the ralph dir can be moved.
fn target(links: &Path, log: &Path) -> Option<PathBuf> {
    Some(Path::new("..").join(log.strip_prefix(links.parent()?).ok()?))
}
