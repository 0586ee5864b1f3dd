//! How usage limits and overloaded providers are waited for.

use super::tests::*;
use super::*;
use crate::engine::report::AttemptStatus::{AgentFailure, Success, Timeout, UsageLimit};
use crate::engine::tally::Given;

#[test]
fn a_named_reset_is_waited_for_and_a_far_one_ends_the_loop() {
    let mut tally = Tally::default();
    tally.begin(Given::default(), None);
    limited(&LIMITS, &mut tally, at(600).timestamp());
    assert_eq!(step(&LIMITS, &tally, now(0)), Step::Wait(at(600)));
    assert_eq!(step(&LIMITS, &tally, now(-7 * 3600)), Step::End(Outcome::LimitTooFar));
    tally.waited(at(0), at(600));
    assert_eq!(step(&LIMITS, &tally, now(600)), Step::Again);
    assert_eq!((tally.iteration, tally.retries, tally.blind_waits), (1, 0, 0));
}

#[test]
fn nobody_waits_for_an_attempt_that_may_not_begin() {
    let limits = with(Budget { max_duration_seconds: Some(60.0), ..Budget::NONE });
    let mut tally = Tally::default();
    tally.begin(Given::default(), None);
    limited(&limits, &mut tally, at(600).timestamp());
    assert_eq!(step(&limits, &tally, now(59)), Step::Wait(at(600)));
    assert_eq!(step(&limits, &tally, now(60)), Step::End(Outcome::DurationReached));
}

#[test]
fn blind_waits_double_up_to_a_minute_and_are_bounded_as_a_whole() {
    let limits = Limits { max_limit_wait: Duration::from_secs(200), ..LIMITS };
    let mut tally = Tally::default();
    tally.begin(Given::default(), None);
    let mut waits = Vec::new();
    let end = loop {
        limited(&limits, &mut tally, 0);
        match step(&limits, &tally, now(0)) {
            Step::Wait(until) => {
                waits.push((until - at(0)).num_seconds());
                tally.waited(at(0), until);
            }
            end => break end,
        }
        assert_eq!(step(&limits, &tally, now(0)), Step::Again);
    };
    assert_eq!(waits, [2, 4, 8, 16, 32, 60, 60]);
    assert_eq!(end, Step::End(Outcome::LimitTooFar));
}

#[test]
fn short_named_resets_add_up() {
    let limits = Limits { max_limit_wait: Duration::from_mins(30), ..LIMITS };
    let mut tally = Tally::default();
    tally.begin(Given::default(), None);
    for round in 0..3 {
        let reset = at((round + 1) * 600);
        limited(&limits, &mut tally, reset.timestamp());
        assert_eq!(step(&limits, &tally, now(round * 600)), Step::Wait(reset));
        tally.waited(at(round * 600), reset);
    }
    limited(&limits, &mut tally, at(1801).timestamp());
    assert_eq!(step(&limits, &tally, now(1800)), Step::End(Outcome::LimitTooFar));
    // Work in between starts a new row of waits.
    book(&limits, &mut tally, Success, None);
    limited(&limits, &mut tally, at(1801).timestamp());
    assert_eq!(step(&limits, &tally, now(1800)), Step::Wait(at(1801)));
}

fn overloaded(limits: &Limits, tally: &mut Tally, called_tools: bool) {
    let mut report = report(AgentFailure, Class::Overload, None);
    report.usage.called_tools = called_tools;
    tally.book(limits.max_retries, &report, &settled(Signal::Continue, None));
}

#[test]
fn a_provider_that_is_overloaded_is_waited_for_and_uses_up_no_retry() {
    for (first, max, expected) in [(15, 4000, &[15, 45, 135, 405, 900, 900, 900][..]), (2, 60, &[2, 6, 18])] {
        let limits = Limits {
            max_retries: 0,
            outage_pause: Duration::from_secs(first),
            max_limit_wait: Duration::from_secs(max),
            ..LIMITS
        };
        let mut tally = Tally::default();
        tally.begin(Given::default(), None);
        let (mut waits, mut clock) = (Vec::new(), 0);
        let end = loop {
            overloaded(&limits, &mut tally, false);
            match step(&limits, &tally, now(clock)) {
                Step::Wait(until) => {
                    waits.push((until - at(clock)).num_seconds());
                    tally.waited(at(clock), until);
                    clock = (until - at(0)).num_seconds();
                }
                end => break end,
            }
            assert_eq!(step(&limits, &tally, now(clock)), Step::Again);
        };
        assert_eq!((&waits[..], end), (expected, Step::End(Outcome::Overloaded)));
        assert_eq!((tally.retries, tally.consecutive_errors, tally.iteration), (0, 0, 1));
        tally.book(
            limits.max_retries,
            &report(Success, Class::Other, None),
            &settled(Signal::Continue, None),
        );
        assert_eq!((tally.blind_waits, tally.waited_seconds), (0, 0));
    }
}

#[test]
fn an_overload_after_tools_were_called_uses_up_a_retry_and_waits_all_the_same() {
    let mut tally = Tally::default();
    tally.begin(Given::default(), None);
    let mut pauses = Vec::new();
    for called_tools in [true, false, true] {
        overloaded(&LIMITS, &mut tally, called_tools);
        match step(&LIMITS, &tally, now(0)) {
            Step::Retry { pause, .. } => {
                pauses.push(pause.as_secs());
                tally.retry();
            }
            Step::Wait(until) => {
                pauses.push((until - at(0)).num_seconds().unsigned_abs());
                tally.waited(at(0), until);
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((pauses, tally.retries), (vec![15, 45, 135], 2));
}

#[test]
fn without_retries_the_next_iteration_waits_for_the_provider() {
    let limits = Limits {
        max_retries: 0,
        max_iterations: None,
        on_failure: OnFailure::Count,
        max_limit_wait: Duration::from_mins(2),
        ..LIMITS
    };
    let mut tally = Tally::default();
    let mut pauses = Vec::new();
    let end = loop {
        match step(&limits, &tally, now(0)) {
            Step::Begin { pause } => pauses.push(pause.as_secs()),
            end => break end,
        }
        tally.begin(Given::default(), None);
        overloaded(&limits, &mut tally, true);
    };
    assert_eq!((&pauses[..], end), (&[0, 15, 45][..], Step::End(Outcome::Overloaded)));
    tally.book(limits.max_retries, &report(Success, Class::Other, None), &settled(Signal::Continue, None));
    assert_eq!(step(&limits, &tally, now(0)), BEGIN);
}

#[test]
fn a_wait_that_was_cut_short_counts_as_long_as_it_was() {
    let limits = Limits { max_limit_wait: Duration::from_hours(6), ..LIMITS };
    let mut tally = Tally::default();
    tally.begin(Given::default(), None);
    for _ in 0..10 {
        limited(&limits, &mut tally, at(5 * 3600).timestamp());
        assert_eq!(step(&limits, &tally, now(0)), Step::Wait(at(5 * 3600)));
        // The user has asked for an attempt now.
        tally.waited(at(0), at(60));
    }
}

#[test]
fn a_restart_waits_for_the_same_reset_unless_it_has_passed() {
    let mut tally = Tally::default();
    tally.begin(Given::default(), None);
    limited(&LIMITS, &mut tally, at(600).timestamp());
    assert_eq!(step(&LIMITS, &tally.clone().resumed(false, at(300)), now(300)), Step::Wait(at(600)));
    assert_eq!(step(&LIMITS, &tally.resumed(false, at(700)), now(700)), Step::Again);
}

/// The end of an overload is unknown, and so is that of a limit without a named end.
#[test]
fn a_restart_tries_at_once_where_nobody_knows_whether_there_is_anything_to_wait_for() {
    let mut overloaded_one = Tally::default();
    overloaded_one.begin(Given::default(), None);
    overloaded(&LIMITS, &mut overloaded_one, false);
    let mut limited_one = Tally::default();
    limited_one.begin(Given::default(), None);
    book(&LIMITS, &mut limited_one, UsageLimit, None);
    for tally in [overloaded_one, limited_one] {
        assert!(matches!(step(&LIMITS, &tally, now(0)), Step::Wait(_)));
        assert_eq!(step(&LIMITS, &tally.resumed(false, at(0)), now(0)), Step::Again);
    }
}

#[test]
fn an_agent_that_waited_for_its_connection_until_a_timeout_is_waited_for_too() {
    for (status, class, expected) in [
        (Timeout, Class::Network, Last::Unconnected),
        (AgentFailure, Class::Network, Last::Unconnected),
        (Timeout, Class::Overload, Last::Failed(Class::Overload)),
    ] {
        let mut tally = Tally::default();
        tally.begin(Given::default(), None);
        tally.book(0, &report(status, class, None), &settled(Signal::Continue, None));
        assert_eq!(tally.last, expected);
    }
}

#[test]
fn no_connection_is_waited_for_as_an_overload_is_and_has_an_end_of_its_own() {
    let limits = Limits { max_limit_wait: Duration::from_mins(2), ..LIMITS };
    let mut tally = Tally::default();
    tally.begin(Given::default(), None);
    let mut waits = Vec::new();
    for class in [Class::Network, Class::Overload, Class::Network] {
        tally.book(0, &report(AgentFailure, class, None), &settled(Signal::Continue, None));
        assert_eq!(tally.outage(), Some(class));
        match step(&limits, &tally, now(0)) {
            Step::Wait(until) => {
                waits.push((until - at(0)).num_seconds());
                tally.waited(at(0), until);
            }
            end => assert_eq!(end, Step::End(Outcome::NoConnection)),
        }
    }
    assert_eq!(waits, [15, 45]);
}
