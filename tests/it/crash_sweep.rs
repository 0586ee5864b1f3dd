//! Kills ralph at its system calls, one after the other, and starts it again: `scripts/crash-sweep` says what has to
//! hold.

use std::path::Path;
use std::process::Command;

use crate::scratch::Scratch;

fn sweep(scratch: &Scratch) -> Command {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/crash-sweep");
    let mut sweep = scratch.command(script);
    sweep.args(["--ralph", env!("CARGO_BIN_EXE_ralph")]);
    sweep
}

/// Whether all points held, and what was said.
fn run(mut sweep: Command) -> (bool, String) {
    let output = sweep.output().unwrap();
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.success(), said)
}

#[test]
fn what_is_cut_off_anywhere_is_done_once_by_the_next_start() {
    let (held, said) = run(sweep(&Scratch::new()));
    assert!(held, "{said}");
}

/// If the events log is written after the state, an ended attempt is only in the state for a moment.
#[test]
fn the_sweep_finds_a_state_that_is_written_before_the_events_log() {
    let mut all = String::new();
    // On a loaded machine facts are written together, and the moment may be no point of its own.
    let found = (0..4).any(|_| {
        let scratch = Scratch::new();
        let mut sweep = sweep(&scratch);
        sweep.args(["--all", "--file", "*.events.jsonl", "plan:kill:write"]);
        sweep.env("TESTS_OF_RALPH_STATE_FIRST", "1");
        let (held, said) = run(sweep);
        all += &said;
        !held
    });
    // In one attempt, or in both.
    assert!(found && all.contains("FAILED plan:kill:write:"), "{all}");
    let differences = ["iterations that ended well: ", "money: events", "money of build: "];
    assert!(differences.iter().any(|difference| all.contains(difference)), "{all}");
}
