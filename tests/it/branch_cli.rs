//! The command line of `ralph loop`, and where it can be used: one clear line, exit 1 (2 without a plan), nothing changed.

use std::fs;

use crate::bad_input::{refuses, refuses_with};
use crate::branch_project::{BranchProject, plan};
use crate::scratch::Scratch;

/// One branch without anything to push to.
fn project() -> BranchProject {
    BranchProject::without_remote(&plan(&[("one", 3)]))
}

#[test]
fn the_command_line() {
    let project = project();
    for (args, words) in [
        ("loop biuld", &["'biuld'", "'build'", "'ralph loop --help'"][..]),
        ("loop build --jsn", &["'--jsn'", "'--json'", "'ralph loop build --help'"]),
        (
            "loop plan --jobs 2",
            &["--jobs belongs to 'ralph run', 'ralph loop build'", "'ralph loop plan --help'"],
        ),
        ("loop plan --dry-run", &["--dry-run belongs to", "'ralph loop build'"]),
        ("loop --name x", &["--name", "after its branch"]),
        ("loop build extra", &["'extra'"]),
        ("loop build 5 -n 6", &["--max-iterations", "multiple"]),
        ("loop build -m", &["--max-iterations"]),
        ("loop build -m 0", &["--max-iterations 0", "from 1"]),
        ("loop build -m -3", &["--max-iterations -3", "from 1"]),
        ("loop build -m abc", &["--max-iterations abc", "from 1"]),
        ("loop plan --max 1.5", &["--max-iterations 1.5", "from 1"]),
        ("loop build -m 1 --max 2", &["--max-iterations", "multiple"]),
        ("loop build --unlimited -m 2", &["--unlimited", "--max-iterations"]),
        ("loop plan --max 2 --unlimited", &["--unlimited", "--max-iterations"]),
        ("loop build --jobs 0", &["--jobs 0", "from 1"]),
        ("loop build --jobs -1", &["--jobs -1", "from 1"]),
        ("loop build -j many", &["--jobs many", "from 1"]),
        ("loop build --sequential --jobs 2", &["--sequential", "--jobs"]),
        ("loop build --name x", &["--name", "after its branch"]),
        ("loop build --agent cluade", &["'cluade'", "claude, claude-acp, cline"]),
        ("loop build -p nowhere.md", &["nowhere.md"]),
        ("loop plan --prompt nowhere.md", &["nowhere.md"]),
        ("loop build --max-errors many", &["--max-errors", "many"]),
    ] {
        refuses(&project.scratch, args, words);
    }
    assert_eq!(project.calls("one"), 0);
}

#[test]
fn the_agent_is_looked_at_before_the_plan() {
    let project = project();
    fs::remove_file(project.scratch.path("IMPLEMENTATION_PLAN.md")).unwrap();
    for args in ["loop build --agent nope", "loop build --agent nope --dry-run", "loop --agent nope"] {
        refuses(&project.scratch, args, &["'nope'", "claude-acp"]);
    }
    refuses_with(2, &project.scratch, "loop build", &["Implementation plan not found"]);
}

#[test]
fn what_a_limit_is_called_and_where_it_stands_does_not_matter() {
    for args in [
        "loop build -m 2",
        "loop build -n 2",
        "loop build 2",
        "2 loop build",
        "loop build --max 2",
        "loop build --max-iterations=2",
        "loop -m 2 build",
        "-m 2 loop build",
        "--max 2 --jobs 3 loop --agent claude build --quiet",
    ] {
        let project = project();
        let run = project.scratch.run(args);
        assert_eq!((run.code, project.calls("one")), (Some(0), 2), "{args}: {run:?}");
        assert!(run.stdout.contains("max iterations reached"), "{args}: {run:?}");
    }
}

#[test]
fn without_a_limit_it_goes_on_to_the_end() {
    let project = BranchProject::without_remote(&plan(&[("one", 23)]));
    let run = project.scratch.run("loop build --unlimited");
    assert_eq!((run.code, project.calls("one")), (Some(0), 23), "{run:?}");
}

#[test]
fn the_agent_is_the_flags_then_the_environments_then_the_settings() {
    let project = project();
    project.scratch.write("ralph.toml", "[agent]\nprovider = \"from-toml\"\n");
    for (args, env, word) in [
        ("loop build --agent from-flag", Some("from-env"), "'from-flag'"),
        ("loop build", Some("from-env"), "'from-env'"),
        ("loop build", None, "'from-toml'"),
        ("loop plan", None, "'from-toml'"),
    ] {
        let mut command = project.scratch.ralph(args);
        let run = Scratch::finish(command.envs(env.map(|value| ("RALPH_AGENT_TYPE", value))));
        assert_eq!(run.code, Some(1), "{args}: {run:?}");
        assert!(run.stderr.contains(word) && run.stderr.lines().count() == 1, "{args}: {run:?}");
    }
}

#[test]
fn settings_with_a_fault() {
    let project = project();
    for (text, words) in [
        ("[git]\nauto_push = \"yes\"\n", &["ralph.toml", "line 2", "auto_push"][..]),
        ("[git]\n\nprotected_branches = 3\n", &["ralph.toml", "line 3", "protected_branches"]),
        ("[git]\nauto_psh = true\n", &["ralph.toml", "line 2", "auto_psh", "auto_push"]),
        ("[git.worktree]\nmail = \"a@b\"\n", &["ralph.toml", "line 2", "mail"]),
        ("[git.worktree]\nname = 3\n", &["ralph.toml", "line 2", "name"]),
        ("[loop]\nmax_iterations = \"many\"\n", &["ralph.toml", "line 2", "max_iterations"]),
        ("[git\n", &["ralph.toml", "line 1"]),
    ] {
        project.scratch.write("ralph.toml", text);
        for verb in ["loop build", "loop plan"] {
            refuses(&project.scratch, verb, words);
        }
    }
}

#[test]
fn a_plan_that_is_missing_or_empty() {
    let project = project();
    let scratch = &project.scratch;
    scratch.write("IMPLEMENTATION_PLAN.md", "# Plan\n\n- [ ] A task without a branch\n");
    refuses(scratch, "loop build", &["IMPLEMENTATION_PLAN.md", "## Branch: NAME"]);
    fs::remove_file(scratch.path("IMPLEMENTATION_PLAN.md")).unwrap();
    refuses_with(2, scratch, "loop build", &["ralph loop plan"]);
    refuses_with(2, scratch, "loop build --dry-run", &["ralph loop plan"]);
}

#[test]
fn where_there_is_no_repository_or_no_commit() {
    let scratch = Scratch::new();
    scratch.agent("claude", "exit 1");
    scratch.write("IMPLEMENTATION_PLAN.md", plan(&[("one", 1)]).replace("Base: master\n", ""));
    // Nothing is committed yet.
    refuses(&scratch, "loop build", &["no commit yet", "'Base:'"]);
    refuses(&scratch, "loop build --dry-run", &["no commit yet", "'Base:'"]);
    fs::remove_dir_all(scratch.path(".git")).unwrap();
    for args in ["loop build", "loop plan", "loop build --dry-run"] {
        refuses(&scratch, args, &["not a git repository", "git init"]);
    }
}

#[test]
fn the_work_tree_of_a_branch_is_no_place_for_it() {
    let project = project();
    let run = project.scratch.run("loop build -m 1");
    assert_eq!(run.code, Some(0), "{run:?}");
    for args in ["loop build", "loop plan", "loop build --dry-run"] {
        let mut command = project.scratch.ralph(args);
        let run = Scratch::finish(command.current_dir(project.scratch.path(".worktrees/one")));
        assert_eq!(run.code, Some(1), "{args}: {run:?}");
        let root = project.scratch.root();
        for word in ["is the work tree of a branch", &format!("run this in {}", root.display())] {
            assert!(run.stderr.contains(word) && run.stderr.lines().count() == 1, "{args}: {run:?}");
        }
    }
    assert_eq!(project.calls("one"), 1);
}

#[test]
fn help_names_every_option_and_example() {
    let scratch = Scratch::new();
    for (args, words) in [
        ("loop --help", &["plan", "build", "Usage: ralph loop", "ralph loop build --dry-run"][..]),
        ("loop plan --help", &["Usage: ralph loop plan", "-m", "--unlimited", "--prompt"]),
        ("loop build --help", &["Usage: ralph loop build", "--jobs", "--sequential", "--dry-run", "--agent"]),
        ("help loop", &["plan", "build"]),
        ("help loop build", &["--sequential"]),
    ] {
        let run = scratch.run(args);
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{args}: {run:?}");
        for word in words {
            assert!(run.stdout.contains(word), "{args}: {word}: {}", run.stdout);
        }
    }
    let build = scratch.run("loop build --help").stdout;
    assert!(!build.contains("--name") && !build.contains("--resume"), "{build}");
}

#[test]
fn manual_and_completions_know_the_verbs_below_loop() {
    let scratch = Scratch::new();
    let man = scratch.run("man").stdout;
    for word in [".SH RALPH LOOP PLAN", ".SH RALPH LOOP BUILD", "\\-\\-sequential", "\\-\\-unlimited"] {
        assert!(man.contains(word), "{word}");
    }
    for shell in ["elvish", "powershell"] {
        let script = scratch.run(&format!("completions {shell}")).stdout;
        for word in ["sequential", "unlimited", "jobs"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
}
