//! Watches the states of loops, and reads only those that have changed.

use std::collections::{HashMap, HashSet};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::lookup::{self, Loop};
use crate::parallel;
use crate::project::Project;

/// The watched loops.
#[derive(Debug)]
pub struct Lookout {
    here: Project,
    whole_machine: bool,
    /// Stamps of the folders in which loops appear and disappear, taken at the last listing.
    folders: Option<Vec<Option<Stamp>>>,
    places: Vec<WatchedDir>,
}

/// A path where a loop may be, and the state that was read there.
#[derive(Debug)]
struct WatchedDir {
    name: String,
    project: Project,
    stamp: Option<Stamp>,
    found: Option<Loop>,
}

/// Identifies one content of a file: states are always replaced as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
}

impl Stamp {
    fn of(path: &Path) -> Option<Self> {
        let found: Metadata = path.symlink_metadata().ok()?;
        let modified = (found.mtime(), found.mtime_nsec());
        Some(Self { device: found.dev(), inode: found.ino(), size: found.size(), modified })
    }
}

impl Lookout {
    /// Watches the loops of this project, or of the whole machine. Nothing is read before the first
    /// [`look`](Self::look).
    #[must_use]
    pub fn new(here: Project, whole_machine: bool) -> Self {
        Self { here, whole_machine, folders: None, places: Vec::new() }
    }

    /// Checks for changes; returns whether anything has changed since the last call.
    pub fn look(&mut self) -> bool {
        let is_listed = self.list();
        let stale: Vec<usize> = (0..self.places.len()).filter(|at| self.places[*at].is_stale()).collect();
        let read = parallel::each(&stale, &|at| self.places[*at].read());
        let has_news = !stale.is_empty();
        for (at, (stamp, found)) in stale.iter().zip(read) {
            let place = &mut self.places[*at];
            (place.stamp, place.found) = (stamp, found);
        }
        let mut has_ended = false;
        for (at, place) in self.places.iter_mut().enumerate() {
            if let Some(found) = place.found.as_mut().filter(|_| stale.binary_search(&at).is_err()) {
                has_ended |= found.alive().is_some() && found.look_for_process();
            }
        }
        is_listed || has_news || has_ended
    }

    /// The loops at the last check, newest start first.
    #[must_use]
    pub fn loops(&self) -> Vec<&Loop> {
        let mut loops: Vec<&Loop> = self.places.iter().filter_map(|place| place.found.as_ref()).collect();
        loops.sort_by_key(|found| std::cmp::Reverse(found.state.as_ref().ok().map(|state| state.started_at)));
        loops
    }

    /// Lists the loops again if any have appeared or disappeared; returns whether it did.
    fn list(&mut self) -> bool {
        let folders = [self.here.registry(), Some(self.here.runs().join("branches"))];
        let folders = folders.iter().map(|folder| Stamp::of(folder.as_deref()?)).collect();
        if self.folders.as_ref() == Some(&folders) {
            return false;
        }
        self.folders = Some(folders);
        let mut known: HashMap<PathBuf, WatchedDir> =
            self.places.drain(..).map(|place| (place.project.records(), place)).collect();
        let mut seen = HashSet::new();
        for (name, project) in lookup::known(&self.here) {
            let is_wanted = self.whole_machine || lookup::belongs_to(&project, &self.here);
            if is_wanted && seen.insert(project.records()) {
                let before = known.remove(&project.records()).filter(|place| place.project == project);
                let place = before.unwrap_or(WatchedDir { name, project, stamp: None, found: None });
                self.places.push(place);
            }
        }
        true
    }
}

impl WatchedDir {
    fn is_stale(&self) -> bool {
        Stamp::of(&self.project.state()) != self.stamp
    }

    fn read(&self) -> (Option<Stamp>, Option<Loop>) {
        // The stamp comes first: what is written while we read is read at the next check.
        let stamp = Stamp::of(&self.project.state());
        (stamp, stamp.and_then(|_| Loop::at(self.project.clone(), &self.name)))
    }
}

impl Loop {
    /// The time of its latest event.
    #[must_use]
    pub fn heard_at(&self) -> Option<SystemTime> {
        self.events_log()?.metadata().ok()?.modified().ok()
    }
}
