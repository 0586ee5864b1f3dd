//! Hooks: the user's commands that follow a loop's events.

use std::fs;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::policies::{attempts, project};
use crate::scratch::{Scratch, Started, await_end, finish, process_in, wait_for};

/// The user's own settings.
fn of_user(scratch: &Scratch, text: &str) {
    let folder = scratch.outside().join("home/config/ralph");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("ralph.toml"), text).unwrap();
}

#[test]
fn hooks_follow_a_loop_in_order_with_its_events() {
    let scratch = project("[ $n = 2 ] && { complete; exit; }; say working; ok");
    let told = scratch.outside().join("told");
    let take = format!("cat >> {}; pwd", told.display());
    let hooks = ["on_loop_start", "on_iteration", "on_end"].map(|hook| format!("{hook} = '''{take}'''\n"));
    of_user(&scratch, &format!("[hooks]\n{}", hooks.concat()));
    let run = scratch.run("prompt p.md 5");
    assert!(run.code == Some(0) && !run.stderr.contains("warning"), "{run:?}");
    let text = fs::read_to_string(&told).unwrap();
    let events = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["event"].clone());
    assert_eq!(events.collect::<Vec<_>>(), ["loop_started", "attempt_ended", "attempt_ended", "loop_ended"]);
    // Their output is in the session log, and that of the last one follows the end.
    let log = scratch.session_log();
    let (before, behind) = log.split_once("SESSION SUMMARY").unwrap();
    let root = scratch.root().canonicalize().unwrap();
    let said = |hook: &str| format!("[ralph] hook {hook} is through\n{}\n", root.display());
    assert!((before.to_owned() + behind).contains(&said("on_loop_start")), "{log}");
    assert_eq!(log.matches(&said("on_iteration")).count(), 2, "{log}");
    assert!(behind.contains(&said("on_end")), "{log}");
}

#[test]
fn a_hook_that_fails_is_told_once_and_changes_nothing() {
    let scratch = project("[ $n = 3 ] && { complete; exit; }; say working; ok");
    of_user(&scratch, "[hooks]\non_iteration = 'echo no way >&2; exit 7'\n");
    let run = scratch.run("prompt p.md 5");
    assert_eq!((run.code, attempts(&scratch)), (Some(0), 3), "{run:?}");
    assert_eq!(run.stderr.matches("hook on_iteration has failed: exit code 7: no way").count(), 1, "{run:?}");
    assert_eq!(scratch.session_log().matches("[ralph] hook on_iteration has failed\nno way\n").count(), 3);
}

#[test]
fn a_hook_that_hangs_delays_no_loop_and_is_ended_with_its_processes() {
    let scratch = project("[ $n = 3 ] && { complete; exit; }; say working; ok");
    let (first, second) = (scratch.outside().join("first"), scratch.outside().join("second"));
    let hang = format!(
        "echo $$ > {}; trap '' TERM INT; setsid sleep 600 & echo $! > {}; wait; sleep 600",
        first.display(),
        second.display()
    );
    let ended = scratch.outside().join("ended");
    of_user(
        &scratch,
        &format!(
            "[hooks]\non_loop_start = '''{hang}'''\non_end = 'touch {}'\ntimeout = '3s'\n",
            ended.display()
        ),
    );
    let child = scratch.start("prompt p.md 5");
    let processes = [process_in(&first), process_in(&second)];
    // The iterations do not wait for it.
    wait_for("three attempts", || (attempts(&scratch) == 3).then_some(()));
    assert!(processes[0].is_alive());
    let run = finish(child);
    assert!(run.code == Some(0) && run.stderr.contains("did not end within 3s and was ended"), "{run:?}");
    processes.iter().for_each(await_end);
    assert!(ended.exists(), "the next one has its turn");
}

#[test]
fn ctrl_c_does_not_wait_for_hooks_and_kill_leaves_none() {
    let scratch = project("complete");
    let pid = scratch.outside().join("pid");
    of_user(
        &scratch,
        &format!("[hooks]\non_end = 'echo $$ > {}; sleep 600'\ntimeout = '5m'\n", pid.display()),
    );
    let child = scratch.start("prompt p.md 1");
    let process = process_in(&pid);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let run = finish(child);
    assert!(run.code == Some(0) && run.elapsed < Duration::from_secs(30), "{run:?}");
    await_end(&process);

    fs::remove_file(&pid).unwrap();
    let killed = Started::new(&scratch, "prompt p.md 1");
    let process = process_in(&pid);
    kill_process(Pid::from_raw(killed.pid().cast_signed()).unwrap(), Signal::KILL).unwrap();
    await_end(&process);
}
