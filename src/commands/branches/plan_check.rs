//! What `ralph loop plan` validates: that the plan can be built as it stands, and that no agent has marked a branch as done.

use super::kept_plan::{self, KeptPlan};
use super::planned;
use crate::engine::context::Context;
use crate::engine::outcome::{End, Outcome};
use crate::engine::validation::Validation;
use crate::engine::validator::{FilesValidator, Proof, Validator, Verdict};
use crate::project::Project;
use crate::settings::Settings;
use crate::source::branch::main_plan::MainPlan;

/// The validation of planning.
pub(super) struct PlanCheck<'a> {
    pub(super) project: &'a Project,
    pub(super) settings: &'a Settings,
    pub(super) before: &'a PlanBefore<'a>,
    /// The user's own.
    pub(super) then: Option<Box<dyn Validator + 'a>>,
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

    /// Keeps it for the next start, until this run has ended.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn keep(&self, run: &str) -> anyhow::Result<KeptPlan> {
        KeptPlan::of(self.project, run, &self.plan)
    }

    /// Opens again what was marked as done since.
    ///
    /// # Errors
    /// When the plan cannot be written.
    pub(super) fn take_claims_back(&self) -> Result<Option<String>, String> {
        kept_plan::take_claims_back(self.project, &self.plan, None)
    }
}

impl Validator for PlanCheck<'_> {
    fn validate(&mut self, proof: Proof<'_>, context: &mut Context<'_>) -> Result<Verdict, End> {
        let told = self.before.take_claims_back();
        if let Some(notice) = told.map_err(|why| End::because(Outcome::RecordFailed, why))? {
            context.notice(&notice)?;
        }
        if let Err(fault) = planned::read(self.project, self.settings) {
            let output = format!("The plan cannot be built as it stands:\n{fault:#}\n");
            return Ok(Verdict::Found(Validation { output, ..Validation::default() }));
        }
        match &mut self.then {
            Some(then) => then.validate(proof, context),
            None => Ok(Verdict::Found(Validation { ok: true, ..Validation::default() })),
        }
    }

    fn of_files(&mut self) -> Option<&mut dyn FilesValidator> {
        self.then.as_mut()?.of_files()
    }
}
