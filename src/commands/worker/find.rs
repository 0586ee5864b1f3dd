//! Finds the worker of a NAME, with its state and its pane.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, bail};

use crate::agent::worker::held::Held;
use crate::engine::outcome::Status;
use crate::job::workspace::locate;
use crate::process::pane::Pane;
use crate::project::Project;
use crate::project::file_name;
use crate::record::lookup::Loop;
use crate::record::state::State;
use crate::tmux::{Server, TmuxError, Window};

/// The longest name, in bytes.
const LONGEST: usize = 100;

/// A worker, running or not. Its name is unique on a machine.
#[derive(Debug)]
pub(super) struct Worker {
    pub(super) name: String,
    /// Its folders.
    pub(super) project: Project,
    /// Its loop; `None` once its state was cleaned away.
    pub(super) found: Option<Loop>,
    /// Its pane; `None`: it has none.
    pub(super) held: Option<Held>,
}

/// The worker of this name.
///
/// # Errors
/// When the name is invalid, or there is no such worker.
pub(super) fn named(name: &str) -> anyhow::Result<Worker> {
    require_name(name)?;
    let here = locate(None)?;
    match at(&here, name)? {
        Some(worker) => Ok(worker),
        None => bail!("worker '{name}' not found: 'ralph ls' lists those there are"),
    }
}

/// Whether the name is valid, and there is such a worker or its remains.
///
/// # Errors
/// When the name is invalid.
pub(in crate::commands) fn exists(name: &str) -> anyhow::Result<bool> {
    require_name(name)?;
    Ok(at(&locate(None)?, name)?.is_some())
}

/// Whether the program of this worker runs.
///
/// # Errors
/// When that is unknown.
pub(in crate::commands) fn is_running(name: &str) -> anyhow::Result<bool> {
    Ok(at(&locate(None)?, name)?.is_some_and(|worker| {
        worker.runs() || worker.found.as_ref().is_some_and(|found| found.alive().is_some())
    }))
}

/// All workers whose program runs, by their names.
pub(super) fn running() -> anyhow::Result<Vec<Worker>> {
    let mut workers = all()?;
    workers.retain(Worker::runs);
    Ok(workers)
}

/// The names of workers with a dead pane, and without a monitor that would close it.
///
/// # Errors
/// When the list of workers cannot be read.
pub(in crate::commands) fn with_dead_pane() -> anyhow::Result<Vec<String>> {
    let is_watched = |worker: &Worker| worker.found.as_ref().and_then(Loop::alive).is_some();
    let has_pane = |worker: &Worker| worker.window().is_ok_and(|window| window.where_it_is().is_ok());
    let mut workers = all()?;
    workers.retain(|worker| has_pane(worker) && !worker.runs() && !is_watched(worker));
    Ok(workers.into_iter().map(|worker| worker.name).collect())
}

/// All workers, by their names.
fn all() -> anyhow::Result<Vec<Worker>> {
    let here = locate(None)?;
    let folders =
        here.registry().and_then(|folder| fs::read_dir(folder).ok()).into_iter().flatten().flatten();
    let folders = folders.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let mut names: Vec<String> =
        folders.filter_map(|folder| file_name::decoded(folder.file_name().to_str()?)).collect();
    names.sort();
    let mut workers = Vec::new();
    for name in names.iter().filter(|name| is_name(name)) {
        workers.extend(at(&here, name)?);
    }
    Ok(workers)
}

fn at(here: &Project, name: &str) -> anyhow::Result<Option<Worker>> {
    let project = here.of_worker(name, here.root()).context("there is no home directory: set HOME")?;
    let held = Held::read(&project.records())?;
    let found = Loop::at(project.clone(), name);
    let project = found.as_ref().map_or(project, |found| found.project.clone());
    let is_there = found.is_some() || held.is_some();
    Ok(is_there.then(|| Worker { name: name.to_owned(), project, found, held }))
}

fn require_name(name: &str) -> anyhow::Result<()> {
    if is_name(name) {
        return Ok(());
    }
    bail!(
        "'{name}' is no name of a worker: they begin with a letter or a digit, and have letters, digits, '.', '_' and '-'"
    )
}

pub(in crate::commands) fn is_name(name: &str) -> bool {
    name.len() <= LONGEST
        && name.starts_with(|char: char| char.is_ascii_alphanumeric())
        && name.chars().all(|char| char.is_ascii_alphanumeric() || "._-".contains(char))
}

impl Worker {
    /// Its folder.
    pub(super) fn folder(&self) -> PathBuf {
        self.project.records()
    }

    /// Its state, if it has a readable one.
    pub(super) fn state(&self) -> Option<&State> {
        self.found.as_ref()?.state.as_deref().ok()
    }

    /// The tmux server of its panes, if it is known.
    pub(super) fn server(&self) -> Option<Server> {
        let of_state =
            self.state().and_then(|state| state.setup.worker.as_ref()).map(|worker| &worker.socket);
        of_state.map(Server::new).or_else(|| self.held.as_ref().map(|held| held.window.server()))
    }

    /// Whether its program runs.
    pub(super) fn runs(&self) -> bool {
        Pane::connect(&self.folder()).is_ok_and(|pane| pane.is_some())
    }

    /// Its pane while its program runs.
    ///
    /// # Errors
    /// When that has ended.
    pub(super) fn living(&self) -> anyhow::Result<&Window> {
        match &self.held {
            Some(held) if self.runs() => Ok(&held.window),
            _ => bail!("worker '{0}' is not running: see 'ralph status {0}'", self.name),
        }
    }

    /// Its pane, which may show how its program has ended.
    ///
    /// # Errors
    /// When it has none.
    pub(super) fn window(&self) -> anyhow::Result<&Window> {
        let none = || format!("worker '{0}' has no pane: see 'ralph status {0}'", self.name);
        self.held.as_ref().map(|held| &held.window).with_context(none)
    }

    /// The error about its pane; for a closed pane in our words.
    pub(super) fn told(&self, error: TmuxError) -> anyhow::Error {
        if error.is_gone() {
            return anyhow::anyhow!(
                "the pane of worker '{0}' is gone, or its tmux server is: see 'ralph status {0}'",
                self.name
            );
        }
        error.into()
    }

    /// Whether its screen waits for a person, by its monitor.
    pub(super) fn needs_attention(&self) -> bool {
        let state = self.found.as_ref().and_then(Loop::alive);
        state.is_some_and(|state| state.status == Status::NeedsAttention)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain() {
        for name in ["a", "A1", "0", "a.b_c-d"] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", ".", "-a", "_a", "../a", "a/b", "a b", "ä", "a:b", "a\n"] {
            assert!(!is_name(name), "{name:?}");
        }
    }
}
