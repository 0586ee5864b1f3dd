//! Brings what has landed to the remote: in a thread of its own, so that no landing waits for a network.

use std::path::PathBuf;
use std::sync::Arc;

use super::request::{LandedRequest, Place, beside};
use super::team::Team;
use crate::engine::fact::Fact;
use crate::git::identity::CommitIdentity;
use crate::git::landing::Trunk;
use crate::git::publish::{PULL_REQUEST_LIMIT, PUSH_LIMIT, ROOM, Unpublished, pushed};
use crate::git::remote::{Remote, push};
use crate::graph::Store;
use crate::side_command::run_alone;

/// What pushes the landed tip of one trunk.
pub(crate) struct Pusher {
    pub(crate) team: Arc<Team>,
    pub(crate) trunk: Trunk,
    /// A work tree of the repository.
    pub(crate) root: PathBuf,
    pub(crate) remote: Remote,
    pub(crate) identity: CommitIdentity,
    /// Why the trunk itself is not pushed, but a branch beside it with a pull request; `None` until the remote refuses it.
    pub(crate) aside: Option<String>,
    /// The pull request for that branch; `None` if none is wanted.
    pub(crate) request: Option<LandedRequest>,
    /// The graph, which says which issues that closes.
    pub(crate) graph: Box<dyn Store + Send>,
}

impl Pusher {
    /// Pushes whatever lands, until nothing lands any more.
    pub(crate) fn run(mut self) {
        if let Some(why) = &self.aside {
            self.tell_aside(why);
        }
        // A tip may be pushed before its tasks are booked, and a line may not be taken at first.
        let mut last = None;
        while self.team.next_push() {
            if let Some(commit) = self.trunk.unpushed() {
                last = self.publish(&commit).then_some(commit);
            } else if let Some(tip) = &last {
                self.keep_request(tip);
            }
        }
        if let Some(tip) = &last {
            self.keep_request(tip);
        }
    }

    /// Pushes a tip to the trunk there, or beside it where that is refused. What fails is tried again after the next landing, and
    /// by the next run. Returns whether it is beside the trunk now.
    fn publish(&mut self, commit: &str) -> bool {
        let name = self.trunk.name().to_owned();
        if self.aside.is_none() {
            match self.push(commit, &name) {
                Err(Unpublished::Refused(why) | Unpublished::Behind(why)) => {
                    let why = format!("{} does not take it: {why}", self.remote.name);
                    self.tell_aside(&why);
                    self.aside = Some(why);
                }
                done => {
                    self.settle(done, commit);
                    return false;
                }
            }
        }
        let done = self.push(commit, &beside(&name));
        let is_there = done.is_ok();
        if is_there {
            self.keep_request(commit);
        }
        self.settle(done, commit);
        is_there
    }

    fn push(&self, commit: &str, branch: &str) -> Result<(), Unpublished> {
        let launch = push(&self.root, &self.remote, (commit, branch), &self.identity);
        pushed(run_alone(&launch, (PUSH_LIMIT, ROOM), self.team.hurries()))?;
        let message = format!("pushed to {}/{branch}", self.remote.name);
        self.team.tell(Fact::Published { message: message.into() });
        Ok(())
    }

    /// Opens the pull request for this tip, or adds the issues that it closes.
    fn keep_request(&mut self, tip: &str) {
        let Self { root, remote, trunk, identity, request: Some(request), .. } = self else { return };
        let place = Place { root, remote, trunk, identity, limit: PULL_REQUEST_LIMIT };
        let kept = request.keep(&place, (&*self.graph, tip), self.team.hurries());
        kept.tell(&self.team, &self.remote);
    }

    fn settle(&self, done: Result<(), Unpublished>, commit: &str) {
        match done {
            Ok(()) => self.trunk.is_pushed(commit),
            Err(failure) => self.notice(failure.why().map(|why| {
                format!(
                    "the push failed: {why}; it is tried again after the next landing, and by the next run"
                )
            })),
        }
    }

    fn tell_aside(&self, why: &str) {
        let name = self.trunk.name();
        self.notice(Some(format!("{name} itself is not pushed, but {}: {why}", beside(name))));
    }

    fn notice(&self, message: Option<String>) {
        if let Some(message) = message {
            self.team.tell(Fact::Notice { message: message.into() });
        }
    }
}
