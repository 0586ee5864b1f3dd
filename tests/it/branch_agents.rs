//! Agents of branches that break the rules.

use std::fs;

use crate::branch_project::{BranchProject, plan};

#[test]
fn what_is_committed_elsewhere_is_not_taken_for_the_branchs() {
    let project = BranchProject::new(&plan(&[("switches", 1), ("detaches", 1), ("good", 1)]));
    project.agent(
        "case $RALPH_BRANCH in
           switches) git checkout --quiet -b stray ;;
           detaches) git checkout --quiet --detach ;;
         esac
         work; end",
    );
    let run = project.scratch.run("loop build");
    assert_eq!(run.code, Some(5), "{run:?}");
    for text in ["switches is on the branch 'stray', not on 'switches'", "detaches is on no branch"] {
        assert!(run.stdout.contains(text), "{text}: {run:?}");
    }
    assert_eq!(project.plan().matches("Status: done").count(), 1);
    assert_eq!((project.pushed("switches"), project.pushed("stray")), (None, None));

    // After it was fixed by hand, nothing is built again.
    let tree = project.scratch.path(".worktrees/switches");
    project.scratch.git(&["-C", tree.to_str().unwrap(), "checkout", "--quiet", "-B", "switches", "stray"]);
    let calls = project.calls("switches");
    assert_eq!(project.scratch.run("loop build").code, Some(5));
    assert_eq!(
        (project.calls("switches"), project.pushed("switches")),
        (calls, Some(project.head("switches")))
    );
}

#[test]
fn an_agent_whose_work_tree_is_gone_never_works_on_the_users_checkout() {
    let project = BranchProject::without_remote(&plan(&[("gone", 3), ("good", 1)]));
    project.agent(
        "[ $RALPH_BRANCH = good ] || { rm -rf .git; touch x; git add -A; git commit --quiet -m astray; }
             work; say more; result",
    );
    let before = project.scratch.git(&["log", "--format=%H", "master"]);
    let run = project.scratch.run("loop build -m 2");
    assert_eq!(run.code, Some(5), "{run:?}");
    assert!(run.stdout.contains("is no work tree any more"), "{run:?}");
    assert_eq!(project.calls("gone"), 1);
    assert_eq!(project.scratch.git(&["log", "--format=%H", "master"]), before);
    assert_eq!(project.scratch.git(&["status", "--porcelain"]), "");
}

#[test]
fn a_work_tree_that_is_gone_as_a_whole_is_told_as_that() {
    let project = BranchProject::without_remote(&plan(&[("gone", 3)]));
    project.agent("rm -rf \"$PWD\"; cd /; say more; result");
    let run = project.scratch.run("loop build -m 2");
    assert_eq!(run.code, Some(5), "{run:?}");
    assert!(run.stdout.contains("is no work tree any more"), "{run:?}");
    assert_eq!(project.calls("gone"), 1);
}

#[test]
fn an_agent_that_tidies_up_takes_nothing_that_is_needed() {
    let project = BranchProject::without_remote(&plan(&[("one", 2)]));
    project.agent("work; git clean --quiet -ffdx -e IMPLEMENTATION_PLAN.md; end");
    let run = project.scratch.run("loop build");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(project.commits("one").len(), 2);
    assert_eq!(project.state("one")["exit_reason"].as_str(), Some("complete"));
}

#[test]
fn a_garbage_copy_of_the_plan_is_restored() {
    let project = BranchProject::without_remote(&plan(&[("one", 1), ("two", 1)]));
    project.agent(r"work; [ $RALPH_BRANCH$RALPH_ITERATION != one1 ] || printf '\377\376```' > $plan; end");
    let run = project.scratch.run("loop build");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stderr.contains("was lost or torn; it is restored"), "{run:?}");
    assert_eq!(project.plan().matches("Status: done").count(), 2);
}

#[test]
fn a_branch_that_cannot_be_marked_as_done_is_marked_by_the_next_build_without_an_agent() {
    let project = BranchProject::without_remote(&plan(&[("one", 1)]));
    let path = project.scratch.path("IMPLEMENTATION_PLAN.md");
    project.agent(&format!("work; rm -f {0}; mkdir {0}; end", path.display()));
    let run = project.scratch.run("loop build");
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.stdout.contains("it is done but could not be marked so"), "{run:?}");
    fs::remove_dir(path).unwrap();
    project.scratch.write("IMPLEMENTATION_PLAN.md", plan(&[("one", 1)]));
    let run = project.scratch.run("loop build");
    assert_eq!((run.code, project.calls("one")), (Some(0), 1), "{run:?}");
    assert!(project.plan().contains("Status: done"));
}

#[test]
fn a_lock_that_a_killed_git_left_is_told_to_the_next_agent_and_never_deleted() {
    let project = BranchProject::without_remote(&plan(&[("one", 2)]));
    project.agent(
        r#"lock=$(git rev-parse --git-dir)/index.lock
           if [ $RALPH_ITERATION = 1 ]; then work; touch "$lock"; else rm "$lock"; work; fi; end"#,
    );
    let run = project.scratch.run("loop build");
    assert_eq!((run.code, project.commits("one").len()), (Some(0), 2), "{run:?}");
    assert!(run.stderr.contains("index.lock was left behind by a git that was killed"), "{run:?}");
    let (first, second) = (project.home("prompt-one-1"), project.home("prompt-one-2"));
    assert!(second.contains("## A lock that was left behind") && !first.contains("left behind"), "{second}");
}

#[test]
fn every_lock_that_keeps_the_next_agent_from_committing_is_told() {
    for lock in
        ["$(git rev-parse --git-dir)/HEAD.lock", "$(git rev-parse --git-common-dir)/refs/heads/one.lock"]
    {
        let project = BranchProject::without_remote(&plan(&[("one", 2)]));
        project.agent(&format!(
            r#"if [ $RALPH_ITERATION = 1 ]; then work; touch "{lock}"; else rm "{lock}"; work; fi; end"#
        ));
        let run = project.scratch.run("loop build");
        assert_eq!((run.code, project.commits("one").len()), (Some(0), 2), "{lock}: {run:?}");
        let second = project.home("prompt-one-2");
        assert!(second.contains("## A lock that was left behind\n\nThe file `/"), "{lock}: {second}");
        assert!(!project.home("prompt-one-1").contains("left behind") && !second.contains("/../"), "{lock}");
    }
    let project = BranchProject::without_remote(&plan(&[("one", 2)]));
    project.agent(
        r#"locks="$(git rev-parse --git-dir)/HEAD.lock $(git rev-parse --git-dir)/index.lock"
           if [ $RALPH_ITERATION = 1 ]; then work; touch $locks; else rm $locks; work; fi; end"#,
    );
    assert_eq!(project.scratch.run("loop build").code, Some(0));
    let second = project.home("prompt-one-2");
    assert!(second.contains("index.lock` and `/") && second.contains("HEAD.lock` are left"), "{second}");
}
