//! What proves a plan: that it can be built, and then whatever the user's own validation says.

use std::time::Instant;

use super::planned;
use crate::agent::Context;
use crate::engine::{Validation, Validator};
use crate::files::FileError;
use crate::project::Project;
use crate::settings::Settings;

/// The validation of planning.
pub(super) struct PlanCheck<'a> {
    pub(super) project: &'a Project,
    pub(super) settings: &'a Settings,
    /// The user's own.
    pub(super) then: Option<Box<dyn Validator>>,
}

impl Validator for PlanCheck<'_> {
    fn validate(
        &mut self,
        deadline: Option<Instant>,
        context: &mut Context<'_>,
    ) -> Result<Option<Validation>, FileError> {
        if let Err(fault) = planned::read(self.project, self.settings) {
            let output = format!("The plan cannot be built as it stands:\n{fault:#}\n");
            return Ok(Some(Validation { ok: false, output }));
        }
        match &mut self.then {
            Some(then) => then.validate(deadline, context),
            None => Ok(Some(Validation { ok: true, output: String::new() })),
        }
    }
}
