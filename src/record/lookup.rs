//! Which loops there are, and which one a NAME means.
//!
//! A run dir holds the state of one loop: the latest that ran there. So the loops of a machine are the states in the run dirs
//! of the ralph dirs that the registry points to, and in the one of this project, which needs no registry to be found.

use std::collections::HashSet;
use std::path::PathBuf;

use super::lock;
use super::registry;
use super::state::{self, Found, State};
use crate::project::Project;

/// One loop, running or ended.
#[derive(Debug)]
pub struct Loop {
    /// Its name.
    pub name: String,
    /// Where its files are.
    pub project: Project,
    /// Where it stands, or why that cannot be told.
    pub state: Result<Box<State>, String>,
}

/// No single loop is meant.
#[derive(Debug, thiserror::Error)]
pub enum LookupError {
    /// There is none of that name.
    #[error("no loop is called '{name}', here or elsewhere on this machine: 'ralph ls' lists them all")]
    Unknown {
        /// The name.
        name: String,
    },
    /// There are several of that name.
    #[error("several loops are called '{name}': {}: say which with --ralph-dir", .places.join(", "))]
    Ambiguous {
        /// The name.
        name: String,
        /// Their ralph dirs, and where each loop stands.
        places: Vec<String>,
    },
}

impl Loop {
    /// The loop in one ralph dir, if there is one. `name` is for a state that does not tell it.
    #[must_use]
    pub fn at(project: Project, name: &str) -> Option<Self> {
        let (name, state) = match state::read(&project.state()) {
            Ok(Found::Nothing) => return None,
            Ok(Found::State(mut state)) => {
                // Not by its process: that of a project's copy is at work in the original.
                let holder = || lock::holder(&project.lock()).ok().flatten();
                state.is_held = state.active && holder().is_some_and(|holder| holder.run_id == state.run);
                (state.name.clone(), Ok(state))
            }
            Ok(Found::Unknown(why)) => {
                (name.to_owned(), Err(format!("{}: {why}", project.state().display())))
            }
            Err(error) => (name.to_owned(), Err(format!("{}: {error}", project.state().display()))),
        };
        Some(Self { name, project, state })
    }

    /// The same loop as it stands now.
    #[must_use]
    pub fn again(&self) -> Option<Self> {
        Self::at(self.project.clone(), &self.name)
    }

    /// Its state while its process is at work.
    #[must_use]
    pub fn alive(&self) -> Option<&State> {
        self.state.as_deref().ok().filter(|state| state.is_alive())
    }

    fn place(&self) -> String {
        let standing = if self.alive().is_some() { "running" } else { "ended" };
        format!("{} ({standing})", self.project.ralph_dir().display())
    }

    fn belongs_to(&self, here: &Project) -> bool {
        let (ours, its) = (here.root(), self.project.root());
        // Work trees of branches are part of the project they were made from.
        its == ours || its.starts_with(ours.join(".worktrees"))
    }
}

/// All loops of the machine, newest start first.
#[must_use]
pub fn of_machine(here: &Project) -> Vec<Loop> {
    let entries = here.registry().map(|folder| registry::list(&folder).0).unwrap_or_default();
    let registered: Vec<(String, Project)> =
        entries.into_iter().map(|entry| (entry.name.clone(), entry.places(here))).collect();
    let ours = registered.iter().find(|(_, places)| places.records() == here.records());
    let own_name = ours.map_or("(unknown)", |(name, _)| name).to_owned();
    // The registry comes last: the loops of this project are found without it.
    let known = [(own_name, here.clone())].into_iter().chain(here.branches()).chain(registered);
    let mut seen: HashSet<PathBuf> = HashSet::new();
    let mut loops: Vec<Loop> = known
        .filter(|(_, places)| seen.insert(places.records()))
        .filter_map(|(name, places)| Loop::at(places, &name))
        .collect();
    loops.sort_by_key(|found| std::cmp::Reverse(found.state.as_ref().ok().map(|state| state.started_at)));
    loops
}

/// All loops of this project, newest start first.
#[must_use]
pub fn of_project(here: &Project) -> Vec<Loop> {
    of_machine(here).into_iter().filter(|found| found.belongs_to(here)).collect()
}

/// The one loop of that name: the one in this ralph dir, else in this project, else on this machine.
pub fn named(here: &Project, name: &str) -> Result<Loop, LookupError> {
    let found: Vec<Loop> = of_machine(here).into_iter().filter(|found| found.name == name).collect();
    let (own, others): (Vec<_>, Vec<_>) =
        found.into_iter().partition(|found| found.project.run_dir() == here.run_dir());
    let (near, far): (Vec<_>, Vec<_>) = others.into_iter().partition(|found| found.belongs_to(here));
    let mut candidates = [own, near, far].into_iter().find(|found| !found.is_empty()).unwrap_or_default();
    match (candidates.pop(), candidates.as_slice()) {
        (None, _) => Err(LookupError::Unknown { name: name.to_owned() }),
        (Some(one), []) => Ok(one),
        (Some(last), others) => {
            let places = others.iter().chain([&last]).map(Loop::place).collect();
            Err(LookupError::Ambiguous { name: name.to_owned(), places })
        }
    }
}
