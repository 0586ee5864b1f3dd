//! The operations of a task store. Every operation is one transaction.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::error::GraphError;
use super::feature::{Counts, Feature};
use super::holder::Holder;
use super::import::ImportEntry;
use super::landing::{AtGate, Landing, Lead, Made, reference};
use super::task::{Details, LogLine, Status, Task};
use crate::memory::journal::JournalEntry;

/// A set of tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// All tasks.
    All,
    /// The tasks of the feature with this name.
    Feature(String),
    /// The task with this id and all tasks below it.
    Subtree(String),
}

/// A task to be added.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewTask {
    /// One line.
    pub title: String,
    /// What is to be done; may be empty.
    pub description: String,
    /// The task that it is a part of.
    pub parent: Option<String>,
    /// The name of its feature; `None` takes the parent's.
    pub feature: Option<String>,
    /// The tasks that it waits for.
    pub after: Vec<String>,
    /// Lower numbers go first.
    pub priority: i64,
    /// The limit of retries; 3 by default.
    pub max_retries: Option<u32>,
}

/// Changes of a task; `None` keeps a value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// Another title.
    pub title: Option<String>,
    /// Another description.
    pub description: Option<String>,
    /// Another feature, by name; an empty name means none.
    pub feature: Option<String>,
    /// Another priority.
    pub priority: Option<i64>,
    /// Another limit of retries.
    pub max_retries: Option<u32>,
}

/// A filter for a list of tasks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// Only those of this feature.
    pub feature: Option<String>,
    /// Only those that belong to no feature.
    pub standalone: bool,
    /// Only those in this state.
    pub status: Option<Status>,
    /// Only ready tasks.
    pub ready: bool,
}

/// The position of a task in a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreePosition {
    /// How many tasks are above it.
    pub depth: usize,
    /// It is its parent's last part.
    pub is_last: bool,
}

/// An element of the graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part<'a> {
    /// A task.
    Task(&'a Task),
    /// A dependency between two tasks.
    Dependency {
        /// The id of the task that comes first.
        blocker: &'a str,
        /// The id of the task that waits.
        blocked: &'a str,
    },
}

/// The right to book the result of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The task's id.
    pub task: String,
    /// Grows with each claim of the task; an older number has lost the claim.
    pub fence: i64,
    /// Random: a server that has lost its last seconds hands numbers out again.
    pub nonce: String,
}

impl Claim {
    /// The ref that keeps what it has made.
    #[must_use]
    pub fn reference(&self) -> String {
        reference(&self.task, self.fence, &self.nonce)
    }

    /// The claim whose ref this is; `None`: it is none of ours.
    #[must_use]
    pub fn of_reference(reference: &str) -> Option<Self> {
        let mut parts = reference.rsplit('/');
        let (fence, nonce) = parts.next()?.split_once('-')?;
        let (task, fence) = (parts.next()?.to_owned(), fence.parse().ok()?);
        Some(Self { task, fence, nonce: nonce.to_owned() })
    }
}

/// How a task was done.
#[derive(Debug, Clone, Copy, Default)]
pub struct HowDone<'a> {
    /// The commit of HEAD when it was done.
    pub commit: Option<&'a str>,
    /// A verifying agent has confirmed it.
    pub is_verified: bool,
    /// The attempt, which goes into the journal in the same transaction; one without the other would be doubted.
    pub attempt: Option<&'a JournalEntry>,
}

/// The outcome of a booking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It is done.
    Done,
    /// It has got parts meanwhile; it is ready again after them.
    Released,
    /// It waits to land.
    Queued,
    /// It could not land, and will be fixed.
    Returned,
    /// It will be tried again.
    Retried,
    /// It has failed.
    Failed,
}

/// What another program has written into a graph, until it is repaired.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unbooked {
    /// Marked as done, and not booked: now open, and unverified.
    pub reopened: Vec<Task>,
    /// Marked as failed, and not booked as such: now open.
    pub given_up: Vec<Task>,
    /// Opened again by this store before, so they stay done or failed.
    pub contested: Vec<Task>,
    /// Their texts, priorities, parents or blockers are not what ralph wrote.
    pub rewritten: Vec<Task>,
    /// How many tasks are missing.
    pub missing: u64,
    /// The expected number of tasks is unknown.
    pub is_uncounted: bool,
    /// Derived values (states, counts, lists of ready tasks) were wrong and have been recomputed.
    pub is_recomputed: bool,
    /// How many tasks are done according to log and journal, in a graph that this key had not sealed.
    pub believed: u64,
}

impl Unbooked {
    /// Adds earlier doubts.
    pub(super) fn and(mut self, before: Self) -> Self {
        self.rewritten.extend(before.rewritten);
        self.missing += before.missing;
        self.is_uncounted |= before.is_uncounted;
        self
    }
}

/// The limits of retries for a task, apart from its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retries {
    /// The limit of the run's command line; it overrides the task.
    pub of_run: Option<u32>,
    /// The default limit.
    pub usual: u32,
}

/// A task that is neither done nor failed, and cannot be claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stuck {
    /// The task.
    pub task: Task,
    /// The blockers of the task, or of a task above it.
    pub waits_for: Vec<Task>,
    /// A failed task above it.
    pub failed_above: Option<String>,
}

/// A query of the journal, newest entries first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JournalQuery {
    /// Only those of this run.
    pub run: Option<String>,
    /// No entries of this run.
    pub but_run: Option<String>,
    /// Only entries about the task with exactly this id.
    pub task: Option<String>,
    /// Only entries with these words.
    pub words: Option<Words>,
    /// At most this many.
    pub limit: Option<usize>,
}

/// Search words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Words {
    /// All of them.
    All(String),
    /// Any word that is long enough to search for; the best match comes first.
    Any(String),
}

/// The result of an import.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Imported {
    /// New tasks.
    pub added: usize,
    /// Known tasks that have changed.
    pub updated: usize,
    /// Known tasks that have not changed.
    pub unchanged: usize,
    /// Issues whose tasks were deleted here, and stay so.
    pub left_deleted: usize,
}

/// A task that was imported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssueTask {
    /// Its id.
    pub id: String,
    /// What the file or the tracker calls it.
    pub origin: String,
    /// Its state.
    pub status: Status,
    /// The commit that has its work: as it has landed, or that of HEAD when it was done.
    pub commit: Option<String>,
    /// The address of the issue that it was imported from.
    pub address: Option<String>,
}

/// A store of tasks. A unique prefix of an id is enough.
pub trait Store {
    /// Claims the next ready task: the one with the lowest priority, then the one that was added first. `None` if no
    /// task is ready.
    fn claim(&mut self, scope: &Scope, holder: &Holder, lease: Duration)
    -> Result<Option<Claim>, GraphError>;
    /// Prolongs the lease of a claim.
    fn renew(&mut self, claim: &Claim, lease: Duration) -> Result<(), GraphError>;
    /// Books the task as done; if it has open parts by now, it is released.
    fn complete(&mut self, claim: &Claim, done: HowDone<'_>) -> Result<Ended, GraphError>;
    /// Claims the ready task that could not land and was returned first; `None` if there is none.
    fn claim_returned(
        &mut self,
        scope: &Scope,
        holder: &Holder,
        lease: Duration,
    ) -> Result<Option<Claim>, GraphError>;
    /// Keeps what agents have committed for a claimed task: the next one goes on from there.
    fn keep(&mut self, claim: &Claim, made: &Made) -> Result<(), GraphError>;
    /// Hands a task in to land; if it has open parts by now, it is released.
    fn queue(&mut self, claim: &Claim, made: &Made, done: HowDone<'_>) -> Result<Ended, GraphError>;
    /// What agents have committed for a task, and what has become of that.
    fn landing(&self, id: &str) -> Result<Option<Landing>, GraphError>;
    /// The landings that wait or were returned, of all trunks: returned ones first, then the oldest.
    fn landings(&self) -> Result<Vec<Landing>, GraphError>;
    /// Takes the lead on a trunk, or prolongs it; `None` while another living process has it.
    fn lead(&mut self, trunk: &str, holder: &Holder, lease: Duration) -> Result<Option<Lead>, GraphError>;
    /// The process that has the lead on a trunk, and until when; `None` where none that lives has it.
    fn leader(&self, trunk: &str) -> Result<Option<(Holder, DateTime<Utc>)>, GraphError>;
    /// Gives the lead back.
    fn give_up_lead(&mut self, lead: &Lead) -> Result<(), GraphError>;
    /// Books a landing as landed: put on `tip`, it became `commit`. Returns whether it was still waiting.
    fn land(&mut self, lead: &Lead, landing: &Landing, tip: &str, commit: &str) -> Result<bool, GraphError>;
    /// Gives a landing back to an agent, at most `most` times, then it fails. `None` if it was not waiting any more.
    fn give_back(
        &mut self,
        lead: &Lead,
        landing: &Landing,
        reason: &str,
        most: u32,
    ) -> Result<Option<Ended>, GraphError>;
    /// Has all that was to land on `from` land on `to` instead.
    fn adopt(&mut self, from: &str, to: &str) -> Result<(), GraphError>;
    /// Books that the gate runs for these landings, or, without any, for the trunk itself.
    fn gate_begins(&mut self, lead: &Lead, landings: &[&Landing]) -> Result<(), GraphError>;
    /// Books that it does not run any more.
    fn gate_ends(&mut self, lead: &Lead) -> Result<(), GraphError>;
    /// The gates that run.
    fn gates(&self) -> Result<Vec<AtGate>, GraphError>;
    /// Books the task as failed; if it has open parts by now, it is released.
    fn fail(&mut self, claim: &Claim, reason: &str) -> Result<Ended, GraphError>;
    /// Marks the task as reported done by its agent, with HEAD at `commit`, and not yet verified. The task stays
    /// claimed. The mark outlives the claim; it is removed when the task is done, failed, retried or reset.
    fn mark_unverified(&mut self, claim: &Claim, commit: Option<&str>) -> Result<(), GraphError>;
    /// Marks an unverified task as verified at `commit`. The mark outlives the claim, too.
    fn mark_verified(&mut self, claim: &Claim, commit: &str) -> Result<(), GraphError>;
    /// Returns the claim; `why` goes into the task's log if it is not empty. A mark as unverified stays.
    fn release(&mut self, claim: &Claim, why: &str) -> Result<(), GraphError>;
    /// Books a failed try: the task is retried, or fails when its retries are used up.
    fn retry(&mut self, claim: &Claim, reason: &str, retries: Retries) -> Result<Ended, GraphError>;
    /// Opens tasks again that are marked as done and not booked, so that they are verified. Returns them, with all
    /// other changes by another program. `run` is the run that books through this store.
    fn reopen_unbooked(&mut self, run: &str) -> Result<Unbooked, GraphError>;
    /// Books that the doubts from [`Store::reopen_unbooked`] that cannot be repaired were reported, when the run that
    /// did so has ended. Until then every other store returns them, too.
    fn settle_doubts(&mut self) -> Result<(), GraphError>;
    /// Reopens a done task as unverified, and writes `why` into its log; returns whether it was done.
    fn reopen(&mut self, id: &str, why: &str) -> Result<bool, GraphError>;
    /// Releases a task that this run has claimed and lost by another program's change; returns whether there was one.
    fn release_changed(&mut self, id: &str, run: &str) -> Result<bool, GraphError>;
    /// Whether no other process has written since [`Store::reopen_unbooked`], so that what was read since then is
    /// checked.
    fn is_as_looked_at(&self) -> Result<bool, GraphError>;
    /// Returns the claims of holders that no longer exist, and says how many there were. Marks as unverified stay.
    fn recover(&mut self) -> Result<usize, GraphError>;

    /// Whether its last agent has reported the task as done, and it has not been verified.
    fn is_unverified(&self, id: &str) -> Result<bool, GraphError>;
    /// The commit at which a task was verified that was not booked then; `None` also if another program may have
    /// written it.
    fn verified_at(&self, id: &str) -> Result<Option<String>, GraphError>;
    /// The commits at which a task's blockers with their parts, its own parts, and the task itself if it is
    /// unverified, were done, as far as known.
    fn commits_before(&self, id: &str) -> Result<Vec<(String, String)>, GraphError>;
    /// How many tasks there are by state, without groups.
    fn counts(&self, scope: &Scope) -> Result<Counts, GraphError>;
    /// At most `most` tasks that are neither done nor failed, without groups, with what holds them back.
    fn unresolved(&self, scope: &Scope, most: usize) -> Result<Vec<Stuck>, GraphError>;
    /// Whether there is anything to claim or to recover, as far as that is seen at a glance. [`Store::claim`] has the last word.
    fn may_claim(&self) -> Result<bool, GraphError>;
    /// The ids of at most `most` tasks that are claimed. Much cheaper than [`Store::unresolved`].
    fn at_work(&self, scope: &Scope, most: usize) -> Result<Vec<String>, GraphError>;
    /// At most `most` tasks that have failed, without groups.
    fn failed(&self, scope: &Scope, most: usize) -> Result<Vec<Task>, GraphError>;

    /// Checks that the graph's files are still in place: otherwise no other process would see what is booked.
    fn look_after(&self) -> Result<(), GraphError>;
    /// Adds an attempt to the journal.
    fn note(&mut self, entry: &JournalEntry) -> Result<(), GraphError>;
    /// Shows entries of the journal to `each` until it returns `false`.
    fn journal(
        &self,
        query: &JournalQuery,
        each: &mut dyn FnMut(JournalEntry) -> bool,
    ) -> Result<(), GraphError>;

    /// Adds a task and returns its id.
    fn add(&mut self, task: &NewTask) -> Result<String, GraphError>;
    /// Changes a task.
    fn update(&mut self, id: &str, changes: &Changes) -> Result<(), GraphError>;
    /// Brings a task to `done` by legal steps; a claimed one only with `force`. Returns its id.
    fn force_done(&mut self, id: &str, force: bool) -> Result<String, GraphError>;
    /// Brings a task to `failed` by legal steps. Returns its id.
    fn force_fail(&mut self, id: &str, reason: &str) -> Result<String, GraphError>;
    /// Resets a task and all tasks below it to `pending`. Returns its id.
    fn reset(&mut self, id: &str) -> Result<String, GraphError>;
    /// Deletes a task; with `recursive`, the tasks below it, too. Returns how many were deleted.
    fn delete(&mut self, id: &str, recursive: bool) -> Result<usize, GraphError>;
    /// Adds a line to a task's log.
    fn log(&mut self, id: &str, message: &str) -> Result<(), GraphError>;
    /// Makes one task wait for another.
    fn add_dependency(&mut self, blocker: &str, blocked: &str) -> Result<(), GraphError>;
    /// Removes a dependency.
    fn remove_dependency(&mut self, blocker: &str, blocked: &str) -> Result<(), GraphError>;
    /// Imports the features and tasks of a file, all or none of them; with `dry_run` it only reports what would
    /// change.
    fn import(
        &mut self,
        entries: &mut dyn Iterator<Item = Result<ImportEntry, GraphError>>,
        dry_run: bool,
    ) -> Result<Imported, GraphError>;
    /// Shows an export for [`Store::import`] to `each`, line by line: its header, every feature and every task, the oldest first.
    fn export(&self, each: &mut dyn FnMut(&str) -> bool) -> Result<(), GraphError>;

    /// The tasks that were imported, the oldest first.
    fn imported(&self) -> Result<Vec<IssueTask>, GraphError>;

    /// Adds a feature, or changes the spec or plan of an existing one. Paths are below the ralph dir.
    fn put_feature(&mut self, name: &str, spec: Option<&str>, plan: Option<&str>) -> Result<(), GraphError>;
    /// Deletes a feature; its tasks stay, without a feature. Refused while one of them is claimed.
    fn delete_feature(&mut self, name: &str) -> Result<(), GraphError>;
    /// A feature by its name.
    fn feature(&self, name: &str) -> Result<Feature, GraphError>;
    /// All features, the oldest first.
    fn features(&self) -> Result<Vec<Feature>, GraphError>;

    /// A task by its id or a unique prefix.
    fn task(&self, id: &str) -> Result<Task, GraphError>;
    /// A task and the tasks above it, the nearest first.
    fn with_above(&self, id: &str) -> Result<Vec<Task>, GraphError>;
    /// A task with its dependencies, parts and log.
    fn details(&self, id: &str) -> Result<Details, GraphError>;
    /// A task's log, the oldest line first.
    fn logs(&self, id: &str) -> Result<Vec<LogLine>, GraphError>;
    /// Shows tasks to `each`, the next one to be done first, until it returns `false`.
    fn list(&self, selection: &Selection, each: &mut dyn FnMut(Task) -> bool) -> Result<(), GraphError>;
    /// Shows each task with its position to `each`, parents first, from one task or from all roots.
    fn tree(
        &self,
        id: Option<&str>,
        each: &mut dyn FnMut(Task, TreePosition) -> bool,
    ) -> Result<(), GraphError>;
    /// Shows every task, then every dependency to `each`.
    fn graph(&self, each: &mut dyn FnMut(Part<'_>) -> bool) -> Result<(), GraphError>;
}
