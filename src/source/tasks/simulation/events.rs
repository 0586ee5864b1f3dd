//! Virtual time: events in their order, and the programs that wait for them.
//!
//! A program is an `async` block that belongs to a machine. It runs until it waits for a time or for an answer; nothing else happens
//! meanwhile, and no time passes. To kill it is to drop it, which can happen wherever it waits.

use std::cell::{Cell, RefCell};
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

/// Milliseconds, since the history began where it is a moment.
pub(super) type Millis = u64;

/// An event.
enum What {
    /// A program runs on, if it still waits for what this ticket stands for.
    Resume { program: usize, ticket: u64 },
    /// Something else.
    Act(Box<dyn FnOnce()>),
}

struct Due {
    at: Millis,
    /// Of two at the same moment, the one that was planned first comes first.
    order: u64,
    what: What,
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Due {}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Due {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}

struct Program {
    machine: usize,
    /// What it waits for now.
    ticket: u64,
    /// `None`: it has ended, was killed, or runs now.
    body: Option<Pin<Box<dyn Future<Output = ()>>>>,
}

/// All planned events, and the time.
pub(super) struct Events {
    now: Cell<Millis>,
    planned: Cell<u64>,
    queue: RefCell<BinaryHeap<Reverse<Due>>>,
    programs: RefCell<Vec<Program>>,
    /// The programs of each machine that have not ended.
    living: RefCell<Vec<Vec<usize>>>,
    /// Until when each machine sleeps.
    asleep: RefCell<Vec<Millis>>,
    /// The program that runs.
    current: Cell<usize>,
}

impl Events {
    /// No events, for so many machines.
    pub(super) fn new(machines: usize) -> Self {
        Self {
            now: Cell::new(0),
            planned: Cell::new(0),
            queue: RefCell::default(),
            programs: RefCell::default(),
            living: RefCell::new(vec![Vec::new(); machines]),
            asleep: RefCell::new(vec![0; machines]),
            current: Cell::new(0),
        }
    }

    /// The time.
    pub(super) fn now(&self) -> Millis {
        self.now.get()
    }

    /// How many events were planned so far.
    pub(super) fn planned(&self) -> u64 {
        self.planned.get()
    }

    fn plan(&self, at: Millis, what: What) {
        let order = self.planned.get();
        self.planned.set(order + 1);
        self.queue.borrow_mut().push(Reverse(Due { at: at.max(self.now()), order, what }));
    }

    /// Does this after so long.
    pub(super) fn after(&self, span: Millis, act: impl FnOnce() + 'static) {
        self.plan(self.now() + span, What::Act(Box::new(act)));
    }

    /// Starts a program on a machine.
    pub(super) fn start(&self, machine: usize, body: impl Future<Output = ()> + 'static) {
        let mut programs = self.programs.borrow_mut();
        let program = programs.len();
        programs.push(Program { machine, ticket: 0, body: Some(Box::pin(body)) });
        self.living.borrow_mut()[machine].push(program);
        self.plan(self.now(), What::Resume { program, ticket: 0 });
    }

    /// Kills all programs of a machine.
    pub(super) fn kill(&self, machine: usize) {
        let killed = std::mem::take(&mut self.living.borrow_mut()[machine]);
        let take = |program: usize| self.programs.borrow_mut()[program].body.take();
        // What they hold is dropped while nothing is borrowed.
        drop(killed.into_iter().map(take).collect::<Vec<_>>());
    }

    /// Nothing runs on a machine from now until then, and its clocks go on.
    pub(super) fn sleep(&self, machine: usize, until: Millis) {
        let asleep = &mut self.asleep.borrow_mut()[machine];
        *asleep = until.max(*asleep);
    }

    /// Whether a machine sleeps.
    pub(super) fn is_asleep(&self, machine: usize) -> bool {
        self.asleep.borrow()[machine] > self.now()
    }

    /// Whether a machine has slept until a moment ago, at most this long.
    pub(super) fn has_woken(&self, machine: usize, ago: Millis) -> bool {
        let wakes = self.asleep.borrow()[machine];
        wakes > 0 && (wakes..=wakes + ago).contains(&self.now())
    }

    /// The program that runs.
    pub(super) fn current(&self) -> usize {
        self.current.get()
    }

    /// Has a program check what it waits for.
    pub(super) fn wake(&self, program: usize) {
        let ticket = self.programs.borrow()[program].ticket;
        self.plan(self.now(), What::Resume { program, ticket });
    }

    /// Waits so long.
    pub(super) async fn pass(&self, span: Millis) {
        self.until(self.now() + span, || false).await;
    }

    /// Waits until a moment, or until a check succeeds, which is made when the program is woken.
    pub(super) async fn until(&self, at: Millis, check: impl Fn() -> bool) {
        let mut is_planned = false;
        poll_fn(|_| {
            if self.now() >= at || check() {
                return Poll::Ready(());
            }
            if !is_planned {
                is_planned = true;
                let program = self.current();
                let ticket = {
                    let ticket = &mut self.programs.borrow_mut()[program].ticket;
                    *ticket += 1;
                    *ticket
                };
                self.plan(at, What::Resume { program, ticket });
            }
            Poll::Pending
        })
        .await;
    }

    /// Carries out the next event; returns whether there was one.
    pub(super) fn step(&self) -> bool {
        let Some(Reverse(due)) = self.queue.borrow_mut().pop() else { return false };
        self.now.set(due.at);
        match due.what {
            What::Act(act) => act(),
            What::Resume { program, ticket } => self.resume(program, ticket),
        }
        true
    }

    fn resume(&self, program: usize, ticket: u64) {
        let body = {
            let known = &mut self.programs.borrow_mut()[program];
            if known.ticket != ticket || known.body.is_none() {
                return;
            }
            let wakes = self.asleep.borrow()[known.machine];
            if wakes > self.now() {
                self.plan(wakes, What::Resume { program, ticket });
                return;
            }
            known.body.take()
        };
        let Some(mut body) = body else { return };
        self.current.set(program);
        let is_over = body.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready();
        let known = &mut self.programs.borrow_mut()[program];
        if is_over {
            self.living.borrow_mut()[known.machine].retain(|other| *other != program);
        } else {
            known.body = Some(body);
        }
    }

    /// Ends everything. Programs hold the world that holds them.
    pub(super) fn clear(&self) {
        let programs = std::mem::take(&mut *self.programs.borrow_mut());
        let queue = std::mem::take(&mut *self.queue.borrow_mut());
        drop((programs, queue));
    }
}
