//! What `ralph loop plan` validates: that the plan can be built as it stands, and that no agent has marked a branch as done.

use super::planned;
use crate::engine::context::Context;
use crate::engine::outcome::End;
use crate::engine::validator::{FilesValidator, Proof, Validation, Validator, Verdict};
use crate::files::atomic;
use crate::files::{FileError, theirs};
use crate::plan;
use crate::project::Project;
use crate::record::lookup::Loop;
use crate::settings::Settings;

/// The validation of planning.
pub(super) struct PlanCheck<'a> {
    pub(super) project: &'a Project,
    pub(super) settings: &'a Settings,
    pub(super) done_before: &'a DoneBefore<'a>,
    /// The user's own.
    pub(super) then: Option<Box<dyn Validator + 'a>>,
}

/// The sections that were marked as done when planning began: a planning agent builds nothing, so it can add none.
pub(super) struct DoneBefore<'a> {
    project: &'a Project,
    names: Vec<String>,
}

impl<'a> DoneBefore<'a> {
    pub(super) fn of(project: &'a Project) -> Self {
        let text = theirs::text(&project.branch_plan()).unwrap_or_default();
        Self { project, names: plan::done(&text) }
    }

    /// Opens sections again that were marked as done since, and answers a notice that names them. Where ralph has records of a
    /// branch, those decide when it is built.
    ///
    /// # Errors
    /// When the plan cannot be written.
    pub(super) fn reopen_others(&self) -> Result<Option<String>, FileError> {
        let path = self.project.branch_plan();
        let Ok(text) = theirs::text(&path) else { return Ok(None) };
        let has_records = |name: &String| Loop::at(self.project.of_branch(name, None), name).is_some();
        let mut claimed = plan::done(&text);
        claimed.retain(|name| !self.names.contains(name) && !has_records(name));
        if claimed.is_empty() {
            return Ok(None);
        }
        atomic::write_theirs(&path, plan::mark_open(&text, &claimed).as_bytes())?;
        Ok(Some(format!(
            "{}: the planning agent has marked '{}' as done, which ralph has not built: marked as planned again; mark it yourself \
             if it is done",
            self.project.relative(&path).display(),
            claimed.join("', '")
        )))
    }
}

impl Validator for PlanCheck<'_> {
    fn validate(&mut self, proof: Proof<'_>, context: &mut Context<'_>) -> Result<Verdict, End> {
        if let Some(notice) = self.done_before.reopen_others()? {
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
