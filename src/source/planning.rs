//! Planning of branches: a prompt file whose commits are pushed at the end.

use std::path::{Path, PathBuf};

use super::prompt_file::PromptFile;
use super::pushing::push_branch;
use crate::engine::context::Context;
use crate::engine::outcome::{End, Outcome};
use crate::engine::source::{Source, Work};
use crate::engine::stop::Change;
use crate::engine::tally::{Given, Tally};
use crate::git::identity::CommitIdentity;
use crate::git::publish::Unpublished;
use crate::git::refs::{self, Upstream};
use crate::git::remote::Remote;
use crate::git::trees::{CheckedOut, checked_out};

/// Prompts for planning branches.
pub(crate) struct Planning {
    prompt: PromptFile,
    root: PathBuf,
    /// The branch that the plan is committed to, and its commit at the start.
    start: Option<(String, Option<String>)>,
    way: Way,
}

/// Whether a branch is pushed.
enum Way {
    /// It is pushed to this remote.
    To(Remote),
    /// It is not pushed, for this reason.
    Not(&'static str),
    /// There is no remote.
    Nowhere,
}

impl Planning {
    /// The source for the project at `root`. Its branch is pushed if `auto_push` is set, it is not `protected`, and
    /// the push brings only new commits to the remote.
    pub(crate) fn new(
        prompt: PromptFile,
        (root, remote): (&Path, Option<Remote>),
        auto_push: bool,
        protected: &[String],
    ) -> Self {
        let branch = match checked_out(root) {
            Ok(CheckedOut::Branch(branch)) => Some(branch),
            _ => None,
        };
        let way = match (&branch, remote) {
            (None, _) | (_, None) => Way::Nowhere,
            (Some(branch), Some(remote)) => match may_push(root, branch, &remote, auto_push, protected) {
                Ok(()) => Way::To(remote),
                Err(why) => Way::Not(why),
            },
        };
        let start = branch.map(|branch| {
            let commit = refs::branch_commit(root, &branch);
            (branch, commit)
        });
        Self { prompt, root: root.to_owned(), start, way }
    }

    /// Pushes the commits, or reports how the user can.
    fn publish(&self, end: End, context: &mut Context<'_>) -> Result<End, End> {
        let Some((branch, before)) = &self.start else { return Ok(end) };
        if refs::branch_commit(&self.root, branch) == *before {
            return Ok(end);
        }
        let remote = match &self.way {
            Way::To(remote) => remote,
            Way::Nowhere => return Ok(end),
            Way::Not(why) => {
                context.notice(&format!("{branch} is not pushed, because {why}: 'git push' does it"))?;
                return Ok(end);
            }
        };
        let pushed = push_branch(&self.root, remote, branch, &CommitIdentity::default(), context)?;
        Ok(match pushed.map_err(Unpublished::why) {
            Ok(()) | Err(None) => end,
            Err(Some(why)) => End::because(Outcome::GitFailed, format!("the push failed: {why}")),
        })
    }
}

/// Whether a branch may be pushed without an explicit request; an error is the reason why not.
fn may_push(
    root: &Path,
    branch: &str,
    remote: &Remote,
    auto_push: bool,
    protected: &[String],
) -> Result<(), &'static str> {
    if !auto_push {
        return Err("git.auto_push is off");
    }
    if protected.iter().any(|name| name == branch) {
        return Err("the branch is protected (git.protected_branches)");
    }
    match refs::upstream(root, branch) {
        Some(Upstream { remote: of, branch: on, is_level }) if of == remote.name && on == branch => {
            if is_level {
                Ok(())
            } else {
                Err("it was not level with its upstream at the start")
            }
        }
        Some(_) => Err("its upstream has another name"),
        None => Err("it has no upstream"),
    }
}

impl Source for Planning {
    fn next(&mut self, iteration: u64, given: &Given, context: &mut Context<'_>) -> Result<Work, End> {
        self.prompt.next(iteration, given, context)
    }

    fn file(&self) -> Option<&Path> {
        self.prompt.path()
    }

    fn change(&mut self, change: &Change) -> bool {
        self.prompt.change(change)
    }

    fn advice(&self, outcome: Outcome) -> Option<String> {
        self.prompt.advice(outcome)
    }

    fn close(&mut self, end: End, tally: &Tally, context: &mut Context<'_>) -> End {
        let end = self.prompt.close(end, tally, context);
        if end.outcome.code() != 0 || end.outcome == Outcome::Cancelled {
            return end;
        }
        self.publish(end, context).unwrap_or_else(|end| end)
    }
}
