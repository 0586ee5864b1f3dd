//! How the loop of a branch ends, and what the next build does.

use crate::branch_project::{BranchProject, plan};
use crate::scratch::{Started, wait_for};

fn reason(project: &BranchProject, branch: &str) -> String {
    project.state(branch)["exit_reason"].as_str().unwrap().to_owned()
}

#[test]
fn at_its_limit_a_branch_is_unfinished_and_the_next_build_goes_on() {
    let project = BranchProject::new(&plan(&[("one", 3)]));
    let run = project.scratch.run("loop build -m 1");
    assert!(run.code == Some(0) && run.stdout.contains("one     limit "), "{run:?}");
    assert_eq!(reason(&project, "one"), "max_iterations");
    assert!(project.plan().contains("- [x] Do 1 of one\n- [ ] Do 2 of one"), "{}", project.plan());
    assert!(!project.home("gh").contains("pr create"));
    assert_eq!(project.pushed("one"), Some(project.head("one")), "what is there is pushed");

    let run = project.scratch.run("loop build --max 5");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stderr.contains("goes on after iteration 1"), "{run:?}");
    assert_eq!(project.state("one")["iteration"].as_integer(), Some(3));
    assert_eq!(project.commits("one"), ["Do 1 of one", "Do 2 of one", "Do 3 of one"]);
    assert!(project.plan().contains("Status: done"));
}

#[test]
fn idle_with_every_task_ticked_is_done_and_with_open_ones_it_is_not() {
    let project = BranchProject::new(&plan(&[("silent", 1), ("stuck", 2)]));
    project.agent("[ $RALPH_ITERATION -gt 1 ] || work; say 'so it is'; result");
    let run = project.scratch.run("loop build");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!((reason(&project, "silent"), reason(&project, "stuck")), ("idle".into(), "idle".into()));
    let plan = project.plan();
    let (silent, stuck) = plan.split_once("## Branch: stuck").unwrap();
    assert!(silent.contains("Status: done\nPR: https://") && !stuck.contains("Status"), "{plan}");
    assert_eq!(project.calls("stuck"), 3, "one that worked, two that changed nothing");
}

#[test]
fn three_failures_in_a_row_end_a_branch_and_the_worst_code_is_the_builds() {
    let project = BranchProject::without_remote(&plan(&[("good", 1), ("bad", 1), ("wrong", 1)]));
    project.agent(
        "case $RALPH_BRANCH in
             bad) exit 3 ;;
             wrong) say '<promise>REPLAN</promise>'; result ;;
             *) work; end ;;
           esac",
    );
    let run = project.scratch.run("loop build");
    assert_eq!(run.code, Some(4), "{run:?}");
    assert_eq!((project.calls("bad"), reason(&project, "bad")), (3, "failed".into()));
    assert_eq!(reason(&project, "wrong"), "replan");
    assert_eq!(reason(&project, "good"), "complete");
}

#[test]
fn a_work_tree_without_what_is_installed_in_the_project_is_named() {
    let project = BranchProject::new(&plan(&[("one", 1)]));
    project.scratch.write("ralph.toml", "[validation]\ncommand = 'node_modules/.bin/jest || exit 127'\n");
    project.scratch.write("node_modules/.bin/jest", "");
    project.scratch.write(".git/info/exclude", "node_modules\n");
    project.agent("work; end");
    let run = project.scratch.run("loop build -m 2");
    assert_eq!(run.code, Some(4), "{run:?}");
    let prompt = project.home("prompt-one-2");
    let words = format!("(this work tree has no node_modules, as {} has: ", project.scratch.root().display());
    assert!(prompt.contains(&words), "{prompt}");
}

#[test]
fn a_complete_with_a_failing_validation_is_not_believed() {
    let project = BranchProject::without_remote(&plan(&[("one", 1)]));
    project.agent("if [ $RALPH_ITERATION -gt 1 ]; then echo > proof; git add proof; git commit -qm proof; fi; work; end");
    project
        .scratch
        .write("ralph.toml", "[validation]\ncommand = 'test -e proof || { echo no proof; exit 1; }'\n");
    let run = project.scratch.run("loop build");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(project.calls("one"), 2);
    let prompt = project.home("prompt-one-2");
    assert!(
        prompt.contains("Validation error of the previous iteration") && prompt.contains("no proof"),
        "{prompt}"
    );
}

#[test]
fn budgets_hold_for_all_branches_together() {
    let project = BranchProject::without_remote(&plan(&[("a", 9), ("b", 9), ("c", 9)]));
    project.agent("work; say more; result");
    let run = project.scratch.run("loop build --sequential --max-tokens 45");
    assert_eq!(run.code, Some(0), "{run:?}");
    // Fifteen tokens each.
    assert_eq!((project.calls("a"), project.calls("b"), project.calls("c")), (3, 0, 0));
    assert_eq!(reason(&project, "b"), "budget");
}

#[test]
fn waiting_for_a_place_is_no_time_of_the_branchs_own() {
    let project = BranchProject::without_remote(&plan(&[("first", 1), ("second", 1)]));
    project.agent("sleep 1.5; work; end");
    let run = project.scratch.run("loop build --sequential --max-duration 3s");
    assert_eq!((run.code, reason(&project, "second")), (Some(0), "complete".into()), "{run:?}");
    let elapsed = project.state("second")["elapsed_seconds"].as_float().unwrap();
    assert!(elapsed < 3.0, "{elapsed}");
}

#[test]
fn a_limit_whose_last_iteration_failed_is_a_failure() {
    let project = BranchProject::without_remote(&plan(&[("one", 2)]));
    project.agent("[ $RALPH_ITERATION = 1 ] || exit 1; work; end");
    let run = project.scratch.run("loop build -m 2");
    assert_eq!((run.code, reason(&project, "one")), (Some(4), "max_iterations".into()), "{run:?}");
    assert!(run.stdout.contains("one     failed "), "{run:?}");
}

#[test]
fn a_branch_that_an_agent_has_marked_as_done_is_built_on() {
    let project = BranchProject::without_remote(&plan(&[("one", 2), ("two", 1)]));
    let main_plan = project.scratch.path("IMPLEMENTATION_PLAN.md");
    let mark = |branch: &str| {
        format!("sed -i 's/^## Branch: {branch}$/&\\nStatus: done/' '{}'", main_plan.display())
    };
    project.agent(&format!(
        "[ $RALPH_BRANCH = two ] || {{ work; {}; say more; result; exit; }}; work; end",
        mark("one")
    ));
    // An agent that edits the plan beside ralph may lose what ralph has written meanwhile.
    let run = project.scratch.run("loop build -m 1 --sequential");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(
        (reason(&project, "one"), reason(&project, "two")),
        ("max_iterations".into(), "complete".into())
    );
    assert!(project.plan().contains("## Branch: one\nStatus: done\n"), "{}", project.plan());

    let doubt = "'one' is marked as done, but its loop has ended otherwise (limit): it is built on; 'ralph clean one' forgets";
    let dry = project.scratch.run("loop build --dry-run");
    assert!(dry.stderr.contains(doubt) && dry.stdout.contains("1 of 2 branches would be built."), "{dry:?}");
    project.agent("work; end");
    let run = project.scratch.run("loop build -m 1");
    assert!(run.code == Some(0) && run.stderr.matches(doubt).count() == 1, "{run:?}");
    assert_eq!((project.calls("one"), project.calls("two")), (2, 1));
    assert_eq!(reason(&project, "one"), "complete");
    // Now the tasks are done.
    let run = project.scratch.run("loop build");
    assert!(run.code == Some(0) && !run.stderr.contains("marked as done"), "{run:?}");
    assert_eq!(project.calls("one"), 2);
}

#[test]
fn a_record_that_cannot_be_read_is_no_proof_that_a_branch_is_done() {
    let project = BranchProject::without_remote(&plan(&[("one", 1), ("two", 1)]));
    let marked = project.plan().replace("## Branch: one\n", "## Branch: one\nStatus: done\n");
    std::fs::write(project.scratch.path("IMPLEMENTATION_PLAN.md"), marked).unwrap();
    project.scratch.write(".ralph/runs/branches/one/state.toml", "version = 99\n");
    let dry = project.scratch.run("loop build --dry-run");
    let doubt = "'one' is marked as done, but its records cannot be read";
    assert!(dry.stderr.contains(doubt) && dry.stdout.contains("2 of 2 branches would be built."), "{dry:?}");
}

#[test]
fn what_a_person_marks_as_done_is_believed_where_no_record_says_otherwise() {
    let project = BranchProject::without_remote(&plan(&[("one", 1), ("two", 1)]));
    let marked = project.plan().replace("## Branch: one\n", "## Branch: one\nStatus: done\n");
    project.scratch.write("IMPLEMENTATION_PLAN.md", marked);
    assert_eq!(project.scratch.run("loop build").code, Some(0));
    assert_eq!((project.calls("one"), project.calls("two")), (0, 1));

    let project = BranchProject::without_remote(&plan(&[("one", 2)]));
    assert_eq!(project.scratch.run("loop build -m 1").code, Some(0));
    let marked = project.plan().replace("## Branch: one\n", "## Branch: one\nStatus: done\n");
    project.scratch.write("IMPLEMENTATION_PLAN.md", marked);
    assert_eq!(project.scratch.run("clean one").code, Some(0));
    assert_eq!(project.scratch.run("loop build").code, Some(0));
    assert_eq!(project.calls("one"), 1);
}

#[test]
fn a_branch_in_which_another_one_has_committed_after_it_was_done_is_noted() {
    let project = BranchProject::without_remote(&plan(&[("one", 1), ("two", 1)]));
    project.agent(
        "[ $RALPH_BRANCH = two ] || { until [ -e \"$HOME/done\" ]; do sleep 0.02; done; cd ../two && echo x > x && git add x && git commit -qm x; cd ../one; }; work; end",
    );
    let ralph = project.scratch.start("loop build --jobs 2");
    wait_for("two", || project.events("two").contains("\"loop_ended\"").then_some(()));
    std::fs::write(project.scratch.outside().join("home/done"), "").unwrap();
    let run = crate::scratch::finish(ralph);
    assert!(run.code == Some(0) && run.stdout.contains("two: has changed since it was done at "), "{run:?}");
    assert!(!run.stdout.contains("one: has changed"), "{run:?}");
}

/// A plan in which 'two' starts from 'one', and an agent of 'one' that does this to the main plan first.
fn two_waits_for_one(does: &str, then: &str) -> BranchProject {
    let text = plan(&[("one", 1), ("two", 1)])
        .replace("Goal: Have two\nBase: master\n", "Goal: Have two\nBase: one\n");
    let project = BranchProject::without_remote(&text);
    let main_plan = project.scratch.path("IMPLEMENTATION_PLAN.md");
    let main_plan = main_plan.display();
    project.agent(&format!(
        "[ $RALPH_BRANCH = two ] || {{ sed -i '{does}' '{main_plan}'; {then}; }}; work; end"
    ));
    project
}

#[test]
fn what_an_agent_marks_as_done_in_a_branch_that_waits_is_planned_again() {
    let told = "work of 'two' was marked as done, which ralph has not built";
    let project = two_waits_for_one("s/^Goal: Have two$/&\\nStatus: done/", "exit 3");
    let run = project.scratch.run("loop build -m 1");
    assert!(run.code == Some(4) && run.stderr.matches(told).count() == 1, "{run:?}");
    assert!(project.plan().contains("Goal: Have two\nStatus: planned\nBase: one\n"), "{}", project.plan());
    project.agent("work; end");
    let run = project.scratch.run("loop build");
    assert!(run.code == Some(0) && !run.stderr.contains(told), "{run:?}");
    assert_eq!((project.calls("two"), reason(&project, "two")), (1, "complete".into()));
}

#[test]
fn what_an_agent_marks_as_done_before_ralph_is_killed_is_planned_again() {
    let project =
        two_waits_for_one("s/^Goal: Have two$/&\\nStatus: done/", "touch \"$HOME/marked\"; exec sleep 600");
    let ralph = Started::new(&project.scratch, "loop build");
    let marked = project.scratch.outside().join("home/marked");
    wait_for("the agent", || marked.exists().then_some(()));
    drop(ralph); // kill -9
    project.agent("work; end");
    let run = project.scratch.run("loop build");
    assert_eq!((run.code, project.calls("two")), (Some(0), 1), "{run:?}");
    assert!(run.stderr.contains("work of 'two' was marked as done, which ralph has not built"), "{run:?}");
    // What an earlier run was shown is not kept.
    let kept = project.scratch.run("loop build --dry-run");
    assert!(kept.code == Some(0) && !kept.stderr.contains("marked as done"), "{kept:?}");
}

#[test]
fn what_an_agent_ticks_before_ralph_is_killed_in_a_branch_that_has_not_begun_is_open() {
    let project = BranchProject::without_remote(&plan(&[("one", 1), ("two", 1)]));
    let main_plan = project.scratch.path("IMPLEMENTATION_PLAN.md");
    project.agent(&format!(
        "sed -i '/^## Branch: two/,$s/\\[ \\]/[x]/' '{}'; touch \"$HOME/marked\"; exec sleep 600",
        main_plan.display()
    ));
    let ralph = Started::new(&project.scratch, "loop build --jobs 1");
    let marked = project.scratch.outside().join("home/marked");
    wait_for("the agent", || marked.exists().then_some(()));
    drop(ralph); // kill -9
    project.agent("work; end");
    let run = project.scratch.run("loop build --jobs 1");
    assert_eq!((run.code, project.commits("two")), (Some(0), vec!["Do 1 of two".to_owned()]), "{run:?}");
}

#[test]
fn what_a_killed_build_has_done_stays_done_when_its_loop_is_forgotten() {
    let project = two_waits_for_one("", ":");
    project.agent("[ $RALPH_BRANCH = one ] || { touch \"$HOME/begun\"; exec sleep 600; }; work; end");
    let ralph = Started::new(&project.scratch, "loop build");
    let begun = project.scratch.outside().join("home/begun");
    wait_for("the second branch", || begun.exists().then_some(()));
    drop(ralph); // kill -9
    assert!(project.plan().contains("Goal: Have one\nBase: master\nStatus: done"), "{}", project.plan());
    let run = project.scratch.run("clean one");
    assert_eq!(run.code, Some(0), "{run:?}");
    project.agent("work; end");
    let run = project.scratch.run("loop build");
    assert!(run.code == Some(0) && !run.stderr.contains("marked as done"), "{run:?}");
    assert_eq!((project.calls("one"), project.calls("two")), (1, 2), "in both runs");
}

#[test]
fn what_an_agent_ticks_in_a_branch_that_waits_is_open_when_that_begins() {
    let project = two_waits_for_one("/^## Branch: two/,$s/\\[ \\]/[x]/", ":");
    let run = project.scratch.run("loop build");
    let told = "work of 'two' was marked as done, which ralph has not built";
    assert!(run.code == Some(0) && run.stderr.matches(told).count() == 1, "{run:?}");
    assert_eq!(project.commits("two"), ["Do 1 of one", "Do 1 of two"]);
}

#[test]
fn a_branch_that_is_not_done_and_has_no_section_any_more_is_told() {
    let project = two_waits_for_one("/^## Branch: two/,$d", ":");
    let whole = project.plan();
    assert_eq!(project.scratch.run("loop build").code, Some(1));
    for (args, code) in [("loop build", 1), ("loop build --dry-run", 0)] {
        let run = project.scratch.run(args);
        let told = "IMPLEMENTATION_PLAN.md has no section '## Branch: two' any more";
        assert!(
            run.code == Some(code) && (run.stdout.clone() + &run.stderr).contains(told),
            "{args}: {run:?}"
        );
        assert!(!run.stdout.contains("All branches are done"), "{args}: {run:?}");
    }
    // Either of the two ways out that are named.
    project
        .scratch
        .write("IMPLEMENTATION_PLAN.md", whole.replace("Goal: Have one\n", "Goal: Have one\nStatus: done\n"));
    let run = project.scratch.run("loop build");
    assert_eq!((run.code, project.calls("two"), reason(&project, "two")), (Some(0), 1, "complete".into()));

    let project = two_waits_for_one("/^## Branch: two/,$d", ":");
    assert_eq!(project.scratch.run("loop build").code, Some(1));
    assert_eq!(project.scratch.run("clean two").code, Some(0));
    let run = project.scratch.run("loop build");
    assert!(run.code == Some(0) && run.stdout.contains("All branches are done"), "{run:?}");
}

#[test]
fn lines_that_agents_add_to_every_section_stop_no_later_build() {
    for is_killed in [false, true] {
        let text = plan(&[("one", 1), ("two", 1)]).replace("\nBase:", "\nStatus: planned\nBase:");
        let project = BranchProject::without_remote(&text);
        let main_plan = project.scratch.path("IMPLEMENTATION_PLAN.md");
        let then = if is_killed { "touch \"$HOME/marked\"; exec sleep 600" } else { ":" };
        let marks = format!("sed -i 's/^Goal: .*/&\\nStatus: done/' '{}'", main_plan.display());
        project.agent(&format!("{marks}; {then}; work; end"));
        if is_killed {
            let ralph = Started::new(&project.scratch, "loop build --jobs 1");
            let marked = project.scratch.outside().join("home/marked");
            wait_for("the agent", || marked.exists().then_some(()));
            drop(ralph); // kill -9
            project.agent("work; end");
        }
        let run = project.scratch.run("loop build --jobs 1");
        assert_eq!(run.code, Some(0), "{run:?}");
        let told = "had a Goal, Base, Status or PR more than when the run began";
        assert!(run.stderr.contains(told), "{run:?}");
        for branch in ["one", "two"] {
            assert_eq!(project.commits(branch).last().unwrap(), &format!("Do 1 of {branch}"), "{run:?}");
        }
        assert_eq!(project.plan().matches("Status:").count(), 2, "{}", project.plan());
        let run = project.scratch.run("loop build --jobs 1");
        assert_eq!(run.code, Some(0), "{run:?}");
    }
    // What a person has written is checked.
    let text = plan(&[("one", 1)]).replace("\nBase:", "\nStatus: planned\nStatus: planned\nBase:");
    let project = BranchProject::without_remote(&text);
    let run = project.scratch.run("loop build");
    assert!(run.code == Some(1) && run.stderr.contains("branch 'one' has a second 'Status:'"), "{run:?}");
}
