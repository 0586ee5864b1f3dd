//! What a run of a RALPH.md does when something goes wrong on the way.

use crate::ralph_md::{RECORDER, project};
use crate::scratch::{await_end, finish, process_in, wait_for};
use ralph::engine::stop::Request;
use ralph::record::requests::{self, Signer};
use std::fs;
use std::time::Duration;

/// The agent spoils its own RALPH.md in the first iteration; the loop reads it again for two seconds and ends.
fn spoiled(spoil: &str, named: &str) {
    let scratch = project("agent: mine", "Do it.");
    scratch.agent("mine", &format!("cat > /dev/null; {spoil}"));
    let run = scratch.run("run fix -n 5");
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.elapsed >= Duration::from_secs(2), "{run:?}");
    assert!(run.stderr.contains(named), "{run:?}");
    assert!(run.stdout.ends_with("Done: 1 iterations — 1 succeeded, 0 failed, 0 timed out\n"), "{run:?}");
    assert_eq!(scratch.state()["exit_reason"].as_str(), Some("prompt_lost"));
}

#[test]
fn a_deleted_file_ends_the_loop() {
    spoiled("rm fix/RALPH.md", "fix/RALPH.md not found");
}

#[test]
fn a_deleted_folder_ends_the_loop() {
    spoiled("rm -r fix", "fix/RALPH.md not found");
}

#[test]
fn a_folder_in_its_place_ends_the_loop() {
    spoiled("rm fix/RALPH.md; mkdir fix/RALPH.md", "fix/RALPH.md is not a file");
}

#[test]
fn a_pipe_in_its_place_ends_the_loop() {
    spoiled("rm fix/RALPH.md; mkfifo fix/RALPH.md", "fix/RALPH.md is not a file");
}

#[test]
fn an_emptied_file_ends_the_loop() {
    spoiled(": > fix/RALPH.md", "fix/RALPH.md line 1: the file is empty");
}

#[test]
fn an_invalid_file_ends_the_loop() {
    spoiled(r"printf -- '---\nagent: [x\n---\nDo it.\n' > fix/RALPH.md", "fix/RALPH.md line ");
}

#[test]
fn a_file_saved_by_rename_survives() {
    let scratch = project("agent: mine", "Before.");
    scratch
        .agent("mine", &format!("{RECORDER}\nif [ $RALPH_ITERATION = 1 ]; then mv fix/RALPH.md fix/old; fi"));
    let child = scratch.start("run fix -n 2");
    // In the middle of the save the name is missing; the loop is likely to look right then.
    wait_for("the end of the first attempt", || {
        scratch.read_if_there(".ralph/iterations.log").contains("[END] iteration 1").then_some(())
    });
    scratch.write("fix/new", "---\nagent: mine\n---\nAfter.\n");
    fs::rename(scratch.path("fix/new"), scratch.path("fix/RALPH.md")).unwrap();
    let run = finish(child);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(scratch.read("prompt-2"), "After.\n");
}

#[test]
fn an_agent_that_is_gone_mid_loop_ends_the_loop() {
    let scratch = project("agent: mine", "Do it.");
    scratch.agent("mine", "cat > /dev/null; sed -i 's/mine/nobody/' fix/RALPH.md");
    let run = scratch.run("run fix -n 5");
    assert_eq!(run.code, Some(4), "{run:?}");
    assert!(run.stderr.contains("cannot start 'nobody'"), "{run:?}");
    assert_eq!(scratch.state()["exit_reason"].as_str(), Some("agent_missing"));
    // The iteration that had no agent is made when there is one.
    scratch.agent("mine", "cat > /dev/null; echo $RALPH_ITERATION >> made");
    scratch.write("fix/RALPH.md", "---\nagent: mine\n---\nDo it.\n");
    let run = scratch.run("resume fix");
    assert_eq!((run.code, scratch.read("made").as_str()), (Some(0), "2\n3\n4\n5\n"), "{run:?}");
}

#[test]
fn ctrl_c_during_commands_starts_no_agent_and_leaves_nothing_behind() {
    let scratch = project(
        "agent: mine\ncommands:\n- name: slow\n  run: bash -c 'setsid sleep 300 & echo $! > pid; wait'\n- {name: b, run: touch b}",
        "{{ commands.slow }}",
    );
    let child = scratch.start("run fix");
    let tool = process_in(&scratch.path("pid"));
    let ralph = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(ralph, rustix::process::Signal::INT).unwrap();
    let run = finish(child);
    assert_eq!(run.code, Some(130), "{run:?}");
    assert!(!tool.is_alive() && !scratch.path("b").exists() && !scratch.path("prompt-1").exists(), "{run:?}");
    assert!(run.stdout.ends_with("Done: 0 iterations — 0 succeeded, 0 failed, 0 timed out\n"), "{run:?}");
}

#[test]
fn a_cancel_is_heard_while_commands_run() {
    let scratch = project(
        "agent: mine\ncommands:\n- {name: slow, run: sh -c 'echo $$ > pid; exec sleep 300'}",
        "{{ commands.slow }}",
    );
    let child = scratch.start("run fix");
    let command = process_in(&scratch.path("pid"));
    let run = scratch.state()["run"].as_str().unwrap().to_owned();
    let key = scratch.root().parent().unwrap().join("home/state/ralph/user.key");
    let signer = Signer::at(&key).unwrap();
    requests::send(&scratch.path(".ralph/requests"), Some(&signer), &run, Request::Cancel).unwrap();
    let run = finish(child);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(!command.is_alive() && !scratch.path("prompt-1").exists(), "{run:?}");
    assert_eq!(scratch.state()["exit_reason"].as_str(), Some("cancelled"));
}

#[test]
fn a_killed_run_is_taken_up_with_what_the_file_says_by_then() {
    let scratch = project("agent: mine", "{{ ralph.iteration }} before");
    scratch.agent(
        "mine",
        &format!("{RECORDER}\nif [ $RALPH_ITERATION = 2 ]; then echo $$ > pid; exec sleep 300; fi"),
    );
    let mut child = scratch.start("run fix -n 3");
    let agent = process_in(&scratch.path("pid"));
    child.kill().unwrap();
    child.wait().unwrap();
    await_end(&agent);
    scratch.agent("mine", RECORDER);
    scratch.write("fix/RALPH.md", "---\nagent: mine\n---\n{{ ralph.iteration }} after\n");
    let run = scratch.run("run fix -n 3 --resume");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(scratch.read("prompt-2"), "2 after\n");
    assert_eq!(scratch.read("prompt-3"), "3 after\n");
    assert!(
        run.stdout.starts_with("── Iteration 2 ──\n") && run.stdout.contains("Done: 2 iterations"),
        "{run:?}"
    );
}
