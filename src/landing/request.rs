//! The pull request for what has landed, and is on a branch beside its trunk: opened once, with a line for each issue that it closes.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use crate::git::forge::Request;
use crate::git::identity::CommitIdentity;
use crate::git::landing::Trunk;
use crate::git::publish::{
    ANSWER_ROOM, Opened, PULL_REQUEST_LIMIT, PUSH_LIMIT, ROOM, add_lines, answered, open,
};
use crate::git::range::is_ancestor;
use crate::git::remote::{Remote, fetch};
use crate::graph::{IssueTask, Status, Store};
use crate::side_command::run_alone;

/// What its description begins with.
const BODY: &str =
    "Finished tasks, each landed after the gate. What lands later is pushed to this branch, too.\n";

/// The pull request of a run.
pub(crate) struct LandedRequest {
    /// The run mark of the run.
    mark: String,
    /// Whether it was opened or found; `None` before that was tried, which is done once: without a login each landing would fail.
    is_open: Option<bool>,
    /// The lines about issues that it has.
    lines: BTreeSet<String>,
    /// The commits of tasks that the trunk of the remote has.
    merged: BTreeSet<String>,
}

/// What became of it when a tip was pushed.
#[derive(Default)]
pub(super) struct Kept {
    /// Its address, if it was opened or found now.
    pub(super) address: Option<String>,
    /// What could not be done, and why.
    pub(super) notice: Option<String>,
}

/// What lands where.
pub(super) struct Place<'a> {
    /// A work tree of the repository.
    pub(super) root: &'a Path,
    pub(super) remote: &'a Remote,
    pub(super) trunk: &'a Trunk,
    pub(super) identity: &'a CommitIdentity,
}

impl LandedRequest {
    /// That of the run with this mark.
    pub(crate) fn new(mark: &str) -> Self {
        Self { mark: mark.to_owned(), is_open: None, lines: BTreeSet::new(), merged: BTreeSet::new() }
    }

    /// Opens it, once in a run: one that is open already is the one. Adds a line for each issue whose task has landed and is not in the
    /// trunk of the remote.
    pub(super) fn keep(
        &mut self,
        place: &Place<'_>,
        (store, tip): (&dyn Store, &str),
        cancelled: &AtomicBool,
    ) -> Kept {
        if self.is_open == Some(false) {
            return Kept::default();
        }
        let lines = self.missing(place, (store, tip), cancelled);
        let branch = beside(place.trunk.name());
        let mut run =
            |launch: &_| Ok::<_, Infallible>(run_alone(launch, (PULL_REQUEST_LIMIT, ANSWER_ROOM), cancelled));
        let (home, at) = (&place.remote.home, (place.root, self.mark.as_str()));
        let noun = home.forge().row().noun;
        let mut kept = Kept::default();
        let mut has_lines = lines.is_empty();
        if self.is_open.is_none() {
            let name = place.trunk.name();
            let title = format!("What has landed on {name}");
            let body = if has_lines { BODY.to_owned() } else { format!("{BODY}\n{}\n", lines.join("\n")) };
            let request = Request { base: name, head: &branch, title: &title, body: &body };
            let Ok(opened) = open(home, &request, at, &mut run);
            self.is_open = Some(opened.is_ok());
            match opened {
                Ok(Opened { address, is_new }) => {
                    kept.address = Some(address);
                    has_lines |= is_new;
                }
                Err(failure) => {
                    kept.notice = failure.why().map(|why| format!("no {noun}: {why}"));
                    return kept;
                }
            }
        }
        if !has_lines {
            let Ok(added) = add_lines(home, (&branch, &lines), at, &mut run);
            if let Err(failure) = added {
                let all = lines.join(", ");
                kept.notice =
                    failure.why().map(|why| format!("the {noun} lacks '{all}', write it there: {why}"));
                return kept;
            }
        }
        self.lines.extend(lines);
        kept
    }

    /// The lines that close the issues of tasks which the tip has and the trunk of the remote lacks, without those that are there.
    fn missing(
        &mut self,
        place: &Place<'_>,
        (store, tip): (&dyn Store, &str),
        cancelled: &AtomicBool,
    ) -> Vec<String> {
        // Without the graph there are no lines; what is wrong with it is reported where tasks are booked.
        let tasks = store.imported().unwrap_or_default();
        let done = tasks.into_iter().filter(|task| task.status == Status::Done);
        let line = |task: IssueTask| Some((place.remote.home.closes(&task.address?)?, task.commit?));
        let is_open =
            |(line, commit): &(String, String)| !self.lines.contains(line) && !self.merged.contains(commit);
        let landed: Vec<_> = { done.filter_map(line) }
            .filter(is_open)
            .filter(|(_, commit)| is_ancestor(place.root, commit, tip))
            .collect();
        if landed.is_empty() {
            return Vec::new();
        }
        let refs = [format!("+refs/heads/{}:{}", place.trunk.name(), place.trunk.theirs())];
        let launch = fetch(place.root, place.remote, &refs, place.identity);
        // If the remote does not answer, the trunk is the one that was seen last.
        let _ = answered(run_alone(&launch, (PUSH_LIMIT, ROOM), cancelled));
        let theirs = place.trunk.their_commit();
        let mut lines = Vec::new();
        for (line, commit) in landed {
            if theirs.as_ref().is_some_and(|theirs| is_ancestor(place.root, &commit, theirs)) {
                self.merged.insert(commit);
            } else {
                lines.push(line);
            }
        }
        lines
    }
}

/// The branch for what has landed on a trunk that cannot be pushed.
pub(super) fn beside(trunk: &str) -> String {
    format!("ralph/landed/{trunk}")
}
