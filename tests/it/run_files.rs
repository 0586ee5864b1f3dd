//! Run-time files: no other user can read them, other files in their place are not touched, and changes during a loop
//! are noticed.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::branch_project::{BranchProject, plan};
use crate::scratch::{CLAUDE_RESULT, Run, Scratch, Started, claude_says, claude_text, wait_for};

/// Every file and folder below one, itself included, with its mode.
fn modes(folder: &Path) -> Vec<(PathBuf, u32)> {
    // Links have no mode of their own.
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let mut found = vec![(folder.to_owned(), mode(folder))];
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(modes(&path));
        } else {
            found.push((path.clone(), mode(&path)));
        }
    }
    found
}

#[test]
fn other_users_cannot_read_run_time_files() {
    let scratch = Scratch::new();
    fs::remove_dir_all(scratch.path(".ralph")).unwrap();
    let says = claude_says("<promise>COMPLETE</promise>");
    scratch.agent("claude", &format!("touch works; while [ ! -e go ]; do sleep 0.02; done\n{says}"));
    scratch.write("fix/RALPH.md", "---\nagent: claude -p\n---\nDo it.\n");
    let ralph = Started::new(&scratch, "run fix -n 1 --log-dir iterations");
    wait_for("the agent", || scratch.path("works").exists().then_some(()));
    assert_eq!(scratch.run("note more").code, Some(0));
    scratch.write("go", "");
    assert_eq!(ralph.finish().code, Some(0));
    let registry = scratch.outside().join("home/state/ralph/loops");
    for folder in [scratch.path(".ralph"), scratch.path("iterations"), registry] {
        let found = modes(&folder);
        assert!(found.len() > 1, "{found:?}");
        for (path, mode) in found {
            assert_eq!(mode, if path.is_dir() { 0o700 } else { 0o600 }, "{}", path.display());
        }
    }
}

#[test]
fn what_others_could_read_is_closed() {
    let scratch = Scratch::new();
    scratch.agent("claude", &claude_says("<promise>COMPLETE</promise>"));
    for name in ["lock", "iterations.log", "last_agent_output"] {
        scratch.write(&format!(".ralph/{name}"), "");
        fs::set_permissions(scratch.path(&format!(".ralph/{name}")), fs::Permissions::from_mode(0o644))
            .unwrap();
    }
    assert_eq!(scratch.run("prompt p.md 1").code, Some(0));
    for name in ["lock", "iterations.log", "last_agent_output", "state.toml"] {
        let mode = fs::metadata(scratch.path(&format!(".ralph/{name}"))).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}

const FILES: [&str; 4] = ["lock", "state.toml", "iterations.log", "last_agent_output"];
const FOLDERS: [&str; 2] = ["logs", "requests"];

/// Puts something else where a run-time file belongs.
fn put(scratch: &Scratch, kind: &str, name: &str) {
    let path = scratch.path(&format!(".ralph/{name}"));
    match kind {
        "a symbolic link" if FOLDERS.contains(&name) => symlink("../target", &path).unwrap(),
        "a symbolic link" => symlink("../target/file", &path).unwrap(),
        "a FIFO" => assert!(Command::new("mkfifo").arg(&path).status().unwrap().success()),
        "a folder" => fs::create_dir(&path).unwrap(),
        _ => panic!("{kind}"),
    }
}

/// The output of `ralph`, which has to come at once.
fn at_once(run: Run) -> Run {
    assert!(run.elapsed < Duration::from_secs(20), "{run:?}");
    run
}

#[test]
fn anything_else_in_place_of_a_run_time_file_is_refused_by_name() {
    let cases = ["a symbolic link", "a FIFO", "a folder"].iter().flat_map(|kind| {
        let folders = FOLDERS.iter().filter(|_| *kind != "a folder");
        FILES.iter().chain(folders).map(move |name| (*kind, *name))
    });
    for (kind, name) in cases {
        let scratch = Scratch::new();
        scratch.agent("claude", &claude_says("<promise>COMPLETE</promise>"));
        scratch.write("target/file", "the user's");
        put(&scratch, kind, name);
        let run = at_once(scratch.run("prompt p.md 1"));
        assert_eq!(run.code, Some(1), "{kind}, {name}: {run:?}");
        assert!(run.stderr.contains(name) && run.stderr.contains(kind), "{kind}, {name}: {run:?}");
        // None of these blocks on it, or follows it.
        for verb in [
            "status",
            "ls",
            "logs",
            "logs --agent",
            "note x",
            "cancel",
            "resume",
            "revert",
            "doctor",
            "clean",
        ] {
            at_once(scratch.run(verb));
        }
        assert_eq!(scratch.read("target/file"), "the user's", "{kind}, {name}");
        assert_eq!(fs::read_dir(scratch.path("target")).unwrap().count(), 1, "{kind}, {name}");
    }
}

#[test]
fn readers_name_what_they_refuse() {
    let scratch = Scratch::new();
    scratch.agent("claude", &claude_says("<promise>COMPLETE</promise>"));
    assert_eq!(scratch.run("prompt p.md 1").code, Some(0));
    for (name, verb) in [
        ("state.toml", "status"),
        ("state.toml", "ls --json"),
        ("iterations.log", "logs"),
        ("lock", "doctor"),
        ("lock", "clean"),
        ("logs", "revert"),
    ] {
        let path = scratch.path(&format!(".ralph/{name}"));
        let aside = scratch.path("aside");
        fs::rename(&path, &aside).unwrap();
        put(&scratch, "a FIFO", name);
        let run = at_once(scratch.run(verb));
        let said = run.stdout + &run.stderr;
        assert!(said.contains(name) && said.contains("a FIFO"), "{name}, {verb}: {said}");
        fs::remove_file(&path).unwrap();
        fs::rename(&aside, &path).unwrap();
    }
}

#[test]
fn one_bad_project_does_not_hold_a_list_of_all() {
    let scratch = Scratch::new();
    scratch.agent("claude", &claude_says("<promise>COMPLETE</promise>"));
    assert_eq!(scratch.run("prompt p.md 1 --name bad").code, Some(0));
    let other = scratch.outside().join("other");
    scratch.git(&["init", "--quiet", other.to_str().unwrap()]);
    fs::write(other.join("p.md"), "<promise>COMPLETE</promise>").unwrap();
    let elsewhere = |args: &str| at_once(Scratch::finish(scratch.ralph(args).current_dir(&other)));
    assert_eq!(elsewhere("prompt p.md 1 --name good").code, Some(0));

    let state = scratch.path(".ralph/state.toml");
    fs::remove_file(&state).unwrap();
    put(&scratch, "a FIFO", "state.toml");
    let registry = scratch.outside().join("home/state/ralph/loops");
    assert!(Command::new("mkfifo").arg(registry.join("x@00000000")).status().unwrap().success());
    let list = elsewhere("ls");
    assert!(list.stdout.contains("good") && list.stdout.contains("unknown"), "{list:?}");
    // A file without an end is no state either.
    fs::remove_file(&state).unwrap();
    fs::File::create(&state).unwrap().set_len(1 << 40).unwrap();
    let list = elsewhere("ls");
    assert!(list.stdout.contains("good") && list.stdout.contains("unknown"), "{list:?}");
}

/// An agent that in its first iteration does `first`, and in the second waits for the file `go`.
fn tidies_up(scratch: &Scratch, first: &str) {
    let says = format!("echo '{}'\necho '{CLAUDE_RESULT}'", claude_text("on it"));
    let second = "touch second; while [ ! -e go ]; do sleep 0.02; done";
    scratch.agent(
        "claude",
        &format!("cat > /dev/null\nif [ $RALPH_ITERATION = 1 ]; then {first}; else {second}; fi\n{says}"),
    );
}

#[test]
fn what_vanishes_while_a_loop_runs_is_made_again_and_said() {
    for (first, named) in [
        ("rm -rf .ralph", &["lock", "state.toml", "iterations.log", ".log", ".events.jsonl"][..]),
        ("rm .ralph/lock", &["lock"]),
        ("rm -rf .ralph/runs", &[".log", ".events.jsonl"]),
        ("cp -a .ralph copy; rm -rf .ralph; mv copy .ralph", &["lock", "state.toml", "iterations.log"]),
    ] {
        let scratch = Scratch::new();
        tidies_up(&scratch, first);
        let ralph = Started::new(&scratch, "prompt p.md 2");
        wait_for("the second iteration", || scratch.path("second").exists().then_some(()));

        let run = scratch.run("prompt p.md 1 --name other");
        assert_eq!(run.code, Some(1), "{first}: a second loop in the same tree: {run:?}");
        assert!(
            run.stderr.contains(&format!(
                "another loop is running here, {}",
                scratch.path(".ralph/lock").canonicalize().unwrap().display()
            )),
            "{run:?}"
        );
        assert_eq!(scratch.run("note remember").stdout, "noted for the next prompt of prompt\n", "{first}");
        scratch.write("go", "");
        let run = ralph.finish();
        assert_eq!(run.code, Some(0), "{first}: {run:?}");
        let said = run.stderr.lines().find(|line| line.contains("removed or replaced while the loop runs"));
        let said = said.unwrap_or_else(|| panic!("{first}: {run:?}"));
        assert!(named.iter().all(|name| said.contains(name)), "{first}: {said}");

        let log = scratch.session_log();
        assert!(log.contains("ITERATION 2 COMPLETE") && log.contains("Exit Code: 0"), "{first}: {log}");
        assert!(log.contains("[ralph] removed or replaced"), "{first}: {log}");
        assert!(scratch.read(".ralph/iterations.log").contains("[DONE]"), "{first}");
        let state = scratch.state();
        assert_eq!(state["exit_reason"].as_str(), Some("max_iterations"), "{first}: {state}");
        assert_eq!(scratch.session_logs().len(), 1, "{first}");
        let events: Vec<_> = fs::read_dir(scratch.path(".ralph/logs"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
            .collect();
        let events = fs::read_to_string(&events[0]).unwrap();
        assert!(events.contains("loop_ended") && events.contains("removed or replaced"), "{first}: {events}");
    }
}

#[test]
fn a_silent_agent_that_tidies_up_does_not_hide_its_loop() {
    let scratch = Scratch::new();
    scratch.write(".gitignore", ".ralph/\n");
    let waits = "git clean -fdxq; touch cleaned; while [ ! -e go ]; do sleep 0.02; done";
    scratch.agent("claude", &format!("cat > /dev/null; {waits}\n{}", claude_says("on it")));
    scratch.git(&["add", "p.md"]);
    let ralph = Started::new(&scratch, "prompt p.md 1");
    wait_for("the tidying", || scratch.path("cleaned").exists().then_some(()));
    wait_for("the state", || scratch.path(".ralph/state.toml").exists().then_some(()));
    let status = scratch.run("status prompt");
    assert!(status.stdout.contains("Status: running"), "{status:?}");
    let second = scratch.run("prompt p.md 1 --name other");
    assert!(second.code == Some(1) && second.stderr.contains("another loop is running here"), "{second:?}");
    scratch.write("go", "");
    let run = ralph.finish();
    assert_eq!(run.code, Some(0), "{run:?}");
    let said = "made again in ";
    assert_eq!(run.stderr.matches(said).count(), 1, "{run:?}");
}

#[test]
fn a_loop_whose_place_was_taken_ends_and_leaves_the_other_alone() {
    let scratch = Scratch::new();
    let says = claude_says("on it").replace("cat > /dev/null\n", "");
    let waits = "p=$(cat); which=${p%% *}; touch $which; while [ ! -e go.$which ]; do sleep 0.02; done";
    scratch.agent("claude", &format!("{waits}\n{says}"));
    for name in ["first", "second"] {
        scratch.write(&format!("{name}.md"), format!("{name} <promise>COMPLETE</promise>"));
    }
    let first = Started::new(&scratch, "prompt first.md 3 --name first");
    wait_for("the first loop", || scratch.path("first").exists().then_some(()));
    fs::remove_dir_all(scratch.path(".ralph")).unwrap();
    let second = Started::new(&scratch, "prompt second.md 1 --name second");
    wait_for("the second loop", || scratch.path("second").exists().then_some(()));
    let state = scratch.state();

    scratch.write("go.first", "");
    let run = first.finish();
    assert_eq!(run.code, Some(1), "{run:?}");
    let said = format!(
        "another loop is running here, {}",
        scratch.path(".ralph/lock").canonicalize().unwrap().display()
    );
    assert!(run.stderr.contains(&said) && run.stderr.contains("pid"), "{run:?}");
    assert_eq!(scratch.state(), state, "the other's state is its own");
    assert!(!scratch.read(".ralph/iterations.log").contains("[DONE]"));
    let third = scratch.run("prompt p.md 1");
    assert!(third.code == Some(1) && third.stderr.contains("another loop is running here"), "{third:?}");

    scratch.write("go.second", "");
    assert_eq!(second.finish().code, Some(0));
    assert_eq!(scratch.state()["exit_reason"].as_str(), Some("max_iterations"));
}

#[test]
fn a_build_of_branches_keeps_its_lock() {
    let project = BranchProject::without_remote(&plan(&[("one", 2)]));
    let scratch = &project.scratch;
    let main = scratch.root().join(".ralph");
    project.agent(&format!(
        "work; if [ $RALPH_ITERATION = 1 ]; then rm -rf '{0}'; else touch '{1}'; while [ ! -e '{2}' ]; do sleep 0.02; \
         done; fi; end",
        main.display(),
        scratch.path("second").display(),
        scratch.path("go").display()
    ));
    let ralph = Started::new(scratch, "loop build");
    wait_for("the second iteration", || scratch.path("second").exists().then_some(()));
    let run = scratch.run("loop build");
    assert!(run.code == Some(1) && run.stderr.contains("another loop is running here"), "{run:?}");
    scratch.write("go", "");
    let run = ralph.finish();
    assert!(run.code == Some(0) && run.stderr.contains("is taken again"), "{run:?}");
}

#[test]
fn an_acknowledged_note_survives_a_kill_at_once() {
    let scratch = Scratch::new();
    scratch.agent("claude", &format!("cat > prompt.$RALPH_ITERATION\n{}", claude_says("on it")));
    // While git reads the tree, the loop books nothing.
    let git = "case \"$*\" in *--untracked-files=all*) if [ -e hold ]; then touch holds; while [ -e hold ]; do sleep \
               0.02; done; fi;; esac; exec /usr/bin/git \"$@\"";
    crate::scratch::executable(&scratch.outside().join("bin/git"), &format!("#!/bin/bash\n{git}\n"));
    scratch.write("hold", "");
    let ralph = Started::new(&scratch, "prompt p.md 5 --idle 3 --delay 1h");
    wait_for("the look at the tree", || scratch.path("holds").exists().then_some(()));
    let note = scratch.run("note remember-me");
    assert_eq!(note.code, Some(0), "{note:?}");
    drop(ralph);
    fs::remove_file(scratch.path("hold")).unwrap();
    scratch.run("prompt p.md 2 --resume --delay 0");
    let is_there = (1..=5).any(|at| scratch.read_if_there(&format!("prompt.{at}")).contains("remember-me"));
    assert!(!note.stdout.contains("noted") || is_there, "it was acknowledged and is lost: {note:?}");
}
