//! The open tasks of a plan without branches, `implementation_plan.md`.
//!
//! ```markdown
//! ## 1. Add the flag
//! - Status: in-progress
//!
//! - [ ] Document it
//! ```

use super::Task;
use super::scan::{Field, Label, Outline, field, task};

/// The first word of a `Status:` that ends a task.
const COMPLETE: [&str; 3] = ["complete", "completed", "done"];

/// The open tasks in the order of the file, each in one line: `[ ] Document it` for an empty box, and
/// `1. Add the flag (Status: in-progress)` for a list item `Status:` that is not complete. Code fences and comments do not
/// count.
#[must_use]
pub fn open_tasks(text: &str) -> Vec<String> {
    let open = marks(text).into_iter().filter_map(|mark| match mark {
        Mark::Box(task) => open_box(&task),
        Mark::Status { title, value } if !is_complete(&value) => {
            Some(format!("{title} (Status: {value})").trim_start().to_owned())
        }
        Mark::Status { .. } => None,
    });
    open.collect()
}

/// All tasks in the order of the file, each with its text in one line and whether it is finished.
#[must_use]
pub fn listed_tasks(text: &str) -> Vec<(String, bool)> {
    let listed = marks(text).into_iter().map(|mark| match mark {
        Mark::Box(task) => (task.text, task.ticked),
        Mark::Status { title, value } => (title, is_complete(&value)),
    });
    listed.collect()
}

/// What says of a task whether it is open.
enum Mark {
    Box(Task),
    /// The status of the task with this heading.
    Status {
        title: String,
        value: String,
    },
}

fn marks(text: &str) -> Vec<Mark> {
    let mut title = String::new();
    let mut marks = Vec::new();
    for line in Outline::new(text).lines.iter().filter(|line| !line.fenced) {
        if line.is_heading() {
            line.visible.trim_matches(['#', ' ']).clone_into(&mut title);
        } else if let Some(task) = task(line) {
            marks.push(Mark::Box(task.task()));
        } else if let Some(field) = field(line).filter(is_of_task) {
            marks.push(Mark::Status { title: title.clone(), value: field.value });
        }
    }
    marks
}

/// The line of a task with an empty box.
#[must_use]
pub fn open_box(task: &Task) -> Option<String> {
    (!task.ticked).then(|| format!("[ ] {}", task.text))
}

/// Whether a field is the status of a task. One that is no list item may be that of the whole plan.
fn is_of_task(field: &Field) -> bool {
    field.label == Label::Status && !field.prefix.trim().is_empty()
}

/// Whether this status ends a task.
fn is_complete(value: &str) -> bool {
    let value = value.to_ascii_lowercase();
    let mut words = value.split(|char: char| !char.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.next().is_some_and(|word| COMPLETE.contains(&word))
}
