//! The program file of ralph is replaced while it works, as a package manager does that.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::run_tasks::{add, tasks};
use crate::scratch::{Scratch, agent_on_screen, executable, finish, wait_for};
use crate::workers::Tmux;

/// A ralph that is installed for this project alone.
fn install(scratch: &Scratch) -> PathBuf {
    let installed = scratch.outside().join("installed/ralph");
    fs::create_dir(installed.parent().unwrap()).unwrap();
    // By another program: one that we had open to write could not be started while a thread of ours forks.
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_ralph")).arg(&installed).status().unwrap();
    assert!(copied.success());
    installed
}

/// Puts a program in its place that only fails.
fn replace(installed: &Path) {
    let other = installed.with_extension("new");
    executable(&other, "#!/bin/sh\nexit 9\n");
    fs::rename(other, installed).unwrap();
}

#[test]
fn an_agent_reaches_the_graph_with_a_ralph_that_was_replaced() {
    let body = r#"
prompt=$(cat)
touch begun; until [ -e go ]; do sleep 0.01; done
eval "$(grep -o -m1 '[^ `]*/ralph.* task add' <<<"$prompt") second" >&2
say "<task-done>$(sed -n 's/^## Your task: //p' <<<"$prompt")</task-done>"; result"#;
    for walls in ["off", "on"] {
        let scratch = Scratch::new();
        scratch.agent("claude", body);
        add(&scratch, "first");
        let installed = install(&scratch);
        let mut run = scratch.command(&installed);
        run.args(["run", "--all", "--once", "--no-verify", "--sandbox", walls]);
        let run = run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        wait_for("the attempt", || scratch.path("begun").exists().then_some(()));
        replace(&installed);
        scratch.write("go", "");
        let run = finish(run);
        assert_eq!(run.code, Some(0), "{run:?}");
        let tree = scratch.run("task tree").stdout;
        assert!(tree.contains("✓") && tree.contains("second"), "{walls}: {tree}\n{run:?}");
    }
}

#[test]
fn a_program_file_that_cannot_be_kept_is_told() {
    let scratch = tasks("work; done_");
    add(&scratch, "first");
    let folder = scratch.home().join("state/ralph/programs");
    fs::write(&folder, "").unwrap();
    let run = scratch.run("run --all --no-verify");
    assert_eq!(run.code, Some(0), "{run:?}");
    let told = format!("cannot be kept in {}: ", folder.display());
    assert!(run.stderr.contains(&told) && run.stderr.contains("do not replace or remove it"), "{run:?}");
}

#[test]
fn a_worker_goes_on_with_a_ralph_that_was_replaced() {
    let tmux = Tmux::new();
    let installed = install(&tmux.scratch);
    let mut worker = tmux.scratch.command(&installed);
    worker
        .args(["spawn", "--name", "w", "--prompt-file", "prompt.md", "-n", "2", "--"])
        .args(agent_on_screen());
    worker.env("RALPH_TMUX_SOCKET", tmux.socket()).stdout(Stdio::piped()).stderr(Stdio::piped());
    worker.env("RALPH_SCRIPT_PLAY", "keep first; spin until go; exit 0,keep second; exit 0");
    let worker = worker.spawn().unwrap();
    wait_for("the first attempt", || tmux.scratch.path("first").exists().then_some(()));
    replace(&installed);
    tmux.scratch.write("go", "");
    let run = finish(worker);
    assert_eq!((run.code, tmux.scratch.path("second").exists()), (Some(0), true), "{run:?}");
    tmux.assert_nothing_left();
}
