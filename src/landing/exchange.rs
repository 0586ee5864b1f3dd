//! What the clones of one repository give each other through its remote: the commits of claims, and the landed tip.
//!
//! The remote has the truth about the tip: it moves by pushes that are no force, so that two landers at once are harmless (rule 5).
//! Each claim has refs of its own, which are only added to (rule 4).

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;
use std::time::Duration;

use super::request::{Kept, LandedRequest, Place, beside};
use crate::engine::outcome::{End, Outcome};
use crate::git::GitError;
use crate::git::identity::CommitIdentity;
use crate::git::landing::{Trunk, has_commit, replayed_ref, set_replayed};
use crate::git::publish::{PUSH_LIMIT, ROOM, Unpublished, answered, pushed};
use crate::git::range::is_ancestor;
use crate::git::remote::{Remote, fetch, list, push_refs};
use crate::graph::{Patience, Store};
use crate::process::launch::Launch;
use crate::side_command::run_alone;
use crate::text::jitter;

/// Refs of ours that are no branches, and as branches, for remotes that take nothing else.
const OURS: &str = "refs/ralph/";
const AS_BRANCHES: &str = "refs/heads/ralph/";
/// How often the commits of one claim may go apart, as by `git commit --amend`.
const APART: usize = 100;

/// How long the remote may take to tell its refs, and each call about the pull request: the lander waits for it.
const LIST_LIMIT: Duration = Duration::from_secs(30);
/// How often it is looked whether another loop still moves the tip here.
const TURN: Duration = Duration::from_millis(20);
/// How often a push is tried that another one is in the way of, and the pause between, before that counts as a remote that is away.
const LOCKED: usize = 10;
const PAUSE: Duration = Duration::from_millis(300);
/// How often refs are removed that another push is in the way of.
const REMOVALS: usize = 3;

/// The remote, as the runs on many machines use it.
pub(crate) struct Exchange {
    /// A work tree of the repository.
    pub(crate) root: PathBuf,
    pub(crate) remote: Remote,
    pub(crate) identity: CommitIdentity,
    pub(crate) trunk: Trunk,
    /// Whether the trunk itself takes no pushes, as far as the settings say.
    pub(crate) is_protected: bool,
    /// How long a remote that is away is waited for.
    pub(crate) patience: Arc<Patience>,
    /// The pull request for a tip beside its trunk; `None`: that is not wanted.
    pub(crate) request: Option<Mutex<LandedRequest>>,
    pub(crate) known: Mutex<Known>,
    /// Held while the tip here is moved.
    pub(crate) turn: Mutex<()>,
}

/// What was learned about the remote.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// The tip is a branch beside the trunk.
    is_aside: bool,
    /// Why, if that has come up in this run.
    refused: Option<String>,
    /// The commit of that branch.
    beside: Option<String>,
    /// The trunk there then.
    theirs: Option<String>,
    /// It takes branches only.
    as_branches: bool,
    /// The ref of a claim that its commits were pushed to last, and the last of them.
    claims: BTreeMap<String, (usize, String)>,
    /// It does not let refs be removed, which was told.
    keeps_refs: bool,
    /// Claims that have landed, and whose refs are still to be removed.
    landed: BTreeSet<String>,
}

/// What became of a push of the tip.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Moved {
    /// It is there.
    There,
    /// Another lander was faster.
    NotNow,
}

/// Why something of the remote is not here, or not there.
pub(crate) enum Failed {
    /// The user wants to leave now.
    Cut,
    /// This ends the run, and a person has to see to it before another one.
    Refused(String),
    /// This ends the run.
    Ends(End),
}

impl Failed {
    /// The end of a run for it; `None`: the user wants to leave.
    pub(crate) fn end(self) -> Option<End> {
        match self {
            Self::Cut => None,
            Self::Refused(why) => Some(End::because(Outcome::StoreRefused, why)),
            Self::Ends(end) => Some(end),
        }
    }
}

impl From<GitError> for Failed {
    fn from(error: GitError) -> Self {
        Self::Ends(error.into())
    }
}

type Tried<T> = Result<T, Failed>;

impl Exchange {
    /// Checks that the remote can be reached and takes commits, before any agent works.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub(crate) fn check(&self, cancelled: &AtomicBool) -> Result<(), Unpublished> {
        // Nothing can be below a branch of that name.
        let in_the_way = ["refs/heads/ralph", "refs/heads/ralph/landed"].map(str::to_owned);
        let listed = self.listed(&in_the_way, cancelled)?;
        if let Some((_, branch)) = listed.iter().find(|(_, at)| self.is_protected && in_the_way.contains(at))
        {
            let (branch, beside) = (branch.trim_start_matches("refs/heads/"), beside(self.trunk.name()));
            let why =
                format!("it has a branch {branch}, so that {beside} cannot be made: give that another name");
            return Err(Unpublished::Refused(why));
        }
        let Some(commit) = self.trunk.commit() else { return Ok(()) };
        // With --dry-run the remote would not be asked whether it takes that.
        let trial = format!("{OURS}try/{commit}");
        let mut place = self.place(&trial);
        let mut taken = self.push(&format!("{commit}:{place}"), cancelled);
        if matches!(&taken, Err(Unpublished::Refused(why)) if !is_locked(why)) {
            place = as_branch(&trial);
            taken = self.push(&format!("{commit}:{place}"), cancelled);
            self.known().as_branches = taken.is_ok();
        }
        match taken {
            // Another run tries the same.
            Err(Unpublished::Refused(why)) if is_locked(&why) => Ok(()),
            Err(failure) => Err(failure),
            // Where nothing can be removed, it stays, and is the same one for all runs.
            Ok(()) => match self.push(&format!(":{place}"), cancelled) {
                Err(Unpublished::Cut) => Err(Unpublished::Cut),
                _ => Ok(()),
            },
        }
    }

    /// Brings the landed tip of the remote here. `anew`: it is accepted although it was rewritten.
    pub(crate) fn bring_tip(&self, anew: bool, cancelled: &AtomicBool) -> Tried<()> {
        // The loops of a run do so one after the other: each finds what the last one has brought.
        let _turn = self.take_turn(cancelled)?;
        let name = self.trunk.name();
        let places = [format!("refs/heads/{name}"), format!("refs/heads/{}", beside(name))];
        let listed = self.patiently(cancelled, || self.listed(&places, cancelled))?;
        let missing = { listed.iter() }.filter(|(commit, _)| !has_commit(&self.root, commit));
        let missing: Vec<String> = missing.map(|(_, at)| at.clone()).collect();
        if !missing.is_empty() {
            self.get(&missing, cancelled)?;
        }
        let at = |place: &String| listed.iter().find(|(_, at)| at == place).map(|(commit, _)| commit.clone());
        let [there, aside] = places.each_ref().map(at);
        {
            let mut known = self.known();
            known.is_aside |= aside.is_some() || self.is_protected;
            known.beside.clone_from(&aside);
            known.theirs = there.clone().filter(|_| aside.is_some());
        }
        let Some(tip) = aside.or(there) else {
            if let Some(seen) = self.trunk.last_seen().filter(|_| !anew) {
                return Err(Failed::Refused(format!(
                    "{name} is gone from {}, which had {seen:.10}: run again with --onto {name} to push it anew",
                    self.remote.name
                )));
            }
            // Nothing is there yet: the first one brings what it has.
            let Some(tip) = self.trunk.tip() else { return Ok(()) };
            return self.push_tip(("", &tip), &[], cancelled).map(drop);
        };
        self.trunk.take_over(&tip, anew).map_err(|error| match error {
            GitError::InTheWay { .. } => Failed::Refused(error.to_string()),
            error => error.into(),
        })
    }

    /// Moves the tip on the remote from `old` to `new`, which contains it. `again`: the refs of claims whose commits were made again,
    /// with the last of the new ones; they are noted there first.
    pub(crate) fn push_tip(
        &self,
        (old, new): (&str, &str),
        again: &[(String, String)],
        cancelled: &AtomicBool,
    ) -> Tried<Moved> {
        for (reference, commit) in again {
            // Each attempt has a note of its own: another lander may try the same, and the tip says which one has landed.
            let place = self.place(&format!("{}.{commit}", replayed_ref(reference)));
            self.patiently(cancelled, || self.push(&format!("+{commit}:{place}"), cancelled))?;
        }
        let name = self.trunk.name().to_owned();
        loop {
            let is_aside = self.known().is_aside;
            let branch = if is_aside { beside(&name) } else { name.clone() };
            let place = format!("refs/heads/{branch}");
            // Not only no step back: nothing else may have been there since the gate began, as a branch that was rewound.
            let before =
                if is_aside { self.known().beside.clone().unwrap_or_default() } else { old.to_owned() };
            let lease = format!("--force-with-lease={place}:{before}");
            match self.offered(new, &place, &[lease], cancelled)? {
                Ok(()) => {
                    self.trunk.is_there(new)?;
                    if is_aside {
                        self.known().beside = Some(new.to_owned());
                    }
                    return Ok(Moved::There);
                }
                Err(None) => return Ok(Moved::NotNow),
                Err(Some(why)) => {
                    let places = [place.clone()];
                    let listed = self.patiently(cancelled, || self.listed(&places, cancelled))?;
                    if listed.first().is_some_and(|(there, _)| there != old) {
                        return Ok(Moved::NotNow);
                    }
                    if is_aside {
                        let remote = &self.remote.name;
                        return Err(Failed::Refused(format!(
                            "{remote} takes neither {name} nor {branch}: {why}"
                        )));
                    }
                    let mut known = self.known();
                    (known.is_aside, known.refused) = (true, Some(why));
                }
            }
        }
    }

    /// Brings what a claim has made to the remote, up to this commit, and returns when it is there.
    pub(crate) fn push_claim(&self, reference: &str, commit: &str, cancelled: &AtomicBool) -> Tried<()> {
        let (mut number, last) = self.known().claims.get(reference).cloned().unwrap_or((1, String::new()));
        if last == commit {
            return Ok(());
        }
        while number < APART {
            let place = numbered(&self.place(reference), number);
            match self.offered(commit, &place, &[], cancelled)? {
                Ok(()) => {
                    self.known().claims.insert(reference.to_owned(), (number, commit.to_owned()));
                    return Ok(());
                }
                // What was there was made anew: it stays as it is.
                Err(None) => number += 1,
                Err(Some(_)) if !self.known().as_branches => self.known().as_branches = true,
                Err(Some(why)) => {
                    return Err(Failed::Refused(format!(
                        "{} does not take {place}: {why}",
                        self.remote.name
                    )));
                }
            }
        }
        let why = format!("the commits for {reference} were made anew too often");
        Err(Failed::Ends(End::because(Outcome::GitFailed, why)))
    }

    /// Brings the commits of a claim here, up to this one, and as what they have landed; returns whether they are here.
    pub(crate) fn bring(&self, reference: &str, commit: &str, cancelled: &AtomicBool) -> Tried<bool> {
        let both = |reference: &str| [reference.to_owned(), as_branch(reference)];
        let [claims, notes] = [both(reference), both(&replayed_ref(reference))];
        let asked: Vec<String> = claims.iter().chain(&notes).map(|at| format!("{at}*")).collect();
        let listed = self.patiently(cancelled, || self.listed(&asked, cancelled))?;
        let is_note = |at: &str| notes.iter().any(|note| at.starts_with(note));
        let tip = self.trunk.tip().unwrap_or_default();
        let has_landed =
            |commit: &str| has_commit(&self.root, commit) && is_ancestor(&self.root, commit, &tip);
        if let Some((landed, _)) = listed.iter().find(|(commit, at)| is_note(at) && has_landed(commit)) {
            set_replayed(&self.root, reference, landed)?;
        }
        if has_commit(&self.root, commit) {
            return Ok(true);
        }
        let its = || listed.iter().filter(|(_, at)| !is_note(at));
        let wanted: Vec<String> = match its().find(|(there, _)| there == commit) {
            Some((_, at)) => vec![format!("{at}:{reference}")],
            // More was brought there than was booked: it is inside.
            None => its().map(|(_, at)| at.clone()).collect(),
        };
        if !wanted.is_empty() {
            self.get(&wanted, cancelled)?;
        }
        Ok(has_commit(&self.root, commit))
    }

    /// The commits that the remote has for claims, with their refs.
    pub(crate) fn claims(&self, cancelled: &AtomicBool) -> Tried<Vec<(String, String)>> {
        let all = [OURS, AS_BRANCHES].map(|ours| format!("{ours}tasks/*"));
        self.patiently(cancelled, || self.listed(&all, cancelled))
    }

    /// Removes the refs of these claims, which have landed, from the remote, and those of their tasks' other claims whose commits the
    /// tip has. What fails, as another push is in the way, is tried again with the next ones, and harms nothing. Returns why the remote
    /// keeps them, once, if it does.
    pub(crate) fn forget(&self, references: &[String], tip: &str, cancelled: &AtomicBool) -> Option<String> {
        let references = {
            let mut known = self.known();
            known.claims.retain(|reference, _| !references.contains(reference));
            known.landed.extend(references.iter().cloned());
            known.landed.clone()
        };
        for _ in 0..REMOVALS {
            match self.removed(&references, tip, cancelled) {
                Ok(()) => {
                    self.known().landed.retain(|one| !references.contains(one));
                    break;
                }
                Err(Unpublished::Refused(why)) if !is_locked(&why) => {
                    let is_news = !std::mem::replace(&mut self.known().keeps_refs, true);
                    return is_news.then(|| {
                        let name = &self.remote.name;
                        format!(
                            "{name} keeps the refs of what has landed, as it lets nothing be removed: {why}"
                        )
                    });
                }
                Err(_) => {}
            }
        }
        None
    }

    fn removed(
        &self,
        references: &BTreeSet<String>,
        tip: &str,
        cancelled: &AtomicBool,
    ) -> Result<(), Unpublished> {
        let of_task = |reference: &str| {
            reference.rsplit_once('/').map_or(String::new(), |(task, _)| format!("{task}/*"))
        };
        let asked: Vec<String> = { references.iter() }
            .flat_map(|reference| [of_task(reference), of_task(&as_branch(reference))])
            .collect();
        let is_of =
            |at: &str| references.iter().any(|one| at.starts_with(one) || at.starts_with(&as_branch(one)));
        let has_landed =
            |commit: &str| has_commit(&self.root, commit) && is_ancestor(&self.root, commit, tip);
        let listed = self.listed(&asked, cancelled)?;
        let gone = listed.into_iter().filter(|(commit, at)| is_of(at) || has_landed(commit));
        // What is brought there meanwhile stays.
        let (leases, gone): (Vec<_>, Vec<_>) =
            gone.map(|(commit, at)| (format!("--force-with-lease={at}:{commit}"), format!(":{at}"))).unzip();
        if gone.is_empty() {
            return Ok(());
        }
        let launch = push_refs(&self.root, &self.remote, &gone, &self.identity);
        run_push(&with_options(launch, leases), cancelled)
    }

    /// Moves the tip here, where nothing else does so meanwhile.
    pub(crate) fn in_turn<T>(&self, cancelled: &AtomicBool, act: impl FnOnce() -> T) -> Tried<T> {
        let _turn = self.take_turn(cancelled)?;
        Ok(act())
    }

    /// Waits for its turn: the one that has it may wait for a remote that is away.
    fn take_turn(&self, cancelled: &AtomicBool) -> Tried<MutexGuard<'_, ()>> {
        loop {
            match self.turn.try_lock() {
                Ok(turn) => return Ok(turn),
                Err(TryLockError::Poisoned(turn)) => return Ok(turn.into_inner()),
                Err(TryLockError::WouldBlock) if cancelled.load(Ordering::Relaxed) => {
                    return Err(Failed::Cut);
                }
                Err(TryLockError::WouldBlock) => thread::sleep(TURN),
            }
        }
    }

    /// Why the tip is a branch beside the trunk; `None`: it is the trunk.
    pub(crate) fn aside(&self) -> Option<String> {
        let (name, remote) = (self.trunk.name(), &self.remote.name);
        let known = self.known();
        known.is_aside.then(|| {
            let why = match &known.refused {
                Some(why) => format!("{remote} does not take it ({why}), and so it is from here on"),
                None if self.is_protected => "it is protected (git.protected_branches)".to_owned(),
                None => format!("that is what {remote} has"),
            };
            format!("{name} itself is not pushed, but {}: {why}", beside(name))
        })
    }

    /// The trunk on the remote, where the tip is a branch beside it and lacks commits of that.
    pub(crate) fn theirs(&self, tip: &str) -> Option<String> {
        self.known().theirs.clone().filter(|theirs| !is_ancestor(&self.root, theirs, tip))
    }

    /// Opens the pull request for a tip beside its trunk, or adds the issues that it closes, when what it brings is booked.
    pub(super) fn keep_request(&self, store: &dyn Store, tip: &str, cancelled: &AtomicBool) -> Kept {
        let Some(request) = self.request.as_ref().filter(|_| self.known().is_aside) else {
            return Kept::default();
        };
        let Self { root, remote, trunk, identity, .. } = self;
        let place = Place { root, remote, trunk, identity, limit: LIST_LIMIT };
        let mut request = request.lock().unwrap_or_else(PoisonError::into_inner);
        request.keep(&place, (store, tip), cancelled)
    }

    /// Where a ref of ours is on the remote.
    fn place(&self, reference: &str) -> String {
        if self.known().as_branches { as_branch(reference) } else { reference.to_owned() }
    }

    /// Pushes a commit to a place; the inner error: it is not taken there, for this reason, or because the place has other commits.
    fn offered(
        &self,
        commit: &str,
        place: &str,
        options: &[String],
        cancelled: &AtomicBool,
    ) -> Tried<Result<(), Option<String>>> {
        let mut tries = 0;
        self.patiently(cancelled, || {
            loop {
                let launch =
                    push_refs(&self.root, &self.remote, &[format!("{commit}:{place}")], &self.identity);
                return match run_push(&with_options(launch, options.iter().cloned()), cancelled) {
                    Err(Unpublished::Behind(_)) => Ok(Err(None)),
                    // Another push is in its way for a moment, or for longer.
                    Err(Unpublished::Refused(why)) if is_locked(&why) => {
                        tries += 1;
                        if tries < LOCKED {
                            thread::sleep(jitter::around(PAUSE));
                            continue;
                        }
                        Err(Unpublished::Wrong(why))
                    }
                    Err(Unpublished::Refused(why)) => Ok(Err(Some(why))),
                    pushed => pushed.map(Ok),
                };
            }
        })
    }

    fn push(&self, refs: &str, cancelled: &AtomicBool) -> Result<(), Unpublished> {
        let launch = push_refs(&self.root, &self.remote, &[refs.to_owned()], &self.identity);
        run_push(&launch, cancelled)
    }

    /// Gets these refs.
    fn get(&self, refs: &[String], cancelled: &AtomicBool) -> Tried<()> {
        let launch = fetch(&self.root, &self.remote, refs, &self.identity);
        self.patiently(cancelled, || answered(run_alone(&launch, (PUSH_LIMIT, ROOM), cancelled))).map(drop)
    }

    /// The refs that match these, each with its commit.
    fn listed(&self, refs: &[String], cancelled: &AtomicBool) -> Result<Vec<(String, String)>, Unpublished> {
        let launch = list(&self.root, &self.remote, refs, &self.identity);
        let said = answered(run_alone(&launch, (LIST_LIMIT, ROOM), cancelled))?;
        let pair = |line: &str| line.split_once('\t').map(|(commit, at)| (commit.to_owned(), at.to_owned()));
        Ok(said.lines().filter_map(pair).collect())
    }

    /// Asks until the remote answers, for as long as it is waited for.
    fn patiently<T>(
        &self,
        cancelled: &AtomicBool,
        mut ask: impl FnMut() -> Result<T, Unpublished>,
    ) -> Tried<T> {
        let mut tries = 0;
        loop {
            let why = match ask() {
                Ok(answer) => {
                    self.patience.ends();
                    return Ok(answer);
                }
                Err(Unpublished::Cut) => {
                    self.patience.gives_up();
                    return Err(Failed::Cut);
                }
                Err(failure) => failure.why().unwrap_or_default(),
            };
            if !self.patience.wait(&mut tries, &why, cancelled) {
                self.patience.gives_up();
                if cancelled.load(Ordering::Relaxed) {
                    return Err(Failed::Cut);
                }
                let why = format!("{} cannot be used: {why}", self.remote.name);
                return Err(Failed::Ends(End::because(Outcome::StoreAway, why)));
            }
        }
    }

    /// A panic of another thread cannot leave it half-changed.
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A push with further options.
fn with_options(mut launch: Launch, options: impl IntoIterator<Item = String>) -> Launch {
    let at = launch.args.iter().position(|word| word == "--porcelain").unwrap_or(0);
    launch.args.splice(at..at, options.into_iter().map(Into::into));
    launch
}

fn run_push(launch: &Launch, cancelled: &AtomicBool) -> Result<(), Unpublished> {
    pushed(run_alone(launch, (PUSH_LIMIT, ROOM), cancelled))
}

/// Whether a push is refused only because another one is in its way. What hooks print stands behind the reason, in brackets, that git
/// has; a branch that is in the way of others below its name stays there.
fn is_locked(why: &str) -> bool {
    let reason =
        why.split_once('(').and_then(|(_, rest)| rest.split_once(')')).map_or(why, |(reason, _)| reason);
    let is_of_git = ["cannot lock ref", "failed to lock", "failed to update ref", "unable to lock"];
    is_of_git.iter().any(|words| reason.contains(words)) && !why.contains("; cannot create")
}

/// A ref of ours as a branch.
fn as_branch(reference: &str) -> String {
    reference.replacen(OURS, AS_BRANCHES, 1)
}

/// The ref for the commits of a claim that went apart this often.
fn numbered(place: &str, number: usize) -> String {
    if number == 1 { place.to_owned() } else { format!("{place}.{number}") }
}
