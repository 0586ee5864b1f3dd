//! A store of tasks on any database: each operation is one transaction of it.

use std::cell::Cell;
use std::path::PathBuf;
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::claims::Next;
use super::spool::Spool;
use super::{Fallible, Sql, claims, edits, features, import, issues, journal, lander, landings, queries};
use crate::graph::error::GraphError;
use crate::graph::feature::{Counts, Feature};
use crate::graph::holder::Holder;
use crate::graph::import::ImportEntry;
use crate::graph::landing::{AtGate, Landing, Lead, Made};
use crate::graph::store::{
    Changes, Claim, Ended, HowDone, Imported, IssueTask, JournalQuery, NewTask, Part, Retries, Scope,
    Selection, Store, Stuck, TreePosition, Unbooked,
};
use crate::graph::task::{Details, LogLine, Task};
use crate::memory::journal::JournalEntry;

/// How a change is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::graph) struct Write {
    /// It may change which tasks there are and what waits for what, so that nothing else is written meanwhile.
    pub(in crate::graph) is_shape: bool,
    /// A power cut must not undo it.
    pub(in crate::graph) lasts: bool,
}

/// What is written about one task by the run that works on it.
const BOOKING: Write = Write { is_shape: false, lasts: false };
/// The result of work.
const RESULT: Write = Write { is_shape: false, lasts: true };
/// The graph itself.
const SHAPE: Write = Write { is_shape: true, lasts: false };
/// A result that a person says, or many tasks at once.
const WHOLE: Write = Write { is_shape: true, lasts: true };

/// What a store needs of its database.
pub(in crate::graph) trait Database {
    /// Runs `change` in one transaction, which other processes see as a whole. It may run again, if the database asks for that.
    fn write<T>(&mut self, how: Write, change: impl Fn(&dyn Sql) -> Fallible<T>) -> Result<T, GraphError>;
    /// Runs one statement that takes something if there is something, in a transaction of its own. `change` gets a nonce to take it by,
    /// and whether it may have taken it before, and the answer was lost.
    fn take<T>(&mut self, change: impl Fn(&dyn Sql, &str, bool) -> Fallible<T>) -> Result<T, GraphError>;
    /// Runs `change`, and takes it back.
    fn try_out<T>(&mut self, change: &dyn Fn(&dyn Sql) -> Fallible<T>) -> Result<T, GraphError>;
    /// Runs one statement that reads; the names of its tables begin with what it is given.
    fn peek<T>(&self, look: impl Fn(&dyn Sql, &str) -> Fallible<T>) -> Result<T, GraphError>;
    /// Runs one statement that writes what may be written again; the names of its tables begin with what it is given.
    fn touch<T>(&mut self, write: impl Fn(&dyn Sql, &str) -> Fallible<T>) -> Result<T, GraphError>;
    /// Runs `look` on one state of the database.
    fn read<T>(&self, look: impl Fn(&dyn Sql) -> Fallible<T>) -> Result<T, GraphError>;
    /// Runs `look` on one state of the database; again only as long as it has not `shown` anything, which cannot be shown again.
    fn read_through<T>(
        &self,
        shown: &Cell<bool>,
        look: impl FnMut(&dyn Sql) -> Fallible<T>,
    ) -> Result<T, GraphError>;
    /// A folder for what is too large to be kept in memory.
    fn scratch(&self) -> PathBuf;
    /// A task was booked as done through this store, or is not any more.
    fn has_booked(&mut self, id: &str, is_done: bool);
    /// See [`Store::look_after`].
    fn is_in_place(&self) -> Result<(), GraphError>;
    /// See [`Store::verified_at`].
    fn verified_commit(&self, id: &str) -> Result<Option<String>, GraphError>;
    /// See [`Store::reopen_unbooked`].
    fn check(&mut self, run: &str) -> Result<Unbooked, GraphError>;
    /// See [`Store::settle_doubts`].
    fn settle_checked(&mut self) -> Result<(), GraphError>;
    /// See [`Store::is_as_looked_at`].
    fn is_as_checked(&self) -> Result<bool, GraphError>;
}

/// The scope with the full id of its task. The whole graph is not asked for.
fn resolved(graph: &impl Database, scope: &Scope) -> Result<Scope, GraphError> {
    match scope {
        Scope::All => Ok(Scope::All),
        scope => graph.read(|graph| claims::resolved(graph, scope)),
    }
}

/// Claims a task, by a nonce that is made before it is asked for (rule 2).
fn take(
    graph: &mut impl Database,
    next: Next,
    scope: &Scope,
    holder: &Holder,
    lease: Duration,
) -> Result<Option<Claim>, GraphError> {
    graph.take(|graph, nonce, was_asked| {
        let before = if was_asked { claims::claimed(graph, nonce)? } else { None };
        let holder = Holder { nonce: nonce.to_owned(), ..holder.clone() };
        before.map_or_else(|| claims::claim(graph, next, scope, &holder, lease), |claim| Ok(Some(claim)))
    })
}

impl<D: Database> Store for D {
    fn claim(
        &mut self,
        scope: &Scope,
        holder: &Holder,
        lease: Duration,
    ) -> Result<Option<Claim>, GraphError> {
        if let Some(claim) = take(self, Next::Listed, scope, holder, lease)? {
            return Ok(Some(claim));
        }
        // Expensive steps run only if there is nothing to claim.
        let resolved = resolved(self, scope)?;
        if self.recover()? == 0 && resolved == *scope {
            return Ok(None);
        }
        take(self, Next::Listed, &resolved, holder, lease)
    }

    fn may_claim(&self) -> Result<bool, GraphError> {
        self.peek(|graph, tables| claims::may_claim(graph, tables))
    }

    fn renew(&mut self, claim: &Claim, lease: Duration) -> Result<(), GraphError> {
        self.touch(|graph, tables| claims::renew(graph, tables, claim, lease))
    }

    fn complete(&mut self, claim: &Claim, done: HowDone<'_>) -> Result<Ended, GraphError> {
        let ended = self.write(RESULT, |graph| claims::complete(graph, claim, done))?;
        if ended == Ended::Done {
            self.has_booked(&claim.task, true);
        }
        Ok(ended)
    }

    fn claim_returned(
        &mut self,
        scope: &Scope,
        holder: &Holder,
        lease: Duration,
    ) -> Result<Option<Claim>, GraphError> {
        let scope = resolved(self, scope)?;
        take(self, Next::Returned, &scope, holder, lease)
    }

    fn keep(&mut self, claim: &Claim, made: &Made) -> Result<(), GraphError> {
        self.write(BOOKING, |graph| lander::keep(graph, claim, made))
    }

    fn queue(&mut self, claim: &Claim, made: &Made, done: HowDone<'_>) -> Result<Ended, GraphError> {
        let ended = self.write(RESULT, |graph| lander::queue(graph, claim, made, done))?;
        if ended == Ended::Queued {
            self.has_booked(&claim.task, true);
        }
        Ok(ended)
    }

    fn landing(&self, id: &str) -> Result<Option<Landing>, GraphError> {
        self.read(|graph| landings::of_task(graph, queries::find(graph, id)?))
    }

    fn landings(&self) -> Result<Vec<Landing>, GraphError> {
        self.peek(|graph, tables| landings::on_the_way(graph, tables))
    }

    fn lead(&mut self, trunk: &str, holder: &Holder, lease: Duration) -> Result<Option<Lead>, GraphError> {
        self.write(BOOKING, |graph| lander::lead(graph, trunk, holder, lease))
    }

    fn leader(&self, trunk: &str) -> Result<Option<(Holder, DateTime<Utc>)>, GraphError> {
        self.read(|graph| lander::leader(graph, trunk))
    }

    fn give_up_lead(&mut self, lead: &Lead) -> Result<(), GraphError> {
        self.write(BOOKING, |graph| lander::give_up_lead(graph, lead))
    }

    fn land(&mut self, lead: &Lead, landing: &Landing, tip: &str, commit: &str) -> Result<bool, GraphError> {
        self.write(RESULT, |graph| lander::land(graph, lead, landing, (tip, commit)))
    }

    fn give_back(
        &mut self,
        lead: &Lead,
        landing: &Landing,
        reason: &str,
        most: u32,
    ) -> Result<Option<Ended>, GraphError> {
        let ended = self.write(BOOKING, |graph| lander::give_back(graph, lead, landing, reason, most))?;
        self.has_booked(&landing.task, false);
        Ok(ended)
    }

    fn adopt(&mut self, from: &str, to: &str) -> Result<(), GraphError> {
        self.write(SHAPE, |graph| lander::adopt(graph, from, to))
    }

    fn gate_begins(&mut self, lead: &Lead, landings: &[&Landing]) -> Result<(), GraphError> {
        self.write(BOOKING, |graph| lander::gate_begins(graph, lead, landings))
    }

    fn gate_ends(&mut self, lead: &Lead) -> Result<(), GraphError> {
        self.write(BOOKING, |graph| lander::gate_ends(graph, lead))
    }

    fn gates(&self) -> Result<Vec<AtGate>, GraphError> {
        self.read(|graph| lander::gates(graph))
    }

    fn fail(&mut self, claim: &Claim, reason: &str) -> Result<Ended, GraphError> {
        self.write(BOOKING, |graph| claims::fail(graph, claim, reason))
    }

    fn release(&mut self, claim: &Claim, why: &str) -> Result<(), GraphError> {
        self.write(BOOKING, |graph| claims::release(graph, claim, why))
    }

    fn reopen(&mut self, id: &str, why: &str) -> Result<bool, GraphError> {
        let is_open_again =
            self.write(SHAPE, |graph| claims::reopen(graph, queries::find(graph, id)?, why))?;
        self.has_booked(id, false);
        Ok(is_open_again)
    }

    fn release_changed(&mut self, id: &str, run: &str) -> Result<bool, GraphError> {
        self.write(BOOKING, |graph| claims::release_changed(graph, id, run))
    }

    fn mark_unverified(&mut self, claim: &Claim, commit: Option<&str>) -> Result<(), GraphError> {
        self.write(BOOKING, |graph| claims::mark_unverified(graph, claim, commit))
    }

    fn mark_verified(&mut self, claim: &Claim, commit: &str) -> Result<(), GraphError> {
        self.write(BOOKING, |graph| claims::mark_verified(graph, claim, commit))
    }

    fn retry(&mut self, claim: &Claim, reason: &str, retries: Retries) -> Result<Ended, GraphError> {
        self.write(BOOKING, |graph| claims::retry(graph, claim, reason, retries))
    }

    fn is_unverified(&self, id: &str) -> Result<bool, GraphError> {
        self.read(|graph| claims::is_unverified(graph, queries::find(graph, id)?))
    }

    fn verified_at(&self, id: &str) -> Result<Option<String>, GraphError> {
        self.verified_commit(id)
    }

    fn commits_before(&self, id: &str) -> Result<Vec<(String, String)>, GraphError> {
        self.read(|graph| queries::commits_before(graph, queries::find(graph, id)?))
    }

    fn counts(&self, scope: &Scope) -> Result<Counts, GraphError> {
        self.read(|graph| queries::counts(graph, &claims::resolved(graph, scope)?))
    }

    fn unresolved(&self, scope: &Scope, most: usize) -> Result<Vec<Stuck>, GraphError> {
        self.read(|graph| queries::unresolved(graph, &claims::resolved(graph, scope)?, most))
    }

    fn at_work(&self, scope: &Scope, most: usize) -> Result<Vec<String>, GraphError> {
        if *scope == Scope::All {
            return self.peek(|graph, tables| queries::at_work(graph, tables, scope, most));
        }
        self.read(|graph| queries::at_work(graph, "", &claims::resolved(graph, scope)?, most))
    }

    fn failed(&self, scope: &Scope, most: usize) -> Result<Vec<Task>, GraphError> {
        self.read(|graph| queries::failed(graph, &claims::resolved(graph, scope)?, most))
    }

    fn look_after(&self) -> Result<(), GraphError> {
        Database::is_in_place(self)
    }

    fn note(&mut self, entry: &JournalEntry) -> Result<(), GraphError> {
        self.write(BOOKING, |graph| journal::note(graph, entry))
    }

    fn journal(
        &self,
        query: &JournalQuery,
        each: &mut dyn FnMut(JournalEntry) -> bool,
    ) -> Result<(), GraphError> {
        let shown = Cell::default();
        self.read_through(&shown, |graph| {
            journal::search(graph, query, &mut |entry| {
                shown.set(true);
                each(entry)
            })
        })
    }

    fn reopen_unbooked(&mut self, run: &str) -> Result<Unbooked, GraphError> {
        Database::check(self, run)
    }

    fn settle_doubts(&mut self) -> Result<(), GraphError> {
        Database::settle_checked(self)
    }

    fn is_as_looked_at(&self) -> Result<bool, GraphError> {
        Database::is_as_checked(self)
    }

    fn recover(&mut self) -> Result<usize, GraphError> {
        // Usually there is nothing to recover, and no write lock is needed.
        if self.read(|graph| claims::dead(graph))?.is_empty() {
            return Ok(0);
        }
        self.write(SHAPE, |graph| claims::recover(graph))
    }

    fn add(&mut self, task: &NewTask) -> Result<String, GraphError> {
        self.write(SHAPE, |graph| edits::add(graph, task))
    }

    fn update(&mut self, id: &str, changes: &Changes) -> Result<(), GraphError> {
        self.write(SHAPE, |graph| edits::update(graph, id, changes))
    }

    fn force_done(&mut self, id: &str, force: bool) -> Result<String, GraphError> {
        self.write(WHOLE, |graph| edits::force_done(graph, id, force))
    }

    fn force_fail(&mut self, id: &str, reason: &str) -> Result<String, GraphError> {
        self.write(SHAPE, |graph| edits::force_fail(graph, id, reason))
    }

    fn reset(&mut self, id: &str) -> Result<String, GraphError> {
        self.write(SHAPE, |graph| edits::reset(graph, id))
    }

    fn delete(&mut self, id: &str, recursive: bool) -> Result<usize, GraphError> {
        self.write(SHAPE, |graph| edits::delete(graph, id, recursive))
    }

    fn log(&mut self, id: &str, message: &str) -> Result<(), GraphError> {
        self.write(BOOKING, |graph| edits::log(graph, id, message))
    }

    fn add_dependency(&mut self, blocker: &str, blocked: &str) -> Result<(), GraphError> {
        self.write(SHAPE, |graph| {
            let (blocker, blocked) = (queries::find(graph, blocker)?, queries::find(graph, blocked)?);
            edits::add_dependency(graph, blocker, blocked)
        })
    }

    fn remove_dependency(&mut self, blocker: &str, blocked: &str) -> Result<(), GraphError> {
        self.write(SHAPE, |graph| edits::remove_dependency(graph, blocker, blocked))
    }

    fn import(
        &mut self,
        entries: &mut dyn Iterator<Item = Result<ImportEntry, GraphError>>,
        dry_run: bool,
    ) -> Result<Imported, GraphError> {
        let folder = self.scratch();
        // Reading may wait for a pipe; no transaction is open meanwhile.
        let read = Spool::fill(&folder, entries)?;
        let import = |graph: &dyn Sql| import::import(graph, &mut read.entries(&folder));
        if dry_run { self.try_out(&import) } else { self.write(WHOLE, import) }
    }

    fn imported(&self) -> Result<Vec<IssueTask>, GraphError> {
        self.read(|graph| issues::tasks(graph))
    }

    fn put_feature(&mut self, name: &str, spec: Option<&str>, plan: Option<&str>) -> Result<(), GraphError> {
        self.write(SHAPE, |graph| features::put(graph, name, spec, plan))
    }

    fn delete_feature(&mut self, name: &str) -> Result<(), GraphError> {
        self.write(SHAPE, |graph| features::delete(graph, name))
    }

    fn feature(&self, name: &str) -> Result<Feature, GraphError> {
        self.read(|graph| features::one(graph, name))
    }

    fn features(&self) -> Result<Vec<Feature>, GraphError> {
        self.read(|graph| features::all(graph))
    }

    fn export(&self, each: &mut dyn FnMut(&str) -> bool) -> Result<(), GraphError> {
        let shown = Cell::default();
        self.read_through(&shown, |graph| {
            queries::export(graph, &mut |line| {
                shown.set(true);
                each(line)
            })
        })
    }

    fn task(&self, id: &str) -> Result<Task, GraphError> {
        self.read(|graph| queries::task(graph, queries::find(graph, id)?))
    }

    fn with_above(&self, id: &str) -> Result<Vec<Task>, GraphError> {
        self.read(|graph| queries::with_above(graph, queries::find(graph, id)?))
    }

    fn details(&self, id: &str) -> Result<Details, GraphError> {
        self.read(|graph| queries::details(graph, queries::find(graph, id)?))
    }

    fn logs(&self, id: &str) -> Result<Vec<LogLine>, GraphError> {
        self.read(|graph| queries::logs(graph, queries::find(graph, id)?))
    }

    fn list(&self, selection: &Selection, each: &mut dyn FnMut(Task) -> bool) -> Result<(), GraphError> {
        let shown = Cell::default();
        self.read_through(&shown, |graph| {
            queries::list(graph, selection, &mut |task| {
                shown.set(true);
                each(task)
            })
        })
    }

    fn tree(
        &self,
        id: Option<&str>,
        each: &mut dyn FnMut(Task, TreePosition) -> bool,
    ) -> Result<(), GraphError> {
        let shown = Cell::default();
        self.read_through(&shown, |graph| {
            queries::tree(graph, id, &mut |task, place| {
                shown.set(true);
                each(task, place)
            })
        })
    }

    fn graph(&self, each: &mut dyn FnMut(Part<'_>) -> bool) -> Result<(), GraphError> {
        let shown = Cell::default();
        self.read_through(&shown, |graph| {
            queries::graph(graph, &mut |part| {
                shown.set(true);
                each(part)
            })
        })
    }
}
