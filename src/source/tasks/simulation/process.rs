//! What a process of ralph on a machine knows, and how it asks the store.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use super::claim::{Claim, Lost};
use super::commits::Commit;
use super::events::Millis;
use super::network::Server;
use super::rules::Rule;
use super::store::Store;
use super::world::{Clocks, CloneOf, World};
use crate::engine::uptime::Uptime;

/// The first pause before a server that is away is asked again, and the longest.
const FIRST: Millis = 1000;
const LONGEST: Millis = 60_000;
/// How long a server that is away is waited for.
const PATIENCE: Millis = 60 * 60 * 1000;

/// A server is away for so long that the process ends.
#[derive(Debug)]
pub(super) struct Away;

/// What an agent of this process works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AtWork {
    pub(super) claim: Claim,
    pub(super) base: Commit,
    /// The last commit in its work tree.
    pub(super) head: Commit,
}

/// A process, with what is lost when it is killed.
pub(super) struct Process {
    pub(super) world: Rc<World>,
    pub(super) machine: usize,
    /// Its number among all processes.
    pub(super) number: u64,
    pub(super) at_work: Cell<Option<AtWork>>,
    /// The number of the ref that the commits of a claim were pushed to last, and the last of them.
    pub(super) pushed: RefCell<HashMap<Claim, (u32, Commit)>>,
    /// The program of its lander, and whether something was handed in here since that has looked.
    pub(super) lander: Cell<Option<usize>>,
    pub(super) is_stirred: Cell<bool>,
    /// The tip here is being moved.
    pub(super) turn: Cell<bool>,
    /// When the tip was brought here last.
    pub(super) brought: Cell<Option<Millis>>,
}

impl Process {
    /// A new process on a machine.
    pub(super) fn new(world: &Rc<World>, machine: usize) -> Rc<Self> {
        let number = world.processes.get() + 1;
        world.processes.set(number);
        Rc::new(Self {
            world: Rc::clone(world),
            machine,
            number,
            at_work: Cell::new(None),
            pushed: RefCell::default(),
            lander: Cell::new(None),
            is_stirred: Cell::new(false),
            turn: Cell::new(false),
            brought: Cell::new(None),
        })
    }

    /// The clocks of its machine.
    pub(super) fn clocks(&self) -> Clocks {
        self.world.machines[self.machine].clocks
    }

    /// The clock that leases are counted by here.
    pub(super) fn uptime(&self) -> Uptime {
        self.clocks().uptime(self.world.now())
    }

    /// Its clone.
    pub(super) fn clone_of<T>(&self, act: impl FnOnce(&mut CloneOf) -> T) -> T {
        act(&mut self.world.machines[self.machine].clone.borrow_mut())
    }

    /// Passes some milliseconds, as between two writes to the disk of this machine, in which the process may be killed.
    pub(super) async fn moment(&self) {
        self.world.events.pass(self.world.chance.between(1, 30)).await;
    }

    /// Asks a server until it answers.
    pub(super) async fn patiently<T: 'static>(
        &self,
        server: Server,
        act: impl Fn(&Rc<World>) -> T + Clone + 'static,
    ) -> Result<T, Away> {
        let (began, mut pause) = (self.world.now(), FIRST);
        loop {
            if let Some(answer) = self.world.question(self.machine, server, act.clone()).await {
                return Ok(answer);
            }
            if self.world.now() >= began + PATIENCE {
                return Err(Away);
            }
            self.world.events.pass(self.world.chance.between(pause / 2, pause * 3 / 2)).await;
            pause = LONGEST.min(pause * 2);
        }
    }

    /// Reads from the store.
    pub(super) async fn look<T: 'static>(
        &self,
        read: impl Fn(&Store) -> T + Clone + 'static,
    ) -> Result<T, Away> {
        self.patiently(Server::Store, move |world| {
            let now = world.now();
            let mut store = world.store.borrow_mut();
            store.goes_on(now);
            read(&store)
        })
        .await
    }

    /// A question that has the store write something, once for its nonce. `write` gets the time by which leases are decided.
    fn writing<T: Clone + 'static>(
        &self,
        write: impl Fn(&mut Store, i64) -> Result<T, Lost> + Clone + 'static,
    ) -> impl Fn(&Rc<World>) -> Result<T, Lost> + Clone + 'static {
        let (nonce, machine) = (self.world.chance.number(), self.machine);
        move |world: &Rc<World>| {
            let (now, wall) = (world.now(), world.machines[machine].clocks.wall(world.now()));
            let mut store = world.store.borrow_mut();
            store.goes_on(now);
            let clock = if world.rules.hold(Rule::ServerClock) { store.clock() } else { wall };
            let answer = if world.rules.hold(Rule::AskedAgain) {
                store.once(nonce, |store| write(store, clock))
            } else {
                write(&mut store, clock)
            };
            if let Some(moment) = store.happened.take() {
                world.happens(moment, machine);
            }
            let mut checks = world.checks.borrow_mut();
            if let Some(claim) = store.given_back.take() {
                checks.returned(claim);
            }
            checks.counts.refused += u64::from(answer.is_err());
            answer
        }
    }

    /// Has the store write something, and asks until it is known whether it has. `assumed`: what is taken for the answer where a lost
    /// one is not asked for.
    pub(super) async fn book<T: Clone + 'static>(
        &self,
        assumed: T,
        write: impl Fn(&mut Store, i64) -> Result<T, Lost> + Clone + 'static,
    ) -> Result<Result<T, Lost>, Away> {
        let act = self.writing(write);
        if self.world.rules.hold(Rule::AskedAgain) {
            return self.patiently(Server::Store, act).await;
        }
        let answer = self.world.question(self.machine, Server::Store, act).await;
        Ok(answer.unwrap_or(Ok(assumed)))
    }

    /// Has the store write something, and asks only once; returns whether it answered that it did.
    pub(super) async fn try_to_book(
        &self,
        write: impl Fn(&mut Store, i64) -> Result<(), Lost> + Clone + 'static,
    ) -> bool {
        let answer = self.world.question(self.machine, Server::Store, self.writing(write)).await;
        matches!(answer, Some(Ok(())))
    }
}
