//! The verbs that look at workers, type into them and end them, with real panes.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::process::Stdio;

use ralph::engine::outcome::{Outcome, Status};
use ralph::tmux::Screen;

use crate::scratch::{Run, Scratch, await_end, finish, wait_for};
use crate::spawned::Workers;
use crate::terminal::Terminal;

/// Says what it reads.
const READER: &str = "trap 'echo interrupted' INT; echo ready; while read -r line || [ $? -gt 128 ]; do echo \"read: $line\"; done";

fn shows(line: &str) -> impl Fn(&Screen) -> bool + '_ {
    move |screen| screen.lines.iter().any(|shown| shown == line)
}

/// Runs ralph with words that have blanks, and something on its stdin.
fn run_with(scratch: &Scratch, words: &[&str], stdin: &str) -> Run {
    let mut command = scratch.ralph("");
    command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // Who refuses may not read it.
    let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
    finish(child)
}

#[test]
fn what_is_sent_is_typed() {
    let workers = Workers::new();
    let window = workers.spawn("agent", READER);
    workers.tmux.await_line(&window, "ready");
    let send = |words: &[&str], stdin: &str| {
        let run = run_with(workers.scratch(), words, stdin);
        assert_eq!((run.code, run.stdout.as_str()), (Some(0), "sent to agent\n"), "{run:?}");
    };
    send(&["send", "agent", "skip that; it's #{done}"], "");
    workers.tmux.await_screen(&window, "a text", shows("read: skip that; it's #{done}"));
    send(&["send", "agent", "--no-enter", "half"], "");
    send(&["send", "agent", " a line"], "");
    workers.tmux.await_screen(&window, "a line", shows("read: half a line"));
    send(&["send", "agent", "-"], "one\r\ntwo\n");
    let ends_with = |screen: &Screen, end| screen.lines.iter().any(|line| line.ends_with(end));
    workers.tmux.await_screen(&window, "two lines", |screen| {
        ends_with(screen, "read: one") && ends_with(screen, "read: two")
    });
    // Enter alone.
    send(&["send", "agent", ""], "");
    workers.tmux.await_screen(&window, "an empty line", shows("read:"));
    // In a pane whose user reads what has scrolled by.
    workers.tmux.user(&["copy-mode", "-t", &window.pane]);
    send(&["send", "--all", "to all"], "");
    workers.tmux.await_screen(&window, "what all get", shows("read: to all"));

    assert_eq!(workers.says("interrupt agent"), "interrupted agent\n");
    workers.tmux.await_screen(&window, "an interrupt", |screen| {
        screen.lines.iter().any(|line| line.ends_with("interrupted"))
    });
}

#[test]
fn what_cannot_be_typed_is_refused() {
    let workers = Workers::new();
    let window = workers.spawn("agent", READER);
    workers.tmux.await_line(&window, "ready");
    for (words, stdin, says) in [
        (&["send", "agent", "a\x1b[201~\x03"][..], "", "control characters (ESC, ^C)"),
        (&["send", "agent", "-"], "a\x7f", "(DEL)"),
        (&["send", "agent", "-"], &"x".repeat(65 << 10), "longer than 65536 bytes"),
        (&["send", "agent", "two", "words"], "", "in quotes"),
        (&["send", "agent"], "", "what is to be sent is missing"),
        (&["send", "--all", "agent", "text"], "", "too many words"),
        (&["send", "other", "text"], "", "worker 'other' not found"),
        (&["send", "agen", "text"], "", "worker 'agen' not found"),
        (&["send", "../agent", "text"], "", "is no name of a worker"),
        (&["interrupt", "other"], "", "worker 'other' not found"),
        (&["peek", "other"], "", "worker 'other' not found"),
        (&["attach", "other"], "", "worker 'other' not found"),
        (&["kill", "other"], "", "worker 'other' not found"),
        (&["attach", "agent"], "", "attach needs a terminal"),
    ] {
        let run = run_with(workers.scratch(), words, stdin);
        assert!(run.code == Some(1) && run.stderr.contains(says), "{words:?}: {run:?}");
        assert!(!run.stderr.contains("swarm") && run.stderr.lines().count() == 1, "{run:?}");
    }
    let monitor = workers.monitor("agent", |state| state.status = Status::NeedsAttention);
    assert!(workers.refuses("send agent x").contains("ralph attach agent"));
    assert!(workers.refuses("send --all x").contains("needs_attention"));
    let status = workers.says("status agent");
    assert!(status.starts_with("Ralph Loop: agent\nStatus: needs_attention\n"), "{status}");
    monitor.end();
    assert_eq!(workers.says("peek agent"), "ready\n");

    workers.says("send --no-enter agent \x20x");
    // Its program ends; what it showed stays.
    workers.tmux.user(&["send-keys", "-t", &window.pane, "C-u", "C-d"]);
    workers.tmux.await_screen(&window, "its end", |screen| screen.dead.is_some());
    for verb in ["send agent x", "interrupt agent"] {
        assert!(workers.refuses(verb).contains("worker 'agent' is not running"), "{verb}");
    }
    assert!(workers.refuses("send --all x").contains("no worker is running"));
    assert!(workers.says("peek agent").starts_with("ready\n"));
    workers.says("kill agent");
    assert!(workers.refuses("peek agent").contains("worker 'agent' has no pane"));
}

#[test]
fn a_paused_worker_is_typed_to() {
    let workers = Workers::new();
    let window = workers.spawn("agent", READER);
    workers.tmux.await_line(&window, "ready");
    let _monitor = workers.monitor("agent", |state| state.status = Status::Paused);
    assert_eq!(workers.says("send agent hello"), "sent to agent\n");
    workers.tmux.await_screen(&window, "a text", shows("read: hello"));
}

#[test]
fn peek_prints_what_can_be_seen_and_what_has_scrolled_by() {
    let workers = Workers::new();
    let window = workers.spawn("agent", "seq 200; read -r line");
    workers.tmux.await_line(&window, "200");
    let seen = workers.says("peek agent");
    assert!(seen.lines().count() < 60 && seen.ends_with("199\n200\n"), "{seen}");
    assert_eq!(workers.says("peek agent --lines 2"), "199\n200\n");
    let all = workers.says("peek agent -n 1000");
    assert!(all.starts_with("1\n2\n") && all.lines().count() == 200);
    assert!(workers.refuses("peek agent --lines 0").contains("whole number from 1"));
}

#[test]
fn attach_shows_the_pane_also_inside_another_tmux() {
    let workers = Workers::new();
    let scratch = workers.scratch();
    let window = workers.spawn("agent", READER);
    workers.tmux.await_line(&window, "ready");
    let mut attach = scratch.ralph("attach agent");
    let mut terminal = Terminal::start(attach.env("TERM", "xterm"), 24, 80);
    terminal.wait_for("the pane", |screen| screen.contains("ready"));
    terminal.press("from outside\r");
    workers.tmux.await_screen(&window, "what was typed", shows("read: from outside"));
    terminal.press("\x02d");
    assert_eq!(terminal.end().code, Some(0));

    // In the same server, as a user who has a window there.
    let mut attach = scratch.ralph("attach agent");
    attach
        .env("TERM", "xterm")
        .env("TMUX", format!("{},1,0", window.socket.display()))
        .env("TMUX_PANE", "%9");
    let mut terminal = Terminal::start(&attach, 24, 80);
    terminal.wait_for("the pane", |screen| screen.contains("read: from outside"));
    terminal.press("\x02d");
    assert_eq!(terminal.end().code, Some(0));
    workers.says("kill agent");
    assert!(
        Terminal::start(scratch.ralph("attach agent").env("TERM", "xterm"), 24, 80)
            .end()
            .history
            .contains("has no pane")
    );
}

#[test]
fn wait_ends_with_the_workers() {
    let workers = Workers::new();
    for (name, code) in [("good", 0), ("bad", 3)] {
        let window = workers.spawn(name, &format!("echo ready; read -r line; exit {code}"));
        workers.tmux.await_line(&window, "ready");
    }
    let run = workers.run("wait good --timeout 0.2");
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), "good: still running (timeout)\n"), "{run:?}");
    assert!(workers.refuses("wait good other").contains("worker 'other' not found"));
    assert!(workers.refuses("wait good --timeout soon").contains("not a duration"));

    let both = workers.scratch().start("wait good bad good");
    let good = workers.scratch().start("wait good");
    workers.says("send good x");
    let run = finish(good);
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "good: exited\n"), "{run:?}");
    workers.says("send bad x");
    let run = finish(both);
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), "good: exited\nbad: exited\n"), "{run:?}");
}

#[test]
fn wait_ends_with_the_monitor() {
    let workers = Workers::new();
    let monitor = workers.monitor("agent", |_| {});
    let waiting = workers.scratch().start("wait agent");
    let run = workers.run("wait agent --timeout 0.2");
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), "agent: still running (timeout)\n"), "{run:?}");
    workers.book("agent", |state| {
        (state.active, state.status, state.exit_code) = (false, Status::Failed, Some(1));
        state.exit_reason = Some("failed".into());
    });
    monitor.end();
    let run = finish(waiting);
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), "agent: exited\n"), "{run:?}");
    workers.book("agent", |state| {
        (state.active, state.status, state.exit_code) = (false, Status::Stopped, Some(0));
        state.exit_reason = Some("max_iterations".into());
    });
    assert_eq!(workers.says("wait agent"), "agent: exited\n");
}

/// Heeds no signal but KILL, and has children that do not either.
const STUBBORN: &str = "trap '' INT TERM HUP
    setsid bash -c \"$(declare -f note); note; while :; do sleep 600; done\" & ( note; exec sleep 600 ) &
    echo works; while :; do sleep 600; done";

#[test]
fn kill_leaves_nothing_of_an_unmonitored_worker() {
    let workers = Workers::new();
    let window = workers.spawn("a", STUBBORN);
    let longer = workers.spawn("ab", READER);
    workers.scratch().await_noted(4);
    assert_eq!(workers.says("kill a"), "killed a\n");
    let living = || workers.scratch().living().into_iter().collect::<BTreeSet<_>>();
    wait_for("three of four to be gone", || (living().len() == 1).then_some(()));
    assert_eq!(workers.tmux.look(&longer).dead, None, "its name only begins alike");
    let state = workers.state("a");
    assert_eq!((&state["status"], &state["exit_reason"]), (&"stopped".into(), &"killed".into()));
    let log = fs::read_to_string(workers.folder("a").join("iterations.log")).unwrap();
    assert!(log.ends_with("[DONE] loop complete after 7 iterations reason=killed\n"), "{log}");
    let status = workers.says("status a");
    assert!(
        status.contains("\nExit reason: killed\n") && status.ends_with("\nWorker status: stopped\n"),
        "{status}"
    );
    // Once more there is nothing to end.
    assert_eq!(workers.says("kill a"), "killed a\n");
    assert_eq!(fs::read_to_string(workers.folder("a").join("iterations.log")).unwrap(), log);

    // A window of the user's stays, and with it session and server.
    let (_, own) = workers.tmux.user(&[
        "new-window",
        "-d",
        "-t",
        &longer.session,
        "-P",
        "-F",
        "#{pane_id}",
        "sleep",
        "600",
    ]);
    assert_eq!(workers.says("kill ab"), "killed ab\n");
    assert_eq!(workers.tmux.user(&["list-panes", "-a", "-F", "#{pane_id}"]).1, own);
    workers.tmux.user(&["kill-pane", "-t", &own]);
    await_end(&window.server);
    workers.scratch().assert_nothing_left();
}

#[test]
fn kill_asks_the_monitor_to_end() {
    let workers = Workers::new();
    let window = workers.spawn("agent", READER);
    let monitor = workers.monitor("agent", |_| {});
    let killing = workers.scratch().start("kill agent");
    workers.obey("agent", "cancel_now", Outcome::Cancelled, monitor);
    let run = finish(killing);
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "killed agent\n"), "{run:?}");
    assert_eq!(workers.state("agent")["exit_reason"], "killed");
    await_end(&window.server);
    workers.scratch().assert_nothing_left();
}

#[test]
fn kill_ends_a_monitor_that_does_not_react() {
    let workers = Workers::new();
    let window = workers.spawn("agent", READER);
    let mut monitor = workers.monitor("agent", |_| {});
    let run = workers.run("kill agent");
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "killed agent\n"), "{run:?}");
    assert!(run.stderr.contains("does not react: it is killed") && !monitor.is_alive(), "{run:?}");
    assert_eq!(workers.state("agent")["status"], "stopped");
    await_end(&window.server);
    workers.scratch().assert_nothing_left();
}

#[test]
fn a_loop_that_has_ended_keeps_its_reason() {
    let workers = Workers::new();
    workers.book("agent", |state| {
        (state.active, state.status, state.exit_code) = (false, Status::Failed, Some(1));
        state.exit_reason = Some("failed".into());
    });
    assert_eq!(workers.says("kill agent"), "killed agent\n");
    assert_eq!(workers.state("agent")["exit_reason"], "failed");
}

#[test]
fn a_dirty_tree_is_refused_before_anything_is_killed() {
    let workers = Workers::new();
    let scratch = workers.scratch();
    let tree = workers.tree("agent");
    let book =
        || workers.book("agent", |state| state.setup.worker.as_mut().unwrap().worktree = Some(tree.clone()));
    book();
    let window = workers.open("agent", READER);
    let mut monitor =
        workers.monitor("agent", |state| state.setup.worker.as_mut().unwrap().worktree = Some(tree.clone()));
    fs::write(tree.path.join("new"), "work").unwrap();
    let said = workers.refuses("kill agent --rm-worktree");
    assert!(
        said.starts_with("error: cannot remove worktree for 'agent'") && said.contains("(new)"),
        "{said}"
    );
    assert!(said.contains("--force-dirty") && said.contains("nothing was killed"), "{said}");
    assert_eq!(workers.tmux.look(&window).dead, None);
    assert!(monitor.is_alive() && workers.state("agent")["status"] == "running");
    monitor.end();
    assert_eq!(workers.run("kill agent --force-dirty").code, Some(1));

    let said = workers.says("kill agent --rm-worktree --force-dirty");
    assert!(said.starts_with("killed agent\nremoved .worktrees/agent; branch agent stays\n"), "{said}");
    assert!(!tree.path.exists());
    let kept = scratch.git(&["for-each-ref", "--format=%(refname)", "refs/ralph/keep/agent"]);
    assert_eq!(scratch.git(&["show", &format!("{}:new", kept.trim())]), "work");
    scratch.git(&["rev-parse", "--verify", "refs/heads/agent"]);
    await_end(&window.server);
    // Without a tree there is nothing to remove.
    let run = workers.run("kill agent --rm-worktree");
    assert!(run.code == Some(0) && run.stderr.contains("has no worktree"), "{run:?}");
}

#[test]
fn what_attach_and_kill_need_outlives_the_state_of_a_worker() {
    let workers = Workers::new();
    let tree = workers.tree("agent");
    let window = workers.spawn("agent", READER);
    workers.tmux.await_line(&window, "ready");
    let monitor =
        workers.monitor("agent", |state| state.setup.worker.as_mut().unwrap().worktree = Some(tree.clone()));
    fs::write(workers.folder("agent").join("iterations.log"), "x\n").unwrap();
    let cleaning = workers.scratch().start("clean agent");
    workers.obey("agent", "detach", Outcome::Detached, monitor);
    // The stand-in has written a state without the tree.
    let run = finish(cleaning);
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "cleaned ralph state for agent\n"), "{run:?}");
    assert_eq!(run.stderr, "warning: worker 'agent' is still running (only ralph state removed)\n");
    let names = |folder: &std::path::Path| {
        let names =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    };
    assert_eq!(names(&workers.folder("agent")), ["lock", "pane.json", "socket", "worktree.json"]);
    assert_eq!(names(workers.folder("agent").parent().unwrap()), ["agent"]);
    assert!(workers.refuses("clean agent").contains("no ralph state found for worker 'agent'"));
    assert!(workers.refuses("logs agent").contains("no ralph state found for worker 'agent'"));
    assert_eq!(workers.run("status agent").code, Some(1));

    assert_eq!(workers.says("send agent hello"), "sent to agent\n");
    workers.tmux.await_screen(&window, "a text", shows("read: hello"));
    assert!(workers.says("peek agent").contains("read: hello"));
    let said = workers.says("kill agent --rm-worktree");
    assert!(said.starts_with("killed agent\nremoved "), "{said}");
    assert!(!workers.folder("agent").exists() && !tree.path.exists());
    await_end(&window.server);
    workers.scratch().assert_nothing_left();
}

#[test]
fn clean_all_takes_every_worker() {
    let workers = Workers::new();
    assert_eq!(workers.says("clean --all"), "nothing to clean\n");
    workers.book("ended", |state| (state.active, state.status) = (false, Status::Stopped));
    let window = workers.spawn("works", READER);
    let run = workers.run("clean --all");
    let mut lines: Vec<&str> = run.stdout.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["cleaned ralph state for ended", "cleaned ralph state for works"], "{run:?}");
    assert_eq!(run.stderr, "warning: worker 'works' is still running (only ralph state removed)\n");
    assert!(!workers.folder("ended").exists());
    assert_eq!(workers.says("clean --all"), "nothing to clean\n");
    workers.says("kill works");

    await_end(&window.server);
}
