//! The plan as it was when a run over it began, kept in the folder of the run until it has ended. By what a killed run has left of
//! it, the next one sees what agents have marked as done meanwhile.

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

/// The file of a run that is under way.
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

    /// What was marked as done is opened again: the next start need not do that.
    pub(super) fn remove(self) {
        let _ = fs::remove_file(&self.0);
        // Where nothing has run.
        let _ = self.0.parent().map(fs::remove_dir);
    }
}

/// Whether a run is under way or was killed, whose agents may have changed the plan.
#[must_use]
pub(super) fn is_there(project: &Project) -> bool {
    let folders = own::entries(&project.runs()).unwrap_or_default();
    folders.iter().any(|folder| folder.join(FILE).exists())
}

/// Opens again what has been marked as done in the plan since runs began that were killed, as these would have done at their end.
/// Answers a notice for each.
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

/// Opens again what was marked as done in sections whose branch has not begun. Of the others ralph's records decide when they are
/// built. `run` is the run that worked on the plan, where that is over.
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
