//! `IMPLEMENTATION_PLAN.md` of `ralph loop`: each branch is a task, with the branch's tasks as its parts.

use super::{Item, Key, at};
use crate::graph::error::GraphError;
use crate::graph::task::Status;
use crate::plan::{Plan, has_section};

pub(super) fn is_one(text: &str) -> bool {
    text.lines().filter_map(|line| line.strip_prefix("## Branch:")).any(|name| has_section(text, name.trim()))
}

pub(super) fn items(text: &str, is_branch: &dyn Fn(&str) -> bool) -> Result<Vec<Item>, GraphError> {
    let plan = Plan::parse(text, is_branch).map_err(|error| at(error.line, &error.problem))?;
    let key = |branch: &str| Key::Origin(format!("plan:{branch}"));
    let status = |done| if done { Status::Done } else { Status::Pending };
    let is_section = |name: &str| plan.sections.iter().any(|section| section.name == name);
    let mut items = Vec::new();
    for section in &plan.sections {
        let base = section.base.iter().map(|(base, _)| base.as_str()).filter(|base| is_section(base));
        items.push(Item {
            after: base.map(key).collect(),
            description: Some(section.goal.clone()),
            is_group: true,
            ..Item::new(section.line, key(&section.name), section.name.clone())
        });
        for task in &section.tasks {
            let of_task = Key::Origin(format!("plan:{} > {}", section.name, task.text));
            items.push(Item {
                parent: Some(key(&section.name)),
                status: status(task.ticked || section.is_done),
                ..Item::new(task.line, of_task, task.text.clone())
            });
        }
    }
    Ok(items)
}
