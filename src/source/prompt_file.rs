//! The plain loop: one prompt file, read afresh for every iteration.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{Source, SourceError, Work};
use crate::agent::Context;
use crate::engine::outcome::Outcome;
use crate::prompt::substitute;

/// What the user is told when there is no plan to build from.
pub const PLAN_MISSING: &str = "Implementation plan not found. Run 'ralph plan' first.";
/// What the user is told when the agent finds the plan wrong.
pub const REPLAN: &str =
    "Agent requested re-planning. Run 'ralph plan' to regenerate the implementation plan.";

/// Where a prompt's text comes from.
#[derive(Debug, Clone)]
pub enum Text {
    /// A file of the user's.
    File(PathBuf),
    /// The prompt that ralph brings along.
    BuiltIn(&'static str),
}

/// Prompts from one template.
#[derive(Debug)]
pub struct PromptFile {
    text: Text,
    /// The plan that has to exist before each iteration (build mode).
    plan: Option<PathBuf>,
    /// What `$NAME` and `${NAME}` stand for; nothing else is replaced.
    names: BTreeMap<String, String>,
}

impl PromptFile {
    /// A source that substitutes `names` in `text`, and stops when `plan` is given but missing.
    #[must_use]
    pub fn new(text: Text, plan: Option<PathBuf>, names: BTreeMap<String, String>) -> Self {
        Self { text, plan, names }
    }

    /// The template as it is on disk now.
    ///
    /// # Errors
    /// When it cannot be read, is not text, or is blank.
    pub fn read(&self) -> Result<String, SourceError> {
        let path = match &self.text {
            Text::BuiltIn(text) => return Ok((*text).to_owned()),
            Text::File(path) => path,
        };
        let lost = |why: String| SourceError { outcome: Outcome::PromptLost, message: why };
        if std::fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir()) {
            return Err(lost(format!(
                "prompt file {} is a pipe or a device, but is read anew for each iteration; save the prompt in a \
                 file",
                path.display()
            )));
        }
        match std::fs::read_to_string(path) {
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
            Text::File(path) => Some(path),
            Text::BuiltIn(_) => None,
        }
    }

    /// From here on `ITERATION` stands for this.
    pub(super) fn set_iteration(&mut self, iteration: u64) {
        self.names.insert("ITERATION".to_owned(), iteration.to_string());
    }

    /// `text` with the variables replaced.
    pub(super) fn substitute(&self, text: &str) -> String {
        substitute(text, &|name| self.names.get(name).map(Into::into))
    }

    /// Whether the plan that build mode needs is there.
    ///
    /// # Errors
    /// When it is needed and missing.
    pub fn check_plan(&self) -> Result<(), SourceError> {
        match &self.plan {
            Some(plan) if !plan.is_file() => {
                Err(SourceError { outcome: Outcome::PlanMissing, message: PLAN_MISSING.to_owned() })
            }
            _ => Ok(()),
        }
    }
}

fn unreadable(path: &Path, error: &std::io::Error) -> String {
    use std::io::ErrorKind::{InvalidData, IsADirectory, NotFound};
    let path = path.display();
    match error.kind() {
        NotFound => format!("prompt file {path} not found; check the path or create it"),
        InvalidData => format!("prompt file {path} is not UTF-8 text; save it as UTF-8"),
        IsADirectory => format!("prompt file {path} is a folder; name a file"),
        _ => format!("cannot read prompt file {path}: {error}; check its permissions"),
    }
}

impl Source for PromptFile {
    fn next(&mut self, iteration: u64, _: &mut Context<'_>) -> Result<Work, SourceError> {
        self.check_plan()?;
        let template = self.read()?;
        self.set_iteration(iteration);
        Ok(Work { prompt: self.substitute(&template), agent: None })
    }

    fn file(&self) -> Option<&Path> {
        self.path()
    }
}
