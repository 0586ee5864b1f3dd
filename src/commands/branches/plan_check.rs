//! The validation of `ralph loop plan`: the plan can be built as it is, and no agent has marked a branch as done.

use super::kept_plan::{self, KeptPlan};
use super::planned;
use crate::engine::context::Context;
use crate::engine::outcome::{End, Outcome};
use crate::engine::validation::Validation;
use crate::engine::validator::{Proof, Validator, Verdict};
use crate::project::Project;
use crate::settings::Settings;
use crate::source::branch::main_plan::MainPlan;

/// The validation of planning.
pub(super) struct PlanCheck<'a> {
    pub(super) project: &'a Project,
    pub(super) settings: &'a Settings,
    pub(super) before: &'a PlanBefore<'a>,
}

/// The plan of a project, in which a planning agent can mark nothing as done: it builds nothing.
pub(super) struct PlanBefore<'a> {
    project: &'a Project,
    plan: MainPlan,
}

impl<'a> PlanBefore<'a> {
    pub(super) fn of(project: &'a Project) -> Self {
        Self { project, plan: MainPlan::new(project.branch_plan()) }
    }

    /// Keeps the plan for the next start, until this run has ended.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn keep(&self, run: &str) -> anyhow::Result<KeptPlan> {
        KeptPlan::of(self.project, run, &self.plan)
    }

    /// Reopens sections that were marked as done since.
    ///
    /// # Errors
    /// When the plan cannot be written.
    pub(super) fn take_claims_back(&self) -> Result<Option<String>, String> {
        kept_plan::take_claims_back(self.project, &self.plan, None)
    }
}

impl Validator for PlanCheck<'_> {
    fn validate(&mut self, _: Proof<'_>, context: &mut Context<'_>) -> Result<Verdict, End> {
        let told = self.before.take_claims_back();
        if let Some(notice) = told.map_err(|why| End::because(Outcome::RecordFailed, why))? {
            context.notice(&notice)?;
        }
        let wrong = match planned::read(self.project, self.settings) {
            Err(fault) => Some(format!("The plan cannot be built as it stands:\n{fault:#}\n")),
            Ok(branches) if branches.iter().all(|branch| branch.section.is_done) => {
                Some("No branch of the plan is open.\n".to_owned())
            }
            Ok(_) => None,
        };
        let by = wrong.is_none().then(|| "a plan that can be built".to_owned());
        let (ok, output) = (wrong.is_none(), wrong.unwrap_or_default());
        Ok(Verdict::Found(Validation { ok, output, by, ..Validation::default() }))
    }
}
