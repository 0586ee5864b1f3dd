//! The plan's way into the work trees and back.

use std::fs;

use crate::branch_project::{BranchProject, plan};
use crate::scratch::{Started, wait_for};

#[test]
fn what_a_person_writes_into_the_plan_meanwhile_stays() {
    let project = BranchProject::without_remote(&plan(&[("one", 2), ("two", 1)]));
    project.agent(
        r#"if [ "$RALPH_BRANCH $RALPH_ITERATION" = 'one 1' ]; then
             touch "$HOME/begun"; while [ ! -e "$HOME/edited" ]; do sleep 0.05; done
           fi
           work; end"#,
    );
    let ralph = project.scratch.start("loop build");
    let home = project.scratch.outside().join("home");
    wait_for("the first agent", || home.join("begun").exists().then_some(()));
    wait_for("the other branch", || project.plan().contains("Status: done").then_some(()));
    let edited = project.plan().replace("# Plan\n", "# Plan\n\nA thought of mine.\n");
    let edited = edited.replace("- [ ] Do 2 of one\n", "- [ ] Do 2 of one, but better\n- [ ] Do 3 of one\n");
    project.scratch.write("IMPLEMENTATION_PLAN.md", edited);
    fs::write(home.join("edited"), "").unwrap();
    let run = crate::scratch::finish(ralph);
    assert_eq!(run.code, Some(0), "{run:?}");
    let expected = "# Plan\n\nA thought of mine.\n\n## Branch: one\nGoal: Have one\nBase: master\nStatus: done\n\n\
                    - [x] Do 1 of one\n- [x] Do 2 of one, but better\n- [x] Do 3 of one\n\n\
                    ## Branch: two\nGoal: Have two\nBase: master\nStatus: done\n\n- [x] Do 1 of two\n\n";
    assert_eq!(project.plan(), expected);
    assert_eq!(project.commits("one"), ["Do 1 of one", "Do 2 of one, but better", "Do 3 of one"]);
}

#[test]
fn a_task_that_an_agent_finds_arrives_and_foreign_sections_do_not() {
    let project = BranchProject::without_remote(&plan(&[("one", 1), ("two", 1)]));
    project.agent(
        r#"if [ "$RALPH_BRANCH $RALPH_ITERATION" = 'one 1' ]; then
             sed -i 's/^- \[ \] Do 1 of two/- [x] Do 1 of two/; s/^- \[ \] Do 1 of one/&\n- [ ] Found on the way/' $plan
           fi
           [ $RALPH_BRANCH = two ] || work
           say more; result"#,
    );
    assert_eq!(project.scratch.run("loop build -m 2").code, Some(0));
    let plan = project.plan();
    assert!(plan.contains("- [x] Do 1 of one\n- [x] Found on the way\n"), "{plan}");
    assert!(plan.contains("- [ ] Do 1 of two\n"), "{plan}");
}

#[test]
fn without_its_status_a_branch_is_built_again() {
    let project = BranchProject::without_remote(&plan(&[("one", 1)]));
    assert_eq!(project.scratch.run("loop build").code, Some(0));
    let again = project.plan().replace("Status: done\n", "").replace("- [x]", "- [ ]");
    project.scratch.write("IMPLEMENTATION_PLAN.md", again);
    project.agent("rm -f one-*.txt; work; end");
    assert_eq!(project.scratch.run("loop build").code, Some(0));
    assert_eq!(project.calls("one"), 2);
    assert!(project.plan().contains("Status: done") && project.plan().contains("- [x]"));
}

#[test]
fn a_plan_that_git_tracks_is_not_committed_by_a_branch() {
    let project = BranchProject::without_remote(&plan(&[("one", 2)]));
    let scratch = &project.scratch;
    scratch.git(&["add", "IMPLEMENTATION_PLAN.md"]);
    scratch.git(&["commit", "--quiet", "--message", "The plan"]);
    project.agent("work; git commit --quiet --all --allow-empty --message 'all of it'; end");
    assert_eq!(scratch.run("loop build").code, Some(0));
    assert_eq!(scratch.git(&["diff", "--name-only", "master", "one", "--", "IMPLEMENTATION_PLAN.md"]), "");
    assert_eq!(scratch.git(&["status", "--porcelain"]), " M IMPLEMENTATION_PLAN.md\n");
    assert!(scratch.read(".worktrees/one/IMPLEMENTATION_PLAN.md").contains("- [x] Do 2 of one"));
}

#[test]
fn a_copy_that_agents_lose_or_tear_is_brought_again() {
    for loss in [
        "rm $plan",
        "git clean -fdxq",
        ": > $plan",
        "printf '\\0\\0\\0\\0' > $plan",
        "printf '\\377' > $plan",
        "rm $plan; mkfifo $plan",
        "echo precious > $HOME/victim; rm $plan; ln -s $HOME/victim $plan",
        "sed -i '/^## Branch: one/,$d' $plan",
        "printf %s \"$(sed '/Do 2 of one/q' $plan | sed 's/Do 2 of one/Do 2 o/')\" > $plan",
    ] {
        let project = BranchProject::without_remote(&plan(&[("one", 2), ("two", 1)]));
        project.agent(&format!(
            r#"[ "$RALPH_BRANCH" = two ] || cp $plan "$HOME/seen-$RALPH_ITERATION"
               work
               [ "$RALPH_BRANCH $RALPH_ITERATION" != 'one 1' ] || {{ {loss}; say more; result; exit; }}
               end"#
        ));
        let run = project.scratch.run("loop build");
        assert_eq!(run.code, Some(0), "{loss}: {run:?}");
        let victim = project.home("victim");
        assert!(victim.is_empty() || victim == "precious\n", "what the link leads to: {victim}");
        let seen = project.home("seen-2");
        assert!(seen.contains("## Branch: one\n") && seen.contains(" Do 2 of one\n"), "{loss}: {seen}");
        assert!(seen.ends_with("Do 1 of two\n\n"), "{loss}: {seen}");
        assert_eq!(project.commits("one"), ["Do 1 of one", "Do 2 of one"], "{loss}");
        assert!(!project.plan().contains("Do 2 o\n"), "{loss}: {}", project.plan());
    }
}

#[test]
fn without_any_plan_no_agent_is_started() {
    let project = BranchProject::without_remote(&plan(&[("one", 2)]));
    let main = project.scratch.path("IMPLEMENTATION_PLAN.md");
    project.agent(&format!("work; rm $plan {}; say more; result", main.display()));
    let run = project.scratch.run("loop build");
    assert_eq!((run.code, project.calls("one")), (Some(1), 1), "{run:?}");
    assert!(run.stderr.contains("IMPLEMENTATION_PLAN.md is not there any more"), "{run:?}");
}

#[test]
fn prompts_come_from_the_project_or_from_a_file_and_name_the_branch() {
    let project = BranchProject::without_remote(&plan(&[("feature/one", 1)]));
    let scratch = &project.scratch;
    let prompt = |project: &BranchProject| project.home("prompt-feature-one-1");
    scratch.write(
        "PROMPT_build.md",
        "On {{BRANCH_NAME}} from {{BASE_BRANCH}}: {{ BRANCH_GOAL }}. ${ITERATION} $HOME {{x}}\n",
    );
    assert_eq!(scratch.run("loop build -m 1").code, Some(0));
    assert_eq!(prompt(&project), "On feature/one from master: Have feature/one. 1 $HOME {{x}}\n");

    let other = BranchProject::without_remote(&plan(&[("feature/one", 1)]));
    other.scratch.write("PROMPT_build.md", "Not this one.\n");
    other.scratch.write("own.md", "Do a task.\n");
    assert_eq!(other.scratch.run("loop build -p own.md").code, Some(0));
    let text = prompt(&other);
    assert!(text.starts_with("Do a task.\n\n## Your branch\n") && text.contains("`feature/one`"), "{text}");
    assert_eq!(other.scratch.run("loop build -p missing.md").code, Some(1));
}

#[test]
fn ticks_that_were_not_carried_before_a_kill_come_back() {
    let project = BranchProject::without_remote(&plan(&[("one", 1)]));
    let (main, aside) =
        (project.scratch.path("IMPLEMENTATION_PLAN.md"), project.scratch.outside().join("aside"));
    // A plan cannot be written into a pipe: ralph has to end, unless it is killed before.
    project.agent(&format!("work; mv {0} {1}; mkfifo {0}; end", main.display(), aside.display()));
    let ralph = Started::new(&project.scratch, "loop build");
    wait_for("the end of the attempt", || {
        let state = project.scratch.read_if_there(&BranchProject::state_file("one"));
        (aside.exists() && state.contains("in_attempt = false")).then_some(())
    });
    drop(ralph); // kill -9
    fs::rename(aside, main).unwrap();
    assert!(project.plan().contains("- [ ] Do 1 of one"));
    let run = project.scratch.run("loop build");
    assert_eq!((run.code, project.calls("one")), (Some(0), 1), "{run:?}");
    assert!(project.plan().contains("Status: done\n\n- [x] Do 1 of one\n"), "{}", project.plan());
}

#[test]
fn what_a_person_fixes_after_ctrl_c_holds() {
    let project = BranchProject::without_remote(&plan(&[("one", 2)]));
    project.agent("work; touch \"$HOME/held\"; while [ ! -e \"$HOME/go\" ]; do sleep 0.02; done; end");
    let ralph = project.scratch.start("loop build");
    let home = project.scratch.outside().join("home");
    wait_for("the agent", || home.join("held").exists().then_some(()));
    let id = rustix::process::Pid::from_child(&ralph);
    rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
    wait_for("the signal to be heard", || project.events("one").contains("\"asked\"").then_some(()));
    fs::write(home.join("go"), "").unwrap();
    assert_eq!(crate::scratch::finish(ralph).code, Some(130));
    let fixed = project
        .plan()
        .replace("- [x] Do 1 of one\n", "- [ ] Do 1 of one\n")
        .replace("- [ ] Do 2 of one\n", "");
    project.scratch.write("IMPLEMENTATION_PLAN.md", fixed);
    project.agent("cp $plan \"$HOME/seen\"; work; end");
    assert_eq!(project.scratch.run("loop build").code, Some(0));
    let seen = project.home("seen");
    assert!(seen.contains("- [ ] Do 1 of one") && !seen.contains("Do 2 of one"), "{seen}");
    assert!(!project.plan().contains("Do 2 of one"), "{}", project.plan());
}
