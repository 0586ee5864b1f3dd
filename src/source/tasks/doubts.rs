//! Changes of the graph by another program, and what they mean for the end of a run.

use std::sync::Arc;

use super::{LOOKS, SOME, Tasks};
use crate::engine::context::Context;
use crate::engine::outcome::End;
use crate::graph::Task;
use crate::prompt::quote::quoted_line;
use crate::text::count;
use crate::text::list::some_of;

impl Tasks {
    /// Tasks that are marked as done and that no run or person has booked are verified first: an agent that can write
    /// files can write the graph's. Changes that cannot be repaired are reported, and keep this run from ending
    /// successfully.
    pub(super) fn reopen_unbooked(&mut self, context: &mut Context<'_>) -> Result<(), End> {
        let target = Arc::clone(&self.target);
        let found = self.graph.look(context, move |graph| graph.reopen_unbooked(&target.holder.run))??;
        let names = |tasks: &[Task]| -> Vec<String> {
            tasks.iter().map(|Task { id, title, .. }| format!("{id} {}", quoted_line(title, 80))).collect()
        };
        for what in names(&found.reopened) {
            context.notice(&format!(
                "{what} was called done in the graph, and neither a run nor a person has booked that: it is open again, and \
                 unverified"
            ))?;
        }
        for what in names(&found.given_up) {
            context.notice(&format!(
                "{what} was called failed in the graph, and neither a run nor a person has booked that: it is open again"
            ))?;
        }
        if found.believed > 0 {
            let tasks = count::of(found.believed, "task");
            context.notice(&format!(
                "the graph was not sealed with this user's key until now: {tasks} taken as done by its log and its journal"
            ))?;
        }
        if found.is_recomputed {
            context.notice(
                "another program than ralph has changed states of tasks, or what is ready, in the graph: all of that was recomputed",
            )?;
        }
        let mut doubts: Vec<String> = Vec::new();
        doubts.extend(names(&found.contested).into_iter().map(|what| {
            format!("{what} was called done or failed in the graph once more, and not by a ralph with this user's key")
        }));
        if !found.rewritten.is_empty() {
            let tasks = some_of(names(&found.rewritten), SOME);
            doubts.push(format!(
                "another program than ralph has changed the words of {tasks}, its priority, or what it is a part of or waits for"
            ));
        }
        if found.missing > 0 {
            let tasks = count::of(found.missing, "task");
            doubts.push(format!("another program than ralph has removed {tasks} from the graph"));
        }
        if found.is_uncounted {
            doubts.push(
                "another program than ralph has changed how many tasks the graph should have".to_owned(),
            );
        }
        for doubt in doubts {
            context
                .notice(&format!("{doubt}: compare the tasks with what you asked for ('ralph task list')"))?;
            self.doubts.push(doubt);
        }
        Ok(())
    }

    /// The end for the target, from a graph that only ralph has written: an agent of another run may write while this
    /// one ends.
    pub(super) fn sound_end(&mut self, context: &mut Context<'_>) -> Result<End, End> {
        for _ in 0..LOOKS {
            self.reopen_unbooked(context)?;
            let end = self.end(context);
            if self.graph.look(context, |graph| graph.is_as_looked_at())?? {
                return end;
            }
        }
        self.doubts.push("other programs write into the graph all the time".to_owned());
        self.end(context)
    }

    /// Exit code 0 would say that everything is done; with changed tasks, that is unknown.
    pub(super) fn doubted(&self, end: End) -> End {
        match (self.doubts.first(), end.outcome.if_unproven()) {
            (Some(first), Some(unproven)) => {
                let more = self.doubts.len() - 1;
                let more = if more > 0 { format!(" (and {more} more like that)") } else { String::new() };
                End::because(
                    unproven,
                    format!("{first}{more}: compare the tasks with what you asked for, and run again"),
                )
            }
            _ => end,
        }
    }
}
