//! `ralph loop plan`: until there is a valid plan.

use std::fs;

use crate::branch_project::{BranchProject, plan};
use crate::scratch::{Started, wait_for};

/// A project without a plan, with a spec.
fn project(agent: &str) -> BranchProject {
    let project = BranchProject::without_remote("");
    fs::remove_file(project.scratch.path("IMPLEMENTATION_PLAN.md")).unwrap();
    project
        .scratch
        .write("specs/greet.md", "# Greeting\n\n- `greet.sh` prints `Hello`\n- `bye.sh` prints `Bye`\n");
    project.agent(agent);
    project
}

/// What the planning agent of iteration N was told.
fn prompt(project: &BranchProject, iteration: u32) -> String {
    project.home(&format!("prompt--{iteration}"))
}

const COMPLETE: &str = "say '<promise>COMPLETE</promise>'; result";

#[test]
fn a_plan_that_cannot_be_built_goes_back_with_its_line() {
    let project = project(&format!(
        r"case $RALPH_ITERATION in
             1) ;;
             2) printf '# Plan\n\n## Branch: x\n- [ ] t\n' > $plan ;;
             3) printf '## Branch: x\nGoal: g\nBase: nowhere\n- [ ] t\n' > $plan ;;
             *) printf '## Branch: x\nGoal: g\n- [ ] t\n' > $plan ;;
           esac
           {COMPLETE}"
    ));
    let run = project.scratch.run("loop plan");
    assert_eq!((run.code, project.home("calls").lines().count()), (Some(0), 4), "{run:?}");
    for (iteration, why) in [
        (2, "Implementation plan not found."),
        (3, "IMPLEMENTATION_PLAN.md line 3: branch 'x' has no goal"),
        (4, "line 3: 'nowhere', the base of 'x', names no commit"),
    ] {
        let prompt = prompt(&project, iteration);
        assert!(
            prompt.contains("## Validation error of the previous iteration") && prompt.contains(why),
            "{prompt}"
        );
    }
    assert!(prompt(&project, 1).contains("## Branch: add-watch-flag"), "the built-in prompt shows the form");
    assert!(run.stdout.contains("Status: complete-unproven"), "{run:?}");
}

#[test]
fn a_good_plan_is_looked_at_at_least_once_and_then_idle_ends_it() {
    let project = project("say 'nothing to change'; result");
    project.scratch.write("IMPLEMENTATION_PLAN.md", plan(&[("one", 1)]));
    let run = project.scratch.run("loop plan");
    assert_eq!((run.code, project.home("calls").lines().count()), (Some(0), 2), "{run:?}");
    project.agent(COMPLETE);
    assert_eq!(project.scratch.run("loop plan").code, Some(0));
    assert_eq!(project.home("calls").lines().count(), 3);
}

#[test]
fn the_limit_is_ten_or_what_is_said() {
    let project = project("echo $RALPH_ITERATION >> notes; say more; result");
    let run = project.scratch.run("loop plan");
    // There is no plan at its end.
    assert_eq!((run.code, project.home("calls").lines().count()), (Some(4), 10), "{run:?}");
    let run = project.scratch.run("loop plan -m 2");
    assert_eq!(project.home("calls").lines().count(), 12, "{run:?}");
    assert!(run.stderr.contains("goes on after iteration 10"), "{run:?}");
}

#[test]
fn prompts_and_what_the_built_in_one_needs() {
    let planner = project(&format!("printf '## Branch: x\\nGoal: g\\n- [ ] t\\n' > $plan; {COMPLETE}"));
    planner.scratch.write("PROMPT_plan.md", "Plan it, ${MODE} ${ITERATION}.\n");
    assert_eq!(planner.scratch.run("loop plan").code, Some(0));
    assert_eq!(prompt(&planner, 1), "Plan it, plan 1.\n");
    planner.scratch.write("own.md", "My way.\n");
    assert_eq!(planner.scratch.run("loop plan -p own.md").code, Some(0));
    assert_eq!(prompt(&planner, 2), "My way.\n");

    let bare = project(COMPLETE);
    fs::remove_dir_all(bare.scratch.path("specs")).unwrap();
    let run = bare.scratch.run("loop plan");
    assert!(run.code == Some(1) && run.stderr.contains("specs directory not found"), "{run:?}");
}

#[test]
fn a_planning_that_was_killed_goes_on_by_itself() {
    let project = project("echo x >> notes; [ $RALPH_ITERATION = 1 ] || sleep 600; say more; result");
    let ralph = Started::new(&project.scratch, "loop plan");
    wait_for("the second iteration", || (project.home("calls").lines().count() == 2).then_some(()));
    drop(ralph); // kill -9
    project.agent(&format!("printf '## Branch: x\\nGoal: g\\n- [ ] t\\n' > $plan; {COMPLETE}"));
    let run = project.scratch.run("loop plan");
    assert!(run.code == Some(0) && run.stderr.contains("resuming at iteration 2"), "{run:?}");
    // A plain planning in between is another loop.
    let run = project.scratch.run("plan 1 --agent script");
    assert_eq!(run.code, Some(0), "{run:?}");
    let run = project.scratch.run("loop plan");
    assert!(run.code == Some(0) && !run.stderr.contains("goes on after"), "{run:?}");
}

#[test]
fn a_bare_loop_goes_on_with_a_planning_that_was_cut_off_and_else_builds() {
    let project = project("echo x >> notes; [ $RALPH_ITERATION = 1 ] || sleep 600; say more; result");
    let ralph = Started::new(&project.scratch, "loop plan");
    wait_for("the second iteration", || (project.home("calls").lines().count() == 2).then_some(()));
    drop(ralph); // kill -9
    project.agent(&format!(
        "[ \"$RALPH_BRANCH\" ] || printf '## Branch: x\\nGoal: g\\n- [ ] t\\n' > $plan; {COMPLETE}"
    ));
    // A flag that only `build` has means `build`, which has no plan yet.
    let run = project.scratch.run("loop --jobs 2");
    assert!(run.code == Some(2) && run.stderr.contains("Implementation plan not found"), "{run:?}");
    let run = project.scratch.run("loop");
    assert!(run.code == Some(0) && run.stderr.contains("resuming at iteration 2"), "{run:?}");
    assert!(project.plan().contains("## Branch: x") && !project.scratch.path(".worktrees").exists());
    let run = project.scratch.run("loop -m 1");
    assert!(project.scratch.path(".worktrees/x").exists(), "{run:?}");
}

#[test]
fn with_the_scripted_agent_from_specs_to_branches() {
    let project = project("");
    let scratch = &project.scratch;
    assert_eq!(scratch.run("loop plan --agent script").code, Some(0));
    assert!(project.plan().contains("## Branch: greet\nGoal: "), "{}", project.plan());
    let run = scratch.run("loop build --agent script");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(project.plan().matches("Status: done").count(), 1);
    assert!(scratch.path(".worktrees/greet/greet.sh").exists() && !scratch.path("greet.sh").exists());
    assert_eq!(project.commits("greet").len(), 2);
}

/// A plan is committed to the user's current branch; it is pushed only if no other commit would be pushed with it.
#[test]
fn a_plan_is_pushed_where_nothing_else_goes_along() {
    let writes = format!(
        r"printf '## Branch: x\nGoal: g\n- [ ] t\n' > $plan; git add -f $plan; git commit -qm 'Plan'; {COMPLETE}"
    );
    let told = |prepare: &dyn Fn(&BranchProject)| {
        let project = BranchProject::new("");
        fs::remove_file(project.scratch.path("IMPLEMENTATION_PLAN.md")).unwrap();
        project.scratch.write("specs/greet.md", "# Greeting\n");
        project.agent(&writes);
        project.scratch.git(&["checkout", "--quiet", "-b", "work"]);
        prepare(&project);
        let run = project.scratch.run("loop plan");
        assert_eq!(run.code, Some(0), "{run:?}");
        (project.pushed("work") == Some(project.head("work")), run.stderr)
    };
    let follow = |project: &BranchProject| {
        project.scratch.git(&["push", "--quiet", "-u", "origin", "work"]);
    };
    let (is_pushed, said) = told(&follow);
    assert!(is_pushed && said.contains("pushed to origin/work"), "{said}");
    for (prepare, why) in [
        (Box::new(|_: &BranchProject| ()) as Box<dyn Fn(&BranchProject)>, "it has no upstream"),
        (
            Box::new(move |project| {
                follow(project);
                project.scratch.git(&["commit", "--quiet", "--allow-empty", "-m", "mine"]);
            }),
            "it was not level with its upstream at the start",
        ),
        (
            Box::new(move |project| {
                follow(project);
                project.scratch.write("ralph.toml", "[git]\nprotected_branches = ['work']\n");
            }),
            "the branch is protected",
        ),
    ] {
        let (is_pushed, said) = told(&prepare);
        assert!(!is_pushed && said.contains(why) && said.contains("'git push' does it"), "{why}: {said}");
    }
}

#[test]
fn work_that_the_planning_agent_marks_as_done_is_planned_again() {
    let section = |name: &str, status: &str, tick: &str| {
        format!("## Branch: {name}\nGoal: g\n{status}- [{tick}] t\n- [x] u\n\n")
    };
    let (done, planned) = ("Status: done\n", "Status: planned\n");
    for (what, ends, code) in
        [("a plan that is complete", COMPLETE, 0), ("an attempt that failed", "exit 3", 4)]
    {
        let project = project(&format!(
            "sed -i '/^## Branch: claimed/,/^$/{{/^Status/d; s/^Goal: g/&\\nStatus: done/}}; /^## Branch: ticked/,${{s/\\[ /[x/}}' \
             $plan; {ends}"
        ));
        // The user has marked the first one as done, and ticked a task of each.
        let plan = |claimed: &str| {
            section("own", done, " ") + &section("claimed", claimed, " ") + &section("ticked", "", " ")
        };
        project.scratch.write("IMPLEMENTATION_PLAN.md", plan(""));
        let run = project.scratch.run("loop plan --max-retries 0");
        assert_eq!(run.code, Some(code), "{what}: {run:?}");
        assert_eq!(project.plan(), plan(planned), "{what}");
        let told = "IMPLEMENTATION_PLAN.md: work of 'claimed', 'ticked' was marked as done, which ralph has not built";
        assert_eq!(run.stderr.matches(told).count(), 1, "{what}: {run:?}");
    }
}
