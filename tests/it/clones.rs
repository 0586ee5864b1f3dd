//! A project may come from elsewhere: a clone's records run nothing, its links redirect no files, and commands that
//! only read start none of its programs.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::branch_project::{BranchProject, plan};
use crate::policies::{agent, project};
use crate::scratch::{Run, Scratch, executable};

/// A project whose loop was killed in its first attempt.
fn killed() -> Scratch {
    let scratch = project("kill -9 $(ps -o ppid= -p $PPID)");
    let run = scratch.run("prompt p.md 3 --name mine");
    assert_eq!(run.code, None, "{run:?}");
    agent(&scratch, "complete");
    scratch
}

/// All of the project, its records included, in another folder.
fn copied(scratch: &Scratch) -> PathBuf {
    let copy = scratch.outside().join("clone");
    assert!(Command::new("cp").arg("-a").args([&scratch.root(), &copy]).status().unwrap().success());
    copy
}

fn run_in(scratch: &Scratch, folder: &Path, args: &str) -> Run {
    Scratch::finish(scratch.ralph(args).current_dir(folder))
}

/// The message says whose records are meant and what to do, and no agent was called.
#[track_caller]
fn is_refused(scratch: &Scratch, run: &Run, state: &Path) {
    assert_eq!(run.code, Some(1), "{run:?}");
    let said = format!("{}: not written by you on this machine", state.display());
    assert!(run.stderr.contains(&said) && run.stderr.contains("--resume"), "{run:?}");
    assert_eq!(fs::read_to_string(scratch.outside().join("attempts")).unwrap().lines().count(), 1);
}

#[test]
fn records_of_a_clone_run_nothing_and_are_nothing_to_suggest() {
    let scratch = killed();
    let clone = copied(&scratch);
    let state = clone.join(".ralph/state.toml");
    for verb in ["resume", "resume mine --max-iterations 9"] {
        let run = Scratch::finish(scratch.ralph(verb).arg("--ralph-dir").arg(".ralph").current_dir(&clone));
        is_refused(&scratch, &run, &state);
    }
    for verb in ["", "report", "report --md"] {
        let shown = run_in(&scratch, &clone, verb);
        assert!(shown.code == Some(0) && !shown.stdout.contains("ralph resume"), "{verb}: {shown:?}");
    }
    // With `--resume` it continues counting, with the user's own command line.
    let run = run_in(&scratch, &clone, "prompt p.md 3 --name mine --resume");
    assert!(run.code == Some(0) && run.stderr.contains("resuming "), "{run:?}");
    assert_eq!(run_in(&scratch, &clone, "resume").code, Some(1), "it is this user's by now, and has ended");

    assert!(scratch.run("").stdout.contains("ralph resume mine"));
    let run = scratch.run("resume");
    assert_eq!(run.code, Some(0), "the original is its user's: {run:?}");
}

#[test]
fn a_changed_command_line_is_not_run() {
    for (from, to) in [("\"3\"", "\"4\""), ("cwd = \"", "cwd = \"/tmp/../")] {
        let scratch = killed();
        let state = scratch.read(".ralph/state.toml");
        assert!(state.contains(from), "{state}");
        scratch.write(".ralph/state.toml", state.replace(from, to));
        is_refused(&scratch, &scratch.run("resume"), &scratch.path(".ralph/state.toml"));
        scratch.write(".ralph/state.toml", state);
        assert_eq!(scratch.run("resume").code, Some(0));
    }
}

#[test]
fn a_loop_that_goes_on_by_itself_does_not_do_so_after_the_records_of_others() {
    let scratch = killed();
    let state = scratch.read(".ralph/state.toml");
    let planted = state
        .replace("name = \"mine\"", "name = \"loop-plan\"")
        .replace("verb = \"prompt\"", "verb = \"loop plan\"");
    assert_ne!(planted, state);
    scratch.write(".ralph/state.toml", planted);
    agent(&scratch, "printf '## Branch: a\\n- [ ] x\\n' > IMPLEMENTATION_PLAN.md; complete");
    // It would plan where planning was cut off; without a plan building has nothing to do.
    let run = scratch.run("loop");
    assert_eq!(run.code, Some(2), "{run:?}");
}

#[test]
fn a_link_in_the_place_of_a_folder_of_ralphs_is_not_written_through() {
    for name in [".ralph/runs", ".ralph/runs/branches", ".ralph"] {
        let scratch = project("complete");
        let other = scratch.outside().join("other/.ralph");
        fs::create_dir_all(&other).unwrap();
        let link = scratch.path(name);
        let _ = fs::remove_dir_all(&link);
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(&other, &link).unwrap();
        let run = scratch.run("prompt p.md 1");
        let said = format!("{}: it is a symbolic link", link.display());
        assert!(run.code == Some(1) && run.stderr.contains(&said), "{name}: {run:?}");
        for verb in ["status", "report", "history", "clean", "task add x"] {
            scratch.run(verb);
        }
        assert_eq!(fs::read_dir(&other).unwrap().count(), 0, "{name}");
        if name == ".ralph" {
            let run = Scratch::finish(scratch.ralph("prompt p.md 1 --ralph-dir").arg(&other));
            assert_eq!(run.code, Some(0), "who names the folder means it: {run:?}");
        }
    }
}

#[test]
fn what_is_written_where_the_user_points_goes_through_no_link() {
    let scratch = project("complete");
    assert_eq!(scratch.run("prompt p.md 1").code, Some(0));
    let mine = scratch.outside().join("mine");
    fs::create_dir(&mine).unwrap();
    let precious = mine.join("page.html");
    fs::write(&precious, "# precious\n").unwrap();
    symlink(&precious, scratch.path("page.html")).unwrap();
    symlink(&mine, scratch.path("docs")).unwrap();
    let refused = |args: &str| {
        let run = scratch.run(args);
        assert!(run.code == Some(1) && run.stderr.contains("symbolic link"), "{args}: {run:?}");
        assert_eq!(fs::read_to_string(&precious).unwrap(), "# precious\n", "{args}");
        assert_eq!(fs::read_dir(&mine).unwrap().count(), 1, "{args}");
    };
    for file in ["page.html", "docs/page.html", "docs/new.html"] {
        refused(&format!("report --html {file}"));
    }
    assert_eq!(scratch.run("report --html own.html").code, Some(0));
    symlink(&precious, scratch.path(".ralph/config")).unwrap();
    symlink(&precious, scratch.path("ralph.toml")).unwrap();
    for args in ["init --force --agent claude", "init --force ralph.toml", "init docs/RALPH.md"] {
        refused(args);
    }
}

#[test]
fn a_plan_that_is_a_link_out_of_the_project_is_not_written_through() {
    let project = BranchProject::without_remote(&plan(&[("one", 1)]));
    let scratch = &project.scratch;
    let (mine, link) = (scratch.outside().join("mine.md"), scratch.path("IMPLEMENTATION_PLAN.md"));
    fs::rename(&link, &mine).unwrap();
    symlink(&mine, &link).unwrap();
    let before = fs::read_to_string(&mine).unwrap();
    let run = scratch.run("loop build");
    assert!(run.code != Some(0) && run.stderr.contains("a symbolic link leads out of"), "{run:?}");
    assert_eq!(fs::read_to_string(&mine).unwrap(), before, "{run:?}");
}

#[test]
fn work_trees_are_not_made_where_a_committed_link_leads() {
    let scratch = project("complete");
    let other = scratch.outside().join("other");
    fs::create_dir(&other).unwrap();
    symlink(&other, scratch.path(".worktrees")).unwrap();
    scratch.git(&["add", "--force", ".worktrees"]);
    scratch.git(&["commit", "--quiet", "-m", "A link"]);
    scratch.write("IMPLEMENTATION_PLAN.md", "## Branch: a\nGoal: g\nStatus: planned\n- [ ] x\n");
    let run = scratch.run("loop build");
    assert!(run.code != Some(0) && run.stderr.contains("a symbolic link that is committed"), "{run:?}");
    assert_eq!(fs::read_dir(&other).unwrap().count(), 0);
}

#[test]
fn a_doctor_starts_nothing_that_the_project_brings_along() {
    for (config, args) in [
        ("AGENT_CLI=./evil\n", ""),
        ("export PATH=$PWD/bin:$PATH\n", ""),
        ("export START=$PWD/evil\n", ""),
        ("AGENT_TYPE=claude-acp\nAGENT_CLI=bash\nAGENT_ARGS=./evil\n", ""),
        ("AGENT_TYPE='acp:./evil'\n", ""),
        ("", "--agent=./evil"),
    ] {
        let scratch = Scratch::new();
        // As interpreters do for a variable of their own.
        scratch.agent("claude", "$START; [ \"$1\" != --version ] || echo 1.0");
        let root = scratch.root();
        executable(&root.join("evil"), "#!/bin/sh\ntouch \"$HOME/ran\"\necho 1.0\n");
        fs::create_dir(root.join("bin")).unwrap();
        for name in ["claude", "gh"] {
            fs::copy(root.join("evil"), root.join("bin").join(name)).unwrap();
        }
        scratch.write(".ralph/config", config.replace("$PWD", root.to_str().unwrap()));
        let run = scratch.run(&format!("doctor {args}"));
        assert!(!run.stdout.is_empty(), "{config}{args}: {run:?}");
        assert!(!scratch.home().join("ran").exists(), "{config}{args}: {run:?}");
        if !config.contains("START") {
            assert!(run.stdout.contains("not started"), "{config}{args}: {run:?}");
        }
    }
}

#[test]
fn a_log_that_a_state_names_is_read_only_among_the_runs_of_its_project() {
    let scratch = project("complete");
    assert_eq!(scratch.run("prompt p.md 1").code, Some(0));
    let state = scratch.read(".ralph/state.toml");
    let named = state.lines().find(|line| line.starts_with("session_log = ")).unwrap().to_owned();
    let secret = scratch.outside().join("secret.txt");
    fs::write(&secret, "precious\n").unwrap();
    let refused = |path: &Path| {
        for verb in ["logs --raw", "logs --raw prompt", "logs --agent"] {
            let run = scratch.run(verb);
            assert!(run.code == Some(1) && run.stdout.is_empty(), "{verb}: {run:?}");
            let said =
                format!("session log, {}: {}", path.display(), scratch.path(".ralph/state.toml").display());
            assert!(run.stderr.contains(&said) && run.stderr.contains("ralph history"), "{verb}: {run:?}");
        }
    };
    scratch.write(".ralph/state.toml", state.replace(&named, &format!("session_log = {secret:?}")));
    refused(&secret);
    scratch.write(".ralph/state.toml", state);

    // A copy shows its own log, where the original still has another one.
    let clone = copied(&scratch);
    let own = fs::read_dir(clone.join(".ralph/runs")).unwrap().next().unwrap().unwrap().path();
    let own = fs::read_dir(own).unwrap().map(|file| file.unwrap().path());
    let own = own.into_iter().find(|file| file.extension().is_some_and(|end| end == "log")).unwrap();
    fs::write(&own, "of the copy\n").unwrap();
    assert_eq!(run_in(&scratch, &clone, "logs --raw").stdout, "of the copy\n");

    // A folder on the way is a link.
    let elsewhere = scratch.outside().join("elsewhere");
    fs::rename(scratch.path(".ralph/runs"), &elsewhere).unwrap();
    symlink(&elsewhere, scratch.path(".ralph/runs")).unwrap();
    refused(Path::new(named.trim_start_matches("session_log = ").trim_matches('"')));
}

/// All below a folder but what is git's, with what tells that something was written there.
fn listing(folder: &Path) -> Vec<(PathBuf, u32, u64, i64, i64)> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(path) = open.pop() {
        let meta = path.symlink_metadata().unwrap();
        if meta.is_dir() {
            let entries = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path());
            open.extend(entries.filter(|path| !path.ends_with(".git")));
        }
        found.push((path, meta.mode(), meta.size(), meta.mtime(), meta.mtime_nsec()));
    }
    found.sort();
    found
}

#[test]
fn a_look_at_a_clone_writes_nothing_there() {
    let scratch = project("complete");
    assert_eq!(scratch.run("prompt p.md 1").code, Some(0));
    assert_eq!(scratch.run("task add first").code, Some(0));
    let clone = copied(&scratch);
    fs::set_permissions(clone.join(".ralph/progress.db"), fs::Permissions::from_mode(0o644)).unwrap();
    let home = scratch.outside().join("other home");
    fs::create_dir(&home).unwrap();
    let before = listing(&clone);
    for verb in [
        "",
        "status",
        "status --json",
        "ls",
        "report",
        "report --json",
        "history",
        "logs",
        "logs --agent",
        "logs --raw",
        "replay",
        "diff",
        "task list",
        "task list --ready",
        "task tree",
        "task graph",
        "task export",
        "feature list",
        "journal",
        "knowledge list",
        "config",
        "doctor",
    ] {
        let mut ralph = scratch.ralph(verb);
        let run = Scratch::finish(
            ralph.current_dir(&clone).env("HOME", &home).env("XDG_STATE_HOME", home.join("state")),
        );
        assert_eq!(listing(&clone), before, "{verb}: {run:?}");
        let shows_task = ["task list", "task tree", "task graph", "task export"].contains(&verb);
        assert!(!shows_task || run.code == Some(0) && run.stdout.contains("first"), "{verb}: {run:?}");
    }
    assert!(!home.join("state/ralph/user.key").exists());
    // What its user has written is kept in order by a look, as it was.
    fs::set_permissions(scratch.path(".ralph/progress.db"), fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!((scratch.run("task list").code, scratch.run("history").code), (Some(0), Some(0)));
    assert_eq!(scratch.path(".ralph/progress.db").metadata().unwrap().mode() & 0o777, 0o600);
    let summaries = listing(&scratch.path(".ralph/runs"));
    assert!(summaries.iter().any(|(path, ..)| path.ends_with("summary.json")), "{summaries:?}");
}

/// The user copies these commands into a shell.
#[test]
fn commands_in_messages_quote_the_names_of_branches_and_loops() {
    let scratch = project("complete");
    let name = "a$(touch x)b";
    let run = |args: &str| Scratch::finish(scratch.ralph(args).arg(name));
    assert_eq!(run("prompt p.md 1 --name").code, Some(0));
    let told = run("pause").stderr;
    assert!(told.contains("see 'ralph status 'a$(touch x)b''"), "{told}");
    assert_eq!(run("clean").code, Some(0));
    let told = run("logs").stderr;
    let commands = "'ralph report 'a$(touch x)b'' or 'ralph logs 'a$(touch x)b' --agent'";
    assert!(told.contains(commands), "{told}");

    let planned = BranchProject::without_remote(&plan(&[("a$(id)b", 1)]));
    let tree = planned.scratch.path(".worktrees/a$(id)b");
    planned.scratch.git(&["worktree", "add", "--quiet", "-b", "other", tree.to_str().unwrap()]);
    let told = planned.scratch.run("loop build").stdout;
    assert!(told.contains("then 'git switch 'a$(id)b'' in it"), "{told}");
}
