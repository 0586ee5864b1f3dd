//! Faults of a history: processes that are killed, machines that sleep or are cut off, and servers that fail over or are away.

use std::rc::Rc;

use super::events::Millis;
use super::lander;
use super::process::{Away, Process};
use super::store::{Moment, TAIL};
use super::worker;
use super::world::{CloneOf, Strike, World};

/// How long the agent of a killed process still runs, at most.
const LEFT: Millis = 5000;

/// When the last processes are started at the beginning.
const LATEST: Millis = 30_000;

/// Starts ralph on a machine.
pub(super) fn start(world: &Rc<World>, machine: usize) {
    world.machines[machine].is_up.set(true);
    let process = Process::new(world, machine);
    run(&process, worker::run(Rc::clone(&process)));
    run(&process, worker::bring_commits(Rc::clone(&process)));
    if world.machines[machine].has_lander {
        run(&process, lander::run(Rc::clone(&process)));
    }
}

/// Runs a part of a process, with which the process ends.
fn run(process: &Rc<Process>, part: impl Future<Output = Result<(), Away>> + 'static) {
    let (world, machine) = (Rc::clone(&process.world), process.machine);
    process.world.events.start(machine, async move {
        let _ = part.await;
        world.doom(machine, 0);
    });
}

/// Carries out what is due: the store fails over, and processes end. A scheduler starts them again later, sometimes in a new clone, as
/// on another machine.
pub(super) fn carry_out(world: &Rc<World>) {
    if world.fails_over.take() {
        fail_over(world);
    }
    let doomed = std::mem::take(&mut *world.doomed.borrow_mut());
    for machine in doomed {
        if !world.machines[machine].is_up.replace(false) {
            continue;
        }
        world.events.kill(machine);
        let mut checks = world.checks.borrow_mut();
        checks.counts.killed += 1;
        for claim in checks.of_machine(machine) {
            world.agent_ends(claim, world.chance.between(0, LEFT));
        }
        let is_lost = world.chance.hits(300);
        let later = Rc::clone(world);
        world.events.after(world.chance.between(LEFT, 2 * world.lease_millis()), move || {
            if is_lost {
                later.machines[machine].clone.replace(CloneOf::default());
            }
            start(&later, machine);
        });
    }
}

/// Repeats this until the history is calm, with so much time between on average.
fn now_and_then(world: &Rc<World>, between: Millis, act: impl Fn(&Rc<World>) + 'static) {
    let later = Rc::clone(world);
    world.events.after(world.chance.between(0, 2 * between), move || {
        if !later.is_calm.get() {
            act(&later);
            now_and_then(&later, between, act);
        }
    });
}

/// Begins a history: ralph is started on all machines, and faults are planned.
pub(super) fn begin(world: &Rc<World>) {
    for machine in 0..world.size.workers {
        let later = Rc::clone(world);
        world.events.after(world.chance.between(0, LATEST), move || start(&later, machine));
    }
    if !world.faults.is_rough {
        return;
    }
    let lease = world.lease_millis();
    let of_fleet = |leases: u64| leases * lease / (world.size.workers as u64).max(1);
    now_and_then(world, 2 * lease, |world| match world.chance.place(7) {
        at if at < Moment::ALL.len() => world.fails_after.set(Some(Moment::ALL[at])),
        _ => world.fails_over.set(true),
    });
    now_and_then(world, of_fleet(20), |world| strike(world, Strike::Kill));
    now_and_then(world, of_fleet(20), |world| strike(world, Strike::Sleep(world.away())));
    now_and_then(world, of_fleet(15), |world| {
        let spans = [0, 1].map(|_| if world.chance.hits(600) { world.away() } else { 0 });
        strike(world, Strike::Cut(spans));
    });
    now_and_then(world, 6 * lease, |world| {
        world.down[1].set(world.now() + world.chance.between(1000, world.lease_millis()));
    });
    now_and_then(world, 3 * lease, |world| {
        let mut commits = world.commits.borrow_mut();
        let mut remote = world.remote.borrow_mut();
        let commit = commits.work(remote.tip, false, None);
        // A user's commit on the tip that is there is always taken.
        let _ = remote.push_tip(&mut commits, commit, false);
    });
}

/// One machine has a fault: now, or when it is about to get its next answer.
fn strike(world: &Rc<World>, strike: Strike) {
    let machine = world.chance.place(world.size.workers);
    if world.chance.hits(500) {
        world.strike(machine, strike);
    } else {
        world.machines[machine].strike.set(Some(strike));
    }
}

/// A replica takes over for the store. It lacks the last bookings, and its clock may differ.
fn fail_over(world: &World) {
    let minutes: i64 = world.chance.between(0, 20).cast_signed() - 10;
    let step = if world.chance.hits(300) { minutes * 60_000 } else { 0 };
    let mut store = world.store.borrow_mut();
    store.goes_on(world.now());
    store.fail_over(world.chance.between(0, TAIL), step);
    world.down[0].set(world.now() + world.chance.between(1000, 30_000));
}
