//! The status line on a real terminal: what a person sees.

use std::path::PathBuf;

use crate::scratch::{Scratch, process_in};
use crate::terminal::Terminal;

const WORDS: &str = r#"
cat > /dev/null
say() { printf '{"type":"assistant","message":{"model":"m","content":[{"type":"text","text":"%s"}]},"parent_tool_use_id":null}\n' "$1"; }
use_tool() { printf '{"type":"assistant","message":{"model":"m","content":[{"type":"tool_use","id":"t","name":"Bash","input":{"command":"%s"}}]},"parent_tool_use_id":null}\n' "$1"; }
end() { printf '{"type":"result","subtype":"success","is_error":false,"result":"","total_cost_usd":0.5,"usage":{"input_tokens":10,"output_tokens":5}}\n'; }
wait_for() { while [ ! -e ../$1 ]; do sleep 0.02; done; }
"#;

const HINT: &str = "Ctrl+C: stop after this attempt";

fn project(body: &str) -> Scratch {
    let scratch = Scratch::new();
    scratch.agent("claude", &format!("{WORDS}\n{body}"));
    scratch
}

/// Lets an agent go on that waits for this.
fn allow(scratch: &Scratch, name: &str) {
    std::fs::write(beside(scratch, name), "").unwrap();
}

fn beside(scratch: &Scratch, name: &str) -> PathBuf {
    scratch.root().parent().unwrap().join(name)
}

fn start(scratch: &Scratch, args: &str, env: &[(&str, &str)]) -> Terminal {
    let mut command = scratch.ralph(args);
    command.env("TERM", "xterm-256color").envs(env.iter().copied());
    Terminal::start(&command, 24, 100)
}

fn last_row(screen: &str) -> &str {
    screen.lines().last().unwrap_or_default()
}

/// Rows that look like a status line.
fn status_rows(text: &str) -> Vec<&str> {
    text.lines().filter(|row| row.starts_with("iteration ") && row.contains(" · ")).collect()
}

#[test]
fn it_stays_below_what_scrolls_by_and_leaves_nothing_behind() {
    let scratch = project(
        "say 'first words'; use_tool 'cargo test'; wait_for go
         for n in $(seq 40); do say \"line $n\"; sleep 0.01; done; use_tool 'git commit'; wait_for end
         say '<promise>COMPLETE</promise>'; end",
    );
    let terminal = start(&scratch, "prompt p.md 3", &[]);
    terminal.wait_for("the tool", |screen| last_row(screen).contains(" · Bash cargo test · "));
    let screen = terminal.screen();
    assert!(
        last_row(&screen).starts_with("iteration 1/3 · ") && last_row(&screen).ends_with(HINT),
        "{screen}"
    );
    assert_eq!(terminal.cursor().1, 0);
    terminal.wait_for("a running clock", |screen| last_row(screen).contains(" · 2s · "));

    allow(&scratch, "go");
    terminal.wait_for("the end of the lines", |screen| {
        screen.contains("line 40\n") && last_row(screen).contains(" · Bash git commit · ")
    });
    let screen = terminal.screen();
    assert_eq!(status_rows(&screen).len(), 1, "{screen}");

    allow(&scratch, "end");
    let end = terminal.end();
    assert_eq!(end.code, Some(0), "{}", end.history);
    assert_eq!(status_rows(&end.history), [""; 0], "{}", end.history);
    let lines: Vec<&str> = end.history.lines().filter(|line| line.starts_with("line ")).collect();
    let expected: Vec<String> = (1..=40).map(|n| format!("line {n}")).collect();
    assert_eq!(lines, expected);
    assert!(end.history.contains("\n✓ prompt  done  "), "{}", end.history);
    assert_eq!(end.cursor.1, 0);
}

#[test]
fn it_follows_the_terminals_size() {
    let scratch = project(
        "use_tool 'a command of some length, more than fits'; wait_for end; say '<promise>COMPLETE</promise>'; end",
    );
    let terminal = start(&scratch, "prompt p.md 3", &[]);
    terminal.wait_for("the line", |screen| last_row(screen).ends_with(HINT));
    for (columns, hint) in [(50, false), (20, false), (140, true), (60, false), (100, true)] {
        terminal.resize(24, columns);
        terminal.wait_for("a line that fits", |screen| {
            let row = last_row(screen);
            row.starts_with("iteration 1/3 · ")
                && row.chars().count() < columns.into()
                && row.ends_with('…') != hint
                && row.ends_with(HINT) == hint
        });
        let screen = terminal.screen();
        assert_eq!(status_rows(&screen).len(), 1, "{screen}");
    }
    allow(&scratch, "end");
    let end = terminal.end();
    assert_eq!((end.code, status_rows(&end.history)), (Some(0), vec![]), "{}", end.history);
}

#[test]
fn words_that_come_in_pieces_are_not_torn() {
    let scratch = Scratch::new();
    scratch.agent(
        "gemini",
        r#"cat > /dev/null
        delta() { printf '{"type":"message","role":"assistant","content":"%s","delta":true}\n' "$1"; }
        wait_for() { while [ ! -e ../$1 ]; do sleep 0.02; done; }
        echo '{"type":"init","model":"m","session_id":"s"}'
        delta 'Half a sen'; wait_for go; delta 'tence, and'; delta ' the rest.'; wait_for end
        delta '\n<promise>COMPLETE</promise>\n'
        echo '{"type":"result","status":"success","stats":{"input_tokens":1,"output_tokens":1}}'"#,
    );
    let terminal = start(&scratch, "prompt p.md 2 --agent gemini", &[]);
    terminal.wait_for("both", |screen| screen.contains("Half a sen\niteration 1/2 · "));
    allow(&scratch, "go");
    terminal.wait_for("both", |screen| screen.contains("Half a sentence, and the rest.\niteration 1/2 · "));
    terminal.wait_for("a later clock", |screen| last_row(screen).contains(" · 2s · "));
    allow(&scratch, "end");
    let end = terminal.end();
    assert_eq!((end.code, status_rows(&end.history)), (Some(0), vec![]), "{}", end.history);
    assert!(end.history.contains("Half a sentence, and the rest.\n<promise>"), "{}", end.history);
}

#[test]
fn it_says_what_ctrl_c_does_and_is_gone_after_the_third() {
    let scratch =
        project("trap '' INT TERM; use_tool stubborn; echo $$ > ../pid; while :; do sleep 0.1; done");
    let mut terminal = start(&scratch, "prompt p.md 3", &[]);
    terminal.wait_for("the first hint", |screen| last_row(screen).ends_with(HINT));
    process_in(&beside(&scratch, "pid"));
    terminal.press_ctrl_c();
    terminal.wait_for("the second hint", |screen| last_row(screen).ends_with("Ctrl+C: end the agent now"));
    terminal.press_ctrl_c();
    terminal.wait_for("the third hint", |screen| last_row(screen).ends_with("Ctrl+C: kill the agent"));
    terminal.press_ctrl_c();
    let end = terminal.end();
    assert_eq!((end.code, status_rows(&end.history)), (Some(130), vec![]), "{}", end.history);
    assert!(end.history.contains("\n■ prompt  interrupted  "), "{}", end.history);
    assert!(end.history.ends_with("\nNext: ralph resume prompt"), "{}", end.history);
    assert_eq!(end.cursor.1, 0);
}

#[test]
fn it_tells_of_a_wait_and_of_a_validation() {
    let scratch = project(
        r#"[ -e ../limited ] || { touch ../limited
           printf '{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":%s}}\n' $(( $(date +%s) + 4 ))
           echo '{"type":"result","is_error":true,"api_error_status":429,"result":"limit"}'; exit 1; }
           say '<promise>COMPLETE</promise>'; end"#,
    );
    scratch.write("ralph.toml", "[validation]\ncommand = \"while [ ! -e ../end ]; do sleep 0.02; done\"\n");
    let terminal = start(&scratch, "prompt p.md 3", &[]);
    terminal.wait_for("the wait", |screen| {
        last_row(screen).contains(" · usage limit: ") && last_row(screen).ends_with("Ctrl+C: stop")
    });
    terminal.wait_for("the validation", |screen| last_row(screen).contains(" · validating · "));
    allow(&scratch, "end");
    let end = terminal.end();
    assert_eq!((end.code, status_rows(&end.history)), (Some(0), vec![]), "{}", end.history);
}

#[test]
fn it_has_no_colour_where_none_is_wanted() {
    let scratch = project("use_tool x; wait_for end; say '<promise>COMPLETE</promise>'; end");
    let terminal = start(&scratch, "prompt p.md 3", &[("NO_COLOR", "1")]);
    terminal.wait_for("the line", |screen| last_row(screen).ends_with(HINT));
    allow(&scratch, "end");
    let end = terminal.end();
    assert_eq!(end.code, Some(0));
    assert!(end.bytes.contains(HINT) && !end.bytes.contains("\x1b[2m"), "{:?}", end.bytes);
}

#[test]
fn it_is_not_shown_where_it_would_disturb() {
    let scratch = project("say working; sleep 0.5; say '<promise>COMPLETE</promise>'; end");
    for (args, env) in [
        ("prompt p.md 3", [("TERM", "dumb")]),
        ("prompt p.md 3 --quiet", [("A", "")]),
        ("prompt p.md 3 --json", [("A", "")]),
    ] {
        let end = start(&scratch, args, &env).end();
        assert_eq!(end.code, Some(0), "{args}: {}", end.history);
        assert!(!end.bytes.contains(HINT) && !end.bytes.contains("\x1b[J"), "{args}: {:?}", end.bytes);
    }
    let mut command = scratch.command("sh");
    command
        .args(["-c", "exec \"$0\" prompt p.md 3 2> ../stderr", env!("CARGO_BIN_EXE_ralph")])
        .env("TERM", "xterm");
    let end = Terminal::start(&command, 24, 100).end();
    assert_eq!(end.code, Some(0), "{}", end.history);
    let stderr = std::fs::read_to_string(beside(&scratch, "stderr")).unwrap();
    assert!(stderr.contains("working") && !stderr.contains('\x1b') && !stderr.contains(HINT), "{stderr:?}");
    assert!(!end.bytes.contains(HINT), "{:?}", end.bytes);
}

#[test]
fn a_loop_in_the_background_leaves_the_terminal_alone() {
    let scratch = project("say working; sleep 0.5; say '<promise>COMPLETE</promise>'; end");
    let mut command = scratch.command("bash");
    command
        .args(["-c", "set -m; \"$0\" prompt p.md 3 & wait", env!("CARGO_BIN_EXE_ralph")])
        .env("TERM", "xterm");
    let end = Terminal::start(&command, 24, 100).end();
    assert!(end.history.contains("working") && !end.bytes.contains(HINT), "{:?}", end.bytes);
}
