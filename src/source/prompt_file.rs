//! The plain loop: one prompt file, read again for every iteration.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::built_plan::BuiltPlan;
use super::with_given;
use crate::engine::context::Context;
use crate::engine::outcome::{End, Outcome};
use crate::engine::source::{Booked, Source, Work};
use crate::engine::stop::Change;
use crate::engine::tally::{Given, Tally};
use crate::files::theirs;
use crate::plan::open_tasks;
use crate::prompt::substitute;
use crate::text::count;

/// The message if there is no plan to build.
pub(crate) const PLAN_MISSING: &str = "Implementation plan not found. Run 'ralph plan' first.";
/// The message if the agent finds the implementation plan wrong.
pub(crate) const REPLAN: &str =
    "Agent requested re-planning. Run 'ralph plan' to regenerate the implementation plan.";
/// The message if the agent finds the plan of branches wrong.
pub(crate) const REPLAN_BRANCHES: &str =
    "Agent requested re-planning. Run 'ralph loop plan' to change the plan of branches.";

/// The prompt variable with the limit of iterations.
pub(crate) const MAX_ITERATIONS: &str = "MAX_ITERATIONS";

/// The origin of a prompt's text.
#[derive(Debug, Clone)]
pub enum Text {
    /// A user's file.
    File(theirs::PromptText),
    /// A built-in prompt.
    BuiltIn(&'static str),
}

/// What the loop does with an implementation plan.
#[derive(Debug, Clone)]
pub enum Plan {
    /// Nothing.
    None,
    /// Writes it: completion means that it exists and has open tasks.
    Written(PathBuf),
    /// Builds it: it has to exist, and completion means that its tasks are done.
    Built(BuiltPlan),
}

/// Prompts from one template.
#[derive(Debug)]
pub struct PromptFile {
    text: Text,
    plan: Plan,
    /// What the user can do if the agent finds the plan wrong.
    names: BTreeMap<String, String>,
    /// What the user can do when the agent finds the plan wrong.
    replan: &'static str,
}

impl PromptFile {
    /// A source that substitutes `names` in `text`. `replan` says what the user can do if the agent finds the plan
    /// wrong.
    #[must_use]
    pub fn new(text: Text, plan: Plan, names: BTreeMap<String, String>, replan: &'static str) -> Self {
        Self { text, plan, names, replan }
    }

    /// The template as it is on disk now.
    ///
    /// # Errors
    /// If it cannot be read, is not text, or is blank.
    pub fn read(&self) -> Result<String, End> {
        let file = match &self.text {
            Text::BuiltIn(text) => return Ok((*text).to_owned()),
            Text::File(file) => file,
        };
        let path = file.path();
        let lost = |why: String| End::because(Outcome::PromptLost, why);
        match file.text() {
            Ok(text) if text.trim().is_empty() => {
                Err(lost(format!("prompt file {} is empty; write a prompt into it", path.display())))
            }
            Ok(text) => Ok(text),
            Err(error) => Err(lost(unreadable(path, &error))),
        }
    }

    /// The file that the template is read from; `None` for a built-in one.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match &self.text {
            Text::File(file) => Some(file.path()),
            Text::BuiltIn(_) => None,
        }
    }

    /// Sets the value of `ITERATION`.
    pub(super) fn set_iteration(&mut self, iteration: u64) {
        self.names.insert("ITERATION".to_owned(), iteration.to_string());
    }

    /// `text` with the variables replaced.
    pub(super) fn substitute(&self, text: &str) -> String {
        substitute(text, &|name| self.names.get(name).map(Into::into))
    }

    /// Checks that the plan exists, if build mode needs it.
    ///
    /// # Errors
    /// If it is needed and missing.
    pub fn check_plan(&self) -> Result<(), End> {
        match &self.plan {
            Plan::Built(plan) if !plan.path().is_file() => {
                Err(End::because(Outcome::PlanMissing, PLAN_MISSING))
            }
            _ => Ok(()),
        }
    }
}

fn unreadable(path: &Path, error: &std::io::Error) -> String {
    use std::io::ErrorKind::{FileTooLarge, InvalidData, InvalidInput, IsADirectory, NotFound};
    let meant = theirs::meant(path);
    let path = path.display();
    match error.kind() {
        NotFound => format!("prompt file {path} not found; {meant}check the path or create it"),
        InvalidData => format!("prompt file {path} is not UTF-8 text; save it as UTF-8"),
        IsADirectory => format!("prompt file {path} is a folder; name a file"),
        InvalidInput => format!(
            "prompt file {path} is a pipe or a device, but is read again for each iteration; save the prompt in a file"
        ),
        FileTooLarge => format!("cannot read prompt file {path}: {error}; is this the right file?"),
        _ => format!("cannot read prompt file {path}: {error}; check its permissions"),
    }
}

impl Source for PromptFile {
    fn next(&mut self, iteration: u64, given: &Given, context: &mut Context<'_>) -> Result<Work, End> {
        if let Plan::Built(plan) = &mut self.plan {
            plan.agent_begins(context)?;
        }
        self.check_plan()?;
        let template = self.read()?;
        self.set_iteration(iteration);
        let prompt = self.substitute(&template);
        let prompt = with_given(prompt, given);
        Ok(Work { prompt, ..Work::default() })
    }

    fn change(&mut self, change: &Change) -> bool {
        if let Some(limit) = change.max_iterations {
            self.names.insert(MAX_ITERATIONS.to_owned(), limit.to_string());
        }
        false
    }

    fn refutes(&self) -> Option<String> {
        match &self.plan {
            Plan::None => None,
            Plan::Written(plan) => {
                let path = plan.display();
                let what = match theirs::text(plan) {
                    Ok(text) if !text.trim().is_empty() => {
                        let none = || {
                            format!(
                                "no task of {path} is open: an open one has a box '- [ ]', or a line '- Status:' that is not complete"
                            )
                        };
                        open_tasks(&text).is_empty().then(none)
                    }
                    Err(error) if plan.is_file() => Some(format!("{path} cannot be read: {error}")),
                    _ => Some(format!("there is no plan in {path}: write it there")),
                };
                what.map(|what| what + "\n")
            }
            Plan::Built(plan) => plan.refutes(),
        }
    }

    fn proves(&self) -> Option<String> {
        let Plan::Written(plan) = &self.plan else { return None };
        let open = open_tasks(&theirs::text(plan).ok()?).len();
        Some(format!("a plan with {}", count::of(open as u64, "open task")))
    }

    fn loop_begins(&mut self, gone: &[String]) {
        if let Plan::Built(plan) = &mut self.plan {
            plan.loop_begins(gone);
        }
    }

    fn gone(&self) -> Vec<String> {
        if let Plan::Built(plan) = &self.plan { plan.gone() } else { Vec::new() }
    }

    fn book(&mut self, _: &Booked<'_>, _: &mut Context<'_>) -> Result<(), End> {
        if let Plan::Built(plan) = &mut self.plan {
            plan.agent_ended();
        }
        Ok(())
    }

    fn close(&mut self, end: End, _: &Tally, _: &mut Context<'_>) -> End {
        match &self.plan {
            Plan::Built(plan) if end.outcome == Outcome::Complete => {
                let path = plan.path().display();
                let gone = || format!("the agent says so, and there is no plan any more in {path}");
                End { detail: plan.is_lost().then(gone).or(end.detail), ..end }
            }
            _ => end,
        }
    }

    fn file(&self) -> Option<&Path> {
        self.path()
    }

    fn advice(&self, outcome: Outcome) -> Option<String> {
        match (outcome, &self.plan) {
            (Outcome::Replan, _) => Some(self.replan.to_owned()),
            (Outcome::Idle, Plan::Built(plan)) => plan.idle(),
            _ => None,
        }
    }
}
