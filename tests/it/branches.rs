//! `ralph loop build`: branches side by side, from the plan to the pull request.

use crate::branch_project::{BranchProject, plan};
use crate::clean_worktrees::refs;

#[test]
fn every_branch_is_built_pushed_and_gets_a_pull_request() {
    let project = BranchProject::new(&plan(&[("one", 2), ("feature/two", 1)]));
    let scratch = &project.scratch;
    let before = (scratch.git(&["rev-parse", "HEAD"]), scratch.read("code.txt"));
    let run = scratch.run("loop build");
    assert_eq!(run.code, Some(0), "{run:?}");

    assert_eq!(project.commits("one"), ["Do 1 of one", "Do 2 of one"]);
    assert_eq!(project.commits("feature/two"), ["Do 1 of feature/two"]);
    for branch in ["one", "feature/two"] {
        assert_eq!(project.pushed(branch), Some(project.head(branch)));
        let tree = scratch.path(".worktrees").join(branch);
        assert!(tree.join(".ralph/lock").exists() && tree.join("IMPLEMENTATION_PLAN.md").exists());
        assert!(scratch.path(&BranchProject::state_file(branch)).exists());
        // Neither the plan's copy nor anything of ralph's is committed.
        let files = scratch.git(&["ls-tree", "-r", "--name-only", branch]);
        assert!(!files.contains("PLAN") && !files.contains("ralph"), "{files}");
    }
    let gh = project.home("gh");
    assert!(gh.contains("pr create --base master --head one --title Have one --body"), "{gh}");
    assert!(gh.contains("pr create --base master --head feature/two"), "{gh}");
    assert!(gh.contains("## Proof\n\nunchecked: the agent's word\n"), "{gh}");

    let plan = project.plan();
    assert_eq!(plan.matches("Status: done\nPR: https://example.com/pr/").count(), 2, "{plan}");
    assert!(
        !plan.contains("[ ]") && plan.starts_with("# Plan\n\n## Branch: one\nGoal: Have one\n"),
        "{plan}"
    );
    // The checkout of the user is as it was.
    assert_eq!((scratch.git(&["rev-parse", "HEAD"]), scratch.read("code.txt")), before);
    assert_eq!(scratch.git(&["branch", "--show-current"]), "master\n");
    assert_eq!(scratch.git(&["status", "--porcelain"]), "");
    for text in ["one", "feature/two", "done", "https://example.com/pr/1", "https://example.com/pr/2"] {
        assert!(run.stdout.contains(text), "{text}: {run:?}");
    }

    // What is done is not built again.
    let calls = project.home("calls");
    let again = scratch.run("loop build");
    assert_eq!((again.code, project.home("calls")), (Some(0), calls), "{again:?}");
    assert!(again.stdout.contains("All branches are done"), "{again:?}");
}

#[test]
fn what_loop_build_left_is_cleaned() {
    let project = BranchProject::without_remote(&plan(&[("one", 1), ("feature/two", 1), ("three", 1)]));
    let scratch = &project.scratch;
    let identity = "[git.worktree]\nname = \"Robot\"\nemail = \"robot@example.com\"\n";
    scratch.write("ralph.toml", identity);
    assert_eq!(scratch.run("loop build").code, Some(0));
    let plan = project.plan();
    scratch.write(".worktrees/three/notes", "mine");

    let run = scratch.run("clean --worktrees");
    assert!(run.code == Some(1) && run.stdout.contains("kept .worktrees/three:"), "{run:?}");
    assert!(!scratch.path(".worktrees/one").exists() && !scratch.path(".worktrees/feature").exists());
    let run = scratch.run("clean --worktrees three --force");
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{run:?}");
    let [keep] = &refs(scratch)[..] else { panic!("one ref: {run:?}") };
    let files = scratch.git(&["diff", "--name-only", "three", keep]);
    assert_eq!(files, "notes\n", "neither the plan nor anything of ralph's");

    assert_eq!(project.plan(), plan);
    assert_eq!(project.commits("feature/two"), ["Do 1 of feature/two"]);
}
