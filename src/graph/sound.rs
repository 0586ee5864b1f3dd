//! Checks whether tasks that an agent wrote are complete enough for other agents.

use super::error::GraphError;
use super::store::Store;
use super::task::Task;

/// At most this many faults are reported.
const MOST: usize = 20;
/// How the line above a task's criteria begins.
const CRITERIA: &str = "acceptance criteria";

/// The faults of a graph's tasks, one line each. Every store already refuses cycles.
///
/// # Errors
/// If it cannot be read.
pub fn faults(graph: &dyn Store) -> Result<Vec<String>, GraphError> {
    let mut tasks: Vec<(Task, usize)> = Vec::new();
    graph.tree(None, &mut |task, place| {
        tasks.push((task, place.depth));
        true
    })?;
    if tasks.is_empty() {
        return Ok(vec!["no task was added".to_owned()]);
    }
    let next = tasks.iter().skip(1).map(|(_, depth)| *depth).chain([0]);
    let leaves = tasks.iter().zip(next).filter(|((_, depth), next)| next <= depth);
    Ok(leaves.filter_map(|((task, _), _)| fault(task)).take(MOST).collect())
}

fn fault(task: &Task) -> Option<String> {
    let Task { id, title, description, .. } = task;
    if description.trim().is_empty() {
        return Some(format!("{id} '{title}' has no description"));
    }
    let missing = !has_criteria(description);
    missing.then(|| {
        format!("{id} '{title}': its description has no line 'Acceptance criteria:' with a list below it")
    })
}

/// Whether a text has such a line or heading, and text after it.
fn has_criteria(text: &str) -> bool {
    let lines: Vec<&str> = text.lines().collect();
    let says_something = |text: &str| text.contains(char::is_alphanumeric);
    lines.iter().enumerate().any(|(at, line)| {
        let line = line.trim_start_matches(|c: char| !c.is_alphanumeric());
        let split = line.split_at_checked(CRITERIA.len());
        let rest = split.filter(|(begin, _)| begin.eq_ignore_ascii_case(CRITERIA)).map(|(_, rest)| rest);
        rest.is_some_and(|rest| {
            says_something(rest) || lines[at + 1..].iter().any(|line| says_something(line))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::NewTask;
    use crate::graph::sqlite::SqliteStore;

    #[test]
    fn criteria_are_a_line_with_something_below_it() {
        for good in [
            "Do it.\n\nAcceptance criteria:\n- it runs",
            "## Acceptance Criteria\n\n1. it runs",
            "**acceptance criteria**: it runs",
        ] {
            assert!(has_criteria(good), "{good}");
        }
        for bad in
            ["", "Do it.", "Acceptance criteria:\n\n", "It has acceptance criteria.\n- x", "Acceptance:\nx"]
        {
            assert!(!has_criteria(bad), "{bad}");
        }
    }

    #[test]
    fn every_task_without_parts_has_to_say_how_it_is_proven() {
        let mut graph = SqliteStore::nowhere().unwrap();
        assert_eq!(faults(&graph).unwrap(), ["no task was added"]);
        let mut add = |title: &str, description: &str, parent: Option<&String>| {
            let task = NewTask {
                title: title.into(),
                description: description.into(),
                parent: parent.cloned(),
                ..NewTask::default()
            };
            graph.add(&task).unwrap()
        };
        let whole = add("whole", "", None);
        let first = add("first", "Do it.", Some(&whole));
        add("second", "Acceptance criteria:\n- x", Some(&whole));
        let third = add("third", " ", None);
        assert_eq!(
            faults(&graph).unwrap(),
            [
                format!(
                    "{first} 'first': its description has no line 'Acceptance criteria:' with a list below it"
                ),
                format!("{third} 'third' has no description"),
            ]
        );
    }
}
