//! How ralph finds its project and its ralph dir, and that git never sees its run-time files.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::scratch::{Run, Scratch, claude_says};

/// A project whose agent tells, in the file `told`, where it runs and which ralph dir it was given.
fn project() -> Scratch {
    let scratch = Scratch::new();
    // A plan is proven by an open task, a build by none.
    let body = "echo \"$PWD $RALPH_HOME\" > \"$HOME/told\"; state=planned; grep -q '^# Build' && state=complete; \
                echo \"- Status: $state\" > \"$RALPH_HOME/implementation_plan.md\"";
    scratch.agent("claude", &format!("{body}\n{}", claude_says("<promise>COMPLETE</promise>")));
    scratch.write(".ralph/implementation_plan.md", "- Status: planned\n");
    // git keeps no empty folders.
    scratch.write("deep/er/keep", "");
    scratch.write("specs/keep", "");
    scratch
}

fn told(scratch: &Scratch) -> String {
    fs::read_to_string(scratch.outside().join("home/told")).unwrap().trim_end().to_owned()
}

/// Runs `program` with `args` in a folder; the agent has to find itself in `root` with the ralph dir `home`.
fn runs(scratch: &Scratch, program: &Path, args: &[&str], folder: &Path, root: &Path, home: &str) -> Run {
    let run = Scratch::finish(scratch.command(program).args(args).current_dir(folder));
    let case = format!("{} {args:?} in {}", program.display(), folder.display());
    assert_eq!(run.code, Some(0), "{case}: {run:?}");
    let root = root.canonicalize().unwrap();
    assert_eq!(told(scratch), format!("{} {home}", root.display()), "{case}");
    // A folder that is not ours alone gets a `.ralph`.
    let dir = if home == ".ralph" { root.join(home) } else { root.join(home).join(".ralph") };
    assert!(dir.join("state.toml").is_file(), "{case}: no state in {}", dir.display());
    run
}

fn ralph() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_ralph"))
}

/// The binary at another place; a link where that is possible, because it is large.
fn install(at: &Path) {
    fs::create_dir_all(at.parent().unwrap()).unwrap();
    // By another process: what another test starts meanwhile must not have it open for writing.
    if fs::hard_link(ralph(), at).is_err() {
        assert!(Command::new("cp").args([&ralph(), at]).status().unwrap().success());
    }
}

#[test]
fn from_the_root_a_subfolder_and_through_symlinks() {
    let scratch = project();
    let root = scratch.root();
    for folder in [root.clone(), root.join("deep"), root.join("deep/er")] {
        runs(&scratch, &ralph(), &["plan", "1"], &folder, &root, ".ralph");
    }
    let link = scratch.outside().join("link");
    symlink(root.join("deep"), &link).unwrap();
    runs(&scratch, &ralph(), &["build", "1"], &link, &root, ".ralph");

    let on_path = scratch.outside().join("bin/ralph");
    symlink(ralph(), on_path).unwrap();
    runs(&scratch, Path::new("ralph"), &["plan", "1"], &root.join("deep"), &root, ".ralph");
}

#[test]
fn a_prompt_file_is_looked_for_where_the_user_stands() {
    let scratch = project();
    scratch.write("deep/mine.md", "<promise>COMPLETE</promise>");
    let root = scratch.root();
    runs(&scratch, &ralph(), &["prompt", "mine.md"], &root.join("deep"), &root, ".ralph");
    runs(&scratch, &ralph(), &["prompt", "../p.md"], &root.join("deep"), &root, ".ralph");
}

#[test]
fn vendored_as_a_copy_and_through_a_symlink() {
    let scratch = project();
    let root = scratch.root();
    fs::rename(root.join(".ralph"), root.join("tools")).unwrap();
    scratch.write("tools/config", "AGENT_TYPE=claude\n");
    install(&root.join("tools/ralph"));
    runs(&scratch, &root.join("tools/ralph"), &["build", "1"], &root, &root, "tools");
    runs(&scratch, Path::new("../tools/ralph"), &["plan", "1"], &root.join("deep"), &root, "tools");
    symlink("tools/ralph", root.join("ralph")).unwrap();
    runs(&scratch, &root.join("ralph"), &["plan", "1"], &root.join("deep/er"), &root, "tools");
    assert!(!root.join(".ralph").exists());
}

#[test]
fn at_the_project_root() {
    let scratch = project();
    let root = scratch.root();
    fs::remove_dir_all(root.join(".ralph")).unwrap();
    scratch.write("config", "AGENT_TYPE=claude\n");
    scratch.write("prompts/plan.md", "Plan with ${RALPH_HOME}.");
    runs(&scratch, &ralph(), &["plan", "1"], &root.join("deep"), &root, ".");
    install(&root.join("ralph"));
    runs(&scratch, &root.join("ralph"), &["plan", "1"], &root, &root, ".");
    assert_eq!(scratch.git(&["status", "--porcelain", "--", ".ralph"]), "");
}

#[test]
fn a_ralph_dir_by_flag_and_by_environment() {
    let scratch = project();
    let root = scratch.root();
    runs(&scratch, &ralph(), &["plan", "1", "--ralph-dir", "deep/loop"], &root, &root, "deep/loop");
    runs(&scratch, &ralph(), &["--ralph-dir=../other", "plan", "1"], &root.join("deep"), &root, "other");

    let mut command = scratch.ralph("plan 1");
    let run = Scratch::finish(command.env("RALPH_DIR", "of env").current_dir(root.join("deep")));
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(told(&scratch).ends_with("/project deep/of env"), "{}", told(&scratch));

    let mut command = scratch.ralph("plan 1 --ralph-dir flag");
    let run = Scratch::finish(command.env("RALPH_DIR", "of env"));
    assert_eq!(run.code, Some(0), "the flag wins: {run:?}");
    assert!(told(&scratch).ends_with("/project flag"), "{}", told(&scratch));

    let outside = scratch.outside().canonicalize().unwrap().join("far");
    let home = outside.to_str().unwrap();
    runs(&scratch, &ralph(), &["plan", "1", "--ralph-dir", home], &root, &root, home);
}

#[test]
fn a_linked_work_tree_has_a_ralph_dir_of_its_own() {
    let scratch = project();
    scratch.git(&["add", "-A"]);
    scratch.git(&["commit", "--quiet", "-m", "first"]);
    scratch.git(&["worktree", "add", "--quiet", "../tree"]);
    let tree = scratch.outside().join("tree");
    assert!(tree.join(".git").is_file());
    runs(&scratch, &ralph(), &["plan", "1"], &tree, &tree, ".ralph");
    runs(&scratch, &ralph(), &["plan", "1"], &tree.join("deep"), &tree, ".ralph");
    assert_eq!(clean_status(&scratch, &tree), "");
    assert!(!scratch.path(".ralph/state.toml").exists(), "the main work tree is not concerned");

    fs::remove_dir_all(scratch.path(".git/worktrees")).unwrap();
    let run = Scratch::finish(scratch.ralph("plan 1").current_dir(&tree));
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.stderr.contains("git worktree repair"), "{run:?}");
}

#[test]
fn a_submodule_is_a_project_of_its_own() {
    let scratch = project();
    let other = project();
    other.git(&["add", "-A"]);
    other.git(&["commit", "--quiet", "-m", "first"]);
    let url = other.root();
    scratch.git(&[
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "add",
        url.to_str().unwrap(),
        "deep/module",
    ]);
    let module = scratch.path("deep/module");
    assert!(module.join(".git").is_file());
    runs(&scratch, &ralph(), &["plan", "1"], &module, &module, ".ralph");
    assert_eq!(clean_status(&scratch, &module), "");
}

#[test]
fn an_empty_git_folder_does_not_count() {
    let scratch = project();
    fs::create_dir(scratch.path("deep/.git")).unwrap();
    runs(&scratch, &ralph(), &["plan", "1"], &scratch.path("deep"), &scratch.root(), ".ralph");
}

/// What git shows in `root` before and after `git add -A`.
fn clean_status(scratch: &Scratch, root: &Path) -> String {
    let git = |args: &[&str]| {
        let output = scratch.command("git").args(args).current_dir(root).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let before = git(&["status", "--porcelain", "--untracked-files=all"]);
    git(&["add", "-A"]);
    before + &git(&["diff", "--cached", "--name-only"])
}

#[test]
fn git_never_sees_what_a_loop_writes() {
    let scratch = project();
    scratch.git(&["add", "-A"]);
    scratch.git(&["commit", "--quiet", "-m", "first"]);
    let commits = "git add -A && git commit --quiet --allow-empty -m 'by the agent'";
    scratch.agent("claude", &format!("{commits}\n{}", claude_says("more")));
    for args in ["plan 2", "build 2", "prompt p.md 1", "prompt p.md 1 --ralph-dir deep/[x]"] {
        let run = scratch.run(args);
        assert_eq!(run.code, Some(0), "{args}: {run:?}");
        assert_eq!(clean_status(&scratch, &scratch.root()), "", "{args}");
    }
    scratch.agent("claude", "exit 1");
    assert_eq!(scratch.run("plan 1 --max-retries 1").code, Some(4));
    assert_eq!(clean_status(&scratch, &scratch.root()), "", "after a failure");
    let committed = scratch.git(&["ls-files"]);
    assert!(!committed.contains("logs/") && !committed.contains("state.toml"), "{committed}");
    let exclude = scratch.read(".git/info/exclude");
    assert_eq!(exclude.matches("\n/.ralph/lock\n").count(), 1, "entered once: {exclude}");
}

#[test]
fn an_agent_works_on_the_project_whatever_repository_the_environment_names() {
    let scratch = Scratch::new();
    let commit = "git commit --quiet --allow-empty -m 'of the agent'";
    scratch.agent("claude", &format!("{commit}\n{}", claude_says("<promise>COMPLETE</promise>")));
    let other = scratch.outside().join("other");
    scratch.git(&["init", "--quiet", other.to_str().unwrap()]);
    scratch.git(&["-C", other.to_str().unwrap(), "commit", "--quiet", "--allow-empty", "-m", "mine"]);
    let log = |folder: &Path| scratch.git(&["-C", folder.to_str().unwrap(), "log", "--all", "--format=%s"]);

    let mut ralph = scratch.ralph("prompt p.md");
    let of = |name: &str| other.join(".git").join(name);
    ralph.env("GIT_DIR", of("")).env("GIT_WORK_TREE", &other).env("GIT_INDEX_FILE", of("index"));
    ralph.env("GIT_OBJECT_DIRECTORY", of("objects")).env("GIT_COMMON_DIR", of("")).env("GIT_NAMESPACE", "n");
    let run = Scratch::finish(&mut ralph);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!((log(&scratch.root()).as_str(), log(&other).as_str()), ("of the agent\n", "mine\n"));
}
