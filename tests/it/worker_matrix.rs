//! Any behaviour of an agent in a window, and any fault of its worker: the state is correct, nothing is left, and no other
//! tmux is touched. Each test is a row of the matrix and runs all kinds of agents for which it makes sense.
//!
//! Left out: the loss of a wrapper whose agent has ended at once, because it has none any more, and the user's window after
//! the loss of its server. An agent that does not end by itself is not awaited after `cancel`.

use std::fs;

use rustix::process::Signal;

use crate::processes::send;
use crate::scratch::wait_for;
use crate::worker_cells::each;
use crate::worker_kinds::{Kind, NEXT, all};
use crate::workers::Tmux;

/// The iteration's line of an agent that we have ended: that is no failure, and nothing is waited for.
const ENDED: &str = "[END] iteration 1 exit=unknown duration=";
/// Of one whose wrapper or server was lost.
const LOST: &str = "[FAIL] iteration 1 exit=unknown attempt=1/5 backoff=1s";

#[test]
fn pause() {
    each("pause", all, &[NEXT], |cell| {
        let said = cell.says("pause w");
        assert!(said.starts_with("paused ralph loop for w"), "{said}");
        // That is what it is from then on, while its agent works.
        cell.await_status("paused");
        cell.release();
        let paused = format!("[PAUSE] loop paused at iteration {}", cell.kind.iteration());
        // The log is written first.
        wait_for("the pause", || cell.says("status w").contains("\nStatus: paused\n").then_some(()));
        cell.assert_log_after_end(&[&paused]);
        cell.assert_state("paused", "(none - still running)", "stopped");
        cell.assert_no_agent();
        assert_eq!(cell.says("resume w"), "resumed ralph loop for w\n");
        let end: Vec<&str> = cell.kind.end.into_iter().chain([paused.as_str()]).collect();
        cell.assert_completes(&end);
    });
}

#[test]
fn resume() {
    each("resume", all, &[NEXT], |cell| {
        cell.says("pause w");
        assert_eq!(cell.says("resume w"), "resumed ralph loop for w\n");
        cell.release();
        // What ends at once is held at once.
        let paused = cell.kind.end.is_none().then_some("[PAUSE] loop paused at iteration 4");
        let end: Vec<&str> = cell.kind.end.into_iter().chain(paused).collect();
        cell.assert_completes(&end);
    });
}

/// After the attempt; of what does not end by itself at once.
#[test]
fn cancel() {
    each("cancel", all, &[NEXT], |cell| {
        let k = cell.kind.iteration();
        let said = cell.says("cancel w");
        assert!(said.starts_with(&format!("cancelled (was at iteration {k})\n")), "{said}");
        if cell.kind.lasts {
            cell.says("cancel --now w");
        } else {
            cell.release();
        }
        cell.ends(0);
        let end = if cell.kind.lasts { Some(ENDED) } else { cell.kind.end };
        let done = format!("[DONE] loop complete after {k} iterations reason=killed");
        cell.assert_log(&end.into_iter().chain([done.as_str()]).collect::<Vec<_>>());
        cell.assert_state("stopped", "killed", "stopped");
        cell.assert_nothing_left();
    });
}

/// Also where no agent is there, as the last one has failed and the next one is waited for.
#[test]
fn kill() {
    each("kill", all, &[NEXT], |cell| {
        assert_eq!(cell.says("kill w"), "killed w\n");
        cell.ends(0);
        let end = cell.kind.end.map(|_| ENDED);
        let done = format!("[DONE] loop complete after {} iterations reason=killed", cell.kind.iteration());
        cell.assert_log(&end.into_iter().chain([done.as_str()]).collect::<Vec<_>>());
        cell.assert_state("stopped", "killed", "stopped");
        cell.assert_nothing_left();
    });
}

#[test]
fn sigterm_to_the_monitor() {
    each("SIGTERM", all, &[NEXT], |cell| {
        send(cell.monitor(), Signal::TERM);
        cell.release();
        let run = cell.ends(130);
        assert!(
            run.stdout.contains("received SIGTERM, pausing loop (current agent will complete)"),
            "{run:?}"
        );
        assert!(run.stdout.ends_with(": terminated ('ralph resume w' goes on)\n"), "{run:?}");
        let k = cell.kind.iteration();
        let done = format!("[PAUSE] loop paused at iteration {k}");
        cell.assert_log_after_end(&[&done]);
        cell.assert_state("paused", "(none - still running)", "stopped");
        cell.assert_no_agent();
        cell.take_up("resume w");
        let end: Vec<&str> = cell.kind.end.into_iter().chain([done.as_str()]).collect();
        cell.assert_completes(&end);
    });
}

/// The agent keeps working, and ends before or after it is monitored again. It has its prompt once.
#[test]
fn kill_9_of_the_monitor() {
    each("kill -9 of the monitor", all, &[NEXT], |cell| {
        cell.kill_monitor();
        let end = Vec::from_iter(cell.kind.end);
        if cell.kind.end.is_some() {
            cell.assert_state("stopped", "monitor_disconnected (worker still running)", "running");
        }
        cell.assert_strangers_live();
        if cell.kind.lasts {
            cell.take_up("run w");
            cell.await_status("running");
            cell.release();
        } else {
            cell.release();
            cell.assert_no_agent();
            cell.assert_state("stopped", "monitor_disconnected", "stopped");
            cell.take_up("resume w");
        }
        cell.assert_completes(&end);
        assert_eq!(cell.prompts().matches("Do the thing").count(), 2, "{}", cell.prompts());
    });
}

/// The user's own window there is lost with it, and not by us. The monitor hears of it before the agent has ended of that, or
/// after.
#[test]
fn kill_9_of_the_tmux_server() {
    each("kill -9 of the server", all, &[NEXT], |cell| {
        if cell.kind.lasts {
            cell.kill_server();
        } else {
            send(cell.monitor(), Signal::STOP);
            cell.kill_server();
            cell.await_no_wrapper();
            send(cell.monitor(), Signal::CONT);
        }
        let end = cell.kind.end.map(|_| LOST);
        cell.assert_completes(&Vec::from_iter(end));
    });
}

/// Before a monitor listens to it: that is a failure like any other.
#[test]
fn kill_9_of_the_tmux_server_at_once() {
    let tmux = Tmux::new();
    tmux.scratch.agent(
        "tmux",
        r#"tmux=$(PATH=${PATH#*:} command -v tmux)
        case " $* " in *" -C "*)
            mkdir "$HOME/once" && kill -9 "$("$tmux" "${@:1:5}" display-message -p '#{pid}')"
        esac
        exec "$tmux" "$@""#,
    );
    let run = tmux.spawn(&format!("{NEXT},{NEXT}"), "-n 2");
    assert_eq!(run.code, Some(0), "{run:?}");
    let log = tmux.log();
    assert_eq!(log[1..3], [LOST, "[START] iteration 2/2"], "{log:?}");
    tmux.assert_nothing_left();
}

/// Of kinds that are at work; an agent that has ended has no wrapper any more.
#[test]
fn kill_9_of_the_wrapper() {
    each("kill -9 of the wrapper", Kind::is_at_work, &[NEXT], |cell| {
        cell.kill_wrapper();
        cell.assert_completes(&[LOST]);
    });
}

/// The agent then has no monitor, and perhaps no wrapper. `ralph kill` ends it all the same.
#[test]
fn kill_9_of_the_monitor_and_kill() {
    each("kill -9 of the monitor, kill", all, &[NEXT], |cell| {
        cell.kill_monitor();
        if cell.kind.name == "has the alternate screen" {
            cell.kill_wrapper();
        }
        assert_eq!(cell.says("kill w"), "killed w\n");
        let done = format!("[DONE] loop complete after {} iterations reason=killed", cell.kind.iteration());
        cell.assert_log(&[&done]);
        cell.assert_state("stopped", "killed", "stopped");
        cell.assert_nothing_left();
    });
}

/// The next monitor finds out, and goes on.
#[test]
fn kill_9_of_all_that_looks_after_an_agent() {
    for is_server in [true, false] {
        each(
            "kill -9 of the monitor and more",
            |kind| kind.is_at_work() && kind.lasts,
            &[NEXT],
            |cell| {
                cell.kill_monitor();
                if is_server {
                    cell.kill_server();
                } else {
                    cell.kill_wrapper();
                }
                cell.await_worker("stopped");
                cell.assert_state("stopped", "monitor_disconnected", "stopped");
                cell.take_up("run w");
                cell.assert_completes(&[LOST]);
            },
        );
    }
}

/// Each iteration has the prompt as it is when it begins, and without one the loop fails.
#[test]
fn prompt_edited_and_deleted() {
    each("prompt edited, deleted", all, &["keep got; silent until next; exit 0", NEXT], |cell| {
        let scratch = &cell.tmux.scratch;
        scratch.write("prompt.md", "Do something else.\n");
        cell.release();
        cell.await_prompt("Do something else.");
        fs::remove_file(scratch.path("prompt.md")).unwrap();
        scratch.write("next", "");
        let run = cell.ends(1);
        assert!(run.stderr.contains("prompt file not found: prompt.md"), "{run:?}");
        let k = cell.kind.iteration() + 1;
        let rest = [
            format!("[START] iteration {k}/N"),
            format!("[END] iteration {k} exit=0 duration="),
            format!("[DONE] loop complete after {k} iterations reason=failed"),
        ];
        cell.assert_log_after_end(&rest.each_ref().map(String::as_str));
        cell.assert_state("failed", "failed", "stopped");
        cell.assert_nothing_left();
    });
}
