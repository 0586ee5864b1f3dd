//! The verbs that a running agent may call, whatever it does to its environment and its session.

use std::fs;

use crate::policies::assert_end;
use crate::scratch::{Scratch, wait_for};
use crate::workers::Tmux;

const RALPH: &str = env!("CARGO_BIN_EXE_ralph");

/// Verbs that end, change or steer, and how many of their words name them. `ID` is a task.
const REFUSED: [(&str, usize); 37] = [
    ("plan 1", 1),
    ("build 1", 1),
    ("prompt p.md 1", 1),
    ("run p.md", 1),
    ("run ID", 1),
    ("loop", 1),
    ("loop build", 1),
    ("spawn --name w --prompt-file p.md --max-iterations 1 -- true", 1),
    ("demo --quiet", 1),
    ("init --force", 2),
    ("pause", 1),
    ("resume prompt --max-iterations 6", 1),
    ("cancel", 1),
    ("cancel --now", 1),
    ("note words", 1),
    ("diff --comment", 2),
    ("clean", 1),
    ("revert", 1),
    ("trust --yes", 1),
    ("send w words", 1),
    ("interrupt w", 1),
    ("attach w", 1),
    ("kill w", 1),
    ("notify test", 2),
    ("task create brief", 2),
    ("task done --force ID", 2),
    ("task fail ID", 2),
    ("task reset ID", 2),
    ("task update ID --priority 3", 2),
    ("task delete ID", 2),
    ("task import p.md", 2),
    ("feature add f", 2),
    ("feature delete f", 2),
    ("feature spec f brief", 2),
    ("feature plan f", 2),
    ("feature build f", 2),
    ("config set loop.max_retries 5", 2),
];

const ALLOWED: [&str; 14] = [
    "task add another",
    "task log ID -m found",
    "task show ID",
    "task list",
    "task export",
    "feature list",
    "status",
    "ls",
    "logs",
    "history",
    "journal",
    "config",
    "init",
    "help cancel",
];

/// Has an agent at work call ralph with each of these, behind `before`, and returns the exit codes and what was said.
fn calls(before: &str, verbs: &[&str]) -> (Scratch, Vec<String>, String) {
    let scratch = Scratch::new();
    let id = scratch.run("task add a").stdout.trim().to_owned();
    let call = |verb: &&str| {
        let args = verb.replace("ID", &id);
        format!("{before} '{RALPH}' {args} < /dev/null > /dev/null 2>> ../said; echo $? >> ../codes\n")
    };
    let calls: String = verbs.iter().map(call).collect();
    scratch.agent("claude", &format!("cat > /dev/null\n{calls}say more; result"));
    let run = scratch.run("prompt p.md 1");
    // None of them has reached the loop.
    assert_end(&scratch, &run, 0, "max_iterations", "stopped");
    let task = scratch.run(&format!("task show {id} --json"));
    assert!(
        task.stdout.contains(r#""status":"pending""#) && task.stdout.contains(r#""title":"a""#),
        "{task:?}"
    );
    let file = |name: &str| fs::read_to_string(scratch.outside().join(name)).unwrap_or_default();
    let (codes, said) = (file("codes").lines().map(str::to_owned).collect(), file("said"));
    (scratch, codes, said)
}

#[track_caller]
fn assert_refused(before: &str, verbs: &[(&str, usize)]) {
    let (_, codes, said) = calls(before, &verbs.iter().map(|(verb, _)| *verb).collect::<Vec<_>>());
    assert_eq!(codes, vec!["1"; verbs.len()], "{before}: {said}");
    assert_eq!(said.lines().count(), verbs.len(), "{before}: {said}");
    for (line, (verb, words)) in said.lines().zip(verbs) {
        let name = verb.split(' ').take(*words).collect::<Vec<_>>().join(" ");
        let expected = format!("error: 'ralph {name}' is not for agents at work: say ");
        assert!(line.starts_with(&expected), "{before} {verb}: {line}");
    }
}

#[test]
fn what_ends_changes_or_steers_is_refused() {
    assert_refused("", &REFUSED);
}

#[test]
fn an_agent_that_drops_the_marks_is_still_inside_its_attempt() {
    let some = [
        ("task done --force ID", 2),
        ("task delete ID", 2),
        ("cancel --now", 1),
        ("resume prompt --max-iterations 6", 1),
    ];
    // Without the environment; without the limit as well, in a session of its own; with other marks.
    let apart = "unshare --user --map-root-user --pid --fork --kill-child --mount-proc env -i";
    for before in [
        "env -i",
        "env -i setsid --wait bash -c 'ulimit -Sx unlimited; exec \"$0\" \"$@\"'",
        "env -i RALPH_RUN= RALPH_SUPERVISOR=1 TESTS_OF_RALPH_PID=1",
        // As if an agent were the tests' own process.
        "env -i TESTS_OF_RALPH_PID=$$ setsid --wait bash -c 'ulimit -Sx unlimited; exec \"$0\" \"$@\"'",
        // In a pid namespace the supervisor is out of sight; the mark in the limits is not.
        apart,
    ] {
        assert_refused(before, &some);
    }
}

/// Without any mark and where no supervisor can be seen, a person in a container looks the same.
#[test]
fn an_agent_that_drops_its_marks_in_a_pid_namespace_is_doubted_while_its_run_is_alive() {
    let apart = "unshare --user --map-root-user --pid --fork --kill-child --mount-proc env -i";
    let verbs = ["task done --force ID", "task delete ID", "cancel --now", "run ID"];
    let elsewhere = ["task done --force ID --ralph-dir \"$PWD/.ralph\""];
    for (folder, verbs) in [("", &verbs[..]), ("--chdir=/", &elsewhere)] {
        let before = format!("ulimit -Sx unlimited; {apart} {folder}");
        let (scratch, codes, said) = calls(&before, verbs);
        assert_eq!(codes, vec!["1"; verbs.len()], "{said}");
        let refused = " is not for agents at work, and a loop is at work outside of this pid namespace: call it from another";
        assert_eq!(said.matches(refused).count(), verbs.len(), "{said}");
        // The loop has ended: that is a person.
        let id = scratch
            .run("task list --json")
            .stdout
            .split('"')
            .find(|word| word.starts_with("t-"))
            .unwrap()
            .to_owned();
        let words = format!("{apart} HOME={} {RALPH} task done --force {id}", scratch.home().display());
        let mut words = words.split(' ');
        let mut person = std::process::Command::new(words.next().unwrap());
        let done = person.args(words).current_dir(scratch.root()).output().unwrap();
        assert!(done.status.success(), "{done:?}");
    }
}

#[test]
fn reading_and_adding_is_allowed() {
    for before in ["", "env -i"] {
        let (scratch, codes, said) = calls(before, &ALLOWED);
        assert_eq!(codes, vec!["0"; ALLOWED.len()], "{said}");
        assert!(scratch.run("task list").stdout.contains("  another\n"));
    }
}

#[test]
fn programs_of_a_loop_are_inside_as_well() {
    let scratch = Scratch::new();
    let id = scratch.run("task add a").stdout.trim().to_owned();
    scratch.agent("claude", "cat > /dev/null; say '<promise>COMPLETE</promise>'; result");
    scratch.write("check", format!("'{RALPH}' task done --force {id}\n"));
    let run = Scratch::finish(scratch.ralph("prompt p.md 1").args(["--validate", "sh check"]));
    assert_end(&scratch, &run, 4, "unproven", "failed");
    assert!(run.stdout.contains("'ralph task done' is not for agents at work"), "{run:?}");
}

#[test]
fn a_graph_with_the_name_of_a_draft_is_none() {
    for make in
        ["ln -sfn \"$PWD/.ralph\" ../x/.ralph/task-draft/.ralph", "cp -r .ralph ../x/task-draft/.ralph"]
    {
        let folder = make.rsplit(' ').next().unwrap();
        let before = format!("mkdir -p ../x/task-draft ../x/.ralph/task-draft; {make};");
        assert_refused(&before, &[(&format!("task done --force ID --ralph-dir {folder}"), 2)]);
    }
}

#[test]
fn a_window_beside_that_of_a_worker_may_be_its_agents() {
    let tmux = Tmux::new();
    let (scratch, socket) = (&tmux.scratch, tmux.socket());
    let id = scratch.run("task add a").stdout.trim().to_owned();
    let home = scratch.home();
    // Nothing of the worker is above that process, and it has no mark.
    let line = format!(
        "cd '{}'; env -i HOME='{}' '{RALPH}' task done --force {id} 2>>../said; echo $? >>../codes",
        scratch.root().display(),
        home.display()
    );
    scratch.write("line", line);
    scratch.agent(
        "claude",
        &format!(
            "printf '❯ '; read -r line; tmux -S '{}' new-window -d \"bash '$PWD/line'\"
             until [ -e ../codes ]; do sleep 0.05; done; exit 0",
            socket.display()
        ),
    );
    let run = tmux.run("spawn --name w --prompt-file prompt.md -n 1 -- claude");
    assert_eq!(run.code, Some(0), "{run:?}");
    let file = |name: &str| fs::read_to_string(scratch.outside().join(name)).unwrap();
    assert!(file("said").contains("a worker's agent may have opened this window"), "{}", file("said"));
    assert_eq!(file("codes"), "1\n");
    tmux.assert_nothing_left();
}

#[test]
fn what_has_killed_its_run_is_doubted() {
    let scratch = Scratch::new();
    let id = scratch.run("task add a").stdout.trim().to_owned();
    scratch.agent(
        "claude",
        &format!(
            "cat > /dev/null
             trap '' HUP INT TERM; ralph=$(awk '/^PPid/ {{ print $2 }}' /proc/$PPID/status)
             kill -9 $ralph $PPID
             while [ -e /proc/$ralph ]; do sleep 0.01; done
             env -i HOME=\"$HOME\" '{RALPH}' task done --force {id} 2> ../said; echo $? > ../code"
        ),
    );
    let run = scratch.run("prompt p.md 1");
    assert_eq!(run.code, None, "{run:?}");
    let code = || fs::read_to_string(scratch.outside().join("code")).ok().filter(|code| code.ends_with('\n'));
    assert_eq!(wait_for("an answer", code), "1\n");
    let said = fs::read_to_string(scratch.outside().join("said")).unwrap();
    assert!(said.contains("the marks of a run that was cut off: call it from another terminal"), "{said}");
}
