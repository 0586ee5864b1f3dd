//! The plan of branches, `IMPLEMENTATION_PLAN.md`, as text: parsed, and edited in place.
//!
//! ```markdown
//! ## Branch: add-watch-flag
//! Goal: Stream what the agent says
//! Base: master
//!
//! - [x] Add the flag, because long runs look dead
//! - [ ] Pass the agent's output on
//! ```
//!
//! A section ends at the next heading of level 1 or 2. Code fences and HTML comments do not count.

mod edit;
mod open;
mod scan;

use std::collections::HashMap;

pub use edit::{Cleared, Ticks, has_section, mark_done, merge_tasks, tasks, without_claims};
pub use open::{listed_tasks, open_box, open_tasks};
use scan::{Block, Label, Outline, TaskLines};

/// The value of `Status:` that ends a branch.
const DONE: &str = "done";
/// Values that users and agents write for open work; all mean the same.
const OPEN: [&str; 5] = ["planned", "in-progress", "todo", "open", "blocked"];

/// A valid plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Its branches in the order of the file.
    pub sections: Vec<Section>,
}

/// One branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// The branch's name, unique in the plan.
    pub name: String,
    /// The line of its heading, from 1.
    pub line: usize,
    /// Its goal in one line; not empty.
    pub goal: String,
    /// Its base as written, with its line (from 1); `None` for the project's own base.
    pub base: Option<(String, usize)>,
    /// At least one.
    pub tasks: Vec<Task>,
    /// Whether it has a line `Status: done`.
    pub is_done: bool,
    /// The address of its pull request (`PR: URL`).
    pub pull_request: Option<String>,
}

/// One task: `- [ ] text`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// The whole text in one line: the indented lines below it are joined with blanks.
    pub text: String,
    /// Whether its box is ticked.
    pub ticked: bool,
    /// The line of its box, from 1.
    pub line: usize,
}

/// An error in a plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct PlanError {
    /// Its line, from 1.
    pub line: usize,
    /// The error, and what to do.
    pub problem: String,
}

impl PlanError {
    /// An error at the line with this index.
    fn at(index: usize, problem: impl Into<String>) -> Self {
        Self { line: index + 1, problem: problem.into() }
    }
}

impl Plan {
    /// Reads a plan; `is_valid_name` says whether git accepts a branch of this name.
    ///
    /// # Errors
    /// The first error in the file. Nothing is skipped silently.
    pub fn parse(text: &str, is_valid_name: &dyn Fn(&str) -> bool) -> Result<Self, PlanError> {
        let outline = Outline::new(text);
        let mut faults = outline.strays;
        let mut seen: Vec<(&str, usize)> = Vec::new();
        for block in &outline.sections {
            faults.extend(name_fault(block, &seen, is_valid_name));
            seen.push((&block.name, block.heading));
        }
        let sections = outline.sections.iter().map(|block| section(block, &mut faults)).collect();
        if let Some(fault) = outline.unclosed {
            // The missing parts of the last section may be inside the open fence.
            let last = outline.sections.last().map_or(0, |block| block.heading);
            faults.retain(|fault| fault.line <= last);
            faults.push(fault);
        }
        match faults.into_iter().min_by_key(|fault| fault.line) {
            Some(fault) => Err(fault),
            None => Ok(Self { sections }),
        }
    }

    /// The dependencies of branches: for each section in order, the index of the unfinished section that it starts
    /// from if it is unfinished itself, else `None`.
    ///
    /// # Errors
    /// If branches wait for each other, or one for itself.
    pub fn order(&self) -> Result<Vec<Option<usize>>, PlanError> {
        let open = self.sections.iter().enumerate().filter(|(_, section)| !section.is_done);
        let by_name: HashMap<&str, usize> =
            open.map(|(index, section)| (section.name.as_str(), index)).collect();
        let base = |section: &Section| {
            let (base, _) = section.base.as_ref().filter(|_| !section.is_done)?;
            by_name.get(base.as_str()).copied()
        };
        let waits: Vec<Option<usize>> = self.sections.iter().map(base).collect();
        (0..waits.len()).find_map(|start| self.cycle(&waits, start)).map_or(Ok(waits), Err)
    }

    /// The error for the cycle through `start`.
    fn cycle(&self, waits: &[Option<usize>], start: usize) -> Option<PlanError> {
        let mut way = vec![self.sections[start].name.as_str()];
        let mut at = waits[start]?;
        while at != start {
            way.push(&self.sections[at].name);
            // Longer than the plan: the way runs into a cycle without `start`.
            at = waits[at].filter(|_| way.len() <= waits.len())?;
        }
        let section = &self.sections[start];
        let line = section.base.as_ref().map_or(section.line, |(_, line)| *line);
        let problem = if way.len() == 1 {
            format!("branch '{0}' cannot start from itself: give it another 'Base:'", section.name)
        } else {
            let way = way.join("' waits for '");
            format!(
                "branch '{way}' waits for '{}': give one of them a 'Base:' outside of this circle",
                section.name
            )
        };
        Some(PlanError { line, problem })
    }
}

/// The error in a section's name, by itself or next to those `seen` above it.
fn name_fault(
    block: &Block,
    seen: &[(&str, usize)],
    is_valid_name: &dyn Fn(&str) -> bool,
) -> Option<PlanError> {
    let name = block.name.as_str();
    let fault = |problem: String| Some(PlanError::at(block.heading, problem));
    if name.is_empty() {
        return fault("the branch has no name: write it behind '## Branch:'".to_owned());
    }
    if !is_valid_name(name) {
        return fault(format!(
            "'{name}' is no name for a branch in git: use letters, digits, '-', '_' and '/'"
        ));
    }
    let is_below =
        |inner: &str, outer: &str| inner.strip_prefix(outer).is_some_and(|rest| rest.starts_with('/'));
    seen.iter().find_map(|(other, heading)| {
        let line = heading + 1;
        if *other == name {
            fault(format!("branch '{name}' stands in line {line} already: rename one or join them"))
        } else if is_below(name, other) || is_below(other, name) {
            fault(format!("git cannot have '{name}' beside '{other}' (line {line}): rename one"))
        } else {
            None
        }
    })
}

/// Reads a section, and adds its errors to `faults`.
fn section(block: &Block, faults: &mut Vec<PlanError>) -> Section {
    let name = &block.name;
    let mut value = |label: Label| {
        let mut fields = block.fields.iter().filter(|field| field.label == label);
        let first = fields.next();
        let word = label.word();
        faults.extend(fields.next().map(|second| {
            PlanError::at(second.line, format!("branch '{name}' has a second '{word}:': keep one"))
        }));
        first
    };
    let (goal, base) = (value(Label::Goal), value(Label::Base));
    let (status, pull_request) = (value(Label::Status), value(Label::PullRequest));
    if goal.is_none_or(|goal| goal.value.is_empty()) {
        let line = goal.map_or(block.heading, |goal| goal.line);
        let problem = format!("branch '{name}' has no goal: write 'Goal: what it is for' below its heading");
        faults.push(PlanError::at(line, problem));
    }
    if let Some(base) = base.filter(|base| base.value.is_empty()) {
        let problem = "'Base:' names nothing: name the branch to start from, or delete the line";
        faults.push(PlanError::at(base.line, problem));
    }
    if block.tasks.is_empty() {
        let problem = format!("branch '{name}' has no task: write '- [ ] what to do and why' for each");
        faults.push(PlanError::at(block.heading, problem));
    }
    for task in block.tasks.iter().filter(|task| task.text.is_empty()) {
        faults.push(PlanError::at(task.line, "the task is empty: write what to do, or delete it"));
    }
    let is = |word: &str| status.is_some_and(|status| status.value.eq_ignore_ascii_case(word));
    if let Some(status) = status.filter(|_| !is(DONE) && !OPEN.into_iter().any(is)) {
        let known = OPEN.join(", ");
        let problem = format!("'{}' is no status: use {DONE}, or for open work {known}", status.value);
        faults.push(PlanError::at(status.line, problem));
    }
    Section {
        name: name.clone(),
        line: block.heading + 1,
        goal: goal.map_or_else(String::new, |goal| goal.value.clone()),
        base: base.map(|base| (base.value.clone(), base.line + 1)),
        tasks: block.tasks.iter().map(TaskLines::task).collect(),
        is_done: is(DONE),
        pull_request: pull_request.map(|field| field.value.clone()).filter(|value| !value.is_empty()),
    }
}

#[cfg(test)]
mod tests;
