//! The bases of branches.

use crate::branch_project::{BranchProject, plan};
use crate::scratch::{Started, wait_for};

fn section(name: &str, base: &str) -> String {
    format!("## Branch: {name}\nGoal: Have {name}\n{base}- [ ] Do {name}\n\n")
}

#[test]
fn a_branch_on_another_waits_for_it_and_starts_from_its_end() {
    let text = section("top", "Base: middle\n") + &section("middle", "Base: low\n") + &section("low", "");
    let project = BranchProject::new(&text);
    let run = project.scratch.run("loop build");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(project.commits("top"), ["Do low", "Do middle", "Do top"]);
    let order: Vec<String> =
        project.home("calls").lines().map(|line| line.split(' ').next().unwrap().into()).collect();
    assert_eq!(order, ["low", "middle", "top"]);
    let gh = project.home("gh");
    for (base, branch) in [("master", "low"), ("low", "middle"), ("middle", "top")] {
        assert!(gh.contains(&format!("--base {base} --head {branch} ")), "{gh}");
    }
    assert!(
        run.stdout.lines().any(|line| line.starts_with("top ") && line.contains(" 1 ")),
        "own commits: {run:?}"
    );
}

#[test]
fn a_branch_on_one_that_is_not_done_is_not_started() {
    let project = BranchProject::without_remote(&(section("low", "") + &section("top", "Base: low\n")));
    project.agent("work; say more; result");
    let run = project.scratch.run("loop build -m 1");
    assert!(run.code == Some(0) && run.stdout.contains("waiting for low"), "{run:?}");
    assert!(project.calls("top") == 0 && !project.scratch.path(".worktrees/top").exists());
    project.agent("work; end");
    assert_eq!(project.scratch.run("loop build").code, Some(0));
    assert_eq!(project.commits("top"), ["Do low", "Do top"]);
}

#[test]
fn a_base_is_a_branch_here_or_there_a_tag_or_a_commit() {
    let project = BranchProject::new("");
    let scratch = &project.scratch;
    scratch.git(&["checkout", "--quiet", "-b", "there"]);
    scratch.git(&["commit", "--quiet", "--allow-empty", "--message", "There"]);
    scratch.git(&["push", "--quiet", "origin", "there"]);
    scratch.git(&["tag", "v1"]);
    scratch.git(&["checkout", "--quiet", "master"]);
    scratch.git(&["branch", "--quiet", "-D", "there"]);
    let id = scratch.git(&["rev-parse", "master"]);
    let text = section("a", "Base: there\n")
        + &section("b", "Base: `v1`\n")
        + &section("c", &format!("Base: {id}"))
        + &section("d", "Base: origin/there\n")
        + &section("e", "");
    scratch.write("IMPLEMENTATION_PLAN.md", text);
    let run = scratch.run("loop build");
    assert_eq!(run.code, Some(0), "{run:?}");
    for (branch, commits) in [
        ("a", vec!["There", "Do a"]),
        ("b", vec!["There", "Do b"]),
        ("c", vec!["Do c"]),
        ("d", vec!["There", "Do d"]),
    ] {
        assert_eq!(project.commits(branch), commits, "{branch}");
    }
    let gh = project.home("gh");
    for (base, branch) in [("there", "a"), ("there", "d"), ("master", "e")] {
        assert!(gh.contains(&format!("--base {base} --head {branch} ")), "{branch}: {gh}");
    }
    // A tag or a bare commit cannot be merged into.
    assert!(!gh.contains("--head b ") && !gh.contains("--head c "), "{gh}");
    assert!(run.stdout.contains("b, c: no pull request: its base is no branch"), "{run:?}");
}

#[test]
fn without_a_base_the_setting_counts_then_master_then_the_current_branch() {
    let project = BranchProject::without_remote(&plan(&[]));
    let scratch = &project.scratch;
    scratch.git(&["branch", "--quiet", "--move", "master", "trunk"]);
    scratch.write("IMPLEMENTATION_PLAN.md", section("a", ""));
    assert!(scratch.run("loop build --dry-run").stdout.contains("a from trunk:"));
    scratch.git(&["branch", "master"]);
    assert!(scratch.run("loop build --dry-run").stdout.contains("a from master:"));
    scratch.git(&["branch", "next"]);
    scratch.write("ralph.toml", "[git]\npr_base = 'next'\n");
    assert!(scratch.run("loop build --dry-run").stdout.contains("a from next:"));
    scratch.write("ralph.toml", "[git]\npr_base = 'gone'\n");
    let run = scratch.run("loop build");
    assert!(run.code == Some(1) && run.stderr.contains("fix git.pr_base"), "{run:?}");
}

#[test]
fn only_the_named_branches_are_built_with_what_they_start_from() {
    let text = section("low", "") + &section("top", "Base: low\n") + &section("other", "");
    let project = BranchProject::without_remote(&text);
    let dry = project.scratch.run("loop build top --dry-run").stdout;
    assert!(dry.contains("2 of 3 branches would be built") && !dry.contains("Have other"), "{dry}");
    let run = project.scratch.run("loop build top");
    assert!(run.code == Some(0) && !run.stdout.contains("other"), "{run:?}");
    for verb in ["report", "report --json", "history", "history --json"] {
        let told = project.scratch.run(verb).stdout;
        assert!(!told.contains("other") && !told.contains("queued"), "it was not asked for: {told}");
    }
    assert_eq!((project.calls("low"), project.calls("top"), project.calls("other")), (1, 1, 0));
    let run = project.scratch.run("loop build low");
    assert!(run.code == Some(0) && run.stdout.contains("These branches are done"), "{run:?}");
    let run = project.scratch.run("loop build othr");
    let said = "has no branch 'othr': did you mean 'other'? it has low, top, other";
    assert!(run.code == Some(1) && run.stderr.contains(said), "{run:?}");
}

#[test]
fn resume_goes_on_with_the_branch_that_it_names_alone() {
    let project = BranchProject::without_remote(&plan(&[("one", 2), ("two", 2)]));
    project.agent(
        "touch \"$HOME/held-$RALPH_BRANCH\"; while [ ! -e \"$HOME/go\" ]; do sleep 0.02; done; work; end",
    );
    let ralph = Started::new(&project.scratch, "loop build");
    for branch in ["one", "two"] {
        let held = project.home_path(&format!("held-{branch}"));
        wait_for("the agents", || held.exists().then_some(()));
    }
    drop(ralph); // kill -9
    project.scratch.await_nothing_left();
    std::fs::write(project.home_path("go"), "").unwrap();
    let run = project.scratch.run("resume two");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!((project.commits("one").len(), project.commits("two").len()), (0, 2));
    let report = project.scratch.run("report").stdout;
    assert!(!report.contains(" one ") && report.ends_with("\nNext: ralph diff two\n"), "{report}");
    let run = project.scratch.run("resume");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(project.commits("one").len(), 2);
}
