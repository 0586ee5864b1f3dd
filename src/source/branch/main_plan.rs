//! The main plan, which all branches of a build share: each changes its own section, and none the other's.

use std::fs;
use std::io::ErrorKind::NotFound;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::git;
use crate::plan::{Plan, PlanError, Section, Task, Ticks, mark_done, merge_tasks};
use crate::record::atomic::{self, Durability};

/// The plan at the project root. Its text is read afresh for each change: a person may be editing it.
#[derive(Debug)]
pub struct MainPlan {
    path: PathBuf,
    /// Held while it is read, changed and written.
    writing: Mutex<()>,
}

impl MainPlan {
    /// The plan in this file.
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        Self { path, writing: Mutex::default() }
    }

    /// Brings the ticks and new tasks of a branch from the copy in its work tree.
    pub(super) fn carry_from(&self, copy: &Path, branch: &str) -> Result<(), String> {
        let from = read(copy)?;
        self.change(|into| merge_tasks(&from, into, branch, Ticks::From).map_err(|error| self.fault(&error)))
    }

    /// Brings the plan into a branch's work tree. Where a copy is there already, only the branch's own section changes:
    /// with `copy_is_newer` the copy's ticks come first, as after an interruption; otherwise the main plan's count.
    ///
    /// # Errors
    /// In words, when one of the two cannot be read or written.
    pub fn bring_to(&self, copy: &Path, branch: &str, copy_is_newer: bool) -> Result<(), String> {
        if copy_is_newer && copy.exists() {
            // What cannot be carried back is no reason not to go on.
            let _ = self.carry_from(copy, branch);
        }
        let main = read(&self.path)?;
        let text = match read(copy) {
            Ok(text) => merge_tasks(&main, &text, branch, Ticks::From).unwrap_or_else(|_| main.clone()),
            Err(_) if !copy.exists() => main,
            Err(why) => return Err(why),
        };
        write(copy, &text)
    }

    /// Marks a branch as done.
    pub(super) fn mark_done(&self, branch: &str, pull_request: Option<&str>) -> Result<(), String> {
        self.change(|text| mark_done(text, branch, pull_request).map_err(|error| self.fault(&error)))
    }

    /// The tasks of a branch; none when the plan cannot be read.
    pub(super) fn tasks(&self, branch: &str) -> Vec<Task> {
        let text = read(&self.path).unwrap_or_default();
        let sections = Plan::parse(&text, &git::refs::is_valid_branch).map(|plan| plan.sections);
        let is_it = |section: &Section| section.name == branch;
        let section = sections.ok().and_then(|sections| sections.into_iter().find(is_it));
        section.map(|section| section.tasks).unwrap_or_default()
    }

    /// Whether every task of a branch is ticked.
    pub(super) fn is_all_ticked(&self, branch: &str) -> bool {
        let tasks = self.tasks(branch);
        !tasks.is_empty() && tasks.iter().all(|task| task.ticked)
    }

    fn change(&self, edit: impl Fn(&str) -> Result<String, String>) -> Result<(), String> {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let text = read(&self.path)?;
        let changed = edit(&text)?;
        if changed == text { Ok(()) } else { write(&self.path, &changed) }
    }

    fn fault(&self, error: &PlanError) -> String {
        format!("{}, {error}", self.path.display())
    }
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| match error.kind() {
        NotFound => format!("{} is not there any more", path.display()),
        _ => format!("cannot read {}: {error}", path.display()),
    })
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    atomic::write(path, text.as_bytes(), Durability::Synced).map_err(|error| error.to_string())
}
