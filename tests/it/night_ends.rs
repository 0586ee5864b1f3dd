//! What ends an unattended loop, and what must not: a validation that cannot run, a closed terminal, a service manager.

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::processes::send;
use crate::scratch::{Scratch, finish, wait_for};

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
    let cannot = row("VALIDATION_COMMAND='true && no-such-program'\n", "--validate");
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
