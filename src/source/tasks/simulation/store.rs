//! The model of the store: rows of tasks and of the lead, and what is derived from them.

mod failover;

use std::any::Any;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::rc::Rc;

use super::claim::{Claim, Landing};
use super::commits::Commit;
use super::events::Millis;
use super::rules::Rules;
use crate::graph::Status;
use crate::graph::landing::Standing;
use crate::graph::transitions::{Facts, Own, is_held, is_listed, status};
pub(super) use failover::TAIL;
use failover::Undo;

/// A claim, as the row of its task has it. Its number is that of the row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Claimed {
    pub(super) nonce: u64,
    /// By the clock that leases are counted by.
    pub(super) until: i64,
}

/// What was made for a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Made {
    pub(super) landing: Landing,
    pub(super) standing: Standing,
    /// Since when, by the server's clock.
    pub(super) since: i64,
}

/// A task.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    pub(super) own: Own,
    pub(super) number: u64,
    pub(super) claimed: Option<Claimed>,
    pub(super) made: Option<Made>,
    /// The commit of its result.
    pub(super) done_at: Option<Commit>,
    /// How many tasks that it waits for are not done.
    open_blockers: i64,
}

/// The lead.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LeadRow {
    pub(super) number: u64,
    pub(super) holder: u64,
    pub(super) until: i64,
}

/// The store.
pub(super) struct Store {
    pub(super) rows: Vec<Row>,
    pub(super) lead: LeadRow,
    /// The tasks that each one waits for, and those that wait for it.
    after: Vec<Vec<usize>>,
    before: Vec<Vec<usize>>,
    /// The tasks that can be claimed.
    pub(super) ready: BTreeSet<usize>,
    /// The claims, by the ends of their leases.
    pub(super) leases: BTreeSet<(i64, usize)>,
    /// What waits to land: returned ones first, then the oldest.
    waiting: BTreeSet<(bool, i64, usize)>,
    /// What was returned, and is open.
    pub(super) returned: BTreeSet<(i64, usize)>,
    /// How many tasks have not ended.
    open: usize,
    /// The answers, by the nonces of their questions.
    answers: HashMap<u64, Rc<dyn Any>>,
    /// How to take back what was written in the last seconds, the oldest first.
    tail: VecDeque<(Millis, Undo)>,
    now: Millis,
    /// By how much the server's clock differs from the time.
    step: i64,
    /// When that clock went forward last, and when a failover last took back something about each task.
    stepped: Option<Millis>,
    undone: Vec<Option<Millis>>,
    /// Bookings that were taken back.
    pub(super) unbooked: u64,
    /// Bookings by processes that had no right to them.
    pub(super) wrong: Vec<String>,
    pub(super) rules: Rules,
    /// What was done last, and which claim's work was given back last, until it is taken from here.
    pub(super) happened: Option<Moment>,
    pub(super) given_back: Option<Claim>,
}

/// What happens in a store or on the trunk. A failover may come soon after it and lose it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moment {
    /// A task was claimed.
    Claimed,
    /// Another process has taken the lead.
    Led,
    /// A task was handed in.
    HandedIn,
    /// The tip of the trunk has moved.
    Pushed,
    /// It was booked that something has landed.
    Landed,
}

impl Moment {
    /// All of them.
    pub(super) const ALL: [Self; 5] = [Self::Claimed, Self::Led, Self::HandedIn, Self::Pushed, Self::Landed];
}

impl Store {
    /// Tasks that wait for these others each.
    pub(super) fn new(after: Vec<Vec<usize>>, rules: Rules) -> Self {
        let row =
            Row { own: Own::Open, number: 0, claimed: None, made: None, done_at: None, open_blockers: 0 };
        let mut before = vec![Vec::new(); after.len()];
        for (task, blockers) in after.iter().enumerate() {
            for blocker in blockers {
                before[*blocker].push(task);
            }
        }
        let mut store = Self {
            rows: vec![row; after.len()],
            lead: LeadRow::default(),
            undone: vec![None; after.len()],
            after,
            before,
            ready: BTreeSet::new(),
            leases: BTreeSet::new(),
            waiting: BTreeSet::new(),
            returned: BTreeSet::new(),
            open: 0,
            answers: HashMap::new(),
            tail: VecDeque::new(),
            now: 0,
            step: 0,
            stepped: None,
            unbooked: 0,
            wrong: Vec::new(),
            rules,
            happened: None,
            given_back: None,
        };
        store.rebuild();
        store
    }

    /// The server's clock.
    pub(super) fn clock(&self) -> i64 {
        i64::try_from(self.now).unwrap_or(i64::MAX) + self.step
    }

    /// Does what is asked with this nonce once; asked again, it gives the answer of that time. What has written nothing is done again.
    pub(super) fn once<T: Clone + 'static, E>(
        &mut self,
        nonce: u64,
        act: impl FnOnce(&mut Self) -> Result<T, E>,
    ) -> Result<T, E> {
        let known = self.answers.get(&nonce).and_then(|answer| answer.downcast_ref::<T>());
        if let Some(answer) = known {
            return Ok(answer.clone());
        }
        let before = self.tail.len();
        let answer = act(self)?;
        if self.tail.len() > before {
            self.answers.insert(nonce, Rc::new(answer.clone()));
            self.tail.push_back((self.now, Undo::Answer(nonce)));
        }
        Ok(answer)
    }

    /// Changes a task, and what is derived from it.
    pub(super) fn change(&mut self, task: usize, change: impl FnOnce(&mut Row)) {
        self.tail.push_back((self.now, Undo::Row(task, self.rows[task])));
        let was = self.status(task);
        self.unlist(task);
        change(&mut self.rows[task]);
        self.list(task);
        let is = self.status(task);
        let more = i64::from(was == Status::Done) - i64::from(is == Status::Done);
        if more != 0 {
            for blocked in self.before[task].clone() {
                self.unlist(blocked);
                self.rows[blocked].open_blockers += more;
                self.list(blocked);
            }
        }
    }

    /// Changes the lead.
    pub(super) fn change_lead(&mut self, lead: LeadRow) {
        self.tail.push_back((self.now, Undo::Lead(self.lead)));
        self.lead = lead;
    }

    fn facts(&self, task: usize) -> Facts {
        let Row { own, claimed, open_blockers, .. } = self.rows[task];
        let held = is_held(open_blockers, false);
        Facts { claimed: claimed.is_some(), has_work: true, own, held, children: 0, done: 0, failed: 0 }
    }

    /// The state of a task.
    pub(super) fn status(&self, task: usize) -> Status {
        status(&self.facts(task))
    }

    fn has_ended(&self, task: usize) -> bool {
        matches!(self.status(task), Status::Done | Status::Failed)
    }

    /// Takes a task out of all lists.
    fn unlist(&mut self, task: usize) {
        let row = self.rows[task];
        self.ready.remove(&task);
        if let Some(claimed) = row.claimed {
            self.leases.remove(&(claimed.until, task));
        }
        if let Some(made) = row.made {
            self.waiting.remove(&(made.landing.returned == 0, made.since, task));
            self.returned.remove(&(made.since, task));
        }
        self.open -= usize::from(!self.has_ended(task));
    }

    /// Puts a task into the lists where it belongs.
    fn list(&mut self, task: usize) {
        let row = self.rows[task];
        if row.claimed.is_none() && is_listed(&self.facts(task), None) {
            self.ready.insert(task);
        }
        if let Some(claimed) = row.claimed {
            self.leases.insert((claimed.until, task));
        }
        match row.made {
            Some(made) if made.standing == Standing::Waiting && row.own == Own::Landing => {
                self.waiting.insert((made.landing.returned == 0, made.since, task));
            }
            Some(made) if made.standing == Standing::Returned && row.own == Own::Open => {
                self.returned.insert((made.since, task));
            }
            _ => {}
        }
        self.open += usize::from(!self.has_ended(task));
    }

    /// Derives everything anew.
    fn rebuild(&mut self) {
        self.ready.clear();
        self.leases.clear();
        self.waiting.clear();
        self.returned.clear();
        self.open = 0;
        for task in 0..self.rows.len() {
            let is_open = |blocker: &&usize| self.rows[**blocker].own != Own::Done;
            let open_blockers = self.after[task].iter().filter(is_open).count();
            self.rows[task].open_blockers = i64::try_from(open_blockers).unwrap_or(i64::MAX);
        }
        (0..self.rows.len()).for_each(|task| self.list(task));
    }

    /// How many tasks have not ended.
    pub(super) fn open(&self) -> usize {
        self.open
    }

    /// How many landings wait.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// The first landings that wait, at most so many.
    pub(super) fn landings(&self, most: usize) -> Vec<Landing> {
        let of = |(_, _, task): &(bool, i64, usize)| self.rows[*task].made.map(|made| made.landing);
        self.waiting.iter().take(most).filter_map(of).collect()
    }

    /// The tasks that a task waits for.
    pub(super) fn blockers(&self, task: usize) -> &[usize] {
        &self.after[task]
    }
}
