//! Work that this run has booked as done, and that is not in the branch any more: a later agent may have taken it out.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::Tasks;
use crate::engine::context::Context;
use crate::engine::outcome::End;
use crate::git::{guard, range};
use crate::graph::GraphError;
use crate::prompt::quote::quoted_line;

/// What this run knows of its tasks in git, by their ids.
#[derive(Debug, Default)]
pub(super) struct Landed {
    /// HEAD before the first agent.
    begun: HashMap<String, String>,
    /// HEAD when they were done.
    done: BTreeMap<String, String>,
    /// Those that were opened again.
    reopened: HashSet<String>,
}

impl Landed {
    /// An agent is put to a task.
    pub(super) fn begins(&mut self, id: &str, head: Option<&str>) {
        if let Some(head) = head {
            self.begun.entry(id.to_owned()).or_insert_with(|| head.to_owned());
        }
    }

    /// A task was booked as done.
    pub(super) fn is_done(&mut self, id: &str, head: Option<&str>) {
        if let Some(head) = head {
            self.done.insert(id.to_owned(), head.to_owned());
        }
    }
}

impl Tasks {
    /// Opens again, to be verified, what this run has booked at commits that HEAD has not, where the files that were changed up to
    /// there are not in HEAD as they were either: after an amend or a rebase they are.
    pub(super) fn reopen_dropped(&mut self, context: &mut Context<'_>) -> Result<(), End> {
        let root = &self.target.places.ground.root;
        let is_in_head = |id: &String, commit: &String| {
            let is_kept = |from: &String| guard::has_files_of(root, from, commit);
            range::is_ancestor(root, commit, "HEAD") || self.landed.begun.get(id).is_some_and(is_kept)
        };
        let dropped: Vec<String> = { self.landed.done.iter() }
            .filter(|(id, commit)| !is_in_head(id, commit))
            .map(|(id, _)| id.clone())
            .collect();
        for id in dropped {
            let commit = self.landed.done.remove(&id).unwrap_or_default();
            let why = format!("it was done at {commit:.10}, and HEAD does not have that any more");
            let task = id.clone();
            let reopened = self.graph.book(context, move |graph| {
                let title = graph.task(&task)?.title;
                Ok(graph.reopen(&task, &why)?.then_some(title))
            });
            let title = match reopened? {
                Ok(Some(title)) => quoted_line(&title, 80),
                // It is open, or was deleted.
                Ok(None) | Err(GraphError::UnknownTask { .. }) => continue,
                Err(error) => return Err(error.into()),
            };
            let open = "it is open again, and unverified";
            context.notice(&format!(
                "{id} {title} was done at {commit:.10}, which HEAD does not have any more: {open}"
            ))?;
            // Two agents could do that to each other for ever.
            if !self.landed.reopened.insert(id.clone()) {
                self.doubts.push(format!("what was done for {id} was taken out of HEAD more than once"));
            }
        }
        Ok(())
    }
}
