//! The folder of one program behind walls: what the hidden verb reads, and what is new for the program.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::free_folders::{FreeFolders, ProgramFolder};
use super::overheard::{Overheard, TurnedAway};
use super::parts::{FRESH, LAYERS, PLAN, VERB, named, numbered};
use super::plan::Plan;
use super::proxy::Proxy;
use super::reach::Reach;
use crate::files::atomic::{self, Durability};
use crate::files::{own, temporary, theirs};
use crate::platform::calls::own_executable;

/// The largest file that is copied back, in bytes.
const MOST: u64 = 256 << 20;

/// Variables that name folders which a program may have for itself.
const OWN: [&str; 2] = ["HOME", "TMPDIR"];

/// A folder of git's with too many files to look at, in which it only makes new ones.
const OBJECTS: &str = "objects";

/// The walls of all programs of a loop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Enclosure {
    /// What holds for each of them. Where it works is added.
    pub plan: Plan,
    /// Where folders for them are made.
    pub place: PathBuf,
    /// The values of [`OWN`] for which it was planned.
    planned: [Option<OsString>; 2],
    /// Those that are free again.
    #[serde(skip)]
    free: FreeFolders,
}

/// What a program behind walls needs while it runs. Dropped when nothing of it is left: what was copied is copied back, and the rest
/// removed.
#[derive(Debug)]
pub struct Inside {
    /// Taken when it is dropped.
    used: Option<ProgramFolder>,
    free: FreeFolders,
    plan: Plan,
    cwd: PathBuf,
    /// What was in the files that were copied, one after the other; `None`: there was none.
    originals: Vec<Option<Vec<u8>>>,
    absent: Vec<PathBuf>,
    /// The links in folders that are to get no more of them, with what they say.
    links: BTreeSet<(PathBuf, PathBuf)>,
    /// What it connects to the hosts of its plan by.
    proxy: Option<Proxy>,
}

impl Enclosure {
    /// Walls that hold this, planned with these variables, with folders for programs in this place.
    #[must_use]
    pub fn new(plan: Plan, place: PathBuf, variable: &dyn Fn(&str) -> Option<OsString>) -> Self {
        Self { plan, place, planned: OWN.map(variable), free: FreeFolders::default() }
    }

    /// Walls of this plan for the same variables, with folders in that place.
    #[must_use]
    pub fn with(&self, plan: Plan, place: PathBuf) -> Self {
        Self { plan, place, planned: self.planned.clone(), free: FreeFolders::default() }
    }

    /// Makes the folder for a program in this folder that has these variables.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn enter(&self, cwd: &Path, variable: &dyn Fn(&str) -> Option<OsString>) -> io::Result<Inside> {
        let mut plan = self.plan_for(cwd, variable);
        own::make_folders(&self.place)?;
        for folder in &plan.made {
            // It may be a link to one.
            if !folder.is_dir() {
                own::make_folders(folder).map_err(|error| named(folder.display(), error))?;
            }
        }
        let ProgramFolder { folder, plan: written } = self.free.take(&self.place, &plan)?;
        plan.kept.push(folder.path().to_owned());
        let mut originals = Vec::new();
        for (at, layer) in plan.layers.iter().enumerate() {
            let top = numbered(folder.path(), LAYERS, at);
            for name in &layer.copied {
                // What is none of the agent's files stays as it is.
                let _ = theirs::copy(&layer.path.join(name), &top.join(name));
                originals.push(theirs::read(&top.join(name), MOST).ok());
            }
        }
        if plan.is_alone {
            // The usual ones are shared with all others.
            let fresh = numbered(folder.path(), FRESH, 0);
            plan.set.push(("TMPDIR".to_owned(), fresh.to_string_lossy().into_owned()));
            plan.writable.push(fresh);
        }
        let proxy = match &plan.reach {
            Reach::Hosts(hosts) if !plan.is_trial => Some(Proxy::start(folder.path(), hosts)?),
            _ => None,
        };
        let text = serde_json::to_vec(&plan)?;
        if text != written {
            atomic::write_own(&folder.path().join(PLAN), &text, Durability::Atomic)
                .map_err(io::Error::other)?;
        }
        let is_missing = |path: &&PathBuf| path.symlink_metadata().is_err();
        let absent = plan.absent.iter().filter(is_missing).cloned().collect();
        let links = links(&plan);
        let (used, free) = (Some(ProgramFolder { folder, plan: text }), self.free.clone());
        Ok(Inside { used, free, plan, cwd: cwd.to_owned(), originals, absent, links, proxy })
    }

    /// What listens to what a program there prints of what is refused.
    #[must_use]
    pub fn overhear(&self, cwd: &Path, variable: &dyn Fn(&str) -> Option<OsString>) -> Overheard {
        let mut plan = self.plan_for(cwd, variable);
        // With folders of its own.
        plan.writable.push(self.place.clone());
        Overheard::of(plan, cwd.to_owned())
    }

    /// What holds for a program there: it can write where it works, and in a home and a folder for temporary files of its own.
    #[must_use]
    pub fn plan_for(&self, cwd: &Path, variable: &dyn Fn(&str) -> Option<OsString>) -> Plan {
        let own = OWN.iter().zip(&self.planned).map(|(name, planned)| {
            let value = variable(name)?;
            (Some(&value) != planned.as_ref()).then(|| PathBuf::from(value))
        });
        let mut plan = self.plan.clone();
        for place in [Some(cwd.to_owned())].into_iter().chain(own).flatten() {
            let Ok(place) = place.canonicalize() else { continue };
            let is_known = |known: &PathBuf| place.starts_with(known);
            if !plan.writable.iter().any(is_known) || plan.read_only.iter().any(is_known) {
                plan.writable.push(place.clone());
            }
            plan.kept.push(place);
        }
        plan
    }
}

impl Inside {
    /// The words before the program: the hidden verb.
    #[must_use]
    pub fn wrapper(&self) -> [OsString; 3] {
        let folder = self.used.as_ref().map_or(Path::new(""), |used| used.folder.path());
        [own_executable().into(), VERB.into(), folder.into()]
    }

    /// What listens to what it prints of what is refused.
    #[must_use]
    pub fn overhear(&self) -> Overheard {
        Overheard::of(self.plan.clone(), self.cwd.clone())
    }

    /// The hosts that the program was not connected to.
    #[must_use]
    pub fn turned_away(&self) -> TurnedAway {
        let hosts = self.proxy.as_ref().map(Proxy::refused).unwrap_or_default();
        TurnedAway { hosts, ..TurnedAway::default() }
    }

    /// Copies back what the program has changed, and removes what it must not have made.
    fn settle(&self, folder: &Path) {
        let mut originals = self.originals.iter();
        for (at, layer) in self.plan.layers.iter().enumerate() {
            let top = numbered(folder, LAYERS, at);
            for (name, original) in layer.copied.iter().zip(&mut originals) {
                let _ = copy_back(&top.join(name), &layer.path.join(name), original.as_deref());
            }
        }
        self.absent.iter().for_each(|path| temporary::remove(path));
        // A git outside would write where they lead.
        for (link, _) in links(&self.plan).difference(&self.links) {
            let _ = fs::remove_file(link);
        }
    }
}

/// All links in the folders that get no more of them, with what they say; not in those that cannot be written.
fn links(plan: &Plan) -> BTreeSet<(PathBuf, PathBuf)> {
    let objects: Vec<PathBuf> = plan.unlinked.iter().map(|folder| folder.join(OBJECTS)).collect();
    let is_left_out = |folder: &PathBuf| objects.contains(folder) || plan.read_only.contains(folder);
    let (mut open, mut found) = (plan.unlinked.clone(), BTreeSet::new());
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let (path, kind) = (entry.path(), entry.file_type());
            if kind.as_ref().is_ok_and(fs::FileType::is_symlink) {
                found.insert((path.clone(), fs::read_link(path).unwrap_or_default()));
            } else if kind.is_ok_and(|kind| kind.is_dir()) && !is_left_out(&path) {
                open.push(path);
            }
        }
    }
    found
}

impl Drop for Inside {
    fn drop(&mut self) {
        let Some(used) = self.used.take() else { return };
        // Nothing waits in the folder any more.
        self.proxy = None;
        self.settle(used.folder.path());
        self.free.give_back(used, &self.plan);
    }
}

/// Copies a file back that the program has changed, unless others have changed theirs meanwhile: what they have written stays.
fn copy_back(from: &Path, to: &Path, original: Option<&[u8]>) -> io::Result<()> {
    let metadata = from.symlink_metadata()?;
    if !metadata.is_file() {
        return Ok(());
    }
    let new = theirs::read(from, MOST)?;
    match original {
        Some(original) if original == new => Ok(()),
        Some(original) => atomic::change_theirs(to, original, &new).map(drop).map_err(io::Error::other),
        None if to.symlink_metadata().is_ok() => Ok(()),
        None => {
            atomic::write_theirs(to, &new).map_err(io::Error::other)?;
            fs::set_permissions(to, metadata.permissions())
        }
    }
}
