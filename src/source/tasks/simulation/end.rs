//! What must hold when a history has ended.

use std::collections::BTreeSet;

use super::checks::{Brought, Wrong};
use super::claim::Claim;
use super::world::World;
use crate::graph::Status;

/// Checks it, and adds what the store has counted.
pub(super) fn check(world: &World) {
    check_tasks(world);
    check_landed(world);
    check_handed_in(world);
    let store = world.store.borrow();
    for what in &store.wrong {
        world.fail(Wrong::NoRight, what);
    }
    world.checks.borrow_mut().counts.unbooked = store.unbooked;
}

/// All tasks have ended, and what was done for them is on the trunk.
fn check_tasks(world: &World) {
    let (store, tip) = (world.store.borrow(), world.remote.borrow().tip);
    for task in 0..world.size.tasks {
        let (status, row) = (store.status(task), store.rows[task]);
        if !matches!(status, Status::Done | Status::Failed) {
            world.fail(Wrong::Unended, &format!("task {task} is {status:?}: {row:?}"));
        }
        let done_at = row.done_at.filter(|_| status == Status::Done);
        if let Some(commit) = done_at.filter(|commit| !world.contains(tip, *commit)) {
            world
                .fail(Wrong::Missing, &format!("task {task} is done as {commit}, which is not on the trunk"));
        }
    }
}

/// What came onto the trunk is still there.
fn check_landed(world: &World) {
    let tip = world.remote.borrow().tip;
    let landed: Vec<Brought> = world.checks.borrow().all_landed().collect();
    for brought in landed.iter().filter(|brought| !world.contains(tip, brought.commit)) {
        world.fail(Wrong::Missing, &format!("{brought:?} has landed, and is gone"));
    }
}

/// What was handed in came onto the trunk, or its commits are kept.
fn check_handed_in(world: &World) {
    let landed: BTreeSet<Claim> = world.checks.borrow().all_landed().map(|brought| brought.claim).collect();
    let handed_in = world.checks.borrow().all_handed_in();
    for (claim, head) in handed_in.into_iter().filter(|(claim, _)| !landed.contains(claim)) {
        if !world.remote.borrow().leads_to(&world.commits.borrow(), head) {
            world.fail(Wrong::Missing, &format!("{head} of {claim:?} was handed in, and no ref leads to it"));
        }
    }
}
