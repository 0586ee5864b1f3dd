//! A loop without room on the disk waits, and goes on by itself when there is some.

use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::scratch::{Run, Scratch, claude_says, finish, wait_for};

/// More than any disk has.
const NEVER: &str = "900 TB";

fn scratch() -> Scratch {
    let scratch = Scratch::new();
    scratch.agent("claude", &format!("date >> \"$HOME/attempts\"\n{}", claude_says("one more")));
    scratch
}

fn start(scratch: &Scratch, args: &str) -> Child {
    let mut command = scratch.ralph(args);
    command.env("RALPH_FREE_SPACE_FLOOR", NEVER).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

fn attempts(scratch: &Scratch) -> usize {
    std::fs::read_to_string(scratch.home().join("attempts")).unwrap_or_default().lines().count()
}

fn status(scratch: &Scratch) -> Value {
    serde_json::from_str(&scratch.run("status --json").stdout).unwrap_or_default()
}

#[track_caller]
fn wait_until_it_waits(scratch: &Scratch) {
    wait_for("a loop that waits for room", || {
        status(scratch)["waiting_for"]
            .as_str()
            .is_some_and(|text| text.contains("free on the disk"))
            .then_some(())
    });
}

fn waits(events: &str) -> Vec<Value> {
    let events = events.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    events.filter(|event| event["event"] == "waiting").collect()
}

#[track_caller]
fn assert_interrupted(run: &Run) {
    assert_eq!(run.code, Some(130), "{run:?}");
}

#[test]
fn it_is_told_once_resume_tries_now_and_ctrl_c_ends_it() {
    let scratch = scratch();
    let child = start(&scratch, "prompt p.md 3");
    wait_until_it_waits(&scratch);
    assert_eq!(attempts(&scratch), 0);
    let table = scratch.run("status").stdout;
    assert!(table.contains("  waiting ") && table.contains("for room: only "), "{table}");
    assert!(table.ends_with("\n'ralph resume prompt' tries now\n"), "{table}");
    let told = scratch.run("status prompt").stdout;
    assert!(
        told.contains("Waiting for: only ") && told.contains("'ralph resume prompt' tries now"),
        "{told}"
    );
    assert_eq!(status(&scratch)["status"], "waiting");
    let resumed = scratch.run("resume");
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    wait_for("an attempt", || (attempts(&scratch) == 1).then_some(()));
    // That was for one attempt.
    wait_for("the next wait", || (waits(&scratch.events()).len() == 2).then_some(()));
    wait_until_it_waits(&scratch);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let run = finish(child);
    assert_interrupted(&run);
    assert_eq!(attempts(&scratch), 1);
    assert_eq!(run.stderr.matches("waiting for room").count(), 2, "once for each wait: {run:?}");
    let waits = waits(&scratch.events());
    assert_eq!(waits.len(), 2, "{waits:?}");
    for wait in waits {
        assert_eq!(wait["reason"], "disk_space");
        assert_eq!(wait["wanted_bytes"], 900_000_000_000_000_u64);
        assert!(wait["free_bytes"].as_u64().unwrap() > 0 && wait["until"].is_string(), "{wait}");
    }
    scratch.assert_nothing_left();
}

#[test]
fn cancel_and_the_loops_own_time_end_it_and_zero_looks_at_nothing() {
    let scratch = scratch();
    let child = start(&scratch, "prompt p.md 3");
    wait_until_it_waits(&scratch);
    assert_eq!(scratch.run("cancel").code, Some(0));
    let run = finish(child);
    assert!(run.code == Some(0) && run.stdout.contains("Exit Reason: cancelled"), "{run:?}");

    let run = finish(start(&scratch, "prompt p.md 3 --max-duration 1s"));
    assert!(run.stdout.contains("Total Iterations: 0"), "{run:?}");
    assert_eq!(attempts(&scratch), 0);

    let off = Scratch::finish(scratch.ralph("prompt p.md 1").env("RALPH_FREE_SPACE_FLOOR", "0"));
    assert_eq!((off.code, attempts(&scratch)), (Some(0), 1), "{off:?}");
    let bad = Scratch::finish(scratch.ralph("prompt p.md 1").env("RALPH_FREE_SPACE_FLOOR", "much"));
    assert!(
        bad.code == Some(1) && bad.stderr.contains("no amount such as 1 GB, 500 MB or 5%, nor 0"),
        "{bad:?}"
    );
}

/// In a mount namespace of its own, where the ralph dir is on a small disk that is full.
#[test]
fn it_goes_on_by_itself_when_there_is_room_again() {
    let scratch = scratch();
    let script = r#"
        mount -t tmpfs -o size=64m none .ralph || exit 90
        head -c 40000000 /dev/zero > .ralph/filler
        "$RALPH" prompt p.md 2 --json > ../events 2> ../told &
        until "$RALPH" status --json | grep -q '"waiting_for": *"only 2[0-9] MB are free on the disk, 50 MB have to be"'; do sleep 0.05; done
        [ -e "$HOME/attempts" ] && exit 91
        rm .ralph/filler
        wait $!
    "#;
    let mut command = scratch.command("unshare");
    command.args(["--user", "--map-root-user", "--mount", "bash", "-c", script]);
    command.env("RALPH", env!("CARGO_BIN_EXE_ralph")).env("RALPH_FREE_SPACE_FLOOR", "50 MB");
    let run = Scratch::finish(&mut command);
    let read = |name: &str| std::fs::read_to_string(scratch.outside().join(name)).unwrap_or_default();
    let (events, told) = (read("events"), read("told"));
    assert_eq!(run.code, Some(0), "{run:?} {told} {events}");
    assert_eq!(attempts(&scratch), 2, "{events}");
    assert_eq!(waits(&events).len(), 1, "{events}");
    assert_eq!(events.matches(r#""event":"resumed""#).count(), 1, "{events}");
}
