//! The plan that a build works on, and which of its open tasks are gone from it without being done.

use std::path::{Path, PathBuf};

use super::{idle_with, tasks_refute};
use crate::engine::context::Context;
use crate::engine::outcome::End;
use crate::files::{atomic, theirs};
use crate::plan::{listed_tasks, open_tasks};
use crate::text::count;

/// The plan of a build.
#[derive(Debug, Clone)]
pub struct BuiltPlan {
    path: PathBuf,
    /// The text that the last agent began with; `None` before the first one.
    text: Option<String>,
    /// The tasks that were open when the loop began and have not been seen done since.
    due: Vec<String>,
}

impl BuiltPlan {
    /// The plan in this file.
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        Self { path, text: None, due: Vec::new() }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    fn read(&self) -> String {
        theirs::text(&self.path).unwrap_or_default()
    }

    /// The loop begins with these tasks gone from the plan: an earlier process of it has seen them open.
    pub(super) fn loop_begins(&mut self, gone: &[String]) {
        self.due = gone.to_vec();
    }

    /// Whether there is nothing in its file.
    pub(super) fn is_lost(&self) -> bool {
        !self.path.is_file() || theirs::text(&self.path).is_ok_and(|text| text.trim().is_empty())
    }

    /// An agent is about to begin. A plan that was lost while tasks of it were open is written again, as that of a branch is.
    pub(super) fn agent_begins(&mut self, context: &mut Context<'_>) -> Result<(), End> {
        if self.is_lost()
            && !self.due.is_empty()
            && let Some(text) = &self.text
        {
            atomic::write_theirs(&self.path, text.as_bytes()).map_err(End::from)?;
            let tasks = count::of(self.due.len() as u64, "open task");
            context.notice(&format!("{} was lost with {tasks}; it is restored", self.path.display()))?;
        }
        let text = self.read();
        if self.text.is_none() {
            let listed = listed_tasks(&text);
            // Those that were gone before may be back, open or ticked.
            self.due = missing(&self.due, &listed);
            // One without a word could not be found again.
            let open = listed.into_iter().filter(|(task, done)| !done && !words(task).is_empty());
            self.due.extend(open.map(|(task, _)| task));
        }
        self.text = Some(text);
        Ok(())
    }

    /// An agent has ended: what it has ticked may be removed later.
    pub(super) fn agent_ended(&mut self) {
        let listed = listed_tasks(&self.read());
        self.due.retain(|task| !listed.iter().any(|(other, done)| *done && is_same(task, other)));
    }

    /// What refutes that all of it is done.
    pub(super) fn refutes(&self) -> Option<String> {
        let text = self.read();
        tasks_refute(&open_tasks(&text), &missing(&self.due, &listed_tasks(&text)))
    }

    /// The tasks that are gone from it without being ticked.
    pub(super) fn gone(&self) -> Vec<String> {
        missing(&self.due, &listed_tasks(&self.read()))
    }

    /// What is left of it when nothing changes any more.
    pub(super) fn idle(&self) -> Option<String> {
        idle_with(&open_tasks(&self.read()))
    }
}

/// Those of the tasks that are not among the `listed` ones.
fn missing(due: &[String], listed: &[(String, bool)]) -> Vec<String> {
    let is_there = |task: &String| listed.iter().any(|(other, _)| is_same(task, other));
    due.iter().filter(|task| !is_there(task)).cloned().collect()
}

/// Whether `other` is the task, with another number, in other type, or with words after it.
fn is_same(task: &str, other: &str) -> bool {
    let (task, other) = (words(task), words(other));
    !task.is_empty() && other.starts_with(&task)
}

fn words(task: &str) -> Vec<String> {
    let number = |char: char| char.is_ascii_digit() || ".) ".contains(char);
    let words = task.trim_start_matches(number).split(|char: char| !char.is_alphanumeric());
    words.filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_known_again_with_a_mark_a_number_or_a_remark() {
        for other in ["Add the flag", "2. Add the *flag*", "~~Add the flag~~ (1a2b3c)", "add the flag: done"]
        {
            assert!(is_same("1. Add the flag", other), "{other}");
        }
        for other in ["Add the flags", "Add", "", "Document the flag"] {
            assert!(!is_same("Add the flag", other), "{other}");
        }
    }
}
