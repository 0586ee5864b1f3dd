//! A worker, as in `source/tasks/`: it claims a task, has an agent work on it, and hands in the result.

use std::rc::Rc;

use super::checks::{AtTask, Excuse, Wrong};
use super::claim::{Claim, Lost};
use super::commits::Commit;
use super::events::Millis;
use super::process::{AtWork, Away, Process};
use super::renewal::Renewal;
use super::rules::Rule;
use crate::engine::uptime::Uptime;
use crate::graph::landing::Standing;

/// How long a worker without a task waits before it asks again, at first and at last.
const IDLE: Millis = 2000;
const IDLEST: Millis = 30_000;
/// How often a worker checks whether its claim still holds.
const LOOK: Millis = 1000;
/// The longest that an agent takes to end when it is asked to.
const ENDING: Millis = 5000;

/// How the work of an agent ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    /// It says that the task is done.
    Done,
    /// It has failed.
    Failed,
    /// Its claim did not hold any more.
    Forfeit,
}

/// A claim, and when it was asked for.
struct Asked {
    claim: Claim,
    sent: Uptime,
    since: Millis,
}

/// Works until the store or the remote is away for too long.
pub(super) async fn run(process: Rc<Process>) -> Result<(), Away> {
    process.bring_tip().await?;
    process.take_up().await?;
    let mut idle = IDLE;
    loop {
        let Some(asked) = process.claim().await? else {
            process.world.events.pass(process.world.chance.between(idle / 2, idle * 3 / 2)).await;
            idle = IDLEST.min(idle * 2);
            continue;
        };
        idle = IDLE;
        process.work_on(asked).await?;
    }
}

/// Pushes what agents commit while they work, as `landing/courier.rs` does.
pub(super) async fn bring_commits(process: Rc<Process>) -> Result<(), Away> {
    let world = &process.world;
    let every = process.clocks().real(world.lease.renewal());
    let mut told = None;
    loop {
        world.events.pass(every).await;
        let Some(AtWork { claim, base, head }) = process.at_work.get() else { continue };
        if told == Some((claim, head)) || world.contains(base, head) {
            continue;
        }
        process.push_claim(claim, head).await?;
        if process.try_to_book(move |store, _| store.keep(&claim, base, head)).await {
            told = Some((claim, head));
        }
    }
}

impl Process {
    /// Pushes and books what an earlier process in this clone could not.
    async fn take_up(&self) -> Result<(), Away> {
        let tip = self.clone_of(|clone| clone.tip);
        let mut left: Vec<(Claim, Commit)> = self.clone_of(|clone| clone.kept.clone().into_iter().collect());
        left.sort_unstable();
        for (claim, head) in left {
            let is_finished = self.clone_of(|clone| clone.finished.get(&claim) == Some(&head));
            let has_landed = self.world.contains(tip, head);
            if has_landed || !is_finished && self.is_there(claim, head).await? {
                continue;
            }
            self.push_claim(claim, head).await?;
            let base = 0;
            if is_finished {
                let _ = self.hand_in(claim, base, head).await?;
            } else {
                let kept = self.book((), move |store, _| store.keep(&claim, base, head)).await?;
                if kept.is_ok() {
                    let _ = self.book((), move |store, _| store.release(&claim)).await?;
                }
            }
            self.moment().await;
            self.clone_of(|clone| clone.finished.remove(&claim));
        }
        Ok(())
    }

    /// Claims a task that can be worked on here; `None`: there is none.
    async fn claim(&self) -> Result<Option<Asked>, Away> {
        let world = &self.world;
        let (length, nonce) = (world.lease_millis().cast_signed(), world.chance.number());
        let (since, room, mut sent) = (world.now(), world.size.batch, self.uptime());
        let claimed =
            self.book(None, move |store, now| Ok(store.claim(now, now + length, nonce, room))).await?;
        let Some(claim) = claimed.unwrap_or_default() else { return Ok(None) };
        if !world.rules.hold(Rule::BeforeSending) {
            sent = self.uptime();
        }
        let task = claim.task;
        let before = self.look(move |store| store.commits_before(task)).await?;
        let tip = self.clone_of(|clone| clone.tip);
        if before.iter().all(|commit| world.contains(tip, *commit)) {
            return Ok(Some(Asked { claim, sent, since }));
        }
        // What it builds on is not here yet.
        let _ = self.book((), move |store, _| store.release(&claim)).await?;
        self.bring_tip().await?;
        Ok(None)
    }

    /// Works on a claimed task, and books the result.
    async fn work_on(self: &Rc<Self>, asked: Asked) -> Result<(), Away> {
        let Asked { claim, sent, since } = asked;
        let renewal = Renewal::start(self, claim, sent);
        let (base, start, lost) = self.lay_out(claim).await?;
        if !renewal.holds(self.uptime()) {
            // Laying it out took longer than the lease.
            renewal.ends();
            let _ = self.book((), move |store, _| store.release(&claim)).await?;
            return Ok(());
        }
        if let Some(lost) = lost {
            self.check_lost(claim, lost);
        }
        self.at_work.set(Some(AtWork { claim, base, head: start }));
        let agent = AtTask { claim, machine: self.machine, since };
        self.agent_works(agent);
        let ended = self.agent(agent, &renewal).await;
        let head = self.at_work.get().map_or(start, |at_work| at_work.head);
        if ended == Ended::Done {
            if !self.world.rules.hold(Rule::RenewedUntilBooked) {
                renewal.ends();
            }
            self.book_done(claim, base, head).await?;
        } else {
            self.keep(claim, base, head).await?;
            let _ = self.book((), move |store, _| store.release(&claim)).await?;
        }
        renewal.ends();
        self.at_work.set(None);
        Ok(())
    }

    /// Puts the work tree on the commits that there are for a task, merged with the landed tip, or on that tip. Returns the tip, where
    /// the work begins, and the commit from which it should have gone on, if the remote does not have it.
    async fn lay_out(&self, claim: Claim) -> Result<(Commit, Commit, Option<Commit>), Away> {
        let task = claim.task;
        let made = self.look(move |store| store.made(task)).await?;
        self.bring_tip().await?;
        let made = made.filter(|made| made.standing != Standing::Landed).map(|made| made.landing);
        let start = match made {
            Some(made) if self.bring(made.claim, made.head).await? => Some(made.head),
            _ => None,
        };
        self.moment().await;
        let base = self.clone_of(|clone| clone.tip);
        let mut commits = self.world.commits.borrow_mut();
        Ok(match start {
            None => (base, base, made.map(|made| made.head)),
            Some(start) if commits.contains(start, base) => (base, start, None),
            Some(start) => {
                let merged = commits.merge(start, base);
                (base, merged.unwrap_or_else(|| commits.resolve(start, base)), None)
            }
        })
    }

    /// Checks that no ref has the commits of work that is begun anew.
    fn check_lost(&self, claim: Claim, lost: Commit) {
        let refs = self.world.remote.borrow().claims_on(claim.task);
        if refs.iter().any(|(_, commit)| self.world.contains(*commit, lost)) {
            self.world.fail(Wrong::NotFound, &format!("{claim:?} begins without {lost}, of {refs:?}"));
        }
    }

    /// Notes that an agent works now.
    fn agent_works(&self, agent: AtTask) {
        let world = &self.world;
        let store = world.store.borrow();
        let excuse = |agent: &AtTask| {
            if store.has_stepped_since(agent.since) {
                Some(Excuse::Clock)
            } else if store.is_undone_since(agent.claim.task, agent.since) {
                Some(Excuse::Failover)
            } else if world.events.has_woken(agent.machine, LOOK + ENDING) {
                Some(Excuse::Sleep)
            } else {
                None
            }
        };
        let is_awake = |machine| !world.events.is_asleep(machine);
        world.checks.borrow_mut().works(world.now(), agent, is_awake, excuse);
    }

    /// An agent works: it commits a few times, until it ends or has to end.
    async fn agent(&self, agent: AtTask, renewal: &Renewal) -> Ended {
        let world = &self.world;
        let (chance, lease) = (&world.chance, world.lease_millis());
        let span =
            if chance.hits(500) { chance.between(200, 1000) } else { chance.between(2000, lease * 5 / 4) };
        let ends = world.now() + span;
        let mut commits = chance.between(1, 3);
        let touches =
            if chance.hits(6000 / world.size.workers as u64) { Some(chance.place(8)) } else { None };
        let fails = chance.hits(30);
        loop {
            let next =
                ends - (ends.saturating_sub(world.now())) * (commits.saturating_sub(1)) / commits.max(1);
            renewal.until(self, next).await;
            if !renewal.holds(self.uptime()) {
                let ending = chance.between(0, ENDING);
                world.agent_ends(agent.claim, ending);
                world.events.pass(ending).await;
                return Ended::Forfeit;
            }
            self.agent_works(agent);
            if world.now() < next {
                continue;
            }
            commits -= 1;
            let is_bad = commits == 0 && chance.hits(480 / world.size.batch as u64);
            self.commits(is_bad, touches);
            if commits == 0 {
                world.agent_ends(agent.claim, 0);
                return if fails { Ended::Failed } else { Ended::Done };
            }
        }
    }

    /// The agent commits.
    fn commits(&self, is_bad: bool, touches: Option<usize>) {
        let Some(at_work) = self.at_work.get() else { return };
        let head = self.world.commits.borrow_mut().work(at_work.head, is_bad, touches);
        self.has_now(head);
        self.at_work.set(Some(AtWork { head, ..at_work }));
    }

    /// Keeps what is committed for a task, so that its next agent goes on from there. If the claim is lost, the next booking says so.
    async fn keep(&self, claim: Claim, base: Commit, head: Commit) -> Result<(), Away> {
        self.moment().await;
        self.clone_of(|clone| clone.kept.insert(claim, head));
        self.push_claim(claim, head).await?;
        let _ = self.book((), move |store, _| store.keep(&claim, base, head)).await?;
        self.moment().await;
        Ok(())
    }

    /// Books what an agent has finished.
    async fn book_done(&self, claim: Claim, base: Commit, head: Commit) -> Result<(), Away> {
        self.world.checks.borrow_mut().finishes(claim);
        if self.world.contains(base, head) {
            let _ = self.book((), move |store, _| store.complete(&claim, head)).await?;
            return Ok(());
        }
        self.moment().await;
        self.clone_of(|clone| (clone.kept.insert(claim, head), clone.finished.insert(claim, head)));
        if self.world.rules.hold(Rule::CommitsFirst) {
            self.keep(claim, base, head).await?;
            let _ = self.hand_in(claim, base, head).await?;
        } else {
            let _ = self.hand_in(claim, base, head).await?;
            self.keep(claim, base, head).await?;
        }
        self.moment().await;
        self.clone_of(|clone| clone.finished.remove(&claim));
        Ok(())
    }

    /// Hands a task in to land.
    async fn hand_in(&self, claim: Claim, base: Commit, head: Commit) -> Result<Result<(), Lost>, Away> {
        let booked = self.book((), move |store, _| store.queue(&claim, base, head)).await?;
        if booked.is_ok() {
            self.world.checks.borrow_mut().handed_in(claim, head);
            self.is_stirred.set(true);
            self.lander.get().into_iter().for_each(|lander| self.world.events.wake(lander));
        }
        Ok(booked)
    }
}
