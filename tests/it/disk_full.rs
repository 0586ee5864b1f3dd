//! Records that cannot be written while a loop runs, as when the disk is full: the loop ends with 1, names the file and keeps what is written.

use std::process::{Command, Stdio};

use crate::processes::tail;
use crate::scratch::{Run, Scratch, claude_says, finish};

/// Says more and more, and would go on for ever.
const TALKATIVE: &str = "trap '' PIPE; while :; do say 0123456789012345678901234567890123456789; done";

fn assert_ended(scratch: &Scratch, run: &Run, file: &str) {
    assert_eq!(run.code, Some(1), "{run:?}");
    let named =
        run.stderr.lines().find(|line| line.contains("cannot write ")).unwrap_or_else(|| panic!("{run:?}"));
    assert!(named.contains(file), "{named}");
    assert!(run.stdout.contains("Exit Reason: cannot write records\nExit Code: 1\n"), "{run:?}");
    scratch.assert_nothing_left();
}

/// Runs ralph with a file size limit of 100 KiB, without the signal for it: a write fails at some byte.
fn run_within_limit(scratch: &Scratch) -> Run {
    let ralph = env!("CARGO_BIN_EXE_ralph");
    let mut shell: Command = scratch.command("bash");
    shell.args(["-c", &format!("trap '' XFSZ; ulimit -f 100; exec '{ralph}' prompt p.md 3")]);
    finish(shell.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
}

#[test]
fn the_raw_output_cannot_be_written() {
    let scratch = Scratch::new();
    let says = claude_says("0123456789");
    scratch.agent("claude", &format!("{says}\nrm .ralph/last_agent_output; mkdir .ralph/last_agent_output"));
    let run = scratch.run("prompt p.md 3");
    assert_ended(&scratch, &run, ".ralph/last_agent_output: it is a folder");
    // Whatever can still be written is correct.
    let log = scratch.session_log();
    assert!(log.contains("0123456789") && log.contains("Exit Code: 1\n"), "{}", tail(&log));
    assert!(log.contains("last_agent_output: it is a folder"), "{}", tail(&log));
    let state = scratch.state();
    assert_eq!(state["exit_reason"].as_str(), Some("record_failed"), "{state}");
    assert_eq!(
        (state["active"].as_bool(), state["status"].as_str()),
        (Some(false), Some("failed")),
        "{state}"
    );
    // `status` says so, with the next command, and the loop continues when the fault is fixed.
    let status = scratch.run("status prompt").stdout;
    assert!(status.contains("record_failed (exit code 1; 'ralph resume prompt' goes on)"), "{status}");
    assert!(status.contains("last_agent_output: it is a folder"), "{status}");
    let overview = scratch.run("").stdout;
    assert!(overview.contains("ralph resume prompt"), "{overview}");
    std::fs::remove_dir(scratch.path(".ralph/last_agent_output")).unwrap();
    scratch.agent("claude", &says);
    let run = scratch.run("resume");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(scratch.state()["iteration"].as_integer(), Some(3), "{run:?}");
}

#[test]
fn a_loop_whose_records_could_not_be_written_is_forgotten_whole_or_not_at_all() {
    let scratch = Scratch::new();
    let says = claude_says("0123456789");
    scratch.agent("claude", &format!("{says}\nrm .ralph/last_agent_output; mkdir .ralph/last_agent_output"));
    let (requests, state) = (scratch.path(".ralph/requests"), scratch.path(".ralph/state.toml"));
    let refused = |words: &str| {
        let run = scratch.run("clean prompt");
        assert!(run.code == Some(1) && run.stderr.contains(words), "{run:?}");
        assert!(run.stderr.contains(": move it away"), "{run:?}");
    };
    let fail = || assert_eq!(scratch.run("prompt p.md 3").code, Some(1));
    fail();
    let _ = std::fs::remove_dir_all(&requests);
    std::fs::write(&requests, "").unwrap();
    refused("requests: it is a file");
    assert_eq!(scratch.state()["exit_reason"].as_str(), Some("record_failed"));
    std::fs::remove_file(&requests).unwrap();

    let kept = std::fs::read(&state).unwrap();
    std::fs::remove_file(&state).unwrap();
    std::fs::create_dir(&state).unwrap();
    refused("cannot remove ");
    let status = scratch.run("status prompt").stdout;
    assert!(status.contains("it is a folder, not a file: move it away"), "{status}");
    std::fs::remove_dir(&state).unwrap();
    std::fs::write(&state, kept).unwrap();

    let run = scratch.run("clean prompt");
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "cleaned ralph state for prompt\n"), "{run:?}");
    assert!(!state.exists());
    let run = scratch.run("resume prompt");
    assert!(run.code == Some(1) && run.stderr.contains("no loop is called 'prompt'"), "{run:?}");
}

#[test]
fn the_iterations_log_may_not_grow() {
    let scratch = Scratch::new();
    scratch.agent("claude", TALKATIVE);
    scratch.write(".ralph/iterations.log", "-".repeat(100 * 1024));
    let run = run_within_limit(&scratch);
    assert_ended(&scratch, &run, ".ralph/iterations.log: File too large");
    assert_eq!(scratch.state()["exit_code"].as_integer(), Some(1));
    assert!(scratch.session_log().contains("Exit Code: 1\n"));
}

#[test]
fn a_log_may_not_grow() {
    let scratch = Scratch::new();
    scratch.agent("claude", TALKATIVE);
    let run = run_within_limit(&scratch);
    assert_ended(&scratch, &run, "/.ralph/runs/");
    assert!(scratch.session_log().starts_with("===="));
    // Which of the two logs is full first depends on how the output was cut into pieces.
    let sizes: Vec<u64> = std::fs::read_dir(scratch.path(".ralph/logs"))
        .unwrap()
        .map(|entry| std::fs::metadata(entry.unwrap().path()).unwrap().len())
        .collect();
    assert!(sizes.contains(&(100 * 1024)), "{sizes:?}");
    assert_eq!(scratch.state()["exit_code"].as_integer(), Some(1));
    assert_eq!(scratch.state()["active"].as_bool(), Some(false));
}

#[test]
fn an_unwritable_stdout_is_reported_and_a_closed_one_is_not() {
    let scratch = Scratch::new();
    scratch.agent("claude", &claude_says(&"many words, more than a pipe holds ".repeat(3000)));
    assert_eq!(scratch.run("prompt p.md 1").code, Some(0));
    let ralph = env!("CARGO_BIN_EXE_ralph");
    let shell = |line: &str| {
        let mut shell = scratch.command("bash");
        Scratch::finish(shell.args(["-c", &format!("set -o pipefail; '{ralph}' {line}")]))
    };
    for verb in ["logs", "logs --agent", "logs --follow", "logs --lines 1", "ls", "status --json", "config"] {
        let run = shell(&format!("{verb} > /dev/full"));
        assert_eq!(run.code, Some(1), "{verb}: {run:?}");
        // 'logs' says on stderr which log follows.
        let error = "error: cannot write to stdout: No space left on device (os error 28)\n";
        assert!(run.stderr.ends_with(error), "{verb}: {run:?}");
        let run = shell(&format!("{verb} | true"));
        assert!(run.code == Some(0) && !run.stderr.contains("error"), "{verb}: {run:?}");
    }
    // What the agent said goes to stderr.
    scratch.write("same", "");
    for verb in ["replay", "replay --config same"] {
        let run = shell(&format!("{verb} > /dev/full"));
        let told = "error: cannot write to stdout: No space left on device (os error 28)\n";
        assert!(run.code == Some(1) && run.stderr.ends_with(told), "{verb}: {run:?}");
        let run = shell(&format!("{verb} | true"));
        assert!(run.code == Some(0) && !run.stderr.contains("error: "), "{verb}: {run:?}");
    }
}

/// In a mount namespace of its own, where the ralph dir is on a small disk that an agent fills.
#[test]
fn a_run_over_tasks_on_a_full_disk_says_so_and_goes_on_when_there_is_room() {
    use crate::run_tasks::{GOOD, tasks};

    let scratch =
        tasks(&format!("[ $n != 1 ] || head -c 99999999 /dev/zero > .ralph/filler 2> /dev/null; {GOOD}"));
    let script = r#"
        mount -t tmpfs -o size=8m none .ralph || exit 90
        id=$("$RALPH" task add task)
        "$RALPH" run --all
        code=$?
        rm .ralph/filler
        "$RALPH" run --all > ../again 2>&1 || exit 91
        "$RALPH" task show $id --json > ../task
        exit $code
    "#;
    let mut command = scratch.command("unshare");
    command.args(["--user", "--map-root-user", "--mount", "bash", "-c", script]);
    command.env("RALPH", env!("CARGO_BIN_EXE_ralph")).env("RALPH_FREE_SPACE_FLOOR", "0");
    let run = Scratch::finish(&mut command);
    let read = |name: &str| std::fs::read_to_string(scratch.outside().join(name)).unwrap_or_default();
    assert_eq!(run.code, Some(1), "{run:?} {}", read("again"));
    let names_the_disk =
        |line: &str| line.contains("No space left on device") || line.contains("free some space");
    assert!(run.stderr.lines().any(names_the_disk), "{run:?}");
    assert!(!run.stderr.contains("permissions"), "{run:?}");
    assert!(
        read("task").contains("\"status\": \"done\"") || read("task").contains("\"status\":\"done\""),
        "{}",
        read("task")
    );
}
