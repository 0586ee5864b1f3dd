//! Processes that hide from ralph, or from its supervisor, are ended; foreign processes are not.

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use ralph::platform::stat::Stat;
use rustix::process::Signal;

use crate::branch_project::{BranchProject, plan};
use crate::processes::{send, supervisors_of};
use crate::scratch::{PATIENCE, Scratch, executable, finish, wait_for};

/// A tool that has dropped our environment, our session and its parent.
const UNMARKED: &str = r#"
( setsid env -i HOME="$HOME" PATH="$PATH" bash -c "$(declare -f note)"'; note; trap "" INT TERM HUP; while :; do sleep 600; done' & )
until [ "$(wc -l < "$HOME/pids")" -ge 2 ]; do sleep 0.01; done
say hello
"#;
const DONE: &str = "cat > /dev/null; say '<promise>COMPLETE</promise>'; result";

/// Kills what supervises the programs of a running ralph, all at once.
fn kill_supervisors(ralph: &Child) {
    let supervisors = supervisors_of(ralph.id());
    assert!(!supervisors.is_empty());
    for pid in supervisors {
        send(pid, Signal::KILL);
    }
}

#[test]
fn a_tool_without_our_mark_falls_with_its_supervisor() {
    let scratch = Scratch::new();
    let hangs = format!("{UNMARKED} trap '' INT TERM; while :; do sleep 600; done");
    scratch.agent("claude", &format!("if [ ! -e $HOME/again ]; then touch $HOME/again; {hangs}; fi; {DONE}"));
    let mut stranger = scratch.look_alike("claude");
    let ralph = scratch.start("prompt p.md 3");
    wait_for("the agent's words", || scratch.events().contains("hello").then_some(()));
    kill_supervisors(&ralph);
    let run = finish(ralph);
    assert_eq!(run.code, Some(0), "{run:?}");
    scratch.assert_nothing_left();
    assert!(run.stderr.contains("the process that supervises it was killed"), "{run:?}");
    assert!(!run.stderr.contains("claude was killed"), "{run:?}");
    stranger.assert_alive();
}

#[test]
fn a_tool_without_our_mark_is_swept_at_the_next_start() {
    let scratch = Scratch::new();
    scratch.agent("claude", &format!("{UNMARKED} trap '' INT TERM; while :; do sleep 600; done"));
    let mut stranger = scratch.look_alike("claude");
    let ralph = scratch.start("prompt p.md 3");
    wait_for("the agent's words", || scratch.events().contains("hello").then_some(()));
    send(ralph.id(), Signal::STOP);
    kill_supervisors(&ralph);
    send(ralph.id(), Signal::KILL);
    finish(ralph);
    assert!(scratch.living().len() >= 2, "they should have been orphaned");
    scratch.agent("claude", DONE);
    let run = scratch.run("prompt p.md 3");
    assert_eq!(run.code, Some(0), "{run:?}");
    scratch.assert_nothing_left();
    stranger.assert_alive();
}

#[test]
fn a_display_that_heeds_no_signal_falls_with_the_supervisors() {
    let scratch = Scratch::new();
    scratch.write(".ralph/config", "AGENT_DISPLAY_FILTER='stubborn'\n");
    scratch.agent("stubborn", "trap '' INT TERM HUP; touch $HOME/displays; while :; do sleep 600; done");
    scratch.agent("claude", "trap '' INT TERM; say hello; while :; do sleep 600; done");
    let ralph = scratch.start("prompt p.md 3 --max-retries 0");
    wait_for("the display", || scratch.home().join("displays").exists().then_some(()));
    // Both are known to run by then.
    wait_for("the agent's words", || {
        scratch.read_if_there(".ralph/last_agent_output").contains("hello").then_some(())
    });
    kill_supervisors(&ralph);
    let run = finish(ralph);
    assert_eq!(run.code, Some(4), "{run:?}");
    scratch.assert_nothing_left();
}

#[test]
fn a_jq_display_that_never_ends_does_not_outlive_the_loop() {
    let scratch = Scratch::new();
    scratch.write(".ralph/config", "AGENT_DISPLAY_FILTER='def f: f; f'\n");
    scratch.agent("claude", DONE);
    let run = scratch.run("prompt p.md 3");
    assert_eq!(run.code, Some(0), "{run:?}");
    let ended = Instant::now();
    scratch.await_nothing_left();
    assert!(ended.elapsed() < Duration::from_secs(2), "{:?}", ended.elapsed());
}

#[test]
fn a_stuck_filter_does_not_hold_up_the_third_ctrl_c() {
    let scratch = Scratch::new();
    scratch.write(".ralph/config", "AGENT_RESPONSE_FILTER='def f: f; f'\n");
    scratch.agent("claude", &format!("{DONE}; touch $HOME/said; sleep 600"));
    let ralph = scratch.start("prompt p.md 3 --max-retries 0");
    wait_for("the agent", || scratch.home().join("said").exists().then_some(()));
    wait_for("its words", || scratch.events().contains("attempt_started").then_some(()));
    for _ in 0..2 {
        scratch.ask_to_stop(ralph.id(), Signal::INT);
    }
    let asked = Instant::now();
    send(ralph.id(), Signal::INT);
    let run = finish(ralph);
    assert_eq!(run.code, Some(130), "{run:?}");
    // The filter alone would take ten seconds.
    assert!(asked.elapsed() < Duration::from_secs(4), "{:?} {run:?}", asked.elapsed());
    scratch.await_nothing_left();
}

#[test]
fn unread_output_does_not_keep_an_ended_loop() {
    let scratch = Scratch::new();
    let line = "x".repeat(1000);
    scratch.agent("claude", &format!("cat > /dev/null; for n in {{1..300}}; do say '{line}'; done; {DONE}"));
    let mut ralph = scratch.start("prompt p.md 3");
    let unread = (ralph.stdout.take(), ralph.stderr.take());
    let (ended, wait) = channel();
    let pid = ralph.id();
    std::thread::spawn(move || ended.send(ralph.wait().unwrap().code()));
    let code = wait.recv_timeout(PATIENCE);
    if code.is_err() {
        send(pid, Signal::KILL);
    }
    assert_eq!(code, Ok(Some(0)));
    drop(unread);
    assert!(scratch.session_log().contains("SESSION SUMMARY"));
    scratch.assert_nothing_left();
}

/// A hook of the repository's that git runs when it makes a work tree.
fn hook(project: &BranchProject, body: &str) {
    executable(&project.scratch.path(".git/hooks/post-checkout"), &format!("#!/bin/bash\n{body}\n"));
}

#[test]
fn what_a_hook_leaves_in_the_background_ends_with_it() {
    let project = BranchProject::without_remote(&plan(&[("one", 1)]));
    let home = project.scratch.home();
    let file = home.join("daemon");
    let daemon =
        format!("setsid bash -c 'echo $$ > {0}.new; mv {0}.new {0}; exec sleep 600' &", file.display());
    let left = "sleep 600 & nohup sleep 600 & ( set -m; sleep 600 & )";
    let body = format!("{left}; {daemon} until [ -e {} ]; do sleep 0.01; done", file.display());
    hook(&project, &format!("{{ {body}; }} > /dev/null 2>&1 < /dev/null"));
    let run = project.scratch.run("loop build");
    assert_eq!(run.code, Some(0), "{run:?}");
    // A daemon makes itself a session, and is the user's.
    let daemon: u32 = fs::read_to_string(file).unwrap().trim().parse().unwrap();
    assert!(Stat::read(daemon).is_some_and(|stat| !stat.is_dead()), "a daemon was ended");
    let living = project.scratch.living();
    send(daemon, Signal::KILL);
    assert_eq!(living, [daemon]);
}

#[test]
fn a_change_of_the_repository_is_finished_after_a_killed_ralph_if_it_is_short() {
    for (rest, word) in
        [("sleep 0.2", "finished"), ("( trap - TERM; exec sleep 600 ) & wait $!", "interrupted")]
    {
        let project = BranchProject::without_remote(&plan(&[("one", 1)]));
        let (begun, ended) = (project.scratch.home().join("begun"), project.scratch.home().join("ended"));
        // What it is told after the interrupt would end it before it has written.
        let ends = format!(
            "trap '' TERM; trap 'echo interrupted > {0}; exit 1' INT; touch {1}; {rest}",
            ended.display(),
            begun.display()
        );
        hook(&project, &format!("{ends}; echo finished > {}", ended.display()));
        let ralph = project.scratch.start("loop build");
        wait_for("the hook", || begun.exists().then_some(()));
        send(ralph.id(), Signal::KILL);
        finish(ralph);
        project.scratch.await_nothing_left();
        assert_eq!(fs::read_to_string(ended).unwrap().trim(), word);
    }
}

#[test]
fn a_daemon_of_a_push_is_the_users() {
    let project = BranchProject::new(&plan(&[("one", 1), ("two", 1)]));
    let daemons = project.scratch.home().join("daemons");
    // As ssh does where it keeps a connection for later.
    let body = format!(
        "setsid bash -c 'echo $$ >> {0}; exec sleep 600' > /dev/null 2>&1 < /dev/null &
        until [ -e {0} ] && grep -q . {0}; do sleep 0.01; done",
        daemons.display()
    );
    executable(&project.scratch.path(".git/hooks/pre-push"), &format!("#!/bin/bash\n{body}\n"));
    let run = project.scratch.run("loop build --jobs 1");
    assert_eq!(run.code, Some(0), "{run:?}");
    let pids = fs::read_to_string(daemons).unwrap();
    let first: u32 = pids.lines().next().unwrap().parse().unwrap();
    // Other programs have run since.
    assert!(Stat::read(first).is_some_and(|stat| !stat.is_dead()), "a daemon was ended");
    for daemon in project.scratch.living() {
        send(daemon, Signal::KILL);
    }
}

#[test]
fn a_filter_of_a_look_at_the_tree_ends_with_a_killed_ralph() {
    let scratch = Scratch::new();
    let hangs = scratch.home().join("hangs");
    scratch.write(".gitattributes", "a filter=slow\n");
    scratch.write("a", "one");
    scratch.git(&["add", "-A"]);
    scratch.git(&["commit", "--quiet", "--message", "a"]);
    scratch.git(&["config", "filter.slow.clean", &format!("touch {}; sleep 600; cat", hangs.display())]);
    scratch.agent("claude", "cat > /dev/null; sleep 0.01; echo two > a; truncate -s 3 a; say on; result");
    let ralph = scratch.start("prompt p.md 3 --idle 3");
    wait_for("the filter", || hangs.exists().then_some(()));
    send(ralph.id(), Signal::KILL);
    finish(ralph);
    scratch.await_nothing_left();
}

#[test]
fn a_hook_that_hangs_ends_with_a_killed_ralph() {
    let project = BranchProject::without_remote(&plan(&[("one", 1)]));
    let scratch = &project.scratch;
    hook(&project, &format!("trap '' INT TERM; touch {}/hangs; sleep 600; :", scratch.home().display()));
    let ralph = scratch.start("loop build");
    wait_for("the hook", || scratch.home().join("hangs").exists().then_some(()));
    send(ralph.id(), Signal::KILL);
    finish(ralph);
    scratch.await_nothing_left();
    hook(&project, "exit 0");
    let run = scratch.run("loop build");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(project.commits("one").len(), 1);
    scratch.assert_nothing_left();
}

#[test]
fn a_machine_without_room_for_a_thread_is_told_as_that() {
    let scratch = Scratch::new();
    scratch.agent("claude", DONE);
    // Root has no such limit, and others have processes that we do not know of: a user of our own.
    let user = rustix::process::getuid().is_root().then_some(61_234);
    let taken = if user.is_some() { 0 } else { own_tasks() };
    let mut told = 0;
    for room in 1..14 {
        let mut command = scratch.command("bash");
        let script = format!("ulimit -u {}; exec \"$0\" prompt p.md 1 --max-retries 0", taken + room);
        command.args(["-c", &script, env!("CARGO_BIN_EXE_ralph")]);
        if let Some(user) = user {
            let all = scratch.outside().parent().unwrap();
            assert!(
                scratch
                    .command("chown")
                    .args(["-R", &user.to_string()])
                    .arg(scratch.outside())
                    .status()
                    .unwrap()
                    .success(),
                "{all:?}"
            );
            command.uid(user);
        }
        let _ = fs::remove_dir_all(scratch.path(".ralph/logs"));
        let run = finish(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
        assert!(matches!(run.code, Some(0 | 1 | 3 | 4)), "{room}: {run:?}");
        if scratch.session_logs().is_empty() {
            assert!(
                run.code == Some(1) && run.stderr.contains("error: cannot start a thread"),
                "{room}: {run:?}"
            );
        } else {
            // A loop that has begun ends as every other.
            let end = format!("Exit Code: {}\n", run.code.unwrap());
            assert!(run.stdout.contains(&end) && scratch.session_log().contains(&end), "{room}: {run:?}");
            assert_eq!(scratch.state()["active"].as_bool(), Some(false), "{room}");
        }
        assert!(!run.stderr.contains("panicked"), "{room}: {run:?}");
        told += usize::from(run.stderr.contains("cannot start a thread: Resource temporarily unavailable"));
    }
    assert!(told > 0, "the limit was never met");
}

/// How many threads and processes of our user there are.
fn own_tasks() -> usize {
    let uid = format!("Uid:\t{}\t", rustix::process::getuid().as_raw());
    let status = |pid: u32| fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let threads =
        |status: &str| status.lines().find_map(|line| line.strip_prefix("Threads:\t")?.parse::<usize>().ok());
    Stat::all()
        .map(|stat| status(stat.pid))
        .filter(|status| status.contains(&uid))
        .filter_map(|status| threads(&status))
        .sum()
}
