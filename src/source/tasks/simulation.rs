//! Histories of many machines at one graph, in virtual time: workers and landers, a model of the store, a model of the remote, and faults
//! of all of them. The same seed gives the same history.
//!
//! What the product decides without a store, a remote or a clock is its own code here: which states follow (`graph/transitions.rs`), what
//! a round of landing tries and which candidate may be the tip (`graph/landing.rs`), how long an agent may work (`lease.rs`). The rest is
//! a model that follows the product's code step by step, under the same names. Each rule of the protocol can be switched off, and a test
//! shows what goes wrong then.

mod bookings;
mod chance;
mod checks;
mod claim;
mod commits;
mod end;
mod events;
mod exchange;
mod faults;
mod lander;
mod network;
mod process;
mod remote;
mod renewal;
mod rules;
mod store;
mod worker;
mod world;

use std::ops::Range;

use checks::{Counts, Wrong};
use events::Millis;
use rules::{Rule, Rules};
use world::{Faults, Size, World};

/// A history with more failures than this is not played to its end.
const ENOUGH: usize = 5;

/// A history that was played.
#[derive(Debug, PartialEq, Eq)]
struct Played {
    wrong: Vec<(Wrong, String)>,
    counts: Counts,
    /// How long it took, in virtual time.
    took: Millis,
    /// How many events it had.
    events: u64,
}

/// Plays the history of a seed: until all tasks have ended, and for two more leases without faults, in which late answers arrive.
fn play(seed: u64, size: Size, rules: Rules, faults: Faults) -> Played {
    let world = World::new(seed, size, rules, faults);
    faults::begin(&world);
    let (longest, quiet) = (400 * world.lease_millis(), 2 * world.lease_millis());
    let mut calm_since = None;
    while world.events.step() {
        faults::carry_out(&world);
        let (now, have_ended) = (world.now(), world.store.borrow().open() == 0);
        if have_ended && calm_since.is_none() {
            calm_since = Some(now);
            world.is_calm.set(true);
            // The last bookings may be lost, too.
            world.fails_over.set(faults.is_rough && world.chance.hits(500));
        }
        let is_over = have_ended && calm_since.is_some_and(|since| now > since + quiet);
        if is_over || now > longest || world.checks.borrow().wrong.len() > ENOUGH {
            break;
        }
    }
    end::check(&world);
    let (took, events) = (world.now(), world.events.planned());
    world.events.clear();
    let mut checks = world.checks.borrow_mut();
    Played { wrong: std::mem::take(&mut checks.wrong), counts: checks.counts, took, events }
}

/// The number in a variable of the environment.
fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

/// Small enough to play many of them.
const SMALL: Size = Size { workers: 10, landers: 4, tasks: 40, batch: 8, leases: &[2, 2, 5, 10] };
/// As a team has it.
const USUAL: Size = Size { workers: 40, landers: 4, tasks: 300, batch: 16, leases: &[2, 2, 5, 10] };
/// As issue 31 demands it.
const LARGE: Size = Size { workers: 1000, landers: 8, tasks: 10_000, batch: 256, leases: &[10] };

/// Plays a history in which nothing may go wrong.
#[track_caller]
fn play_soundly(seed: u64, size: Size, faults: Faults) -> Played {
    let played = play(seed, size, Rules::ALL, faults);
    assert!(played.wrong.is_empty(), "HISTORY={seed} plays it again: {:#?}", played.wrong);
    played
}

/// The seeds to play: `HISTORIES=1000` plays more than the usual number of them, `HISTORY=17` one.
fn seeds(usual: u64) -> Range<u64> {
    match variable("HISTORY") {
        Some(seed) => seed..seed + 1,
        None => 0..variable("HISTORIES").unwrap_or(usual),
    }
}

#[test]
fn in_small_histories_each_task_lands_once_and_nothing_is_lost() {
    for seed in seeds(40) {
        let Counts { landed, .. } = play_soundly(seed, SMALL, Faults::ALL).counts;
        assert!(landed >= 40, "HISTORY={seed}: {landed}");
    }
}

#[test]
fn in_usual_histories_each_task_lands_once_and_nothing_is_lost() {
    for seed in seeds(5) {
        play_soundly(seed, USUAL, Faults::ALL);
    }
}

#[test]
fn a_thousand_workers_do_ten_thousand_tasks() {
    play_soundly(variable("HISTORY").unwrap_or(0), LARGE, Faults::RARE);
}

#[test]
fn a_seed_gives_the_same_history_again() {
    let again = || play(7, SMALL, Rules::ALL, Faults::ALL);
    assert_eq!(again(), again());
}

/// Plays histories without a rule, until one of a hundred fails in this way.
#[track_caller]
fn fails_without(rule: Rule, expected: Wrong) {
    let fails = |seed: &u64| {
        let played = play(*seed, SMALL, Rules::without(rule), Faults::ALL);
        played.wrong.iter().any(|(wrong, _)| *wrong == expected)
    };
    let found = (0..100).find(fails);
    assert!(found.is_some(), "{expected:?} does not happen without {rule:?}");
}

#[test]
fn without_the_servers_clock_two_agents_work_on_one_task() {
    fails_without(Rule::ServerClock, Wrong::TwoAgents);
}

#[test]
fn without_counting_from_before_sending_two_agents_work_on_one_task() {
    fails_without(Rule::BeforeSending, Wrong::TwoAgents);
}

#[test]
fn without_nonces_and_holders_processes_book_that_have_no_right_to() {
    fails_without(Rule::Nonces, Wrong::NoRight);
    fails_without(Rule::Holders, Wrong::NoRight);
}

#[test]
fn without_comparing_the_nonce_of_what_waits_tasks_land_twice() {
    fails_without(Rule::NonceThatWaits, Wrong::LandedTwice);
}

#[test]
fn without_commits_before_bookings_commits_are_missing() {
    fails_without(Rule::CommitsFirst, Wrong::Missing);
}

#[test]
fn without_a_ref_for_each_claim_commits_are_overwritten() {
    fails_without(Rule::OwnRefs, Wrong::Overwritten);
}

#[test]
fn without_a_search_in_refs_that_went_on_work_is_begun_anew() {
    fails_without(Rule::FoundInside, Wrong::NotFound);
}

#[test]
fn without_compare_and_swap_landings_are_gone() {
    fails_without(Rule::SwappedTip, Wrong::Missing);
}

#[test]
fn without_a_check_of_the_trunk_tasks_land_twice() {
    fails_without(Rule::TrunkDecides, Wrong::LandedTwice);
    fails_without(Rule::Settled, Wrong::LandedTwice);
    fails_without(Rule::FoundByNote, Wrong::LandedTwice);
    fails_without(Rule::OwnNotes, Wrong::LandedTwice);
}

/// How often a task is done that was done already, where only questions and answers are lost.
fn done_twice(rules: Rules) -> u64 {
    (0..10).map(|seed| play(seed, SMALL, rules, Faults::LOST).counts.done_twice).sum()
}

#[test]
fn without_asking_again_or_renewing_until_it_is_booked_lost_answers_have_work_done_twice() {
    let all = done_twice(Rules::ALL);
    let not_asked = done_twice(Rules::without(Rule::AskedAgain));
    let not_renewed = done_twice(Rules::without(Rule::RenewedUntilBooked));
    assert_eq!(all, 0);
    assert!(not_asked > 0 && not_renewed > 0, "{not_asked}, {not_renewed}");
}
