//! Pushing, pull requests, and reports about what was not done.

use std::fs;

use crate::branch_project::{BranchProject, plan};
use crate::scratch::{Run, await_end, executable, finish, process_in, wait_for};

/// Puts a hook into the bare repository.
fn hook(project: &BranchProject, name: &str, body: &str) {
    let path = project.remote().join("hooks").join(name);
    executable(&path, &format!("#!/bin/sh\n{body}\n"));
}

fn settings(project: &BranchProject, text: &str) {
    project.scratch.write("ralph.toml", text);
}

/// A finished branch with a publishing step that was not possible, which the build reports.
fn done_but(project: &BranchProject, why: &str) -> Run {
    let run = project.scratch.run("loop build");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stdout.contains(why), "{why}: {run:?}");
    assert!(
        project.plan().contains("Status: done\n") && !project.plan().contains("PR:"),
        "{}",
        project.plan()
    );
    run
}

/// A build that could not publish, and the one after it, which only publishes.
fn fails_then_publishes(project: &BranchProject, why: &str, fix: impl FnOnce()) {
    let run = project.scratch.run("loop build");
    assert_eq!(run.code, Some(5), "{run:?}");
    assert!(run.stderr.contains(why) || run.stdout.contains(why), "{why}: {run:?}");
    assert!(!project.plan().contains("Status: done"), "{}", project.plan());
    assert_eq!(project.state("one")["exit_reason"].as_str(), Some("git_failed"));
    let calls = project.home("calls");
    fix();
    let run = project.scratch.run("loop build");
    assert_eq!((run.code, project.home("calls")), (Some(0), calls), "no agent runs again: {run:?}");
    assert!(project.plan().contains("Status: done\nPR: https://example.com/pr/"), "{}", project.plan());
    assert_eq!(project.pushed("one"), Some(project.head("one")));
}

#[test]
fn each_iteration_with_new_commits_is_pushed() {
    let project = BranchProject::new(&plan(&[("one", 3)]));
    hook(&project, "post-receive", &format!("cat >> {}", project.remote().join("pushes").display()));
    project.agent("[ $RALPH_ITERATION = 2 ] || work; end");
    let run = project.scratch.run("loop build");
    assert_eq!(run.code, Some(0), "{run:?}");
    let pushes = fs::read_to_string(project.remote().join("pushes")).unwrap();
    let ends: Vec<&str> = pushes.lines().map(|line| line.split(' ').nth(1).unwrap()).collect();
    let range = "master..one";
    let commits = project.scratch.git(&["log", "--reverse", "--format=%H", range]);
    assert_eq!(ends, commits.lines().collect::<Vec<_>>());
}

#[test]
fn without_a_commit_there_is_nothing_to_publish() {
    let project = BranchProject::new(&plan(&[("one", 1)]));
    project.agent(
        "sed -i 's/- \\[ \\]/- [x]/' IMPLEMENTATION_PLAN.md; say '<promise>COMPLETE</promise>'; result",
    );
    done_but(&project, "one: no commit ahead of its base: nothing to push, no pull request");
    assert_eq!((project.pushed("one"), project.home("gh")), (None, String::new()));
}

/// Nothing is committed, and the plan says what is missing.
#[test]
fn a_claim_with_nothing_to_show_is_unproven_and_the_next_agent_is_told() {
    let project = BranchProject::new(&plan(&[("one", 2)]));
    project.agent("say '<promise>COMPLETE</promise>'; result");
    let run = project.scratch.run("loop build");
    assert_eq!(run.code, Some(4), "{run:?}");
    let why = "2 tasks of the plan are open";
    assert!(run.stdout.contains(why) && run.stdout.contains("one     unproven "), "{run:?}");
    assert!(!project.plan().contains("Status: done"), "{}", project.plan());
    assert_eq!((project.pushed("one"), project.home("gh")), (None, String::new()));
    project.agent("work; end");
    let run = project.scratch.run("loop build");
    assert_eq!(run.code, Some(0), "{run:?}");
    for number in [2, 3] {
        let prompt = project.home(&format!("prompt-one-{number}"));
        let open = "It said that all is done, but 2 tasks of the plan are open\n\n- [ ] Do 1 of one\n- [ ] Do 2 of one\n";
        assert!(prompt.contains(open) && prompt.contains("<promise>REPLAN</promise>"), "{prompt}");
    }
    assert!(project.plan().contains("Status: done"), "{}", project.plan());
}

/// It goes on, and the next agent writes the section again.
#[test]
fn a_claim_about_a_section_whose_tasks_are_gone_is_unproven() {
    for loses in [
        "sed -i '/Do 2 of one/d' IMPLEMENTATION_PLAN.md",
        "sed -i 's/^- \\[ ] Do 2 of one$/<!-- & -->/' IMPLEMENTATION_PLAN.md",
        "rm IMPLEMENTATION_PLAN.md",
        ": > IMPLEMENTATION_PLAN.md",
    ] {
        let project = BranchProject::new(&plan(&[("one", 2)]));
        project.agent(&format!(
            "sed -i 's/\\[ ] Do 1/[x] Do 1/' IMPLEMENTATION_PLAN.md; [ $RALPH_ITERATION = 2 ] || {loses}
             git commit -q --allow-empty -m work; say '<promise>COMPLETE</promise>'; result"
        ));
        let run = project.scratch.run("loop build -m 1");
        assert_eq!(run.code, Some(4), "{loses}: {run:?}");
        assert!(
            run.stdout.contains("Do 2 of one") || run.stdout.contains("of the plan are open"),
            "{loses}: {run:?}"
        );
        assert!(!project.plan().contains("Status: done"), "{loses}: {}", project.plan());
        assert!(project.plan().contains("- [ ] Do 2 of one"), "{loses}: {}", project.plan());
    }
}

#[test]
fn what_may_or_can_not_be_done_is_said_and_the_branch_is_done() {
    let project = BranchProject::new(&plan(&[("one", 1)]));
    settings(&project, "[git]\nprotected_branches = ['one']\n");
    done_but(&project, "the branch is protected");
    assert_eq!(project.pushed("one"), None);

    let project = BranchProject::new(&plan(&[("one", 1)]));
    settings(&project, "[git]\nauto_push = false\n");
    done_but(&project, "not pushed, no pull request: git.auto_push is off");
    assert_eq!(project.pushed("one"), None);

    let project = BranchProject::new(&plan(&[("one", 1)]));
    settings(&project, "[git]\nauto_pr = false\n");
    let run = done_but(&project, "done");
    assert!(!run.stdout.contains("pull request"), "{run:?}");
    assert_eq!((project.pushed("one"), project.home("gh")), (Some(project.head("one")), String::new()));

    let project = BranchProject::without_remote(&plan(&[("one", 1)]));
    done_but(&project, "the repository has no remote");
}

#[test]
fn gh_may_be_missing_or_not_logged_in() {
    let project = BranchProject::new(&plan(&[("one", 1)]));
    fs::remove_file(project.scratch.outside().join("bin/gh")).unwrap();
    done_but(&project, "gh is not installed");

    let project = BranchProject::new(&plan(&[("one", 1)]));
    project
        .scratch
        .agent("gh", "echo 'To get started with GitHub CLI, please run:  gh auth login' >&2; exit 4");
    done_but(&project, "gh is not logged in");
    assert_eq!(project.pushed("one"), Some(project.head("one")));
}

#[test]
fn a_pull_request_that_is_there_already_is_found() {
    let project = BranchProject::new(&plan(&[("one", 1)]));
    project.scratch.agent(
        "gh",
        r#"echo 'a pull request for branch "one" into branch "master" already exists:' >&2
           echo https://example.com/pr/old >&2; exit 1"#,
    );
    let run = project.scratch.run("loop build");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(project.plan().contains("PR: https://example.com/pr/old\n"), "{}", project.plan());
}

#[test]
fn a_pull_request_that_failed_is_opened_by_the_next_build_without_an_agent() {
    let project = BranchProject::new(&plan(&[("one", 1)]));
    let gh = fs::read_to_string(project.scratch.outside().join("bin/gh")).unwrap();
    project.scratch.agent("gh", "echo 'GraphQL: the server is tired' >&2; exit 1");
    fails_then_publishes(&project, "the pull request failed: gh: GraphQL: the server is tired", || {
        project.scratch.agent("gh", gh.split_once("note\n").map_or("", |(_, body)| body));
    });
}

#[test]
fn a_remote_that_is_gone_is_pushed_to_when_it_is_back() {
    let project = BranchProject::new(&plan(&[("one", 1)]));
    let (there, away) = (project.remote(), project.scratch.outside().join("away.git"));
    fs::rename(&there, &away).unwrap();
    fails_then_publishes(&project, "the push failed", || fs::rename(&away, &there).unwrap());
}

#[test]
fn a_push_that_a_hook_declines_says_what_the_hook_said() {
    let project = BranchProject::new(&plan(&[("one", 1)]));
    hook(&project, "pre-receive", "echo 'not on a Friday' >&2; exit 1");
    let remote = project.remote();
    fails_then_publishes(&project, "not on a Friday", || {
        fs::remove_file(remote.join("hooks/pre-receive")).unwrap();
    });
}

#[test]
fn a_branch_that_went_on_elsewhere_is_never_overwritten() {
    let project = BranchProject::new(&plan(&[("one", 1)]));
    let scratch = &project.scratch;
    scratch.git(&["commit", "--quiet", "--allow-empty", "--message", "Somebody else's"]);
    scratch.git(&["push", "--quiet", "origin", "HEAD:refs/heads/one"]);
    scratch.git(&["reset", "--quiet", "--hard", "HEAD~1"]);
    let theirs = project.pushed("one");
    let run = scratch.run("loop build");
    assert_eq!(run.code, Some(5), "{run:?}");
    assert!(run.stderr.contains("the branch has commits there that are not here"), "{run:?}");
    assert_eq!(project.pushed("one"), theirs);
}

#[test]
fn a_push_that_fails_once_is_tried_again_after_the_next_iteration() {
    let project = BranchProject::new(&plan(&[("one", 2)]));
    hook(&project, "pre-receive", "[ -e tried ] || { touch tried; exit 1; }");
    let run = project.scratch.run("loop build");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stderr.contains("it is tried again after the next iteration"), "{run:?}");
    assert_eq!(project.pushed("one"), Some(project.head("one")));
}

#[test]
fn a_push_that_hangs_is_ended_by_the_second_ctrl_c() {
    let project = BranchProject::new(&plan(&[("one", 1)]));
    let pid = project.scratch.outside().join("hook.pid");
    hook(&project, "pre-receive", &format!("echo $$ > {}; sleep 600", pid.display()));
    let ralph = project.scratch.start("loop build");
    let hook = process_in(&pid);
    let id = rustix::process::Pid::from_child(&ralph);
    let interrupt = || rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
    interrupt();
    wait_for("the first to be heard", || project.events("one").contains("\"asked\"").then_some(()));
    interrupt();
    let run = finish(ralph);
    assert_eq!(run.code, Some(130), "{run:?}");
    await_end(&hook);
}

#[test]
fn a_relative_remote_means_the_same_from_every_work_tree() {
    let project = BranchProject::new(&plan(&[("one", 1), ("deep/er/two", 1)]));
    project.scratch.git(&["remote", "set-url", "origin", "../remote.git"]);
    let run = project.scratch.run("loop build");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(project.pushed("deep/er/two"), Some(project.head("deep/er/two")));
}

#[test]
fn what_a_finished_branch_has_not_committed_is_said() {
    let project = BranchProject::without_remote(&plan(&[("one", 1)]));
    project.agent("work; echo x > forgotten.txt; end");
    done_but(&project, "one: uncommitted changes are left in its work tree: forgotten.txt\n");
}

#[test]
fn a_push_that_is_refused_while_the_branch_is_cancelled_is_no_success() {
    let project = BranchProject::new(&plan(&[("one", 1)]));
    let (begun, go) = (project.scratch.outside().join("begun"), project.scratch.outside().join("go"));
    let wait =
        format!("touch {}; while [ ! -e {} ]; do sleep 0.05; done; exit 1", begun.display(), go.display());
    hook(&project, "pre-receive", &wait);
    let ralph = project.scratch.start("loop build");
    wait_for("the push", || begun.exists().then_some(()));
    assert_eq!(project.scratch.run("cancel one").code, Some(0));
    fs::write(&go, "").unwrap();
    let run = finish(ralph);
    assert_eq!(run.code, Some(5), "{run:?}");
    fs::remove_file(project.remote().join("hooks/pre-receive")).unwrap();
    let run = project.scratch.run("loop build");
    assert_eq!((run.code, project.calls("one")), (Some(0), 1), "nothing is built again: {run:?}");
    assert_eq!(project.pushed("one"), Some(project.head("one")));
}

#[test]
fn a_branch_that_the_remote_has_lost_is_pushed_again() {
    let project = BranchProject::new(&plan(&[("one", 2)]));
    assert_eq!(project.scratch.run("loop build -m 1").code, Some(0));
    let remote = project.remote();
    project.scratch.git(&["--git-dir", remote.to_str().unwrap(), "update-ref", "-d", "refs/heads/one"]);
    project.agent("[ -z \"$(open)\" ] || sed -i 's/\\[ \\]/[x]/' $plan; end");
    assert_eq!(project.scratch.run("loop build").code, Some(0));
    assert_eq!(project.pushed("one"), Some(project.head("one")));
}
