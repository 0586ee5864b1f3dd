//! Lists loops, and finds the one that a NAME means.
//!
//! A run dir holds the state of one loop: the latest that ran there. So the loops of a machine are the states in the
//! run dirs that the registry points to, and in this project's, which is found without the registry.

use std::collections::HashSet;
use std::path::PathBuf;

use super::log_of_state::{self, StrayLog, with_runs};
use super::recovery::{self, ReadOn, is_held};
use super::registry::{self, LoopEntry};
use super::state::State;
use super::state_read::{Extent, Found};
use crate::files::{FileId, way_to_read};
use crate::parallel;
use crate::project::Project;
use crate::text::nearest::meant;

/// One loop, running or ended.
#[derive(Debug)]
pub struct Loop {
    /// Its name.
    pub name: String,
    /// The paths of its files.
    pub project: Project,
    /// Its state, or why that cannot be read.
    pub state: Result<Box<State>, String>,
    /// What its events log has and its state file lacks, after its process was killed.
    pub read_on: Option<ReadOn>,
}

/// The name does not identify one loop.
#[derive(Debug, thiserror::Error)]
pub enum LookupError {
    /// No loop has this name.
    #[error(
        "no loop is called '{name}', here or elsewhere on this machine: {meant}'ralph ls' lists them all"
    )]
    Unknown {
        /// The name.
        name: String,
        /// The one that was probably meant, as the beginning of a sentence.
        meant: String,
    },
    /// Several loops have this name.
    #[error("several loops are called '{name}': {}: say which with --ralph-dir", .places.join(", "))]
    Ambiguous {
        /// The name.
        name: String,
        /// Their ralph dirs and states.
        places: Vec<String>,
    },
}

impl Loop {
    /// The loop in one ralph dir, if there is one. `name` is used if the state does not have it.
    #[must_use]
    pub fn at(project: Project, name: &str) -> Option<Self> {
        Self::read(project, name, Extent::Whole)
    }

    fn read(project: Project, name: &str, extent: Extent) -> Option<Self> {
        let (found, read_on) = match recovery::read(&project, name, extent) {
            Ok((found, read_on)) => (Ok(found), read_on),
            Err(error) => (Err(error), None),
        };
        let (name, state) = match found {
            Ok(Found::Nothing) => return None,
            Ok(Found::State(mut state)) => {
                state.is_held = is_held(&project, &state);
                (state.name.clone(), Ok(state))
            }
            Ok(Found::Damaged(why) | Found::Unknown(why) | Found::Newer(why)) => {
                (name.to_owned(), Err(format!("{}: {why}", project.state().display())))
            }
            Err(error) => {
                let advice = way_to_read(&error);
                (name.to_owned(), Err(format!("{}: {error}: {advice}", project.state().display())))
            }
        };
        let project = match &state {
            Ok(state) => with_runs(&project, state),
            Err(_) => project,
        };
        Some(Self { name, project, state, read_on })
    }

    /// Reads the loop again.
    #[must_use]
    pub fn again(&self) -> Option<Self> {
        Self::at(self.project.clone(), &self.name)
    }

    /// Checks again whether its process runs, without reading the state; returns whether that has changed.
    pub(super) fn look_for_process(&mut self) -> bool {
        let Ok(state) = &mut self.state else { return false };
        let was_held = state.is_held;
        state.is_held = is_held(&self.project, state);
        state.is_held != was_held
    }

    /// Its state, if its process runs.
    #[must_use]
    pub fn alive(&self) -> Option<&State> {
        self.state.as_deref().ok().filter(|state| state.is_alive())
    }

    /// The session log of its newest run, compressed or not; `None` if there is none.
    ///
    /// # Errors
    /// If the state names a file that is not among the project's records.
    pub fn session_log(&self) -> Result<Option<PathBuf>, StrayLog> {
        self.state.as_ref().map_or(Ok(None), |state| log_of_state::session_log(&self.project, state))
    }

    /// The id of the run with the logs of its newest run, by which all loops of one command are known; empty if its state
    /// cannot be read.
    #[must_use]
    pub fn run(&self) -> &str {
        self.state.as_ref().map_or("", |state| log_of_state::run(&self.project, state))
    }

    /// The folder with the logs of its newest run, which may have been removed.
    #[must_use]
    pub fn logs(&self) -> Option<PathBuf> {
        log_of_state::logs(&self.project, self.state.as_ref().ok()?)
    }

    /// The events log of its newest run, which may have been removed.
    #[must_use]
    pub fn events_log(&self) -> Option<PathBuf> {
        log_of_state::events_log(&self.project, self.state.as_ref().ok()?)
    }

    /// Whether its state may be acted on, see [`is_own`].
    #[must_use]
    pub fn is_own(&self) -> bool {
        self.state.as_ref().is_ok_and(|state| is_own(&self.project, state))
    }

    /// Where the running loop waits for requests, if not here: the project was moved, and its process uses the old
    /// path. `None` also if that cannot be known, as for a loop in a container.
    #[must_use]
    pub fn listens_elsewhere(&self) -> Option<PathBuf> {
        let state = self.alive()?;
        let listens_at = state.records.clone()?;
        let here = FileId::from(&self.project.records().metadata().ok()?);
        let there = state.process.look_at(&listens_at)?;
        there.is_none_or(|there| FileId::from(&there) != here).then_some(listens_at)
    }

    fn place(&self) -> String {
        let standing = if self.alive().is_some() { "running" } else { "ended" };
        format!("{} ({standing})", self.project.ralph_dir().display())
    }
}

/// Says what is wrong with a state that [`is_own`] rejects.
pub const NOT_OWN: &str = "not written by you on this machine, or the project was moved or copied since";

/// Whether this user's ralph wrote the state at these paths, on this machine: the registry, which is not part of any
/// project, knows its run and its command line. Any other state may have come with a clone, so its command line must
/// be neither run nor suggested. A worker's state is stored with the registry itself.
#[must_use]
pub fn is_own(places: &Project, state: &State) -> bool {
    // The digest includes the run.
    let is_known =
        |entry: LoopEntry| [Some(entry.command), entry.before].contains(&Some(state.command_digest()));
    places.is_of_worker() || entry(places, &state.name).is_some_and(is_known)
}

/// Whether this user's ralph has run a loop of this name at these paths on this machine.
#[must_use]
pub fn is_known(places: &Project, name: &str) -> bool {
    entry(places, name).is_some()
}

fn entry(places: &Project, name: &str) -> Option<LoopEntry> {
    registry::find(&places.registry()?, name, places.ralph_dir())
}

/// All loops of the machine, newest start first. With [`Extent::Head`], missing parts of their states have defaults.
#[must_use]
pub fn of_machine(here: &Project, extent: Extent) -> Vec<Loop> {
    read(known(here), extent)
}

/// All loops of this project, newest start first.
#[must_use]
pub fn of_project(here: &Project, extent: Extent) -> Vec<Loop> {
    read(known(here).into_iter().filter(|(_, places)| belongs_to(places, here)).collect(), extent)
}

/// The loop of that name: the one in this ralph dir, else in this project, else on this machine.
pub fn named(here: &Project, name: &str) -> Result<Loop, LookupError> {
    let is_here = |places: &Project| places.records() == here.records();
    // The loop in this ralph dir may have another name by now than in the registry.
    let all = known(here);
    let named = all.iter().filter(|(known, places)| known == name || is_here(places)).cloned();
    let found: Vec<Loop> =
        read(named.collect(), Extent::Whole).into_iter().filter(|found| found.name == name).collect();
    let (own, others): (Vec<_>, Vec<_>) =
        found.into_iter().partition(|found| found.project.run_dir() == here.run_dir());
    let (near, far): (Vec<_>, Vec<_>) =
        others.into_iter().partition(|found| belongs_to(&found.project, here));
    let mut candidates = [own, near, far].into_iter().find(|found| !found.is_empty()).unwrap_or_default();
    match (candidates.pop(), candidates.as_slice()) {
        (None, _) => {
            let meant = meant(name, all.iter().map(|(known, _)| known.as_str()));
            Err(LookupError::Unknown { name: name.to_owned(), meant })
        }
        (Some(one), []) => Ok(one),
        (Some(last), others) => {
            let places = others.iter().chain([&last]).map(Loop::place).collect();
            Err(LookupError::Ambiguous { name: name.to_owned(), places })
        }
    }
}

/// The names and paths of loops.
pub(super) fn known(here: &Project) -> Vec<(String, Project)> {
    let entries = here.registry().map(|folder| registry::list(&folder).0).unwrap_or_default();
    let registered: Vec<(String, Project)> =
        entries.iter().map(|entry| (entry.name.clone(), entry.places(here))).collect();
    let ours = registered.iter().find(|(_, places)| places.records() == here.records());
    let own_name = ours.map_or("(unknown)", |(name, _)| name).to_owned();
    // The registry comes last: this project's loops are found without it.
    [(own_name, here.clone())].into_iter().chain(here.branches()).chain(registered).collect()
}

/// The loops at these paths, newest start first.
fn read(mut known: Vec<(String, Project)>, extent: Extent) -> Vec<Loop> {
    let mut seen: HashSet<PathBuf> = HashSet::new();
    known.retain(|(_, places)| seen.insert(places.records()));
    // In parallel: there may be thousands of ended loops.
    let found = parallel::each(&known, &|(name, places)| Loop::read(places.clone(), name, extent));
    let mut loops: Vec<Loop> = found.into_iter().flatten().collect();
    loops.sort_by_key(|found| std::cmp::Reverse(found.state.as_ref().ok().map(|state| state.started_at)));
    loops
}

/// Whether the loop at these paths belongs to a project, which includes the work trees of its branches, and workers
/// whose work trees are elsewhere.
#[must_use]
pub fn belongs_to(places: &Project, here: &Project) -> bool {
    places.root() == here.root()
        || places.root().starts_with(here.worktrees())
        || places.is_of_worker() && places.runs() == here.runs()
}
