//! What a store of tasks can do. Every operation is one transaction.

use std::time::Duration;

use serde::Serialize;

use super::error::GraphError;
use super::feature::{Counts, Feature};
use super::holder::Holder;
use super::import::Entry;
use super::task::{Details, LogLine, Status, Task};
use crate::memory::journal::Entry as JournalEntry;

/// Which tasks are meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// All.
    All,
    /// Those of the feature of this name.
    Feature(String),
    /// The task with this id and those below it.
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
    /// The name of its feature; without one it is that of its parent.
    pub feature: Option<String>,
    /// The tasks that it waits for.
    pub after: Vec<String>,
    /// Lower numbers go first.
    pub priority: i64,
    /// How often it may be tried again; 3 where nothing is said.
    pub max_retries: Option<u32>,
}

/// What is to be changed of a task; the rest stays.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// Another title.
    pub title: Option<String>,
    /// Another description.
    pub description: Option<String>,
    /// Another feature, by its name; an empty one: none.
    pub feature: Option<String>,
    /// Another priority.
    pub priority: Option<i64>,
    /// Another limit of retries.
    pub max_retries: Option<u32>,
}

/// Tasks to be listed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// Only those of this feature.
    pub feature: Option<String>,
    /// Only those that belong to no feature.
    pub standalone: bool,
    /// Only those in this state.
    pub status: Option<Status>,
    /// Only those that can be claimed.
    pub ready: bool,
}

/// Where a task stands in a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// How many tasks are above it.
    pub depth: usize,
    /// No other part of the same task follows.
    pub is_last: bool,
}

/// A part of a whole graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part<'a> {
    /// A task.
    Task(&'a Task),
    /// One task waits for another.
    Dependency {
        /// The id of the one that has to be done first.
        blocker: &'a str,
        /// The id of the one that waits.
        blocked: &'a str,
    },
}

/// The right to book the result of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The task's id.
    pub task: String,
    /// Grows with each claim of the task: who has an older number has lost it.
    pub fence: i64,
}

/// How a task was done.
#[derive(Debug, Clone, Copy, Default)]
pub struct HowDone<'a> {
    /// The commit that HEAD named then.
    pub commit: Option<&'a str>,
    /// Somebody else has looked whether it is.
    pub is_verified: bool,
    /// The attempt at it, for the journal: one without the other would be doubted.
    pub attempt: Option<&'a JournalEntry>,
}

/// What became of a claimed task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It is done.
    Done,
    /// It has got parts meanwhile, and comes again after them.
    Released,
    /// It is to be tried again.
    Retried,
    /// It has failed.
    Failed,
}

/// What another program than ralph has written into a graph, as far as it matters, until it was put right.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unbooked {
    /// Called done, and booked by nobody: open again, and unverified.
    pub reopened: Vec<Task>,
    /// Called failed, and given up by nobody: open again.
    pub given_up: Vec<Task>,
    /// Such ones that this store has opened again before: they stay done, or failed.
    pub contested: Vec<Task>,
    /// Their words, their priorities, or what they are parts of or wait for, are not what ralph has written.
    pub rewritten: Vec<Task>,
    /// How many tasks are not there any more.
    pub missing: u64,
    /// Nobody knows how many there should be.
    pub is_uncounted: bool,
    /// States, counts or lists of what is ready were not what follows from the graph, and were computed anew.
    pub is_recomputed: bool,
    /// How many tasks are done as the log and the journal say, in a graph that this key had not sealed.
    pub believed: u64,
}

impl Unbooked {
    /// With what was in doubt before as well.
    pub(super) fn and(mut self, before: Self) -> Self {
        self.rewritten.extend(before.rewritten);
        self.missing += before.missing;
        self.is_uncounted |= before.is_uncounted;
        self
    }
}

/// How often a task may be tried again where it does not say so itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retries {
    /// What the run's own command line says; it overrides the task.
    pub of_run: Option<u32>,
    /// What holds where nobody has said anything.
    pub usual: u32,
}

/// A task that is neither done nor failed, and cannot be claimed here and now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stuck {
    /// The task.
    pub task: Task,
    /// What it, or a task above it, waits for.
    pub waits_for: Vec<Task>,
    /// A failed task above it.
    pub failed_above: Option<String>,
}

/// Which entries of the journal are meant, the newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JournalQuery {
    /// Only those of this run.
    pub run: Option<String>,
    /// None of this run.
    pub but_run: Option<String>,
    /// Only those about the task with exactly this id.
    pub task: Option<String>,
    /// Only those with these words.
    pub words: Option<Words>,
    /// At most so many.
    pub limit: Option<usize>,
}

/// Words to be looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Words {
    /// All of them.
    All(String),
    /// Any of them that says something; what fits best comes first.
    Any(String),
}

/// What an import did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Imported {
    /// How many tasks are new.
    pub added: usize,
    /// How many were known and have changed.
    pub updated: usize,
    /// How many are as they were.
    pub unchanged: usize,
}

/// A store of tasks. Ids may be given by a unique beginning.
pub trait Store {
    /// Claims the next ready task: the lowest priority, of those the one that was added first. `None`: nothing is ready.
    fn claim(&mut self, scope: &Scope, holder: &Holder, lease: Duration)
    -> Result<Option<Claim>, GraphError>;
    /// Prolongs the lease of a claim.
    fn renew(&mut self, claim: &Claim, lease: Duration) -> Result<(), GraphError>;
    /// The task is done; when it has got parts meanwhile that are open it is released.
    fn complete(&mut self, claim: &Claim, done: HowDone<'_>) -> Result<Ended, GraphError>;
    /// The task is given up; when it has got parts meanwhile that are open it is released.
    fn fail(&mut self, claim: &Claim, reason: &str) -> Result<Ended, GraphError>;
    /// The agent has said that the task is done, with HEAD at `commit`, and nothing has verified that yet. The task stays claimed.
    /// The mark outlives the claim: it is removed when the task is done, failed, retried or reset.
    fn mark_unverified(&mut self, claim: &Claim, commit: Option<&str>) -> Result<(), GraphError>;
    /// What the agent has said of a task that is marked as unverified was verified, at `commit`. The mark outlives the claim, too.
    fn mark_verified(&mut self, claim: &Claim, commit: &str) -> Result<(), GraphError>;
    /// The task is left to others; `why`, if anything, goes into its log. A mark as unverified stays.
    fn release(&mut self, claim: &Claim, why: &str) -> Result<(), GraphError>;
    /// A try failed: the task is to be tried again, or has failed when its retries are used up.
    fn retry(&mut self, claim: &Claim, reason: &str, retries: Retries) -> Result<Ended, GraphError>;
    /// Opens again, to be verified, what is called done and was booked by nobody, and answers that, and what else another program
    /// has written. `run` is the one that books through this store.
    fn reopen_unbooked(&mut self, run: &str) -> Result<Unbooked, GraphError>;
    /// What [`Store::reopen_unbooked`] has answered and cannot be put right was reported, and the run that did so has ended. Until
    /// then every other store answers it, too.
    fn settle_doubts(&mut self) -> Result<(), GraphError>;
    /// Gives back a task that is claimed by this run, which has no claim on it that holds; answers whether it is.
    fn release_changed(&mut self, id: &str, run: &str) -> Result<bool, GraphError>;
    /// Whether no other process has written since [`Store::reopen_unbooked`] looked: what was read since then is what that has found sound.
    fn is_as_looked_at(&self) -> Result<bool, GraphError>;
    /// Takes back the claims of holders that are gone, and answers how many there were. Marks as unverified stay.
    fn recover(&mut self) -> Result<usize, GraphError>;

    /// Whether its last agent has said that a task is done, and nobody has looked whether it is.
    fn is_unverified(&self, id: &str) -> Result<bool, GraphError>;
    /// The commit at which a task was verified that was not booked then; `None` also where another program may have written that.
    fn verified_at(&self, id: &str) -> Result<Option<String>, GraphError>;
    /// The tasks that a task has waited for, their parts and its own, and the task itself where it is unverified, with the commits at
    /// which they were done, as far as those are known.
    fn commits_before(&self, id: &str) -> Result<Vec<(String, String)>, GraphError>;
    /// How many tasks there are that do not only group parts, by what became of them.
    fn counts(&self, scope: &Scope) -> Result<Counts, GraphError>;
    /// Those of them that are neither done nor failed, at most so many, with what holds them back.
    fn unresolved(&self, scope: &Scope, most: usize) -> Result<Vec<Stuck>, GraphError>;
    /// Those of them that have failed, at most so many.
    fn failed(&self, scope: &Scope, most: usize) -> Result<Vec<Task>, GraphError>;

    /// Makes sure that the graph is still where it was opened: nobody else would see what is booked.
    fn look_after(&self) -> Result<(), GraphError>;
    /// Enters an attempt in the journal.
    fn note(&mut self, entry: &JournalEntry) -> Result<(), GraphError>;
    /// Shows entries of the journal to `each` until it says no.
    fn journal(
        &self,
        query: &JournalQuery,
        each: &mut dyn FnMut(JournalEntry) -> bool,
    ) -> Result<(), GraphError>;

    /// Adds a task and answers its id.
    fn add(&mut self, task: &NewTask) -> Result<String, GraphError>;
    /// Changes a task.
    fn update(&mut self, id: &str, changes: &Changes) -> Result<(), GraphError>;
    /// Brings a task to `done` by legal steps; a claimed one only by `force`. Answers its id.
    fn force_done(&mut self, id: &str, force: bool) -> Result<String, GraphError>;
    /// Brings a task to `failed` by legal steps. Answers its id.
    fn force_fail(&mut self, id: &str, reason: &str) -> Result<String, GraphError>;
    /// Takes a task and all below it back to the beginning. Answers its id.
    fn reset(&mut self, id: &str) -> Result<String, GraphError>;
    /// Removes a task; with `recursive` those below it, too. Answers how many went.
    fn delete(&mut self, id: &str, recursive: bool) -> Result<usize, GraphError>;
    /// Writes a line into a task's log.
    fn log(&mut self, id: &str, message: &str) -> Result<(), GraphError>;
    /// Lets one task wait for another.
    fn add_dependency(&mut self, blocker: &str, blocked: &str) -> Result<(), GraphError>;
    /// Lets it wait no longer.
    fn remove_dependency(&mut self, blocker: &str, blocked: &str) -> Result<(), GraphError>;
    /// Takes the features and tasks of a file in, all or none of them; with `dry_run` only tells what would be.
    fn import(
        &mut self,
        entries: &mut dyn Iterator<Item = Result<Entry, GraphError>>,
        dry_run: bool,
    ) -> Result<Imported, GraphError>;
    /// Shows every feature and every task to `each` as a line that [`Store::import`] understands, the oldest first.
    fn export(&self, each: &mut dyn FnMut(&str) -> bool) -> Result<(), GraphError>;

    /// Adds a feature, or gives one that is there another spec or plan, by their paths below the ralph dir.
    fn put_feature(&mut self, name: &str, spec: Option<&str>, plan: Option<&str>) -> Result<(), GraphError>;
    /// Forgets a feature; its tasks stay, and belong to none. Refused while it runs.
    fn delete_feature(&mut self, name: &str) -> Result<(), GraphError>;
    /// One feature, by its name.
    fn feature(&self, name: &str) -> Result<Feature, GraphError>;
    /// All features, the oldest first.
    fn features(&self) -> Result<Vec<Feature>, GraphError>;

    /// One task, by its id or a unique beginning of it.
    fn task(&self, id: &str) -> Result<Task, GraphError>;
    /// The same with all there is to say about it.
    fn details(&self, id: &str) -> Result<Details, GraphError>;
    /// A task's log, oldest line first.
    fn logs(&self, id: &str) -> Result<Vec<LogLine>, GraphError>;
    /// Shows tasks to `each`, the next one to be done first, until it says no.
    fn list(&self, selection: &Selection, each: &mut dyn FnMut(Task) -> bool) -> Result<(), GraphError>;
    /// Shows each task with its place to `each`, parts behind what they are a part of, from one task or from all roots.
    fn tree(&self, id: Option<&str>, each: &mut dyn FnMut(Task, Place) -> bool) -> Result<(), GraphError>;
    /// Shows every task, then every dependency between them to `each`.
    fn graph(&self, each: &mut dyn FnMut(Part<'_>) -> bool) -> Result<(), GraphError>;
}
