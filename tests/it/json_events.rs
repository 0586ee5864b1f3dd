//! `--json`: events as JSON lines on stdout and nothing else there; and colours only where they belong.

use ralph::record::event_line::EventLine;
use serde_json::Value;

use crate::scratch::{CLAUDE_RESULT, Run, Scratch, claude_says, claude_text, says};

/// The events on stdout; every line has to be one that the reader of the events log keeps completely.
pub(crate) fn events(run: &Run) -> Vec<Value> {
    let read = |line: &str| {
        let event = EventLine::read(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert_eq!(event.write().unwrap().trim_end(), line);
        serde_json::from_str(line).unwrap()
    };
    run.stdout.lines().map(read).collect()
}

fn names(events: &[Value]) -> Vec<&str> {
    events.iter().filter_map(|event| event["event"].as_str()).collect()
}

#[test]
fn a_run_with_a_retry() {
    let scratch = Scratch::new();
    let tool = r#"{"type":"assistant","message":{"model":"m","content":[{"type":"tool_use","id":"t","name":"Bash","input":{"command":"ls"}}]},"parent_tool_use_id":null}"#;
    scratch.write("good.sh", says(&[&claude_text("<promise>COMPLETE</promise>"), tool, CLAUDE_RESULT]));
    scratch.agent("claude", "[ -e tried ] || { touch tried; echo oops >&2; exit 7; }\n. ./good.sh");
    let run = scratch.run("prompt p.md 4 --json");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(run.stderr, "");

    let events = events(&run);
    assert_eq!(
        names(&events),
        [
            "loop_started",
            "attempt_started",
            "agent_started",
            "attempt_ended",
            "retrying",
            "attempt_started",
            "agent_started",
            "text",
            "tool",
            "attempt_ended",
            "loop_ended",
        ]
    );
    assert!(events.iter().all(|event| event["run"] == events[0]["run"] && event["loop"] == "prompt"));
    let (failed, retry, tool, good, end) = (&events[3], &events[4], &events[8], &events[9], &events[10]);
    assert_eq!(events[0]["max_iterations"], 4);
    assert_eq!((&failed["status"], &failed["exit_code"]), (&"agent-failure".into(), &7.into()));
    assert_eq!(failed["failure"]["message"], "claude exited with code 7: oops");
    assert_eq!(
        (&retry["iteration"], &retry["retry"], &retry["max_retries"]),
        (&1.into(), &1.into(), &3.into())
    );
    assert_eq!((&tool["name"], &tool["input"]), (&"Bash".into(), &"ls".into()));
    assert_eq!(
        (&good["status"], &good["retry"], &good["complete"]),
        (&"success".into(), &1.into(), &true.into())
    );
    assert_eq!(good["usage"]["cost_usd"], 0.01);
    assert_eq!((&end["exit_reason"], &end["exit_code"]), (&"complete".into(), &0.into()));
    assert_eq!((&end["iterations"], &end["succeeded"], &end["failed"]), (&1.into(), &1.into(), &1.into()));
    assert_eq!(
        (&end["end"], &end["attempts"], &end["failed_iterations"]),
        (&"done".into(), &2.into(), &0.into())
    );

    let log = scratch.session_logs().pop().unwrap().with_extension("events.jsonl");
    assert_eq!(std::fs::read_to_string(log).unwrap(), run.stdout, "the events log holds the same");
}

#[test]
fn a_validation_that_fails_once() {
    let scratch = Scratch::new();
    let good = claude_says("<promise>COMPLETE</promise>");
    let agent =
        format!("if [ $RALPH_ITERATION = 1 ] && [ ! -e failed ]; then touch failed; exit 7; fi\n{good}");
    scratch.agent("claude", &agent);
    let mut command = scratch.ralph("prompt p.md 3 --idle 2 --backoff 0.01s --json");
    let run =
        Scratch::finish(command.args(["--validate", "test $RALPH_ITERATION != 1 || { echo no; exit 1; }"]));
    let events = events(&run);
    for name in ["loop_started", "retrying", "validated", "attempt_ended", "loop_ended"] {
        assert!(names(&events).contains(&name), "{name}: {run:?}");
    }
    let log = scratch.session_logs().pop().unwrap().with_extension("events.jsonl");
    assert_eq!(std::fs::read_to_string(log).unwrap(), run.stdout);
}

#[test]
fn every_end_is_told() {
    let scratch = Scratch::new();
    for (agent, code, reason) in [
        (claude_says("<promise>REPLAN</promise>"), 3, "replan"),
        (claude_says("more"), 0, "max_iterations"),
        ("exit 3".to_owned(), 4, "failed"),
        (format!("rm p.md; {}", claude_says("more")), 1, "prompt_lost"),
    ] {
        scratch.write("p.md", "<promise>COMPLETE</promise>");
        scratch.agent("claude", &agent);
        let run = scratch.run("--json prompt p.md 2 --max-retries 0");
        let events = events(&run);
        let end = events.last().unwrap();
        assert_eq!((end["exit_reason"].as_str(), run.code), (Some(reason), Some(code)), "{run:?}");
        assert_eq!(end["exit_code"], code);
    }
}

#[test]
fn json_wins_over_quiet_and_over_what_agents_print() {
    let scratch = Scratch::new();
    scratch.agent("claude", &format!("echo noise; echo '\x1b[31m\u{1}'; {}", claude_says("a\x1b[2Jb\r\x07")));
    let run = scratch.run("prompt p.md 1 --json --quiet");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(!run.stdout.contains('\x1b'), "{run:?}");
    assert!(names(&events(&run)).contains(&"text"), "{run:?}");
}

#[test]
fn a_refusal_prints_no_event() {
    let run = Scratch::new().run("plan --json --agent nobody");
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""));
    assert!(run.stderr.starts_with("error: "), "{run:?}");
}

#[test]
fn no_escape_sequences_without_a_terminal() {
    let scratch = Scratch::new();
    scratch.agent("claude", &claude_says("\x1b[31mred\x1b[0m"));
    for args in ["prompt p.md 1", "config", "doctor", "--help", "plan --help", "plan --bad"] {
        let run = scratch.run(args);
        assert!(!run.stdout.contains('\x1b') && !run.stderr.contains('\x1b'), "{args}: {run:?}");
    }
}

/// Runs ralph on a terminal of its own and answers what it showed there.
fn on_a_terminal(scratch: &Scratch, args: &str, no_colour: bool) -> String {
    let mut command = scratch.ralph(args);
    command.env("TERM", "xterm-256color");
    if no_colour {
        command.env("NO_COLOR", "1");
    }
    let mut terminal = rexpect::session::spawn_command(command, Some(30_000)).unwrap();
    terminal.exp_eof().unwrap()
}

#[test]
fn colours_on_a_terminal_but_not_with_no_color() {
    let scratch = Scratch::new();
    scratch.agent("claude", &claude_says("\x1b[31mred\x1b[0m <promise>COMPLETE</promise>"));
    let coloured = on_a_terminal(&scratch, "prompt p.md 1", false);
    assert!(coloured.contains("\x1b[31mred"), "{coloured}");
    let plain = on_a_terminal(&scratch, "prompt p.md 1", true);
    // The status line still moves the cursor; only what ends in an `m` is a colour.
    let sequences = plain.split("\x1b[").skip(1);
    let mut ends =
        sequences.map(|rest| rest.trim_start_matches(|char: char| char.is_ascii_digit() || char == ';'));
    assert!(plain.contains("red") && !ends.any(|end| end.starts_with('m')), "{plain:?}");
}
