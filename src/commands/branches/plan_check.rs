//! What proves a plan: that it can be built, and then whatever the user's own validation says.

use super::planned;
use crate::engine::context::Context;
use crate::engine::outcome::End;
use crate::engine::validator::{Proof, Validation, Validator, Verdict};
use crate::project::Project;
use crate::settings::Settings;

/// The validation of planning.
pub(super) struct PlanCheck<'a> {
    pub(super) project: &'a Project,
    pub(super) settings: &'a Settings,
    /// The user's own.
    pub(super) then: Option<Box<dyn Validator + 'a>>,
}

impl Validator for PlanCheck<'_> {
    fn validate(&mut self, proof: Proof<'_>, context: &mut Context<'_>) -> Result<Verdict, End> {
        if let Err(fault) = planned::read(self.project, self.settings) {
            let output = format!("The plan cannot be built as it stands:\n{fault:#}\n");
            return Ok(Verdict::Found(Validation { output, ..Validation::default() }));
        }
        match &mut self.then {
            Some(then) => then.validate(proof, context),
            None => Ok(Verdict::Found(Validation { ok: true, ..Validation::default() })),
        }
    }
}
