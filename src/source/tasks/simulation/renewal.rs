//! A worker's claim while its agent works: it is renewed, and the agent may work as long as the product's own code says.

use std::cell::Cell;
use std::rc::Rc;

use super::claim::{Claim, Lost};
use super::events::Millis;
use super::process::Process;
use super::rules::Rule;
use crate::engine::context::Renewed;
use crate::engine::uptime::Uptime;
use crate::graph::GraphError;
use crate::source::tasks::lease::Held;

/// The claim of an agent.
pub(super) struct Renewal {
    claim: Claim,
    held: Held,
    /// When the last renewal that has succeeded was sent.
    sent: Cell<Uptime>,
    /// There was an answer since the last check.
    has_news: Cell<bool>,
    /// It is renewed no more.
    is_over: Cell<bool>,
    /// The program of the worker.
    worker: usize,
}

impl Renewal {
    /// Starts to renew a claim that was asked for at this moment.
    pub(super) fn start(process: &Rc<Process>, claim: Claim, sent: Uptime) -> Rc<Self> {
        let renewal = Rc::new(Self {
            claim,
            held: Held::new(process.world.lease, sent),
            sent: Cell::new(sent),
            has_news: Cell::new(false),
            is_over: Cell::new(false),
            worker: process.world.events.current(),
        });
        let (own, theirs) = (Rc::clone(&renewal), Rc::clone(process));
        process.world.events.start(process.machine, async move { own.run(&theirs).await });
        renewal
    }

    /// It is renewed no more.
    pub(super) fn ends(&self) {
        self.is_over.set(true);
    }

    /// Renews again and again, as the duty of the product's `Desk` does.
    async fn run(&self, process: &Process) {
        let world = &process.world;
        let every = process.clocks().real(world.lease.renewal());
        let mut last = world.now();
        loop {
            world.events.until(last + every, || false).await;
            if self.is_over.get() {
                return;
            }
            last = world.now();
            let sent = process.uptime();
            let (claim, length) = (self.claim, world.lease_millis().cast_signed());
            let answer = process.book((), move |store, now| store.renew(&claim, now + length)).await;
            let answered = if world.rules.hold(Rule::BeforeSending) { sent } else { process.uptime() };
            match answer {
                Ok(Ok(())) => {
                    self.sent.set(answered);
                    self.held.renewed(answered, Ok(()));
                }
                Ok(Err(Lost::Claim | Lost::Lead)) => {
                    self.held.renewed(answered, Err(GraphError::ClaimLost { id: String::new() }));
                }
                Err(_) => return,
            }
            self.has_news.set(true);
            world.events.wake(self.worker);
        }
    }

    /// Whether the agent may go on now.
    pub(super) fn holds(&self, now: Uptime) -> bool {
        self.has_news.set(false);
        matches!(self.held.look(now), Ok(Renewed::After(_)))
    }

    /// Waits until a moment, or until the agent may have to end, which the product checks once a second.
    pub(super) async fn until(&self, process: &Process, at: Millis) {
        let (world, clocks) = (&process.world, process.clocks());
        let left = world.lease.allowed().saturating_sub(self.sent.get().until(process.uptime()));
        let look = world.now() + clocks.real(left) + world.chance.between(1, 1000);
        world.events.until(at.min(look), || self.has_news.get()).await;
    }
}
