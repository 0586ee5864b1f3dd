//! What many branches show on one console.

use std::path::Path;
use std::time::Duration;

use chrono::Local;
use regex::Regex;

use super::*;
use crate::engine::budget::Spent;
use crate::engine::event::{LoopIdentity, Unwritten};
use crate::engine::outcome::Outcome;
use crate::engine::policy::Limits;
use crate::engine::report::{AttemptStatus, Report};
use crate::engine::tally::Tally;
use crate::view::person_lines::TaskCounter;

fn screen(json: bool, quiet: bool) -> Screen {
    let console = Arc::new(Console::held());
    Screen { console, json, quiet, verbose: !quiet, waits: plain::SharedWaits::default() }
}

fn branch(screen: &Screen, place: usize, name: &str, width: usize) -> View {
    screen.branch(("loop build", place), name, width, TaskCounter(Box::new(|| None)))
}

/// What has been written, without colours and times of day; `2>` marks what went to stderr.
fn written(screen: &Screen) -> String {
    let mut lines = Vec::new();
    for (target, piece) in screen.console.taken() {
        let plain = anstream::adapter::strip_str(&piece).to_string();
        let mark = if target == Target::Stderr { "2> " } else { "" };
        lines.extend(plain.lines().map(|line| format!("{mark}{line}\n")));
    }
    let time = Regex::new(r"│ \d\d:\d\d:\d\d ").unwrap();
    time.replace_all(&lines.concat(), "│ TIME ").into_owned()
}

fn take(view: &mut View, name: &str, tally: &Tally, fact: &Fact<'_>) {
    let identity =
        LoopIdentity { run: "r".into(), name: name.into(), mode: "build".into(), agent: "claude".into() };
    let unwritten = match fact {
        Fact::LoopEnded(_) => Unwritten::Outcome(Outcome::Breaker),
        _ => Unwritten::Nothing,
    };
    view.take(&Stamped { unwritten, ..Stamped::new(Local::now(), &identity, tally, fact) });
}

/// One iteration of one branch, whose agent says each word by itself.
fn iteration(view: &mut View, name: &str, words: &[&str]) {
    let (limits, tally) = (
        Limits { max_iterations: Some(3), ..Limits::EXAMPLE },
        Tally { iteration: 1, spent: Spent { cost_usd: Some(0.5), ..Spent::default() }, ..Tally::default() },
    );
    let report = Report::given_up(AttemptStatus::Success, Duration::from_millis(1234));
    let mut take = |fact: &Fact<'_>| take(view, name, &tally, fact);
    take(&Fact::loop_started(Path::new("/p"), &limits, &tally));
    take(&Fact::attempt_started(&tally, None));
    take(&Fact::Tool { input: "cargo test".into(), name: "Bash".into() });
    for word in words {
        take(&Fact::TextDelta { text: (*word).into() });
    }
    take(&Fact::attempt_ended(&tally, &report, None, None));
    let (outcome, duration) = (Outcome::Breaker, Duration::from_secs(61));
    take(&Fact::loop_ended(outcome, Some("claude exited\nwith 3"), &tally, duration, None));
}

#[test]
fn a_view_may_live_in_a_thread_of_its_own() {
    fn is_send<T: Send>() {}
    is_send::<View>();
    is_send::<Screen>();
}

#[test]
fn every_line_of_a_branch_names_it() {
    let screen = screen(false, false);
    let mut view = branch(&screen, 0, "fix", 5);
    view.warn("no such tool");
    iteration(&mut view, "fix", &["two\n\nli", "nes and", " a half"]);
    screen.warn("of all");
    screen.say("a table\n");
    assert_eq!(
        written(&screen),
        "\
2> fix   │ warning: no such tool
fix   │ TIME ▶ Iteration 1 of 3
2> fix   │ ▸ Bash cargo test
2> fix   │ two
2> fix   │
2> fix   │ lines and a half
fix   │ TIME ✓ Iteration 1 completed in 1.2s
fix   │ TIME ■ failed: too many failures in a row: claude exited with 3 · 1 iteration · 1m1s · $0.50
2> warning: of all
a table
"
    );
}

#[test]
fn where_nobody_looks_an_iteration_of_a_branch_is_one_line() {
    let screen = Screen { verbose: false, ..screen(false, false) };
    iteration(&mut branch(&screen, 0, "fix", 3), "fix", &["words"]);
    assert_eq!(
        written(&screen),
        "\
fix │ TIME ✓ Iteration 1 completed in 1.2s
fix │ TIME ■ failed: too many failures in a row: claude exited with 3 · 1 iteration · 1m1s · $0.50
"
    );
}

#[test]
fn quiet_leaves_the_end_and_what_went_wrong() {
    let screen = screen(false, true);
    let mut view = branch(&screen, 0, "fix", 3);
    iteration(&mut view, "fix", &["words"]);
    take(&mut view, "fix", &Tally::default(), &Fact::notice("something"));
    assert_eq!(
        written(&screen),
        "\
fix │ TIME ■ failed: too many failures in a row: claude exited with 3 · 1 iteration · 1m1s · $0.50
2> fix │ TIME ! something
"
    );
}

#[test]
fn branches_at_the_same_time_do_not_mix() {
    let screen = screen(false, false);
    let names: Vec<String> = (0..8).map(|place| format!("branch-{place}")).collect();
    std::thread::scope(|scope| {
        for (place, name) in names.iter().enumerate() {
            let mut view = branch(&screen, place, name, 8);
            scope.spawn(move || {
                let line = ["a word ", "of ", name, "\n"];
                iteration(&mut view, name, &line.repeat(200));
            });
        }
    });
    let written = written(&screen);
    for name in &names {
        let own = written.lines().filter(|line| *line == format!("2> {name} │ a word of {name}")).count();
        assert_eq!(own, 200, "{name}");
    }
    // Besides: the lines around the iteration, the tool and the end.
    assert_eq!(written.lines().count(), 8 * (200 + 4));
}

#[test]
fn json_lines_of_all_branches_name_their_loop() {
    let screen = screen(true, true);
    for (place, name) in ["a", "b"].into_iter().enumerate() {
        iteration(&mut branch(&screen, place, name, 1), name, &["words"]);
    }
    screen.say("no table\n");
    screen.say_json("{\"event\":\"build_ended\"}\n");
    let text = written(&screen);
    let events: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let loops: Vec<_> = events.iter().filter_map(|event| event["loop"].as_str()).collect();
    assert_eq!(loops, [["a"; 6], ["b"; 6]].concat());
    assert_eq!(events.last().unwrap()["event"], "build_ended");
}

#[test]
fn text_that_was_left_out_is_told_where_it_disturbs_no_program() {
    let screen = screen(true, false);
    let long = "x".repeat(9 * 1024 * 1024);
    screen.console.show(Target::Stdout, long);
    screen.console.show(Target::Stdout, "{}\n".to_owned());
    assert_eq!(written(&screen), "2> \n2> [ralph] 9437184 bytes not shown: this terminal is too slow\n{}\n");
}
