use chrono::TimeDelta;
use unicode_width::UnicodeWidthStr as _;

use super::*;
use crate::engine::event::LoopIdentity;
use crate::platform::identity::ProcessIdentity;
use crate::project::Project;
use crate::view::snapshot::WorkerSight;

/// A loop of this process, which is at work.
fn a_loop(name: &str, change: impl FnOnce(&mut State)) -> Loop {
    let [run, mode, agent] = ["r", "build", "claude"].map(str::to_owned);
    let identity = LoopIdentity { run, name: name.to_owned(), mode, agent };
    let mut state = State::begun(&identity, ProcessIdentity::of_self().unwrap());
    change(&mut state);
    let project = Project::locate(std::path::Path::new("/"), &|_| None, None, None).unwrap();
    Loop { name: name.to_owned(), project, state: Ok(Box::new(state)), read_on: None }
}

fn ended(state: &mut State, exit_reason: &str, code: u8) {
    (state.active, state.status) = (false, Status::Stopped);
    state.exit_reason = Some(exit_reason.to_owned());
    state.exit_code = Some(code);
    state.ended_at = Some(Utc::now());
}

fn loops() -> Vec<(Loop, Sight)> {
    let counts = |done, total| Some(TaskCounts { done, failed: 0, total });
    let running = a_loop("feature/a-name-that-is-longer-than-most", |state| {
        (state.tally.iteration, state.max_iterations) = (3, Some(20));
        (state.tally.spent.cost_usd, state.budget.max_cost_usd) = (Some(1.2), Some(5.0));
    });
    let activity = Some("Bash cargo test --workspace \x1b[2J日本語".to_owned());
    let seen = Sight { tasks: counts(2, 3), activity, silent: Some(Duration::from_mins(12)) };
    let waiting = a_loop("two", |state| {
        state.status = Status::Waiting;
        state.waiting_until = Some(Utc::now() + TimeDelta::minutes(12) + TimeDelta::seconds(20));
    });
    let done = a_loop("three", |state| ended(state, "complete", 0));
    let unknown = Loop { state: Err("torn".to_owned()), ..a_loop("four", |_| ()) };
    let sight = |tasks| Sight { tasks, ..Sight::default() };
    vec![(running, seen), (waiting, sight(None)), (done, sight(counts(3, 3))), (unknown, sight(None))]
}

fn shown(loops: &[(Loop, Sight)], width: Option<usize>) -> String {
    let rows: Vec<_> =
        loops.iter().map(|(found, sight)| (LoopSnapshot::of(found, None), sight.clone())).collect();
    anstream::adapter::strip_str(&table(&rows, &[], width)).to_string()
}

#[test]
fn a_line_tells_where_a_loop_stands() {
    let text = shown(&loops(), None);
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines[0].starts_with("NAME  ")
            && lines[0].ends_with("  TASKS  ITERATION  COST         SILENT  ACTIVITY"),
        "{text}"
    );
    assert!(
        lines[1].ends_with(
            "  running  2/3    3/20       $1.20/$5.00  12m     Bash cargo test --workspace 日本語"
        ),
        "{text}"
    );
    assert!(lines[2].contains("  waiting  ") && lines[2].contains("  12m left, until "), "{text}");
    assert!(lines[3].contains("  done     3/3    0 ") && lines[3].contains("  ended "), "{text}");
    assert!(lines[4].starts_with("four ") && lines[4].ends_with("  torn"), "{text}");
    assert_eq!(lines[5..], ["'ralph resume two' tries now"], "{text}");
}

#[test]
fn it_fits_the_terminal() {
    for width in [45, 60, 80, 200, 5000] {
        let text = shown(&loops(), Some(width));
        assert!(text.lines().all(|line| line.width() <= width), "{width}: {text}");
        assert!(text.contains("12m left"), "{width}: {text}");
        let name = if width < NARROW { "feature/a-name-…" } else { "feature/a-name-that-is-…" };
        assert!(text.contains(&format!("{name}  running")) && text.contains("ACTIVITY"), "{width}: {text}");
    }
    let text = shown(&loops(), Some(60));
    assert!(text.contains("  2/3 ") && text.contains("$1.20/$5.00") && text.contains("Bash cargo"), "{text}");
    // On less than that no line breaks, and nothing panics.
    for width in 0..45 {
        assert_eq!(shown(&loops()[..1], Some(width)).lines().count(), 2);
    }
}

#[test]
fn what_nobody_knows_takes_no_room_and_several_waits_have_one_hint() {
    let one = |name| a_loop(name, |state| (state.tally.iteration, state.tally.in_attempt) = (1, true));
    let rows = [(one("a"), Sight::default())];
    assert_eq!(shown(&rows, None), "NAME  STATUS   ITERATION\na     running  1\n");
    let waits = |name| {
        let until = Some(Utc::now() + TimeDelta::hours(1));
        (a_loop(name, |state| state.waiting_until = until), Sight::default())
    };
    assert!(
        shown(&[waits("a"), waits("b")], None).ends_with("\n'ralph resume' tries now, for all that wait\n")
    );
}

#[test]
fn a_worker_whose_agent_works_on_is_told_of() {
    let worker = || Some(WorkerSight { runs: true, window: None });
    let gone = a_loop("w", |state| state.is_held = false);
    let text = table(&[(LoopSnapshot::of(&gone, worker()), Sight::default())], &[], None);
    assert!(text.contains("its agent works on"), "{text}");
}
