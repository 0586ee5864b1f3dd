use proptest::prelude::*;

use super::*;
use crate::engine::report::AttemptStatus::{
    self, AgentFailure, CompleteUnproven, Interrupted, Still, Success, Timeout, UsageLimit,
};
use crate::engine::report::Report;
use crate::engine::tally::{Given, Settled};
use crate::engine::validation::Validation;
use crate::reply::sigil::{SigilScanner, Sigils};
use crate::reply::usage::Usage;
use crate::reply::verdict::{Failure, Kind};

pub(super) const BEGIN: Step = Step::Begin { pause: Duration::ZERO };
pub(super) const LIMITS: Limits = Limits::EXAMPLE;

pub(super) fn with(budget: Budget) -> Limits {
    Limits { budget, ..LIMITS }
}

pub(super) fn report(status: AttemptStatus, class: Class, reset_at: Option<i64>) -> Report {
    let failed = !matches!(status, Success | Interrupted);
    let message = "it failed".to_owned();
    Report {
        status,
        duration: Duration::from_millis(1500),
        exit_code: Some(0),
        signal: None,
        failure: failed.then_some(Failure { kind: Kind::Reported, class, message, reset_at }),
        sigils: Sigils::default(),
        text: String::new(),
        matches_done: false,
        usage: Usage::default(),
        balance: None,
        exceeded: None,
        skipped_lines: 0,
        refused: Vec::new(),
        is_taken_over: false,
    }
}

pub(super) fn settled(signal: Signal, changed: Option<bool>) -> Settled {
    Settled { signal, changed, ..Settled::default() }
}

pub(super) fn book(limits: &Limits, tally: &mut Tally, status: AttemptStatus, changed: Option<bool>) {
    tally.book(limits.max_retries, &report(status, Class::Other, None), &settled(Signal::Continue, changed));
}

pub(super) fn limited(limits: &Limits, tally: &mut Tally, reset_at: i64) {
    let report = report(UsageLimit, Class::Limit, Some(reset_at));
    tally.book(limits.max_retries, &report, &settled(Signal::Continue, None));
}

pub(super) fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_000_000 + seconds, 0).unwrap()
}

pub(super) fn now(seconds: i64) -> Now {
    let running = Duration::from_secs(u64::try_from(seconds).unwrap_or_default());
    Now {
        time: at(seconds),
        running,
        closed_until: None,
        spent_by_others: Spent::default(),
        rooms: [None; 2],
    }
}

#[test]
fn what_cannot_get_better_is_not_tried_again() {
    for (class, outcome) in [
        (Class::Auth, Outcome::NotLoggedIn),
        (Class::Billing, Outcome::OutOfCredit),
        (Class::Context, Outcome::NotRetried),
        (Class::Permission, Outcome::NotRetried),
        (Class::Model, Outcome::NoModel),
        (Class::Refused, Outcome::NotRetried),
    ] {
        let mut tally = Tally::default();
        tally.begin(Given::default(), None);
        let settled = settled(Signal::Continue, None);
        tally.book(LIMITS.max_retries, &report(AgentFailure, class, None), &settled);
        assert_eq!(step(&LIMITS, &tally, now(0)), Step::End(outcome));
        assert_eq!(tally.consecutive_errors, 1);
    }
}

#[test]
fn pauses_before_retries_double() {
    let retry_pauses = Pauses::of(vec![Duration::ZERO, Duration::from_secs(1)]);
    let limits = Limits { retry_pauses, max_retries: 20, ..LIMITS };
    let mut tally = Tally::default();
    tally.begin(Given::default(), None);
    let mut pauses = Vec::new();
    for _ in 0..11 {
        book(&limits, &mut tally, AgentFailure, None);
        if let Step::Retry { pause, .. } = step(&limits, &tally, now(0)) {
            pauses.push(pause.as_secs());
        }
        tally.retry();
    }
    assert_eq!(pauses, [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300]);
}

#[test]
fn the_breaker_counts_failed_iterations_and_a_success_resets_it() {
    let limits = Limits { max_retries: 0, breaker: Some(2), on_failure: OnFailure::Count, ..LIMITS };
    let mut tally = Tally::default();
    for (status, next) in [
        (AgentFailure, BEGIN),
        (Success, BEGIN),
        (Timeout, BEGIN),
        (AgentFailure, Step::End(Outcome::Breaker)),
    ] {
        tally.begin(Given::default(), None);
        book(&limits, &mut tally, status, None);
        assert_eq!(step(&limits, &tally, now(0)), next);
    }
}

#[test]
fn pauses_after_failures_double_until_the_worker_has_failed() {
    let limits = Limits {
        max_retries: 0,
        breaker: Some(5),
        breaker_end: Outcome::WorkerFailed,
        failure_pause: Some(Duration::from_secs(1)),
        on_failure: OnFailure::Count,
        max_iterations: None,
        ..LIMITS
    };
    let back_off = |seconds| Step::BackOff { pause: Duration::from_secs(seconds) };
    let mut tally = Tally::default();
    for (status, next) in [
        (AgentFailure, back_off(1)),
        (AgentFailure, back_off(2)),
        (Success, BEGIN),
        (AgentFailure, back_off(1)),
        // Neither a failure nor a success.
        (Still, BEGIN),
        (AgentFailure, back_off(2)),
        (AgentFailure, back_off(4)),
        (AgentFailure, back_off(8)),
        (AgentFailure, Step::End(Outcome::WorkerFailed)),
    ] {
        tally.begin(Given::default(), None);
        book(&limits, &mut tally, status, None);
        assert_eq!(step(&limits, &tally, now(0)), next);
    }
    assert_eq!(limits.pause_after(100), Some(Duration::from_mins(5)));
}

#[test]
fn idle_counts_successes_that_changed_nothing_and_never_hides_a_failure() {
    let limits = Limits {
        max_retries: 0,
        idle: Some(2),
        max_iterations: None,
        on_failure: OnFailure::Count,
        ..LIMITS
    };
    let mut tally = Tally::default();
    for (status, changed, next) in [
        (Success, Some(false), BEGIN),
        (Success, Some(true), BEGIN),
        (Success, Some(false), BEGIN),
        (AgentFailure, None, BEGIN),
        (Success, Some(false), Step::End(Outcome::Idle)),
    ] {
        tally.begin(Given::default(), None);
        book(&limits, &mut tally, status, changed);
        assert_eq!(step(&limits, &tally, now(0)), next);
    }
}

#[test]
fn budgets_stop_the_next_iteration_and_not_the_running_one() {
    let money = with(Budget { max_cost_usd: Some(1.0), ..Budget::NONE });
    let tokens = with(Budget { max_tokens: Some(100), ..Budget::NONE });
    let time = with(Budget { max_duration_seconds: Some(60.0), ..Budget::NONE });
    let mut tally = Tally { spent: Spent::reported(Some(0.99), Some(60), Some(39)), ..Tally::default() };
    for limits in [&money, &tokens, &time] {
        assert_eq!(step(limits, &tally, now(59)), BEGIN);
    }
    let together = Now { spent_by_others: Spent::reported(Some(0.01), Some(1), None), ..now(0) };
    for limits in [&money, &tokens] {
        assert_eq!(step(limits, &tally, together), Step::End(Outcome::BudgetReached));
    }
    tally.spent.cost_usd = Some(1.0);
    tally.spent.output_tokens = 40;
    assert_eq!(step(&money, &tally, now(0)), Step::End(Outcome::BudgetReached));
    assert_eq!(step(&tokens, &tally, now(0)), Step::End(Outcome::BudgetReached));
    assert_eq!(step(&time, &tally, now(60)), Step::End(Outcome::DurationReached));
}

#[test]
fn a_limit_that_ends_in_a_failure_says_so() {
    let limits = Limits { max_iterations: Some(1), max_retries: 0, on_failure: OnFailure::Count, ..LIMITS };
    let mut tally = Tally::default();
    tally.begin(Given::default(), None);
    book(&limits, &mut tally, AgentFailure, None);
    assert_eq!(step(&limits, &tally, now(0)), Step::End(Outcome::MaxIterations));
    let limits = Limits { last_counts: true, ..limits };
    assert_eq!(step(&limits, &tally, now(0)), Step::End(Outcome::LastFailed));
}

#[test]
fn a_resumed_loop_repeats_what_was_cut_off_and_a_new_one_gets_a_new_allowance() {
    let mut tally = Tally::default();
    tally.begin(Given::default(), None);
    book(&LIMITS, &mut tally, Success, None);
    tally.begin(Given::default(), None);
    tally.in_attempt = true;
    let cut = tally.clone().resumed(false, at(0));
    assert_eq!((step(&LIMITS, &cut, now(0)), cut.iteration), (Step::Again, 2));

    tally.iteration = 10;
    let fresh = tally.resumed(true, at(0));
    assert_eq!((step(&LIMITS, &fresh, now(0)), fresh.iteration), (BEGIN, 10));
    let limits = Limits { max_iterations: Some(1), ..LIMITS };
    let spent = Tally { iteration: 11, last: Last::Settled(Signal::Continue), ..fresh };
    assert_eq!(step(&limits, &spent, now(0)), Step::End(Outcome::MaxIterations));
}

#[test]
fn the_tally_survives_its_file() {
    let mut tally = Tally::default();
    for (status, reset) in [Success, Timeout, UsageLimit, Interrupted]
        .into_iter()
        .flat_map(|status| [(status, Some(7)), (status, None)])
    {
        tally.begin(Given::default(), None);
        tally.book(
            LIMITS.max_retries,
            &report(status, Class::Other, reset),
            &settled(Signal::Complete, Some(false)),
        );
        let text = toml::to_string(&tally).unwrap();
        assert_eq!(toml::from_str::<Tally>(&text).unwrap(), tally, "{text}");
    }
}

prop_compose! {
    fn any_limits()(
        max_iterations in prop::option::of(1_u64..8),
        max_retries in 0_u32..4,
        breaker in prop::option::of(1_u64..4),
        idle in prop::option::of(1_u64..4),
        max_cost in prop::option::of(1_u32..9),
        on_failure in prop::sample::select(vec![OnFailure::End, OnFailure::Count]),
        pause in prop::option::of(1_u64..3),
        last_counts in any::<bool>(),
        backs_off in any::<bool>(),
    ) -> Limits {
        let budget = Budget { max_cost_usd: max_cost.map(f64::from), ..Budget::NONE };
        let retry_pauses = Pauses::of(pause.map(Duration::from_secs).into_iter().collect());
        let failure_pause = backs_off.then_some(Duration::from_secs(1));
        Limits { max_iterations, max_retries, retry_pauses, failure_pause, on_failure, last_counts, breaker, idle, budget, ..LIMITS }
    }
}

fn any_report() -> impl Strategy<Value = (Report, Settled)> {
    let status = prop::sample::select(vec![Success, Success, AgentFailure, Timeout, UsageLimit]);
    let class = prop::sample::select(vec![
        Class::Other,
        Class::Other,
        Class::Permission,
        Class::Auth,
        Class::Context,
        Class::Overload,
        Class::Network,
        Class::Billing,
        Class::Model,
        Class::Refused,
    ]);
    let signal = prop::sample::select(vec![
        Signal::Continue,
        Signal::Continue,
        Signal::Continue,
        Signal::Complete,
        Signal::Done,
        Signal::Replan,
    ]);
    let reset = prop::option::of(-100..100_000_i64);
    (status, class, signal, prop::option::of(any::<bool>()), reset, any::<bool>()).prop_map(
        |(status, class, signal, changed, reset, called_tools)| {
            let class = if status == UsageLimit { Class::Limit } else { class };
            let signal = if status == Success { signal } else { Signal::Continue };
            let mut report = report(status, class, reset.map(|seconds| at(seconds).timestamp()));
            report.usage.cost_usd = Some(1.0);
            report.usage.called_tools = called_tools;
            (report, settled(signal, changed))
        },
    )
}

/// Whether an attempt is one that is waited for and uses up nothing.
fn is_waited_for(report: &Report) -> bool {
    report.status == UsageLimit || is_outage(report) && !report.usage.called_tools
}

fn is_outage(report: &Report) -> bool {
    let class = report.failure.as_ref().map(|failure| failure.class);
    match report.status {
        AgentFailure => class.is_some_and(Class::is_outage),
        Timeout => class == Some(Class::Network),
        _ => false,
    }
}

/// Whether a loop ends for the reason that its history gives.
fn check_reason(
    outcome: Outcome,
    (report, settled): &(Report, Settled),
    (limits, tally): (&Limits, &Tally),
    (begun, tries, failed_in_a_row, idle_in_a_row): (u64, u32, u64, u64),
) -> Result<(), TestCaseError> {
    let is_last_failed = limits.last_counts && matches!(tally.last, Last::Failed(_));
    let spent = limits.budget.max_cost_usd.is_some_and(|limit| tally.spent.dollars() >= limit);
    match outcome {
        Outcome::Complete => prop_assert_eq!(settled.signal, Signal::Complete),
        Outcome::DonePattern => prop_assert_eq!(settled.signal, Signal::Done),
        Outcome::Replan => prop_assert_eq!(settled.signal, Signal::Replan),
        Outcome::MaxIterations => {
            prop_assert!(report.status == Success || !limits.last_counts);
            prop_assert_eq!(Some(begun), limits.max_iterations);
        }
        Outcome::LastFailed => {
            prop_assert!(limits.last_counts);
            prop_assert_ne!(report.status, Success);
            prop_assert_eq!(Some(begun), limits.max_iterations);
        }
        Outcome::AgentFailed | Outcome::NotRetried => {
            prop_assert_eq!(tally.retries == 0, outcome == Outcome::NotRetried);
            let class = report.failure.as_ref().unwrap().class;
            let hopeless = matches!(class, Class::Context | Class::Permission);
            prop_assert!(hopeless || limits.on_failure == OnFailure::End);
            prop_assert!(hopeless || class == Class::Refused || tries == limits.max_retries + 1);
        }
        Outcome::Breaker => prop_assert_eq!(Some(failed_in_a_row), limits.breaker),
        Outcome::Idle => prop_assert_eq!(Some(idle_in_a_row), limits.idle),
        Outcome::BudgetReached => prop_assert!(spent && !tally.unproven && !is_last_failed),
        Outcome::BudgetUnproven => prop_assert!(spent && tally.unproven && !is_last_failed),
        Outcome::BudgetFailed => prop_assert!(spent && is_last_failed),
        Outcome::NotLoggedIn => prop_assert_eq!(report.failure.as_ref().unwrap().class, Class::Auth),
        Outcome::NoModel => prop_assert_eq!(report.failure.as_ref().unwrap().class, Class::Model),
        Outcome::OutOfCredit => prop_assert_eq!(report.failure.as_ref().unwrap().class, Class::Billing),
        Outcome::LimitTooFar => prop_assert_eq!(report.status, UsageLimit),
        Outcome::Overloaded | Outcome::NoConnection => {
            prop_assert!(report.status != UsageLimit && is_waited_for(report));
            let is_network = report.failure.as_ref().unwrap().class == Class::Network;
            prop_assert_eq!(is_network, outcome == Outcome::NoConnection);
        }
        other => prop_assert!(false, "{:?} is not for the policy to decide", other),
    }
    Ok(())
}

#[test]
fn work_that_is_not_proven_at_the_end_is_unproven() {
    let proof = |ok| Settled {
        proof: Some(Validation { ok, ..Validation::default() }),
        ..settled(Signal::Continue, Some(false))
    };
    let report = |status| report(status, Class::Other, None);
    let unsaid = |status| (report(status), settled(Signal::Continue, Some(false)));
    let limits = Limits { max_iterations: Some(2), on_failure: OnFailure::Count, ..Limits::EXAMPLE };
    let idle = Limits { idle: Some(2), ..Limits::EXAMPLE };
    let budget = with(Budget { max_tokens: Some(0), ..Budget::NONE });
    let duration = with(Budget { max_duration_seconds: Some(0.0), ..Budget::NONE });
    for (first, second, expected) in [
        ((report(Success), proof(true)), (report(Success), proof(false)), true),
        ((report(Success), proof(false)), (report(Success), proof(true)), false),
        // What was not checked since stays as it was.
        ((report(Success), proof(false)), unsaid(Success), true),
        (unsaid(Success), unsaid(CompleteUnproven), true),
        (unsaid(CompleteUnproven), (report(Success), proof(true)), false),
        (unsaid(Success), unsaid(Success), false),
    ] {
        for (limits, unproven, otherwise) in [
            (&limits, Outcome::Unproven, Outcome::MaxIterations),
            (&idle, Outcome::Unproven, Outcome::Idle),
            (&budget, Outcome::BudgetUnproven, Outcome::BudgetReached),
            (&duration, Outcome::DurationUnproven, Outcome::DurationReached),
        ] {
            let mut tally = Tally::default();
            for (report, settled) in [&first, &second] {
                tally.begin(Given::default(), None);
                tally.book(limits.max_retries, report, settled);
            }
            let outcome = if expected { unproven } else { otherwise };
            assert_eq!(step(limits, &tally, now(0)), Step::End(outcome), "{first:?} {second:?}");
        }
    }
}

#[test]
fn of_many_tasks_only_the_one_at_hand_can_be_unproven() {
    let limits = Limits { max_iterations: Some(2), ..Limits::EXAMPLE };
    let unproven = report(CompleteUnproven, Class::Other, None);
    let mut given_up = report(Success, Class::Other, None);
    let mut scanner = SigilScanner::default();
    scanner.push("<task-failed>t-1</task-failed>");
    given_up.sigils = scanner.sigils();
    let silent = report(Success, Class::Other, None);
    for (second, task, outcome) in [
        (&silent, "t-1", Outcome::Unproven),
        (&silent, "t-2", Outcome::MaxIterations),
        (&given_up, "t-1", Outcome::MaxIterations),
        (&unproven, "t-2", Outcome::Unproven),
    ] {
        let mut tally = Tally::default();
        for (report, task) in [(&unproven, "t-1"), (second, task)] {
            tally.begin(Given::default(), Some(task));
            tally.book(limits.max_retries, report, &settled(Signal::Continue, None));
        }
        assert_eq!(step(&limits, &tally, now(0)), Step::End(outcome), "{task} {:?}", second.status);
    }
}

#[test]
fn what_the_validation_said_is_known_until_it_passes() {
    let mut tally = Tally { validation_error: Some("no".to_owned()), unproven: true, ..Tally::default() };
    assert_eq!(tally.last_validation_error(), Some("no"));
    tally.begin(tally.upcoming(), None);
    assert_eq!(tally.last_validation_error(), Some("no"));
    tally.unproven = false;
    assert_eq!(tally.last_validation_error(), None);
}

proptest! {
    /// For any sequence of reports: limits are exact, a wait consumes nothing, no agent runs while another loop knows
    /// of a usage limit, and the loop ends for the one reason that its history gives.
    #[test]
    fn limits_are_exact_and_every_end_has_its_reason(
        limits in any_limits(),
        reports in prop::collection::vec(any_report(), 80),
    ) {
        let mut tally = Tally::default();
        let (mut begun, mut tries, mut failed_in_a_row, mut idle_in_a_row) = (0, 0, 0, 0);
        let mut reports = reports.into_iter();
        let mut last: Option<(Report, Settled)> = None;
        let (mut clock, mut waited) = (0, TimeDelta::zero());
        let mut waited_for = 0;
        loop {
            let before = tally.clone();
            let next = step(&limits, &tally, now(clock));
            let closed_for = |seconds| {
                let closed_until = Some(at(clock + seconds));
                step(&limits, &tally, Now { closed_until, ..now(clock) })
            };
            let runs_an_agent =
                matches!(next, Step::Begin { .. } | Step::BackOff { .. } | Step::Retry { .. } | Step::Again);
            prop_assert_eq!(closed_for(0), next);
            prop_assert_eq!(closed_for(30), if runs_an_agent { Step::Wait(at(clock + 30)) } else { next });
            let too_far = if runs_an_agent { Step::End(Outcome::LimitTooFar) } else { next };
            prop_assert_eq!(closed_for(7 * 3600), too_far);
            let (full, roomy) = (Room { free: 1, size: 100 }, Room { free: 100, size: 100 });
            let in_rooms = |rooms| step(&limits, &tally, Now { rooms, ..now(clock) });
            prop_assert_eq!(in_rooms([Some(roomy), Some(roomy)]), next);
            let lack = Shortage { free: 1, wanted: 5 };
            for rooms in [[Some(full), Some(roomy)], [None, Some(full)]] {
                prop_assert_eq!(in_rooms(rooms), if runs_an_agent { Step::AwaitRoom(lack) } else { next });
            }
            match next {
                Step::Begin { pause } => {
                    let is_outage = before.outage().is_some();
                    prop_assert_eq!(pause.is_zero(), !is_outage, "after an outage something is always waited for");
                    tally.begin(Given::default(), None);
                    begun += 1;
                    tries = 1;
                }
                Step::BackOff { pause } => {
                    prop_assert!(matches!(before.last, Last::Failed(_)));
                    let doubled = Duration::from_secs(1 << (failed_in_a_row - 1).min(9)).min(MAX_FAILURE_PAUSE);
                    prop_assert_eq!(Some(pause), limits.failure_pause.map(|_| doubled));
                    tally.begin(Given::default(), None);
                    begun += 1;
                    tries = 1;
                }
                Step::Retry { retry, pause } => {
                    tally.retry();
                    prop_assert_eq!(retry, tries);
                    let is_outage = before.outage().is_some();
                    prop_assert_eq!(pause.is_zero(), limits.retry_pauses == Pauses::NONE && !is_outage);
                    tries += 1;
                }
                Step::Again => prop_assert_eq!(before.last, Last::Waited),
                Step::AwaitRoom(_) => prop_assert!(false, "nobody looked for room"),
                Step::Wait(until) => {
                    waited += until - at(clock);
                    prop_assert!(until > at(clock) && waited <= TimeDelta::hours(6));
                    tally.waited(at(clock), until);
                    clock = (until - at(0)).num_seconds();
                    prop_assert_eq!((tally.iteration, tally.retries), (before.iteration, before.retries));
                    continue;
                }
                Step::End(outcome) => {
                    let last = last.expect("no loop ends before it began");
                    let counts = (begun, tries, failed_in_a_row, idle_in_a_row);
                    check_reason(outcome, &last, (&limits, &tally), counts)?;
                    break;
                }
            }
            prop_assert!(limits.max_iterations.is_none_or(|limit| begun <= limit));
            prop_assert!(tries <= limits.max_retries + 1);
            prop_assert_eq!(tally.iteration, begun);
            let spent_before = limits.budget.max_cost_usd.is_some_and(|limit| before.spent.dollars() >= limit);
            prop_assert!(!spent_before, "an attempt began with the budget used up");
            let Some((report, settled)) = reports.next() else { break };
            match report.status {
                _ if is_waited_for(&report) => waited_for += 1,
                Success => {
                    waited = TimeDelta::zero();
                    failed_in_a_row = 0;
                    idle_in_a_row = if settled.changed == Some(false) { idle_in_a_row + 1 } else { 0 };
                }
                _ => {
                    let class = report.failure.as_ref().unwrap().class;
                    if !is_outage(&report) {
                        waited = TimeDelta::zero();
                    }
                    let is_hopeless = !may_retry(1, 0, class);
                    failed_in_a_row += u64::from(tries > limits.max_retries || is_hopeless);
                }
            }
            tally.book(limits.max_retries, &report, &settled);
            last = Some((report, settled));
        }
        prop_assert_eq!(tally.succeeded + tally.error_count + waited_for, tally.durations.count);
    }
}

#[test]
fn ten_thousand_iterations_leave_no_more_than_a_hundred() {
    let size_after = |count| {
        let mut tally = Tally::default();
        for iteration in 0..count {
            tally.begin(Given::default(), None);
            if iteration % 3 == 0 {
                book(&LIMITS, &mut tally, AgentFailure, Some(false));
                tally.retry();
            }
            book(&LIMITS, &mut tally, Success, Some(true));
        }
        toml::to_string(&tally).unwrap().len()
    };
    let (few, many) = (size_after(100), size_after(10_000));
    // Some numbers have more digits.
    assert!(many < few + 50, "{few} bytes have become {many}");
}
