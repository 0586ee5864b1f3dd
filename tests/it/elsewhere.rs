//! A project seen from elsewhere: a copy of it, and another pid namespace (a container).

use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::Signal;

use crate::processes::{send, supervisors_of};
use crate::scratch::{Run, Scratch, finish, wait_for};

const DONE: &str = "cat > /dev/null; say '<promise>COMPLETE</promise>'; result";

/// A project whose agent works until `go` is in its home.
fn at_work() -> (Scratch, Child) {
    let scratch = Scratch::new();
    scratch.agent("claude", &format!("say working; while [ ! -e $HOME/go ]; do sleep 0.02; done; {DONE}"));
    let ralph = scratch.start("prompt p.md 3");
    wait_for("the agent's words", || scratch.events().contains("working").then_some(()));
    (scratch, ralph)
}

fn go(scratch: &Scratch) {
    std::fs::write(scratch.home().join("go"), "").unwrap();
}

/// Ralph in a copy of the project that was made while a loop was at work in the original.
fn in_copy(scratch: &Scratch, copy: &Path, args: &str) -> Run {
    Scratch::finish(scratch.ralph(args).current_dir(copy))
}

#[test]
fn a_copy_of_a_running_project_leaves_the_original_alone() {
    let (scratch, ralph) = at_work();
    let copy = scratch.outside().join("copy");
    assert!(Command::new("cp").arg("-a").args([&scratch.root(), &copy]).status().unwrap().success());

    // The loop runs in the original.
    let status = in_copy(&scratch, &copy, "status prompt");
    assert!(status.stdout.contains("Status: killed"), "{status:?}");
    let cancel = in_copy(&scratch, &copy, "cancel");
    assert!(cancel.stdout.contains("no active loop"), "{cancel:?}");
    go(&scratch);
    let run = finish(ralph);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stdout.contains("Successful: 1\nFailed: 0"), "{run:?}");
}

#[test]
fn a_start_in_a_copy_ends_nothing_of_the_original() {
    for kill in [false, true] {
        let (scratch, ralph) = at_work();
        let copy = scratch.outside().join("copy");
        assert!(Command::new("cp").arg("-a").args([&scratch.root(), &copy]).status().unwrap().success());
        if kill {
            // Leftovers of a dead loop are for the next one in its own folder.
            send(ralph.id(), Signal::STOP);
            for pid in supervisors_of(ralph.id()) {
                send(pid, Signal::KILL);
            }
            send(ralph.id(), Signal::KILL);
            scratch.agent("claude", DONE);
        }
        let agent = std::fs::read_to_string(scratch.home().join("pids")).unwrap();
        let agent: u32 = agent.split(' ').next().unwrap().parse().unwrap();
        // The copy's own agent has another home, so it does not wait.
        let other_home = scratch.outside().join("other");
        std::fs::create_dir_all(&other_home).unwrap();
        std::fs::write(other_home.join("go"), "").unwrap();
        let run = Scratch::finish(scratch.ralph("prompt p.md 3").current_dir(&copy).env("HOME", &other_home));
        assert_eq!(run.code, Some(0), "{run:?}");
        assert!(!run.stderr.contains("was killed"), "{run:?}");
        assert!(scratch.living().contains(&agent), "the original's agent was ended");
        if kill {
            finish(ralph);
            let run = scratch.run("prompt p.md 3");
            assert!(run.stderr.contains("processes of a prompt loop that was killed"), "{run:?}");
        } else {
            go(&scratch);
            let run = finish(ralph);
            assert!(run.stdout.contains("Successful: 1\nFailed: 0"), "{run:?}");
        }
        scratch.assert_nothing_left();
    }
}

#[test]
fn a_loop_in_a_container_is_seen_and_reached_from_outside() {
    let scratch = Scratch::new();
    scratch.agent("claude", "say working; while [ ! -e $HOME/go ]; do sleep 0.02; done; say on; result");
    let mut container = scratch.container();
    container.args([env!("CARGO_BIN_EXE_ralph"), "prompt", "p.md", "3"]);
    let container = container.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for("the agent's words", || scratch.events().contains("working").then_some(()));

    let status = scratch.run("status prompt");
    assert!(status.stdout.contains("Status: running"), "{status:?}");
    let second = scratch.run("prompt p.md 3");
    assert!(second.code == Some(1) && second.stderr.contains("another loop is running here"), "{second:?}");
    let pause = scratch.run("pause");
    assert!(pause.stderr.contains("holds after the current attempt"), "{pause:?}");
    go(&scratch);
    wait_for("the pause", || (scratch.state()["status"].as_str() == Some("paused")).then_some(()));
    let cancel = scratch.run("cancel");
    assert!(cancel.stdout.contains("cancelled (was at iteration 1)"), "{cancel:?}");
    let run = finish(container);
    assert!(run.stdout.contains("Successful: 1\nFailed: 0"), "{run:?}");
    let status = scratch.run("status prompt");
    assert!(!status.stdout.contains("Status: running"), "{status:?}");
    scratch.assert_nothing_left();
}
