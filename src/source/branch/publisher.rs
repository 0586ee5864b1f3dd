//! Publishes a branch's commits: on the remote, and in a pull request.

use std::fmt::Write as _;
use std::path::PathBuf;

use super::Facts;
use crate::engine::context::Context;
use crate::engine::fact::Fact;
use crate::engine::outcome::End;
use crate::engine::validation::Evidence;
use crate::git;
use crate::git::forge::{Forge, Request};
use crate::git::identity::CommitIdentity;
use crate::git::publish::{Opened, PULL_REQUEST_LIMIT, Unpublished, open};
use crate::git::remote::Remote;
use crate::plan::Task;
use crate::project::BRANCH_PLAN;
use crate::side_command;
use crate::source::pushing::{bounds, push_branch};
use crate::text::references::unlinked;

/// How to publish a branch's commits, and what was published.
#[derive(Debug)]
pub struct Publisher {
    /// The work tree.
    pub tree: PathBuf,
    /// The branch.
    pub branch: String,
    /// The commit that it starts from.
    pub base: String,
    /// The target branch of a pull request; `None` if the base is not a branch.
    pub base_branch: Option<String>,
    /// The remote; `None` if there is none.
    pub remote: Option<Remote>,
    /// The identity for pushing.
    pub identity: CommitIdentity,
    /// Whether to push at all.
    pub auto_push: bool,
    /// Whether to open a pull request.
    pub auto_pr: bool,
    /// Whether it is a protected branch, which is never pushed.
    pub is_protected: bool,
    /// The run mark of the loop.
    pub mark: String,
    /// What was published, and what was not.
    pub made: Made,
}

/// The results of a publisher.
#[derive(Debug, Default)]
pub struct Made {
    /// The commit that was last pushed.
    pushed: Option<String>,
    /// The address of the pull request.
    pub pull_request: Option<String>,
    /// What was not done and why, one line each.
    pub notes: Vec<String>,
}

impl Publisher {
    /// How many commits the branch is ahead of its base; `None` if git fails.
    #[must_use]
    pub fn commits(&self) -> Option<u64> {
        git::refs::ahead(&self.tree, &self.base, &self.branch_ref())
    }

    /// The address of the pull request, if there is one.
    #[must_use]
    pub fn pull_request(&self) -> Option<&str> {
        self.made.pull_request.as_deref()
    }

    fn branch_ref(&self) -> String {
        format!("refs/heads/{}", self.branch)
    }

    /// Pushes new commits, if that is enabled and possible.
    pub(super) fn push(&mut self, context: &mut Context<'_>) -> Result<Result<(), Unpublished>, End> {
        let Some(remote) = self.remote.clone().filter(|_| self.auto_push && !self.is_protected) else {
            return Ok(Ok(()));
        };
        let head = git::refs::branch_commit(&self.tree, &self.branch);
        if head.is_some() && head == self.made.pushed {
            return Ok(Ok(()));
        }
        match self.commits() {
            Some(0) => return Ok(Ok(())),
            Some(_) => {}
            None => return Ok(Err(Unpublished::Wrong(self.uncountable()))),
        }
        let pushed = push_branch(&self.tree, &remote, &self.branch, &self.identity, context)?;
        if pushed.is_ok() {
            self.made.pushed = head;
        }
        Ok(pushed)
    }

    fn uncountable(&self) -> String {
        format!("git cannot tell what {} has ahead of {:.10}", self.branch, self.base)
    }

    /// Opens the pull request of a finished branch, if that is enabled and possible.
    pub(super) fn open_pull_request(
        &mut self,
        facts: &Facts,
        tasks: &[Task],
        proof: Option<&Evidence>,
        context: &mut Context<'_>,
    ) -> Result<Result<(), Unpublished>, End> {
        let wanted = match self.pull_request_wanted() {
            Ok(base) => base,
            Err(note) => {
                self.made.notes.extend(note);
                return Ok(Ok(()));
            }
        };
        // Agents have written in the plan, and a pull request may be public.
        let (mut title, mut body) = (facts.goal.clone(), body(facts, tasks, proof));
        context.clean(&mut title);
        context.clean(&mut body);
        let (title, body) = (unlinked(&title), unlinked(&body));
        let request = Request { base: &wanted, head: &self.branch, title: &title, body: &body };
        let Some(remote) = &self.remote else { return Ok(Ok(())) };
        let noun = self.noun();
        let opened = open(&remote.home, &request, (&self.tree, &self.mark), &mut |launch| {
            side_command::run(launch, bounds(PULL_REQUEST_LIMIT), context)
        })?;
        match opened {
            Ok(Opened { address, .. }) => {
                context.tell(Fact::Published { message: format!("{noun}: {address}").into() })?;
                self.made.pull_request = Some(address);
                Ok(Ok(()))
            }
            Err(Unpublished::Impossible(why)) => {
                self.made.notes.push(format!("no {noun}: {why}"));
                Ok(Ok(()))
            }
            Err(failure) => Ok(Err(failure)),
        }
    }

    fn forge(&self) -> Forge {
        self.remote.as_ref().map_or(Forge::GitHub, |remote| remote.home.forge())
    }

    /// What the remote's forge calls a pull request.
    pub(super) fn noun(&self) -> &'static str {
        self.forge().row().noun
    }

    /// Notes the uncommitted changes of a finished branch.
    pub(super) fn note_uncommitted(&mut self) {
        if let Some(paths) = git::revert::uncommitted_paths(&self.tree, BRANCH_PLAN) {
            self.made.notes.push(format!("uncommitted changes are left in its work tree: {paths}"));
        }
    }

    /// The target branch of the pull request, or the reason for none, if it needs to be said.
    fn pull_request_wanted(&self) -> Result<String, Option<String>> {
        let noun = self.noun();
        let no = |why: &str| Err(Some(why.replace("pull request", noun)));
        if self.commits() == Some(0) {
            return no("no commit ahead of its base: nothing to push, no pull request");
        }
        if self.is_protected {
            return no("not pushed, no pull request: the branch is protected (git.protected_branches)");
        }
        if !self.auto_push {
            // With both disabled, the user knows the reason.
            return if self.auto_pr {
                no("not pushed, no pull request: git.auto_push is off")
            } else {
                Err(None)
            };
        }
        if self.remote.is_none() {
            return no("not pushed, no pull request: the repository has no remote");
        }
        if !self.auto_pr {
            return Err(None);
        }
        self.base_branch
            .clone()
            .ok_or_else(|| Some(format!("no {noun}: its base is no branch that it could be merged into")))
    }
}

fn body(facts: &Facts, tasks: &[Task], proof: Option<&Evidence>) -> String {
    let mut body = format!("{}\n", facts.goal);
    if !tasks.is_empty() {
        body.push('\n');
    }
    for Task { text, ticked, .. } in tasks {
        let tick = if *ticked { 'x' } else { ' ' };
        let _ = writeln!(body, "- [{tick}] {text}"); // writing to a String cannot fail
    }
    if let Some(proof) = proof {
        let _ = write!(body, "\n## Proof\n\n{proof}\n");
    }
    body
}
