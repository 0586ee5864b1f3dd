//! Brings what has landed to the remote: in a thread of its own, so that no landing waits for a network.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::team::Team;
use crate::engine::fact::Fact;
use crate::git::forge::{Forge, Request};
use crate::git::identity::CommitIdentity;
use crate::git::landing::Trunk;
use crate::git::publish::{PULL_REQUEST_LIMIT, PUSH_LIMIT, ROOM, Unpublished, open, pushed};
use crate::git::remote::{Remote, push};
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
    /// Whether a pull request is opened for that branch.
    pub(crate) opens_request: bool,
    /// The run mark of the run.
    pub(crate) mark: String,
}

impl Pusher {
    /// Pushes whatever lands, until nothing lands any more.
    pub(crate) fn run(mut self) {
        if let Some(why) = &self.aside {
            self.tell_aside(why);
        }
        while self.team.next_push() {
            if let Some(commit) = self.trunk.unpushed() {
                self.publish(&commit);
            }
        }
    }

    /// Pushes a tip to the trunk there, or beside it where that is refused. What fails is tried again after the next landing, and
    /// by the next run.
    fn publish(&mut self, commit: &str) {
        let name = self.trunk.name().to_owned();
        if self.aside.is_none() {
            match self.push(commit, &name) {
                Err(Unpublished::Refused(why) | Unpublished::Behind(why)) => {
                    let why = format!("{} does not take it: {why}", self.remote.name);
                    self.tell_aside(&why);
                    self.aside = Some(why);
                }
                done => return self.settle(done, commit),
            }
        }
        let branch = beside(&name);
        let done = self.push(commit, &branch);
        if done.is_ok() && self.opens_request {
            self.request(&name, &branch);
        }
        self.settle(done, commit);
    }

    fn push(&self, commit: &str, branch: &str) -> Result<(), Unpublished> {
        let launch = push(&self.root, &self.remote, (commit, branch), &self.identity);
        pushed(run_alone(&launch, (PUSH_LIMIT, ROOM), self.team.hurries()))?;
        let message = format!("pushed to {}/{branch}", self.remote.name);
        self.team.tell(Fact::Published { message: message.into() });
        Ok(())
    }

    /// Opens the pull request, once in a run: one that is open already is the one.
    fn request(&mut self, name: &str, branch: &str) {
        let (forge, noun) = (self.remote.forge, self.remote.forge.row().noun);
        match request((&self.root, forge), (name, branch), &self.mark, self.team.hurries()) {
            Ok(address) => {
                let message = format!("{noun}: {address}");
                self.team.tell(Fact::Published { message: message.into() });
            }
            Err(failure) => self.notice(failure.why().map(|why| format!("no {noun}: {why}"))),
        }
        self.opens_request = false;
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

/// Opens a pull request for what has landed on a trunk and is on a branch beside it, unless one is open; returns its address.
pub(super) fn request(
    (root, forge): (&Path, Forge),
    (name, branch): (&str, &str),
    mark: &str,
    cancelled: &AtomicBool,
) -> Result<String, Unpublished> {
    let request = Request {
        base: name,
        head: branch,
        title: &format!("What has landed on {name}"),
        body: "Finished tasks, each landed after the gate. What lands later is pushed to this branch, too.\n",
    };
    let Ok(opened) = open(forge, &request, (root, mark), &mut |launch| {
        Ok::<_, Infallible>(run_alone(launch, (PULL_REQUEST_LIMIT, ROOM), cancelled))
    });
    opened
}

/// The branch for what has landed on a trunk that cannot be pushed.
pub(super) fn beside(trunk: &str) -> String {
    format!("ralph/landed/{trunk}")
}
