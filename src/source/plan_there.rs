//! Proves a plan that is claimed to be complete: it exists, and the user's own validation passes.

use std::path::PathBuf;

use crate::engine::context::Context;
use crate::engine::outcome::End;
use crate::engine::report::Report;
use crate::engine::validation::Validation;
use crate::engine::validator::{FilesValidator, Proof, Validator, Verdict};
use crate::files::theirs;

/// The validation of `ralph plan`.
pub(crate) struct PlanThere<'a> {
    /// The path of the plan.
    pub(crate) plan: PathBuf,
    /// The user's own validation.
    pub(crate) then: Option<Box<dyn Validator + 'a>>,
}

impl PlanThere<'_> {
    /// Whether the agent claims a complete plan and there is none.
    fn is_missing(&self, report: &Report) -> bool {
        report.sigils.complete()
            && (!self.plan.is_file() || theirs::text(&self.plan).is_ok_and(|text| text.trim().is_empty()))
    }
}

impl Validator for PlanThere<'_> {
    fn applies(&self, report: &Report) -> bool {
        self.is_missing(report) || self.then.as_ref().is_some_and(|then| then.applies(report))
    }

    fn validate(&mut self, proof: Proof<'_>, context: &mut Context<'_>) -> Result<Verdict, End> {
        if self.is_missing(proof.report) {
            let plan = self.plan.display();
            let output =
                format!("The agent said COMPLETE, and there is no plan in {plan}: write it there.\n");
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
