//! One history: the store, the remote, the machines, and what they have in common.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::time::Duration;

use super::chance::Chance;
use super::checks::{Checks, Wrong};
use super::claim::Claim;
use super::commits::{Commit, Commits};
use super::events::{Events, Millis};
use super::remote::Remote;
use super::rules::Rules;
use super::store::{Moment, Store, TAIL};
use crate::engine::uptime::Uptime;
use crate::source::tasks::lease::Lease;

/// How soon after an event the fault comes that follows it.
const SOON: Millis = 1500;

/// How large a history is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Size {
    pub(super) workers: usize,
    pub(super) landers: usize,
    pub(super) tasks: usize,
    /// How many landings are tried together.
    pub(super) batch: usize,
    /// The leases that a history may have, in minutes.
    pub(super) leases: &'static [u64],
}

/// Which faults a history has, and how often.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Faults {
    /// Questions and answers that are lost, out of a thousand.
    pub(super) lost: u64,
    /// Questions that arrive twice.
    pub(super) doubled: u64,
    /// Questions and answers that are late.
    pub(super) late: u64,
    /// Whether servers fail over, machines sleep, are cut off or killed, and users commit.
    pub(super) is_rough: bool,
    /// Faults of a machine between what a server did for it and its answer, as after a push of the tip.
    pub(super) struck: u64,
}

impl Faults {
    /// All faults.
    pub(super) const ALL: Self = Self { lost: 4, doubled: 4, late: 4, is_rough: true, struck: 30 };
    /// All faults, less often.
    pub(super) const RARE: Self = Self { lost: 1, doubled: 1, late: 1, is_rough: true, struck: 10 };
    /// Only questions and answers are lost.
    pub(super) const LOST: Self = Self { lost: 50, doubled: 0, late: 0, is_rough: false, struck: 0 };
}

/// The clocks of a machine.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clocks {
    /// By how much its wall clock is ahead, in milliseconds.
    pub(super) ahead: i64,
    /// How long it was up when the history began.
    pub(super) up: Millis,
    /// How much faster all its clocks go, in millionths.
    pub(super) drift: i64,
}

impl Clocks {
    fn drifted(self, span: Millis) -> Millis {
        let faster = i64::try_from(span).unwrap_or(i64::MAX) / 1000 * self.drift / 1000;
        span.saturating_add_signed(faster)
    }

    /// The clock that runs on while the machine sleeps.
    pub(super) fn uptime(self, now: Millis) -> Uptime {
        Uptime::at(Duration::from_millis(self.up + self.drifted(now)))
    }

    /// The wall clock.
    pub(super) fn wall(self, now: Millis) -> i64 {
        i64::try_from(self.drifted(now)).unwrap_or(i64::MAX) + self.ahead
    }

    /// How long it takes until these clocks have gone on by this.
    pub(super) fn real(self, span: Duration) -> Millis {
        let span = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        let faster = i64::try_from(span).unwrap_or(i64::MAX).saturating_mul(self.drift) / 1_000_000;
        span.saturating_add_signed(-faster)
    }
}

/// A clone of the repository, which outlives processes.
#[derive(Debug, Default)]
pub(super) struct CloneOf {
    /// The landed tip.
    pub(super) tip: Commit,
    /// The tip as the remote had it last.
    pub(super) seen: Commit,
    /// The tip that was fetched last.
    pub(super) fetched: Commit,
    /// Commits that are here besides those that it contains.
    pub(super) objects: HashSet<Commit>,
    /// The refs of claims.
    pub(super) kept: HashMap<Claim, Commit>,
    /// Claims whose work is finished and not booked yet.
    pub(super) finished: HashMap<Claim, Commit>,
    /// As what the commits of claims have landed.
    pub(super) notes: HashMap<Claim, Commit>,
}

/// A machine.
pub(super) struct Machine {
    pub(super) clocks: Clocks,
    pub(super) clone: RefCell<CloneOf>,
    /// Until when it does not reach the store, and the remote.
    pub(super) cut: [Cell<Millis>; 2],
    /// Its process has a lander.
    pub(super) has_lander: bool,
    /// A process runs.
    pub(super) is_up: Cell<bool>,
    /// The fault that it gets when a server has done what it asked for, before the answer.
    pub(super) strike: Cell<Option<Strike>>,
}

/// A fault of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Strike {
    /// Its process is killed.
    Kill,
    /// It sleeps so long.
    Sleep(Millis),
    /// It does not reach the store, or the remote, for so long.
    Cut([Millis; 2]),
}

/// A history.
pub(super) struct World {
    pub(super) rules: Rules,
    pub(super) faults: Faults,
    pub(super) size: Size,
    pub(super) lease: Lease,
    /// What lands are the commits once more, and not merges of them.
    pub(super) is_linear: bool,
    pub(super) events: Events,
    pub(super) chance: Chance,
    pub(super) store: RefCell<Store>,
    pub(super) remote: RefCell<Remote>,
    pub(super) commits: RefCell<Commits>,
    pub(super) checks: RefCell<Checks>,
    pub(super) machines: Vec<Machine>,
    /// Until when the store, and the remote, answer nothing.
    pub(super) down: [Cell<Millis>; 2],
    /// Machines whose processes are to end now.
    pub(super) doomed: RefCell<Vec<usize>>,
    /// The kind of event that the next failover of the store follows.
    pub(super) fails_after: Cell<Option<Moment>>,
    /// The store fails over now.
    pub(super) fails_over: Cell<bool>,
    /// Processes so far.
    pub(super) processes: Cell<u64>,
    /// There are no more faults.
    pub(super) is_calm: Cell<bool>,
}

impl World {
    /// The history of a seed, before anything happens.
    pub(super) fn new(seed: u64, size: Size, rules: Rules, faults: Faults) -> Rc<Self> {
        let chance = Chance::of(seed);
        let lease = size.leases[chance.place(size.leases.len())];
        let lease = Lease { length: Duration::from_mins(lease), counts_here: true };
        let is_linear = chance.hits(300);
        let after = (0..size.tasks).map(|task| blockers(&chance, task)).collect();
        let machines = (0..size.workers).map(|at| machine(&chance, at < size.landers)).collect();
        Rc::new(Self {
            rules,
            faults,
            size,
            lease,
            is_linear,
            events: Events::new(size.workers),
            store: RefCell::new(Store::new(after, rules)),
            remote: RefCell::default(),
            commits: RefCell::new(Commits::new()),
            checks: RefCell::default(),
            machines,
            down: [Cell::new(0), Cell::new(0)],
            doomed: RefCell::default(),
            fails_after: Cell::new(None),
            fails_over: Cell::new(false),
            processes: Cell::new(0),
            is_calm: Cell::new(false),
            chance,
        })
    }

    /// The time.
    pub(super) fn now(&self) -> Millis {
        self.events.now()
    }

    /// The lease, in milliseconds.
    pub(super) fn lease_millis(&self) -> Millis {
        u64::try_from(self.lease.length.as_millis()).unwrap_or(u64::MAX)
    }

    /// Notes that something is wrong.
    pub(super) fn fail(&self, wrong: Wrong, what: &str) {
        self.checks.borrow_mut().fail(self.now(), wrong, what);
    }

    /// Whether a commit contains another one.
    pub(super) fn contains(&self, commit: Commit, other: Commit) -> bool {
        self.commits.borrow().contains(commit, other)
    }

    /// A server has done something for a machine, which does not know yet. The machine may have a fault before it does, or the store
    /// may fail over soon and lose it.
    pub(super) fn happens(self: &Rc<Self>, moment: Moment, machine: usize) {
        // Landings are booked one after the other: they would have too many faults.
        let may_strike = moment != Moment::Landed && !self.is_calm.get();
        if may_strike && self.chance.hits(self.faults.struck) {
            match self.chance.place(4) {
                0 => self.strike(machine, Strike::Sleep(self.away())),
                1 => self.strike(machine, Strike::Cut([self.away(), 0])),
                _ => self.doom(machine, self.chance.between(0, SOON)),
            }
        }
        if self.fails_after.get() == Some(moment) {
            self.fails_after.set(None);
            let world = Rc::clone(self);
            self.events.after(self.chance.between(0, TAIL), move || world.fails_over.set(true));
        }
    }

    /// A machine has a fault now.
    pub(super) fn strike(self: &Rc<Self>, machine: usize, strike: Strike) {
        let now = self.now();
        match strike {
            Strike::Kill => self.doom(machine, 0),
            Strike::Sleep(span) => self.events.sleep(machine, now + span),
            Strike::Cut(spans) => {
                let cut = &self.machines[machine].cut;
                cut.iter().zip(spans).for_each(|(cut, span)| cut.set(cut.get().max(now + span)));
            }
        }
    }

    /// How long a machine is away, by chance.
    pub(super) fn away(&self) -> Millis {
        self.chance.between(1000, 3 * self.lease_millis())
    }

    /// The agent of a claim ends after so long.
    pub(super) fn agent_ends(self: &Rc<Self>, claim: Claim, after: Millis) {
        let world = Rc::clone(self);
        self.events.after(after, move || world.checks.borrow_mut().ends(claim));
    }

    /// The process of a machine ends after so long.
    pub(super) fn doom(self: &Rc<Self>, machine: usize, after: Millis) {
        let world = Rc::clone(self);
        self.events.after(after, move || world.doomed.borrow_mut().push(machine));
    }
}

/// What a task waits for: mostly nothing, else one or two of the tasks shortly before it.
fn blockers(chance: &Chance, task: usize) -> Vec<usize> {
    let count = if task > 0 && chance.hits(100) { chance.between(1, 2) } else { 0 };
    let mut blockers: Vec<usize> = (0..count).map(|_| task - 1 - chance.place(task.min(40))).collect();
    blockers.dedup();
    blockers
}

fn machine(chance: &Chance, has_lander: bool) -> Machine {
    let minutes = 5 * 60 * 1000;
    let signed = |most: u64| chance.between(0, 2 * most).cast_signed() - most.cast_signed();
    let clocks = Clocks { ahead: signed(minutes), up: chance.between(0, 1 << 40), drift: signed(20_000) };
    Machine {
        clocks,
        clone: RefCell::default(),
        cut: [Cell::new(0), Cell::new(0)],
        has_lander,
        is_up: Cell::new(false),
        strike: Cell::new(None),
    }
}
