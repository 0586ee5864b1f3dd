//! The display of parallel branches, for users and for programs.

use std::fs;
use std::process::Stdio;

use regex::Regex;
use rustix::process::Signal;

use crate::branch_project::{BranchProject, plan};
use crate::json_events::events;
use crate::processes::send;
use crate::scratch::{Scratch, await_end, process_in, wait_for};
use crate::terminal::{End, Terminal};

/// Functions for the agents below, besides those of every branch project.
const WORDS: &str = r#"
use_tool() { printf '{"type":"assistant","message":{"model":"m","content":[{"type":"tool_use","id":"t","name":"Bash","input":{"command":"%s"}}]},"parent_tool_use_id":null}\n' "$1"; }
wait_for() { touch "$HOME/waits-$1-$RALPH_BRANCH"; while [ ! -e "$HOME/$1" ] && [ ! -e "$HOME/$1-$RALPH_BRANCH" ]; do sleep 0.02; done; }
talk() { for n in $(seq 30); do say "line $n of $RALPH_BRANCH"; done; }
"#;

/// Holds back what a terminal shows.
const CTRL_S: &str = "\x13";
const HINT: &str = "Ctrl+C: stop after the running attempts";
const BRANCHES: [&str; 2] = ["one", "second"];

/// Two branches of one task each, and agents that do this.
fn project(body: &str) -> BranchProject {
    let project = BranchProject::new(&plan(&BRANCHES.map(|branch| (branch, 1))));
    project.agent(&format!("{WORDS}\n{body}"));
    project
}

fn start(project: &BranchProject, args: &str, env: &[(&str, &str)]) -> Terminal {
    let mut command = project.scratch.ralph(args);
    command.env("TERM", "xterm-256color").envs(env.iter().copied());
    Terminal::start(&command, 24, 100)
}

/// Lets agents go on that wait for this.
fn allow(project: &BranchProject, name: &str) {
    fs::write(project.scratch.outside().join("home").join(name), "").unwrap();
}

/// The last rows of the screen, as many as are asked for.
fn last_rows(screen: &str, count: usize) -> Vec<&str> {
    let rows: Vec<&str> = screen.lines().collect();
    rows[rows.len().saturating_sub(count)..].to_vec()
}

/// Rows that look like the status lines of branches, or like the hint below them.
fn status_rows(text: &str) -> Vec<&str> {
    let is_status = |row: &&str| row.contains("  iteration ") && row.contains(" · ");
    text.lines().filter(|row| is_status(row) || row.starts_with("Ctrl+C")).collect()
}

/// Whether the terminal is as it was found: nothing of the status is left, and the next line starts at the left.
#[track_caller]
fn assert_tidy(end: &End) {
    assert_eq!(status_rows(&end.history), [""; 0], "{}", end.history);
    assert_eq!(end.cursor.1, 0);
    for (begin, finish) in [("\x1b[?25l", "\x1b[?25h"), ("\x1b[?7l", "\x1b[?7h")] {
        assert_eq!(end.bytes.matches(begin).count(), end.bytes.matches(finish).count(), "{:?}", end.bytes);
    }
}

/// Whether everything that [`talk`](WORDS) said is there, in its order, in whole lines behind the branch's name.
#[track_caller]
fn assert_lines(text: &str) {
    for branch in BRANCHES {
        let said: Vec<&str> = text.lines().filter(|line| line.contains(&format!(" of {branch}"))).collect();
        let said: Vec<&str> = said.into_iter().filter(|line| line.contains("line ")).collect();
        let expected: Vec<String> = (1..=30).map(|n| format!("{branch:<6} │ line {n} of {branch}")).collect();
        assert_eq!(said, expected, "{text}");
    }
}

#[test]
fn each_branch_has_its_line_below_what_scrolls_by() {
    let project =
        project("use_tool \"make $RALPH_BRANCH\"; wait_for go; talk; use_tool git; wait_for end; work; end");
    let terminal = start(&project, "loop build", &[]);
    terminal.wait_for("a line for each", |screen| {
        let rows = last_rows(screen, 4);
        rows.len() == 4
            && rows[0].starts_with("one     iteration 1/20 · ")
            && rows[0].ends_with(" · Bash make one")
            && rows[1].starts_with("second  iteration 1/20 · ")
            && rows[1].ends_with(" · Bash make second")
            && rows[2] == "0 of 2 done"
            && rows[3] == HINT
    });
    assert_eq!(terminal.cursor().1, 0);

    allow(&project, "go");
    terminal.wait_for("the end of the lines", |screen| {
        last_rows(screen, 4).iter().filter(|row| row.ends_with(" · Bash git")).count() == 2
    });
    let screen = terminal.screen();
    assert_eq!(status_rows(&screen).len(), 3, "{screen}");

    allow(&project, "end-second");
    terminal.wait_for("only the other one", |screen| {
        let rows = last_rows(screen, 4);
        rows.len() == 4
            && rows[0].starts_with("✓ second  done  1/1  +1 −0  1 commit  ")
            && rows[1].starts_with("one     iteration ")
            && rows[2] == "1 of 2 done"
            && rows[3] == HINT
    });
    allow(&project, "end-one");
    let end = terminal.end();
    assert_eq!(end.code, Some(0), "{}", end.history);
    assert_tidy(&end);
    assert_lines(&end.history);
    // It is closed by what `ralph report` tells: three lines for each, and the total.
    let report = last_rows(end.history.trim_end(), 7);
    for (rows, branch) in report.chunks(3).zip(BRANCHES) {
        assert!(rows[0].starts_with(&format!("✓ {branch:<6}  done  1/1  +")), "{}", end.history);
        assert_eq!(rows[1].trim_start(), "unchecked: the agent's word", "{}", end.history);
        assert!(rows[2].trim_start().starts_with("https://example.com/pr/"), "{}", end.history);
    }
    assert!(report[6].starts_with("2 loops: 2 done · +"), "{}", end.history);
    for branch in BRANCHES {
        let line = format!("✓ {branch:<6}  done  1/1  ");
        assert_eq!(
            end.history.matches(&line).count(),
            2,
            "when it ended, and in the report: {}",
            end.history
        );
        assert!(!end.history.contains(&format!("{branch:<6} │ ■")), "{}", end.history);
    }
    assert!(end.bytes.contains("\x1b[35mone    │\x1b[0m line 1 of one"), "{:?}", end.bytes);
}

#[test]
fn the_lines_follow_the_terminals_size() {
    let project = project("use_tool 'a command of some length, more than fits'; wait_for end; work; end");
    let terminal = start(&project, "loop build", &[]);
    terminal.wait_for("the lines", |screen| last_rows(screen, 1) == [HINT]);
    for (rows, columns) in [(24, 30), (10, 100), (24, 14), (24, 120)] {
        terminal.resize(rows, columns);
        terminal.wait_for("lines that fit", |screen| {
            let cut = |row: &&str| row.ends_with('…') == (columns < 100);
            let rows = last_rows(screen, 4);
            rows.len() == 4
                && rows[0].starts_with("one     ite")
                && rows[1].starts_with("second  ite")
                && rows[2].starts_with("0 of 2 done")
                && rows[3].starts_with("Ctrl+C: sto")
                && rows[..2].iter().all(cut)
                && rows.iter().all(|row| row.chars().count() < columns.into())
        });
    }
    // There is not enough space for all: the rest is counted.
    terminal.resize(4, 100);
    terminal.wait_for("what there is room for", |screen| last_rows(screen, 2) == ["0 of 2 done", HINT]);
    terminal.resize(5, 100);
    terminal
        .wait_for("how many more", |screen| last_rows(screen, 3) == ["… and 2 more", "0 of 2 done", HINT]);
    terminal.resize(24, 100);
    terminal.wait_for(
        "all lines again",
        |screen| matches!(last_rows(screen, 4)[..], [row, _, _, HINT] if row.starts_with("one     iteration")),
    );
    allow(&project, "end");
    let end = terminal.end();
    assert_eq!(end.code, Some(0), "{}", end.history);
    assert_tidy(&end);
}

#[test]
fn those_that_wait_for_a_place_say_so() {
    let project = project("use_tool make; wait_for end; work; end");
    let terminal = start(&project, "loop build --sequential", &[]);
    terminal.wait_for("the one that waits", |screen| {
        let rows = last_rows(screen, 4);
        rows.len() == 4
            && rows[0].ends_with(" · Bash make")
            && rows[1].ends_with(" · waiting for a free place")
            && rows[2] == "0 of 2 done"
    });
    allow(&project, "end-one");
    terminal.wait_for(
        "its turn",
        |screen| matches!(last_rows(screen, 3)[..], [row, "1 of 2 done", HINT] if row.ends_with(" · Bash make")),
    );
    allow(&project, "end-second");
    let end = terminal.end();
    assert_eq!(end.code, Some(0), "{}", end.history);
    assert_tidy(&end);
}

#[test]
fn ctrl_c_once_lets_the_attempts_finish() {
    let project = project("use_tool make; wait_for end; say finished; result");
    let mut terminal = start(&project, "loop build", &[]);
    for branch in BRANCHES {
        wait_for("an agent", || (!project.home("calls").is_empty()).then_some(()));
        terminal.wait_for("its tool", |screen| {
            last_rows(screen, 4).iter().any(|row| row.starts_with(branch) && row.ends_with("Bash make"))
        });
    }
    terminal.press_ctrl_c();
    terminal.wait_for("the next hint", |screen| last_rows(screen, 1) == ["Ctrl+C: end the agents now"]);
    allow(&project, "end");
    let end = terminal.end();
    assert_eq!(end.code, Some(130), "{}", end.history);
    assert_tidy(&end);
    for branch in BRANCHES {
        assert_eq!(project.calls(branch), 1);
        assert!(end.history.contains(&format!("{branch:<6} │ finished")), "{}", end.history);
        assert!(end.history.contains(&format!("\n■ {branch:<6}  interrupted  ")), "{}", end.history);
    }
}

#[test]
fn ctrl_c_twice_ends_the_agents_and_thrice_kills_them() {
    let project = project("trap '' INT TERM; use_tool stubborn; while :; do sleep 0.1; done");
    let mut terminal = start(&project, "loop build", &[]);
    terminal.wait_for("both", |screen| {
        last_rows(screen, 4).iter().filter(|row| row.ends_with(" · Bash stubborn")).count() == 2
    });
    terminal.press_ctrl_c();
    terminal.wait_for("the second hint", |screen| last_rows(screen, 1) == ["Ctrl+C: end the agents now"]);
    terminal.press_ctrl_c();
    terminal.wait_for("the third hint", |screen| last_rows(screen, 1) == ["Ctrl+C: kill the agents"]);
    terminal.press_ctrl_c();
    let end = terminal.end();
    assert_eq!(end.code, Some(130), "{}", end.history);
    assert_tidy(&end);
    assert!(end.history.contains("■ one     interrupted  0/1"), "{}", end.history);
    assert!(end.history.contains("\nNext: ralph loop build"), "{}", end.history);
}

/// The first attempts of all five branches reach a usage limit of ten minutes, after all have begun.
const LIMITED: &str = r#"
while [ "$(wc -l < "$HOME/calls")" -lt 5 ]; do sleep 0.02; done
if mkdir "$HOME/limit-$RALPH_BRANCH" 2> /dev/null; then
    printf '{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":%s}}\n' "$(cat "$HOME/reset")"
    echo '{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"result":"You have hit your limit"}'
    exit 1
fi
"#;

#[test]
fn a_limit_that_all_meet_is_told_once_and_those_that_end_leave_a_short_line() {
    let names = ["one", "second", "rain", "a-branch-with-a-rather-long-name", "e"];
    let project = BranchProject::new(&plan(&names.map(|branch| (branch, 1))));
    project.agent(&format!(
        "{WORDS}\n{LIMITED}\n[ $RALPH_BRANCH = rain ] && {{ echo 'cannot make it rain' >&2; exit 3; }}; wait_for end; work; end"
    ));
    let reset = chrono::Utc::now().timestamp() + 600;
    fs::write(project.home_path("reset"), reset.to_string()).unwrap();
    let mut command = project.scratch.ralph("loop build");
    command.env("TERM", "xterm-256color");
    let terminal = Terminal::start(&command, 24, 60);
    terminal.wait_for("all to wait", |screen| {
        let rows = last_rows(screen, 2);
        let waits = screen.lines().filter(|row| row.contains("  iteration 1/20 · ") && row.contains(" · us"));
        waits.count() == names.len()
            && rows[0].starts_with("0 of 5 done · usage limit until ")
            && rows[0].ends_with(", 10m")
            && rows[1] == "Ctrl+C: stop"
    });
    let run = project.scratch.run("resume");
    assert_eq!(run.code, Some(0), "{run:?}");
    terminal.wait_for("the one that fails", |screen| {
        let rows = last_rows(screen, 2);
        rows[0] == "0 of 5 done · 1 failed" && rows[1] == HINT
    });
    let failed = |row: &str| {
        row.starts_with("✗ rain") && row.contains("  failed  ") && row.contains("  claude exited")
    };
    let screen = terminal.screen();
    assert_eq!(screen.lines().filter(|row| failed(row)).count(), 1, "{screen}");
    let is_at_work = |row: &str| row.starts_with("rain ") && row.contains("  iteration ");
    assert!(!screen.lines().any(is_at_work), "its line is gone: {screen}");
    allow(&project, "end");
    let end = terminal.end();
    assert_eq!(end.code, Some(4), "{}", end.history);
    assert_tidy(&end);
    let (block, _) = end.history.rsplit_once("\n✓ a-branch-with-a-rather-long-name ").unwrap();
    assert_eq!(end.history.matches("limit").count(), 1, "{}", end.history);
    assert!(end.history.contains("\n⏸ usage limit reached; waiting until "), "{}", end.history);
    assert!(!end.history.contains("going on"), "{}", end.history);
    for name in names.iter().filter(|name| **name != "rain") {
        let lines: Vec<&str> = block.lines().filter(|row| row.starts_with(&format!("✓ {name} "))).collect();
        assert!(
            matches!(lines[..], [line] if line.contains("  done  1/1  +1 −0")),
            "{lines:?} {}",
            end.history
        );
    }
}

#[test]
fn there_is_no_colour_where_none_is_wanted() {
    let project = project("talk; wait_for end; work; end");
    let terminal = start(&project, "loop build", &[("NO_COLOR", "1")]);
    terminal.wait_for("the lines", |screen| last_rows(screen, 1) == [HINT]);
    allow(&project, "end");
    let end = terminal.end();
    assert_eq!(end.code, Some(0), "{}", end.history);
    assert_lines(&end.history);
    // Moving the cursor and clearing are no colours.
    let colours = end.bytes.split("\x1b[").skip(1).filter(|code| {
        code.trim_start_matches(|char: char| char.is_ascii_digit() || char == ';').starts_with('m')
    });
    assert_eq!(colours.collect::<Vec<_>>(), [""; 0]);
}

/// The lines without the time of day, which is where it belongs in each.
#[track_caller]
fn untimed(text: &str) -> Vec<String> {
    let time = Regex::new(r"^(.{6} │ )\d\d:\d\d:\d\d ").unwrap();
    let lines = text.lines().inspect(|line| assert!(time.is_match(line), "{text}"));
    lines.map(|line| time.replace(line, "$1").into_owned()).collect()
}

#[test]
fn in_a_file_an_iteration_is_one_line_with_its_time() {
    let project = project("talk; work; end");
    let run = project.scratch.run("loop build");
    assert_eq!(run.code, Some(0), "{run:?}");
    untimed(&run.stderr);
    assert!(!run.stderr.contains("line 1"), "{run:?}");
    let (lines, table) = run.stdout.split_at(run.stdout.find("BRANCH  ").unwrap());
    let lines = untimed(lines);
    assert_eq!((lines.len(), table.lines().count()), (4, 3), "{run:?}");
    for branch in BRANCHES {
        let own: Vec<&String> = lines.iter().filter(|line| line.starts_with(branch)).collect();
        let [iteration, end] = own[..] else { panic!("{run:?}") };
        assert!(iteration.starts_with(&format!("{branch:<6} │ ✓ Iteration 1 completed in ")), "{run:?}");
        assert!(end.starts_with(&format!("{branch:<6} │ ■ done: ")), "{run:?}");
    }
}

#[test]
fn without_a_terminal_there_are_only_whole_lines() {
    let project = project("talk; work; end");
    let run = project.scratch.run("loop build --verbose");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(!run.stdout.contains('\x1b') && !run.stderr.contains('\x1b'), "{run:?}");
    assert_lines(&run.stderr);
    let named = |line: &str| line.starts_with("one    │ ") || line.starts_with("second │ ");
    assert!(run.stderr.lines().all(named), "{run:?}");
    let (lines, table) = run.stdout.split_at(run.stdout.find("BRANCH  ").unwrap());
    assert!(lines.lines().all(named), "{run:?}");
    assert!(untimed(lines).contains(&"one    │ ▶ Iteration 1 of 20".to_owned()), "{run:?}");
    assert_eq!(table.lines().count(), 3, "{run:?}");
}

#[test]
fn quiet_leaves_how_each_branch_ended_and_the_table() {
    let project = project("talk; work; end");
    let run = project.scratch.run("loop build --quiet");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(!run.stderr.contains("line 1") && !run.stdout.contains("Iteration"), "{run:?}");
    let (lines, table) = run.stdout.split_at(run.stdout.find("BRANCH  ").unwrap());
    assert_eq!((lines.lines().count(), table.lines().count()), (2, 3), "{run:?}");
    for branch in BRANCHES {
        let end = format!("{branch:<6} │ ■ done: completion signal detected · 1 iteration · ");
        assert!(untimed(lines).iter().any(|line| line.starts_with(&end)), "{run:?}");
    }
}

#[test]
fn json_lines_are_events_and_end_with_the_build() {
    let project = project("talk; work; end");
    let run = project.scratch.run("loop build --json");
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{run:?}");
    let events = events(&run);
    for branch in BRANCHES {
        let own: Vec<&str> = events
            .iter()
            .filter(|event| event["loop"] == branch)
            .map(|event| event["event"].as_str().unwrap())
            .collect();
        assert_eq!((own[0], own[own.len() - 1]), ("loop_started", "loop_ended"), "{own:?}");
        assert_eq!(own.iter().filter(|name| **name == "text").count(), 31, "{own:?}");
    }
    let ended = events.last().unwrap();
    assert_eq!((&ended["event"], &ended["exit_code"]), (&"build_ended".into(), &0.into()));
    for (row, branch) in ended["branches"].as_array().unwrap().iter().zip(BRANCHES) {
        assert_eq!((&row["branch"], &row["result"]), (&branch.into(), &"done".into()), "{row}");
        assert_eq!(row["commits"], 1, "{row}");
        assert!(row["pull_request"].as_str().unwrap().starts_with("https://example.com/pr/"), "{row}");
    }
}

#[test]
fn a_reader_that_leaves_does_not_stop_the_build() {
    let project = project("talk; work; end");
    let mut command = project.scratch.command("bash");
    let script = "\"$0\" loop build 2> /dev/null | head -n 1; exit ${PIPESTATUS[0]}";
    command.args(["-c", script, env!("CARGO_BIN_EXE_ralph")]).stderr(Stdio::null());
    let run = Scratch::finish(&mut command);
    assert_eq!((run.code, run.stdout.lines().count()), (Some(0), 1), "{run:?}");
    assert_eq!(project.plan().matches("Status: done").count(), 2, "{}", project.plan());
}

#[test]
fn a_terminal_that_is_held_holds_neither_the_agents_nor_their_stop() {
    let talks = "echo $$ > \"$HOME/pid-$RALPH_BRANCH\"; wait_for hold; for n in $(seq 100); do talk; done; wait_for go";
    let project = project(talks);
    let mut terminal = start(&project, "loop build", &[]);
    let home = |name: &str| BRANCHES.map(|branch| project.home_path(&format!("{name}-{branch}")));
    let all_wait = |what| home(&format!("waits-{what}")).iter().all(|path| path.exists()).then_some(());
    wait_for("both agents", || all_wait("hold"));
    terminal.press(CTRL_S);
    allow(&project, "hold");
    wait_for("both agents to have said more than a terminal takes", || all_wait("go"));
    let agents = home("pid").map(|path| process_in(&path));
    let ralph = terminal.pid();
    for times in 1..=2 {
        send(ralph, Signal::TERM);
        let heard = |branch: &str| project.events(branch).matches("\"asked\"").count() >= times;
        wait_for("it to be heard", || BRANCHES.iter().all(|branch| heard(branch)).then_some(()));
    }
    agents.iter().for_each(await_end);
    wait_for("the end of both", || {
        let ended = |branch: &str| project.events(branch).contains("\"loop_ended\"");
        BRANCHES.iter().all(|branch| ended(branch)).then_some(())
    });
    assert!(!terminal.screen().contains("line 30 of"), "it is held: {}", terminal.screen());
    // The end waits for a reader; a second signal ends the wait.
    send(ralph, Signal::TERM);
    assert_eq!(terminal.end().code, Some(130));
    project.scratch.await_nothing_left();
}
