//! The kinds of [`Source`](crate::engine::source::Source): one file each.

pub(crate) mod authoring;
pub(crate) mod branch;
pub(crate) mod built_plan;
pub(crate) mod planning;
pub(crate) mod prompt_file;
mod pushing;
pub(crate) mod ralph_md;
pub(crate) mod tasks;
pub(crate) mod worker;

use crate::engine::outcome::{End, Outcome};
use crate::engine::tally::Given;
use crate::engine::validation::cannot_run;
use crate::git::GitError;
use crate::git::remove::RemoveError;
use crate::graph::GraphError;
use crate::prompt::sections::{Unproven, with_sections};
use crate::reply::sigil::REPLAN;
use crate::text::count;
use crate::text::list::some_of;

/// How many open tasks a prompt names.
const NAMED: usize = 100;
/// How many of them a line names.
const SHOWN: usize = 3;

/// `prompt` with what the loop has `given` to it.
pub(crate) fn with_given(prompt: String, given: &Given) -> String {
    let unproven = given.validation_error.as_deref();
    let unproven = unproven.map(match (given.undecided, unproven.is_some_and(cannot_run)) {
        (true, _) => Unproven::Refuted,
        (false, true) => Unproven::CannotRun,
        (false, false) => Unproven::Failed,
    });
    with_sections(prompt, unproven, &given.refused, &given.notes)
}

/// What refutes a claim that all is done, where tasks of the plan are `open`, each a line of [`crate::plan::open_tasks`], or
/// `gone` from it without being ticked.
fn tasks_refute(open: &[String], gone: &[String]) -> Option<String> {
    let tasks = |tasks: &[String]| count::of(tasks.len() as u64, "task");
    let are = |tasks: &[String]| count::are(tasks.len() as u64);
    let missing = || {
        let names = some_of(gone.iter(), SHOWN);
        format!("{} of the plan {} gone from it without being ticked: {names}", tasks(gone), are(gone))
    };
    let write_back = || format!("\n\n{}\nWrite these back, and tick those that are done.\n", listed(gone));
    if open.is_empty() {
        return (!gone.is_empty()).then(|| missing() + &write_back());
    }
    let (also, more) =
        if gone.is_empty() { Default::default() } else { (format!(", and {}", missing()), write_back()) };
    Some(format!(
        "{} of the plan {} open{also}\n\n{}\nTick those that are done, or set their status to complete, and do the others. If one cannot be done, say \
         which and why, and answer with {REPLAN}.\n{more}",
        tasks(open),
        are(open),
        listed(open),
    ))
}

/// A list of tasks for a prompt.
fn listed(tasks: &[String]) -> String {
    let (first, more) = tasks.split_at(tasks.len().min(NAMED));
    let list = first.iter().fold(String::new(), |list, task| list + "- " + task + "\n");
    if more.is_empty() { list } else { format!("{list}and {} more\n", more.len()) }
}

/// Why a loop is idle that has open tasks in its plan; each is a line of [`crate::plan::open_tasks`].
fn idle_with(open: &[String]) -> Option<String> {
    let names = some_of(open.iter().map(|task| task.trim_start_matches("[ ] ")), SHOWN);
    let are = count::are(open.len() as u64);
    let tasks = count::of(open.len() as u64, "task");
    (!open.is_empty()).then(|| format!("nothing changes any more, and {tasks} {are} open: {names}"))
}

impl From<GitError> for End {
    /// A failed git ends the loop. One that was ended because the loop is to end says nothing.
    fn from(error: GitError) -> Self {
        if error.is_leaving() {
            return Outcome::Interrupted.into();
        }
        Self::because(Outcome::GitFailed, error.to_string())
    }
}

impl From<RemoveError> for End {
    /// What was in the way of a commit ends the loop.
    fn from(error: RemoveError) -> Self {
        match error {
            RemoveError::Git(error) => error.into(),
            error => Self::because(Outcome::GitFailed, error.to_string()),
        }
    }
}

impl From<GraphError> for End {
    /// A failed graph ends the loop.
    fn from(error: GraphError) -> Self {
        Self::because(Outcome::from(&error), error.to_string())
    }
}

impl From<&GraphError> for Outcome {
    /// How a loop ends with a failed graph.
    fn from(error: &GraphError) -> Self {
        if error.is_loss() {
            Self::GraphLost
        } else if error.passes() {
            Self::StoreAway
        } else if error.is_of_server() {
            Self::StoreRefused
        } else {
            Self::RecordFailed
        }
    }
}
