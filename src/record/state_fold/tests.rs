use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;

use chrono::SubsecRound as _;
use proptest::prelude::*;

use super::*;
use crate::engine::agent::Attempt;
use crate::engine::context::Context;
use crate::engine::event::LoopIdentity;
use crate::engine::inbox::Inbox;
use crate::engine::outcome::End;
use crate::engine::policy::{Limits, OnFailure};
use crate::engine::run::run;
use crate::engine::stop::{Ask, Request};
use crate::engine::testing::{Call, TestAgent, TestSource, TestValidator, context, job, success};
use crate::engine::validation::Validation;
use crate::engine::validator::{Proof, Verdict};
use crate::platform::identity::ProcessIdentity;
use crate::record::event_line::line_of;
use crate::record::recovery::{ReadOn, take_lines};
use crate::record::replayed::tests::replayed;
use crate::reply::sigil::{PROMISE, Sigil};
use crate::reply::usage::Class;
use crate::reply::verdict::{Failure, Kind};

/// One attempt of an agent.
#[derive(Debug, Clone)]
enum Turn {
    Works,
    /// It claims completion; that is proven, or not.
    Claims(bool),
    Fails(Class),
    /// A note arrives meanwhile.
    IsNoted,
}

fn any_turn() -> impl Strategy<Value = Turn> {
    let class =
        prop_oneof![Just(Class::Other), Just(Class::Context), Just(Class::Limit), Just(Class::Overload)];
    prop_oneof![
        3 => Just(Turn::Works),
        1 => any::<bool>().prop_map(Turn::Claims),
        3 => class.prop_map(Turn::Fails),
        1 => Just(Turn::IsNoted),
    ]
}

fn left_by(turn: &Turn, cost: f64) -> Report {
    let mut report = success();
    report.usage.cost_usd = Some(cost);
    report.usage.input_tokens = Some(7);
    match turn {
        Turn::Works | Turn::IsNoted => {}
        Turn::Claims(_) => report.sigils = [Sigil::new(PROMISE, "COMPLETE")].into_iter().collect(),
        Turn::Fails(class) => {
            let message = "it failed".to_owned();
            report.failure = Some(Failure { kind: Kind::Reported, class: *class, message, reset_at: None });
            report.status = AttemptStatus::of(report.failure.as_ref().unwrap());
        }
    }
    report
}

/// The log of a loop, and its state as written at each step.
#[derive(Default)]
struct Recorded {
    log: Vec<u8>,
    states: Vec<State>,
}

fn begun() -> State {
    let [run, name, mode, agent] = ["run", "loop", "test", "agent"].map(str::to_owned);
    let process = ProcessIdentity::of_self().unwrap();
    State::new(&LoopIdentity { run, name, mode, agent }, process, Utc::now(), "/".into())
}

/// Runs a loop whose agent takes these turns.
fn recorded(turns: Vec<Turn>, max_retries: u32) -> Recorded {
    let inbox = Arc::new(Inbox::default());
    let recorded = RefCell::new(Recorded::default());
    let live = RefCell::new(begun());
    let listen = Box::new(|stamped: &Stamped<'_>| {
        let (mut recorded, mut live) = (recorded.borrow_mut(), live.borrow_mut());
        recorded.log.extend(line_of(stamped).bytes());
        if live.take(stamped).is_some() {
            live.log_read = recorded.log.len() as u64;
            recorded.states.push(live.clone());
        }
        if matches!(stamped.fact, Fact::Waiting { .. }) {
            // Skips waits.
            inbox.ask(Ask::Request(Request::Resume));
        }
        Ok(())
    });
    let left = RefCell::new(VecDeque::from(turns));
    let claims_truly = RefCell::new(true);
    let agent = TestAgent(|attempt: &Attempt<'_>, _: &mut Context<'_>| {
        let Some(turn) = left.borrow_mut().pop_front() else {
            inbox.ask(Ask::Request(Request::Cancel));
            return Ok(success());
        };
        match turn {
            Turn::IsNoted => inbox.ask(Ask::Request(Request::Note(format!("note {}", attempt.iteration)))),
            Turn::Claims(is_true) => *claims_truly.borrow_mut() = is_true,
            _ => {}
        }
        Ok(left_by(&turn, 0.1))
    });
    let limits =
        Limits { max_iterations: None, max_retries, on_failure: OnFailure::Count, ..Limits::EXAMPLE };
    let source = TestSource(|_: Call<'_>, _: &mut Context<'_>| Ok::<_, End>(()));
    let mut job = job(context(&inbox, vec![listen]), limits, source, agent);
    job.validator = Some(Box::new(TestValidator(|proof: Proof<'_>, _: &mut Context<'_>| {
        let ok = !proof.report.sigils.complete() || *claims_truly.borrow();
        Ok(Verdict::Found(Validation { ok, output: "why".into(), ..Validation::default() }))
    })));
    let _ = run(job);
    recorded.into_inner()
}

fn read_on(state: &State, log: &[u8]) -> State {
    let mut state = state.clone();
    let mut rest = &log[usize::try_from(state.log_read).unwrap()..];
    take_lines(&mut rest, &mut state, &mut ReadOn::default()).unwrap();
    state
}

/// The state as the file has it, without the loop's running time, which lines have only at the end of attempts, and
/// without fractions of milliseconds.
fn written(state: &State) -> String {
    let mut state = state.clone();
    state.tally.elapsed_seconds = 0.0;
    let times = [&mut state.last_iteration_at, &mut state.last_iteration_ended_at, &mut state.ended_at];
    for time in times.into_iter().flatten() {
        *time = time.trunc_subsecs(3);
    }
    toml::to_string(&state).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Wherever a loop is killed, and whichever state was kept: whole lines of its log count, once.
    #[test]
    fn a_state_that_is_behind_its_log_is_what_it_would_have_been(
        turns in prop::collection::vec(any_turn(), 1..12),
        max_retries in 0_u32..3,
        kept in any::<prop::sample::Index>(),
        cut in any::<prop::sample::Index>(),
        torn in prop_oneof![Just(&b""[..]), Just(&b"\0\0\0"[..])],
    ) {
        let Recorded { log, states } = recorded(turns, max_retries);
        prop_assert!(states.last().is_some_and(|state| !state.active));
        for later in &states {
            let until = &log[..usize::try_from(later.log_read).unwrap()];
            let read = State { started_at: later.started_at, process: later.process.clone(), ..read_on(&begun(), until) };
            // The lines alone give the same state as the engine's count.
            prop_assert_eq!(written(&read), written(later));
        }
        // Its own limits explain each step that it took.
        let (again, unexplained) = replayed(std::str::from_utf8(&log).unwrap(), None);
        prop_assert_eq!(unexplained, Vec::<String>::new());
        prop_assert_eq!(again.lines().count(), log.split_inclusive(|byte| *byte == b'\n').count());
        let kept = kept.get(&states);
        let from = usize::try_from(kept.log_read).unwrap();
        let mut until = log[..from + cut.index(log.len() - from + 1)].to_vec();
        until.extend(torn);
        let whole = until.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        let read = read_on(kept, &until);
        prop_assert_eq!(read.log_read, whole as u64);
        let last_kept = states.iter().rev().find(|state| state.log_read <= whole as u64).unwrap();
        prop_assert_eq!(written(&read), written(&read_on(last_kept, &until)));
    }
}

#[test]
fn what_is_told_twice_is_counted_once() {
    let Recorded { log, states } = recorded(vec![Turn::Works, Turn::Works], 0);
    let last = states.last().unwrap();
    let mut again = last.clone();
    let line = log
        .split_inclusive(|byte| *byte == b'\n')
        .find(|line| line.windows(15).any(|at| at == b"\"attempt_ended\""));
    take_lines(&mut line.unwrap(), &mut again, &mut ReadOn::default()).unwrap();
    assert_eq!(again.tally.succeeded, last.tally.succeeded);
    assert_eq!(again.tally.durations.count, last.tally.durations.count);
}
