//! The pull request for what has landed, and is on a branch beside its trunk: opened once, with a line for each issue that it closes.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::team::Team;
use crate::engine::fact::Fact;
use crate::git::forge::Request;
use crate::git::identity::CommitIdentity;
use crate::git::landing::Trunk;
use crate::git::publish::{ANSWER_ROOM, Opened, ROOM, add_lines, answered, open};
use crate::git::range::{commits_between, is_ancestor};
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
    /// The tip when it was last looked at.
    tip: Option<String>,
    /// What was told last.
    told: Option<String>,
}

/// What became of it when a tip was pushed.
#[derive(Default)]
pub(super) struct Kept {
    /// Its address, if it was opened or found now.
    pub(super) address: Option<String>,
    /// What could not be done, and why.
    pub(super) notice: Option<String>,
}

impl Kept {
    /// Tells it.
    pub(super) fn tell(self, team: &Team, remote: &Remote) {
        if let Some(address) = self.address {
            let message = format!("{}: {address}", remote.home.forge().row().noun);
            team.tell(Fact::Published { message: message.into() });
        }
        if let Some(notice) = self.notice {
            team.tell(Fact::Notice { message: notice.into() });
        }
    }
}

/// What lands where.
pub(super) struct Place<'a> {
    /// A work tree of the repository.
    pub(super) root: &'a Path,
    pub(super) remote: &'a Remote,
    pub(super) trunk: &'a Trunk,
    pub(super) identity: &'a CommitIdentity,
    /// The time limit of each call.
    pub(super) limit: Duration,
}

impl LandedRequest {
    /// That of the run with this mark.
    pub(crate) fn new(mark: &str) -> Self {
        Self { mark: mark.to_owned(), is_open: None, lines: BTreeSet::new(), tip: None, told: None }
    }

    /// Opens it, once in a run, and again after it was merged or closed: one that is open already is the one. Adds a line for each issue
    /// whose task has landed and is not in the trunk of the remote.
    pub(super) fn keep(
        &mut self,
        place: &Place<'_>,
        (store, tip): (&dyn Store, &str),
        cancelled: &AtomicBool,
    ) -> Kept {
        if self.is_open == Some(false) {
            return Kept::default();
        }
        let mut is_fetched = false;
        let mut lines = self.missing(place, (store, tip), &mut is_fetched, cancelled);
        if self.is_open.is_some() {
            if lines.is_empty() && self.tip.as_deref() == Some(tip) {
                return Kept::default();
            }
            match self.add(place, &lines, cancelled) {
                Ok(true) => return self.has(lines, tip, None),
                Ok(false) => {}
                Err(notice) => return Kept { address: None, notice },
            }
            self.lines.clear();
            lines = self.missing(place, (store, tip), &mut is_fetched, cancelled);
        }
        let mut run =
            |launch: &_| Ok::<_, Infallible>(run_alone(launch, (place.limit, ANSWER_ROOM), cancelled));
        let (home, name) = (&place.remote.home, place.trunk.name());
        let title = format!("What has landed on {name}");
        let body = if lines.is_empty() { BODY.to_owned() } else { format!("{BODY}\n{}\n", lines.join("\n")) };
        let request = Request { base: name, head: &beside(name), title: &title, body: &body };
        let Ok(opened) = open(home, &request, (place.root, &self.mark), &mut run);
        self.is_open = Some(opened.is_ok());
        let Opened { address, is_new } = match opened {
            Ok(opened) => opened,
            Err(failure) => {
                let noun = home.forge().row().noun;
                let notice = failure.why().map(|why| format!("no {noun}: {why}"));
                return Kept { address: None, notice };
            }
        };
        if !is_new
            && !lines.is_empty()
            && let Err(notice) = self.add(place, &lines, cancelled)
        {
            return Kept { address: Some(address), notice };
        }
        self.has(lines, tip, Some(address))
    }

    /// It has these lines, and what is up to this tip.
    fn has(&mut self, lines: Vec<String>, tip: &str, address: Option<String>) -> Kept {
        self.lines.extend(lines);
        self.tip = Some(tip.to_owned());
        Kept { address, notice: None }
    }

    /// Adds lines to it; returns whether it is open, or what is to be told.
    fn add(
        &mut self,
        place: &Place<'_>,
        lines: &[String],
        cancelled: &AtomicBool,
    ) -> Result<bool, Option<String>> {
        let mut run =
            |launch: &_| Ok::<_, Infallible>(run_alone(launch, (place.limit, ANSWER_ROOM), cancelled));
        let (home, branch) = (&place.remote.home, beside(place.trunk.name()));
        let Ok(added) = add_lines(home, (&branch, lines), (place.root, &self.mark), &mut run);
        added.map_err(|failure| {
            let (noun, all) = (home.forge().row().noun, lines.join(", "));
            let why = failure.why()?;
            // What is tried again fails for one reason, as a rule.
            let notice = match lines {
                [] => format!("the {noun} cannot be looked at: {why}"),
                _ => format!("the {noun} lacks '{all}', write it there: {why}"),
            };
            (self.told.as_ref() != Some(&notice)).then(|| self.told.insert(notice).clone())
        })
    }

    /// The lines that close the issues of tasks which the tip has and the trunk of the remote lacks, without those that are there. The
    /// remote is asked for its trunk unless that was fetched a moment ago.
    fn missing(
        &self,
        place: &Place<'_>,
        (store, tip): (&dyn Store, &str),
        is_fetched: &mut bool,
        cancelled: &AtomicBool,
    ) -> Vec<String> {
        // Without the graph there are no lines; what is wrong with it is reported where tasks are booked.
        let tasks = store.imported().unwrap_or_default();
        let done = tasks.into_iter().filter(|task| task.status == Status::Done);
        let line = |task: IssueTask| Some((place.remote.home.closes(&task.address?)?, task.commit?));
        let mut landed: Vec<_> = done.filter_map(line).collect();
        landed.retain(|(line, _)| !self.lines.contains(line));
        let retain_open = |landed: &mut Vec<(String, String)>| {
            let since = place.trunk.their_commit();
            let since = since.and_then(|theirs| commits_between(place.root, &theirs, tip));
            landed.retain(|(_, commit)| match &since {
                Some(since) => since.contains(commit),
                None => is_ancestor(place.root, commit, tip),
            });
        };
        // Most often this is all: what the trunk had when it was seen last, it has.
        retain_open(&mut landed);
        let lines = |landed: Vec<(String, String)>| landed.into_iter().map(|(line, _)| line).collect();
        if landed.is_empty() || std::mem::replace(is_fetched, true) {
            return lines(landed);
        }
        let refs = [format!("+refs/heads/{}:{}", place.trunk.name(), place.trunk.theirs())];
        let launch = fetch(place.root, place.remote, &refs, place.identity);
        // If the remote does not answer, the trunk is the one that was seen last.
        let _ = answered(run_alone(&launch, (place.limit, ROOM), cancelled));
        retain_open(&mut landed);
        lines(landed)
    }
}

/// The branch for what has landed on a trunk that cannot be pushed.
pub(super) fn beside(trunk: &str) -> String {
    format!("ralph/landed/{trunk}")
}
