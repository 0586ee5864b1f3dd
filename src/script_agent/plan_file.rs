//! The implementation plan as text: tasks are found in it and changed in place, every other byte stays.

use super::requirement::Requirement;
use regex::Regex;

const TITLE: &str = "\
# Implementation plan

The most important task first. Status is one of planned, in-progress, blocked, complete.
";

/// One task: a heading with a status line below it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Task {
    pub(super) title: String,
    pub(super) status: String,
    pub(super) spec: String,
    pub(super) description: String,
    /// Index of the line that holds the status.
    line: usize,
}

impl Task {
    /// A task that stands in no plan of this form.
    pub(super) fn of(requirement: Requirement) -> Self {
        let title = requirement.title();
        let Requirement { text: description, spec } = requirement;
        Self { title, status: "planned".to_owned(), spec, description, line: 0 }
    }
}

/// The plan file's text, line by line.
pub(super) struct Plan {
    lines: Vec<String>,
}

impl Plan {
    /// Reads an existing plan; no text is a new plan.
    pub(super) fn new(text: Option<&str>) -> Self {
        Self { lines: text.unwrap_or(TITLE).lines().map(str::to_owned).collect() }
    }

    pub(super) fn text(&self) -> String {
        self.lines.join("\n") + "\n"
    }

    /// The tasks in order.
    pub(super) fn tasks(&self) -> anyhow::Result<Vec<Task>> {
        let heading = Regex::new(r"^#{2,6}\s+(?:\d+[.)]\s*)?(.+?)\s*$")?;
        let field = Regex::new(r"^\s*[-*]\s+\**(Status|Spec|Description)\**\s*:\**\s*(.*?)\s*$")?;
        let mut tasks: Vec<Task> = Vec::new();
        for (line, text) in self.lines.iter().enumerate() {
            if let Some(found) = heading.captures(text) {
                let title = found[1].to_owned();
                let (status, spec, description) = Default::default();
                tasks.push(Task { title, status, spec, description, line });
            } else if let (Some(found), Some(task)) = (field.captures(text), tasks.last_mut()) {
                let value = found[2].to_owned();
                match &found[1] {
                    "Status" => (task.status, task.line) = (value.replace('`', ""), line),
                    "Spec" => task.spec = value,
                    _ => task.description = value,
                }
            }
        }
        // A heading without a status is a chapter, not a task.
        tasks.retain(|task| !task.status.is_empty());
        Ok(tasks)
    }

    /// Adds a planned task at the end.
    pub(super) fn add(&mut self, number: usize, requirement: &Requirement) {
        self.lines.extend([
            String::new(),
            format!("## {number}. {}", requirement.title()),
            "- Status: planned".to_owned(),
            format!("- Spec: {}", requirement.spec),
            format!("- Description: {}", requirement.text),
        ]);
    }

    /// Gives `task` (of this plan, unchanged since) a new status and, if there is one, a note below it.
    pub(super) fn settle(&mut self, task: &Task, status: &str, note: Option<&str>) {
        let line = &mut self.lines[task.line];
        let label = line.find(':').map_or(0, |colon| colon + 1);
        // `- **Status:** x` closes its bold after the colon.
        let label = label + line[label..].bytes().take_while(|byte| *byte == b'*').count();
        line.replace_range(label.., &format!(" {status}"));
        if let Some(note) = note {
            self.lines.insert(task.line + 1, format!("- Note: {note}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BY_OTHERS: &str = "\
# Plan
Status: none of ours

## Chapter
text

### 3) Second thing
* **Status:** `in-progress`
* **Spec**: specs/b.md
* **Description:** Do it.
  And more.
";

    #[test]
    fn reads_and_settles_a_plan_in_another_style() {
        let mut plan = Plan::new(Some(BY_OTHERS));
        let tasks = plan.tasks().unwrap();
        let [task] = &tasks[..] else { panic!("{tasks:?}") };
        assert_eq!(
            [&task.title, &task.status, &task.spec, &task.description],
            ["Second thing", "in-progress", "specs/b.md", "Do it."]
        );
        plan.settle(task, "blocked", Some("why"));
        assert_eq!(plan.text(), BY_OTHERS.replace("`in-progress`", "blocked\n- Note: why"));
    }

    #[test]
    fn added_tasks_are_found_again() {
        let mut plan = Plan::new(None);
        assert!(plan.tasks().unwrap().is_empty());
        let requirement = Requirement { text: "Say hello: in words".into(), spec: "specs/a.md".into() };
        plan.add(1, &requirement);
        let tasks = plan.tasks().unwrap();
        assert_eq!((tasks[0].title.as_str(), tasks[0].status.as_str()), ("Say hello", "planned"));
        assert_eq!(tasks[0].description, requirement.text);
        plan.settle(&tasks[0], "complete", None);
        assert_eq!(plan.tasks().unwrap()[0].status, "complete");
    }
}
