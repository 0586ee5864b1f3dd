//! Files of git that would block git are reported at once, and so is a project that was moved.

use std::fs;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::branch_project::{BranchProject, plan};
use crate::scratch::{Scratch, claude_says};

/// Puts something in the place of a file.
fn put(kind: &str, path: &Path) {
    let _ = fs::remove_file(path).or_else(|_| fs::remove_dir_all(path));
    match kind {
        "a FIFO" => assert!(Command::new("mkfifo").arg(path).status().unwrap().success()),
        "a socket" => drop(UnixListener::bind(path).unwrap()),
        "a device" => std::os::unix::fs::symlink("/dev/tty", path).unwrap(),
        _ => panic!("{kind}"),
    }
}

const VERBS: [&str; 7] =
    ["prompt p.md 1", "run fix -n 1", "loop build", "loop plan", "clean --worktrees", "revert", "init"];

/// Every verb that uses git in `folder` names the file, and does so at once; the others are not held either.
fn assert_named(scratch: &Scratch, folder: &Path, name: &str, kind: &str) {
    let at = |verb: &str| {
        let run = Scratch::finish(scratch.ralph(verb).current_dir(folder));
        assert!(run.elapsed < Duration::from_secs(5), "{verb}, {name}: {run:?}");
        run
    };
    for verb in VERBS {
        let run = at(verb);
        let said = format!("{name}: it is {kind}, not a file: move it away");
        assert!(run.code == Some(1) && run.stderr.contains(&said), "{verb}, {name}: {run:?}");
    }
    assert!(at("doctor").stdout.contains(&format!("{name}: it is {kind}")), "{name}");
    for verb in ["ls", "status", "config", "loop build --dry-run"] {
        at(verb);
    }
}

fn project() -> Scratch {
    let scratch = Scratch::new();
    scratch.agent("claude", &claude_says("<promise>COMPLETE</promise>"));
    scratch.write("fix/RALPH.md", "---\nagent: claude -p\n---\nDo it.\n");
    scratch.git(&["add", "p.md", "fix"]);
    scratch.git(&["commit", "--quiet", "-m", "Begin"]);
    assert_eq!(scratch.run("prompt p.md 1").code, Some(0));
    scratch
}

#[test]
fn what_would_hold_git_is_named_at_once() {
    for (kind, names) in [
        ("a FIFO", &[".git", ".git/HEAD", ".git/config", ".git/commondir", ".git/index"][..]),
        ("a socket", &[".git", ".git/HEAD"]),
        ("a device", &[".git", ".git/HEAD", ".git/config"]),
    ] {
        for name in names {
            let scratch = project();
            put(kind, &scratch.path(name));
            assert_named(&scratch, &scratch.root(), name, kind);
        }
    }
}

#[test]
fn what_would_hold_git_in_a_linked_work_tree_is_named_at_once() {
    for name in ["worktrees/other/HEAD", "worktrees/other/commondir", "worktrees/other/gitdir", "config"] {
        let scratch = project();
        scratch.git(&["worktree", "add", "--quiet", "-b", "other", "../other"]);
        let other = scratch.outside().join("other");
        let run = Scratch::finish(scratch.ralph("prompt p.md 1").current_dir(&other));
        assert_eq!(run.code, Some(0), "{run:?}");
        put("a FIFO", &scratch.path(&format!(".git/{name}")));
        assert_named(&scratch, &other, name.rsplit('/').next().unwrap(), "a FIFO");
    }
}

#[test]
fn a_project_that_was_moved_is_told_how_its_work_trees_are_kept() {
    let project = BranchProject::without_remote(&plan(&[("one", 2), ("feature/two", 2)]));
    let scratch = &project.scratch;
    project.agent("work; echo mine > staged; git add staged; rm staged; echo mine > new; exit 1");
    scratch.run("loop build --max-iterations 1");
    let moved = scratch.outside().join("moved, away");
    fs::rename(scratch.root(), &moved).unwrap();
    let build = || Scratch::finish(scratch.ralph("loop build").current_dir(&moved));

    project.agent("work; end");
    let run = build();
    assert_eq!(run.code, Some(5), "{run:?}");
    assert!(!run.stderr.contains("prune"), "{run:?}");
    let (_, command) = run.stderr.split_once("tell git with '").unwrap_or_else(|| panic!("{run:?}"));
    let command = command.split_once("' and start again").unwrap().0;
    // Follows its advice, from any folder.
    let repair = Scratch::finish(scratch.command("sh").args(["-c", command]).current_dir("/"));
    assert_eq!(repair.code, Some(0), "{command}: {repair:?}");
    for branch in ["one", "feature/two"] {
        let tree = moved.join(".worktrees").join(branch);
        let mut status = scratch.command("git");
        let status = Scratch::finish(status.args(["status", "--porcelain"]).current_dir(&tree));
        assert!(status.stdout.contains("AD staged\n") && status.stdout.contains("?? new\n"), "{status:?}");
    }
    let run = build();
    assert_eq!(run.code, Some(0), "{run:?}");
}

#[test]
fn a_committed_link_does_not_lead_a_branch_out_of_its_work_tree() {
    let project = BranchProject::without_remote(&plan(&[("one", 1)]));
    let scratch = &project.scratch;
    let elsewhere = scratch.outside().join("elsewhere/.ralph");
    fs::create_dir_all(&elsewhere).unwrap();
    for target in [scratch.path(".ralph"), elsewhere.clone(), scratch.outside().join("nowhere/.ralph")] {
        scratch.git(&["checkout", "--quiet", "-B", "one", "master"]);
        let _ = fs::remove_dir_all(scratch.path(".ralph"));
        std::os::unix::fs::symlink(&target, scratch.path(".ralph")).unwrap();
        scratch.git(&["add", "--force", ".ralph"]);
        scratch.git(&["commit", "--quiet", "-m", "A link"]);
        scratch.git(&["checkout", "--quiet", "master"]);
        let _ = fs::remove_file(scratch.path(".ralph"));
        scratch.write(".ralph/state.toml", "mine");
        scratch.write(".ralph/logs/session-1.log", "mine");

        let run = scratch.run("loop build");
        let said = format!(
            "{}: it is a symbolic link, and ralph's files would lie where it leads",
            scratch.path(".worktrees/one/.ralph").display()
        );
        assert!(run.code == Some(1) && run.stderr.contains(&said), "{target:?}: {run:?}");
        assert_eq!(project.calls("one"), 0);
        let run = scratch.run("clean --worktrees one --force");
        assert!(run.code == Some(1) && run.stdout.contains(&said), "{target:?}: {run:?}");
        // The project's own records, and those elsewhere, are as they were.
        assert_eq!(scratch.read(".ralph/state.toml"), "mine", "{target:?}");
        assert_eq!(scratch.read(".ralph/logs/session-1.log"), "mine", "{target:?}");
        assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0, "{target:?}");
        assert!(!scratch.outside().join("nowhere").exists());
        scratch.git(&["worktree", "remove", "--force", ".worktrees/one"]);
    }
}
