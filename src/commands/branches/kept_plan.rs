//! The plan as it was when a run began, kept in the run's folder until it has ended. After a killed run, the next one compares it
//! with the plan to see what agents have marked as done.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Error};

use crate::files::atomic::{self, Durability};
use crate::files::{own, theirs};
use crate::project::Project;
use crate::record::lookup::Loop;
use crate::record::run_folder::RunStart;
use crate::source::branch::main_plan::MainPlan;

/// Its name in the folder of a run.
const FILE: &str = "plan-before.md";

/// The file of a run that has not ended.
#[derive(Debug)]
pub(super) struct KeptPlan(PathBuf);

impl KeptPlan {
    /// Keeps the plan as it was when this run began.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn of(project: &Project, run: &str, plan: &MainPlan) -> anyhow::Result<Self> {
        let folder = project.run(run);
        let kept = Self(folder.join(FILE));
        own::make_folders(&folder)
            .map_err(Error::from)
            .and_then(|()| Ok(atomic::write_own(&kept.0, plan.before().as_bytes(), Durability::Synced)?))
            .with_context(|| format!("cannot keep the plan in {}", folder.display()))?;
        Ok(kept)
    }

    /// Sections that agents marked as done are open again: the next start does not have to do that.
    pub(super) fn remove(self) {
        let _ = fs::remove_file(&self.0);
        // In a project without runs.
        let _ = self.0.parent().map(fs::remove_dir);
    }
}

/// Whether there is a run, running or killed, whose agents may have changed the plan.
#[must_use]
pub(super) fn is_there(project: &Project) -> bool {
    let folders = own::entries(&project.runs()).unwrap_or_default();
    folders.iter().any(|folder| folder.join(FILE).exists())
}

/// Reopens what was marked as done in the plan during killed runs, as these would have done at their end. Returns a notice for
/// each.
///
/// # Errors
/// When the plan cannot be written.
pub(super) fn take_claims_of_killed_back(project: &Project) -> anyhow::Result<Vec<String>> {
    let mut notices = Vec::new();
    for folder in own::entries(&project.runs()).unwrap_or_default() {
        let Ok(before) = own::read(&folder.join(FILE), theirs::MAX_TEXT) else { continue };
        let Some(start) = RunStart::read(&folder).filter(|start| !start.process.is_alive()) else { continue };
        let plan = MainPlan::since(project.branch_plan(), String::from_utf8_lossy(&before).into_owned());
        notices.extend(take_claims_back(project, &plan, Some(&start.run)).map_err(Error::msg)?);
        let _ = fs::remove_file(folder.join(FILE));
    }
    Ok(notices)
}

/// Reopens sections that were marked as done and whose branch has not begun. For other branches ralph's records decide when they
/// are built. `run` is the run that worked on the plan, if it is over.
///
/// # Errors
/// When the plan cannot be written.
pub(super) fn take_claims_back(
    project: &Project,
    plan: &MainPlan,
    run: Option<&str>,
) -> Result<Option<String>, String> {
    let has_begun = |name: &str| match Loop::at(project.of_branch(name, None), name) {
        Some(found) => found.state.map_or(true, |state| state.tally.iteration > 0),
        // A loop that was forgotten since has left its logs.
        None => run.is_some_and(|run| project.of_branch(name, Some(run)).logs().is_dir()),
    };
    plan.take_claims_back(&|name| !has_begun(name))
}
