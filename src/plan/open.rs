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
    let mut title = String::new();
    let mut open = Vec::new();
    for line in Outline::new(text).lines.iter().filter(|line| !line.fenced) {
        if line.is_heading() {
            line.visible.trim_matches(['#', ' ']).clone_into(&mut title);
        } else if let Some(task) = task(line) {
            open.extend(open_box(&task.task()));
        } else if let Some(status) = field(line).filter(is_open) {
            open.push(format!("{title} (Status: {})", status.value).trim_start().to_owned());
        }
    }
    open
}

/// The line of a task with an empty box.
#[must_use]
pub fn open_box(task: &Task) -> Option<String> {
    (!task.ticked).then(|| format!("[ ] {}", task.text))
}

/// Whether a field is the status of an open task. One that is no list item may be that of the whole plan.
fn is_open(field: &Field) -> bool {
    let value = field.value.to_ascii_lowercase();
    let mut words = value.split(|char: char| !char.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let is_of_task = field.label == Label::Status && !field.prefix.trim().is_empty();
    is_of_task && !words.next().is_some_and(|word| COMPLETE.contains(&word))
}
