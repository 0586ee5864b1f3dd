//! The plan as it was when a run over it began, kept in the folder of the run until it has ended. By what a killed run has left of
//! it, the next one sees what agents have marked as done meanwhile.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Error};

use crate::files::atomic::{self, Durability};
use crate::files::{own, theirs};
use crate::project::Project;
use crate::project::file_name::encoded;
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
}

impl KeptPlan {
    /// What was marked as done is opened again: the next start need not do that.
    pub(super) fn remove(self) {
        let _ = fs::remove_file(&self.0);
        // Where nothing has run.
        let _ = self.0.parent().map(fs::remove_dir);
    }
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
        if RunStart::read(&folder).is_none_or(|start| start.process.is_alive()) {
            continue;
        }
        let plan = MainPlan::since(project.branch_plan(), String::from_utf8_lossy(&before).into_owned());
        // What the run has worked on may be forgotten since; its logs stay.
        let was_forgotten = |name: &str| {
            Loop::at(project.of_branch(name, None), name).is_none() && folder.join(encoded(name)).is_dir()
        };
        notices.extend(
            plan.take_claims_back(&|name| !was_forgotten(name) && !has_records(project, name))
                .map_err(Error::msg)?,
        );
        let _ = fs::remove_file(folder.join(FILE));
    }
    Ok(notices)
}

/// Opens again what was marked as done in sections whose branch has no records; where ralph has some, those decide when it is built.
///
/// # Errors
/// When the plan cannot be written.
pub(super) fn of_none_with_records(project: &Project, plan: &MainPlan) -> Result<Option<String>, String> {
    plan.take_claims_back(&|name| !has_records(project, name))
}

/// Whether ralph has begun to work on a branch, as far as its records say.
fn has_records(project: &Project, name: &str) -> bool {
    let has_begun = |found: Loop| found.state.map_or(true, |state| state.tally.iteration > 0);
    Loop::at(project.of_branch(name, None), name).is_some_and(has_begun)
}
