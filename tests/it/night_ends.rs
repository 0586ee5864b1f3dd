//! What ends an unattended loop, and what must not: a validation that cannot run, a closed terminal, a service manager.

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::processes::send;
use crate::scratch::{Scratch, executable, finish, wait_for};

/// Ends when it is told to; heeds no signal.
const PATIENT: &str = "trap '' INT TERM HUP; cat > /dev/null; touch $HOME/began
until [ -e $HOME/go ]; do sleep 0.02; done; say hello; result";

/// Ends only by the ladder.
const STUBBORN: &str = "trap '' TERM HUP; cat > /dev/null; touch $HOME/began; while :; do sleep 0.1; done";

fn began(scratch: &Scratch) {
    wait_for("the agent", || scratch.home().join("began").exists().then_some(()));
}

#[test]
fn a_validation_that_cannot_run_ends_the_loop_before_its_first_attempt() {
    let scratch = Scratch::new();
    scratch.agent("claude", "touch $HOME/began; cat > /dev/null; say '<promise>COMPLETE</promise>'; result");
    scratch.write("not-executable", "true\n");
    for (command, missing) in [
        ("no-such-program --all", "'no-such-program' is not on PATH"),
        ("./not-yet", "or begin with one that fails ('exit 1'), if agents are to write it"),
        ("cd nowhere && make", "the folder 'nowhere' does not exist"),
        ("./not-executable", "'./not-executable' is not executable"),
        ("./nothing", "'./nothing' does not exist"),
    ] {
        scratch.write(".ralph/config", format!("# mine\nVALIDATION_COMMAND='{command}'\n"));
        for verb in ["build 2", "prompt p.md 2", "run p/RALPH.md -n 1"] {
            scratch.write("p/RALPH.md", "---\nagent: claude\n---\nDo it.\n");
            let run = scratch.run(verb);
            assert_eq!(run.code, Some(1), "{verb}: {run:?}");
            assert!(run.stderr.contains(missing), "{verb}: {run:?}");
            let place = "VALIDATION_COMMAND in ";
            assert!(run.stderr.contains(place) && run.stderr.contains("config line 2"), "{verb}: {run:?}");
        }
        assert!(!scratch.home().join("began").exists(), "an attempt was paid for");
        // It asks the agent for its version.
        let run = scratch.run("doctor");
        assert!(run.code == Some(1) && run.stdout.contains(missing), "{run:?}");
        fs::remove_file(scratch.home().join("began")).unwrap();
    }
    assert!(scratch.session_logs().is_empty());
    // A plan is not for the command.
    let run = scratch.run("plan 1");
    assert!(!run.stderr.contains("cannot run"), "{run:?}");
}

#[test]
fn a_program_that_the_validation_names_and_never_was_there_ends_the_loop() {
    let scratch = Scratch::new();
    scratch.agent(
        "claude",
        "echo >> $HOME/attempts; cat > /dev/null; say '<promise>COMPLETE</promise>'; result",
    );
    scratch.write("work", "true\n");
    for level in ["place", "base"] {
        scratch.write(
            ".ralph/config",
            format!("# mine\nVALIDATION_COMMAND='ls work && no-such-program --all'\nPROOF={level}\n"),
        );
        scratch.write("p/RALPH.md", "---\nagent: claude\n---\nDo it.\n");
        for verb in ["build 3", "prompt p.md 3", "run p/RALPH.md -n 3"] {
            let run = scratch.run(verb);
            assert_eq!(run.code, Some(1), "{verb}: {run:?}");
            for words in ["'no-such-program' is not on PATH", "VALIDATION_COMMAND in ", "config line 2"] {
                assert!(run.stderr.contains(words) || run.stdout.contains(words), "{verb}: {run:?}");
            }
            assert_eq!(scratch.state()["exit_reason"].as_str(), Some("cannot_validate"));
            let attempts = scratch.home().join("attempts");
            assert_eq!(fs::read_to_string(&attempts).unwrap().len(), 1, "{verb}: {run:?}");
            fs::remove_file(attempts).unwrap();
            let run = scratch.run("");
            assert!(run.stdout.contains("ralph doctor --validate"), "{run:?}");
        }
    }
    // It goes on when the program is there.
    scratch.agent("no-such-program", "exit 0");
    let run = scratch.run("resume");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(scratch.state()["exit_reason"].as_str(), Some("complete"));
}

#[test]
fn what_an_agent_can_write_is_for_the_next_agent_when_it_cannot_run() {
    for (command, agent, words) in [
        // It was there.
        ("./check", "rm -f check", "./check cannot run (exit code 127): /bin/sh: 1: ./check: not found"),
        (
            "./check",
            "chmod -x check",
            "./check cannot run (exit code 126): /bin/sh: 1: ./check: Permission denied",
        ),
        ("./check", "echo '#!/no/such' > check", "./check cannot run (exit code 12"),
        ("tool", "rm -f $HOME/../bin/tool", "tool cannot run (exit code 127): /bin/sh: 1: tool: not found"),
        // It is to be written.
        ("true && ./check", "rm -f check", "true && ./check cannot run (exit code 127): "),
        // A script calls it.
        (
            "./check",
            "echo no-such-tool > check",
            "./check cannot run (exit code 127): ./check: 1: no-such-tool: not found",
        ),
    ] {
        let scratch = Scratch::new();
        executable(&scratch.path("check"), "#!/bin/sh\ntrue\n");
        scratch.agent("tool", "exit 0");
        scratch.agent("claude", &format!("cat >> $HOME/prompts; {agent}; say done; result"));
        scratch.write(".ralph/config", format!("VALIDATION_COMMAND='{command}'\n"));
        let run = scratch.run("prompt p.md 2");
        assert_eq!(run.code, Some(4), "{command}: {run:?}");
        let prompts = fs::read_to_string(scratch.home().join("prompts")).unwrap();
        assert!(
            prompts.contains("The validation cannot run after the previous iteration"),
            "{command}: {prompts}"
        );
        assert!(run.stdout.contains(words), "{command}: {run:?}");
    }
}

#[test]
fn a_script_whose_interpreter_is_missing_is_refused_at_the_start() {
    let scratch = Scratch::new();
    scratch.agent("claude", "cat > /dev/null; say done; result");
    scratch.write(".ralph/config", "VALIDATION_COMMAND=./check\n");
    executable(&scratch.path("check"), "#!/usr/bin/env no-such-shell\ntrue\n");
    let run = scratch.run("prompt p.md 1");
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(
        run.stderr.contains(
            "'./check' begins with '#!/usr/bin/env no-such-shell', and 'no-such-shell' is not on PATH"
        ),
        "{run:?}"
    );
}

#[test]
fn the_doctor_runs_the_validation_where_it_is_told_to() {
    let scratch = Scratch::new();
    scratch.write("specs/a.md", "x");
    let row = |config: &str, args: &str| {
        scratch.write(".ralph/config", config);
        let run = scratch.run(&format!("doctor {args}"));
        let row = run.stdout.lines().find(|line| line.contains(" validation "));
        row.unwrap_or_else(|| panic!("{run:?}")).to_owned()
    };
    assert!(row("", "").contains("COMPLETE is the agent's word"));
    let found = row("VALIDATION_COMMAND='touch ran'\n", "");
    assert!(found.starts_with('✓') && found.contains("'touch ran' is found"), "{found}");
    assert!(!scratch.path("ran").exists(), "looking runs nothing");
    let passes = row("VALIDATION_COMMAND='touch ran'\n", "--validate");
    assert!(passes.starts_with('✓') && passes.contains("passes, in "), "{passes}");
    assert!(scratch.path("ran").exists());
    let fails = row("VALIDATION_COMMAND='echo mine; exit 3'\n", "--validate");
    assert!(fails.starts_with('!') && fails.contains("exit code 3") && fails.contains(": mine"), "{fails}");
    let cannot = row("VALIDATION_COMMAND='ls && no-such-program'\n", "--validate");
    assert!(cannot.starts_with('✗') && cannot.contains("cannot run (exit code 127)"), "{cannot}");
}

#[test]
fn init_says_where_it_found_no_tests() {
    let scratch = Scratch::new();
    let run = scratch.run("init");
    assert!(run.stdout.contains("Tests: none found: there is no Makefile, Cargo.toml"), "{run:?}");
    assert!(run.stdout.contains("COMPLETE is the agent's word"), "{run:?}");
    scratch.write("package.json", "{}");
    let run = scratch.run("init --force");
    assert!(run.stdout.contains("Tests: none found: package.json says nothing of them"), "{run:?}");
}

#[test]
fn a_detached_loop_outlives_its_terminal_and_says_how_it_is_found() {
    let scratch = Scratch::new();
    scratch.agent("claude", PATIENT);
    let run = scratch.run("prompt p.md 1 --detach --name mine");
    assert_eq!(run.code, Some(0), "{run:?}");
    for words in ["mine runs in the background", "ralph watch\n", "ralph status mine\n"] {
        assert!(run.stdout.contains(words), "{run:?}");
    }
    began(&scratch);
    let lock: toml::Table = scratch.read(".ralph/lock").parse().unwrap();
    let pid = lock["pid"].as_integer().unwrap();
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let session: i64 = stat.rsplit(')').next().unwrap().split_whitespace().nth(3).unwrap().parse().unwrap();
    assert_eq!(session, pid, "it leads a session of its own");
    fs::write(scratch.home().join("go"), "").unwrap();
    wait_for("its end", || scratch.run("status mine").stdout.contains("limit").then_some(()));
    let runs = fs::read_dir(scratch.path(".ralph/runs")).unwrap();
    let lines: String =
        runs.filter_map(|run| fs::read_to_string(run.unwrap().path().join("output.log")).ok()).collect();
    assert!(lines.contains("hello"), "{lines}");
    let argv = format!("{:?}", scratch.state()["argv"]);
    assert!(argv.contains("--name") && !argv.contains("detach"), "{argv}");
    // What refuses it is told where it was typed.
    let run = scratch.run("prompt nothing.md 1 --detach");
    assert!(run.code == Some(1) && run.stderr.starts_with("error: "), "{run:?}");
}

#[test]
fn a_loop_that_is_stopped_while_it_starts_in_the_background_has_no_attempt() {
    let scratch = Scratch::new();
    scratch.agent("claude", "touch $HOME/began; cat > /dev/null; say hello; result");
    // The start waits for git.
    scratch.agent(
        "git",
        "touch $HOME/starts; until [ -e $HOME/go ]; do sleep 0.02; done; exec /usr/bin/git \"$@\"",
    );
    let ralph = scratch.start("prompt p.md 1 --detach --name mine");
    wait_for("the start", || scratch.home().join("starts").exists().then_some(()));
    send(ralph.id(), Signal::INT);
    let run = finish(ralph);
    assert_eq!(run.code, None, "ended by the signal: {run:?}");
    assert!(!run.stdout.contains("runs in the background"), "{run:?}");
    fs::write(scratch.home().join("go"), "").unwrap();
    wait_for("its end", || scratch.run("status mine").stdout.contains("interrupted").then_some(()));
    assert!(!scratch.home().join("began").exists(), "an attempt began");
    // What goes on is shown as one would type it.
    let run = scratch.run("resume mine --detach");
    assert!(run.code == Some(0) && run.stderr.contains("starting loop 'mine' again"), "{run:?}");
    assert!(!run.stderr.contains("--detached"), "{run:?}");
    wait_for("its end", || scratch.run("status mine").stdout.contains("limit").then_some(()));
}

#[test]
fn a_closed_terminal_is_named_as_the_reason() {
    let scratch = Scratch::new();
    scratch.agent("claude", PATIENT);
    let ralph = scratch.start("prompt p.md 3");
    began(&scratch);
    scratch.ask_to_stop(ralph.id(), Signal::HUP);
    fs::write(scratch.home().join("go"), "").unwrap();
    let run = finish(ralph);
    assert_eq!(run.code, Some(130), "{run:?}");
    assert!(run.stderr.contains("the terminal was closed"), "{run:?}");
    assert_eq!(scratch.state()["status"].as_str(), Some("paused"));
    let status = scratch.run("status");
    assert!(
        status.stdout.contains("the terminal was closed"),
        "{status:?}\n{}",
        scratch.read(".ralph/state.toml")
    );
}

#[test]
fn after_sigterm_an_attempt_has_its_time_and_no_more() {
    let scratch = Scratch::new();
    scratch.agent("claude", STUBBORN);
    let mut command = scratch.ralph("prompt p.md 3");
    command.env("RALPH_TERM_GRACE", "1").stdout(Stdio::piped()).stderr(Stdio::piped());
    let ralph = command.spawn().unwrap();
    began(&scratch);
    let asked = Instant::now();
    send(ralph.id(), Signal::TERM);
    let run = finish(ralph);
    assert_eq!(run.code, Some(130), "{run:?}");
    assert!(asked.elapsed() >= Duration::from_secs(1), "{run:?}");
    assert!(run.stderr.contains("the attempt has had its time after the signal"), "{run:?}");
    assert_eq!(scratch.state()["status"].as_str(), Some("paused"));
    scratch.assert_nothing_left();
}
