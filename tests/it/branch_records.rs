//! Records of the loops of branches are with the project, so that they outlive work trees.

use std::fs;
use std::path::PathBuf;

use rustix::process::{Pid, Signal, kill_process};

use crate::branch_project::{BranchProject, plan};
use crate::scratch::{Run, Scratch, finish, wait_for};

fn good(run: &Run) -> &str {
    assert_eq!(run.code, Some(0), "{run:?}");
    &run.stdout
}

/// An agent that holds in its second iteration.
const HOLDS: &str = r#"if [ "$RALPH_ITERATION" = 2 ]; then
    touch "$HOME/held"; while [ ! -e "$HOME/go" ]; do sleep 0.02; done
fi
work; end"#;

/// A project whose build of branch `one` was terminated in its second iteration.
fn cut_off() -> BranchProject {
    let project = BranchProject::without_remote(&plan(&[("one", 2)]));
    project.agent(HOLDS);
    let ralph = project.scratch.start("loop build");
    wait_for("the second iteration", || project.home_path("held").exists().then_some(()));
    for times in 1..=2 {
        kill_process(Pid::from_child(&ralph), Signal::TERM).unwrap();
        wait_for("it to be heard", || {
            (project.events("one").matches("\"asked\"").count() >= times).then_some(())
        });
    }
    assert_eq!(finish(ralph).code, Some(130));
    fs::write(project.home_path("go"), "").unwrap();
    project
}

#[test]
fn records_outlive_work_trees() {
    let project = BranchProject::without_remote(&plan(&[("one", 2), ("feature/two", 1)]));
    let scratch = &project.scratch;
    good(&scratch.run("loop build"));
    let said = |args: &str| good(&scratch.run(args)).to_owned();
    let before = (said("logs one"), said("logs one --agent"), said("status feature/two --json"));
    said("clean --worktrees");
    assert!(!scratch.path(".worktrees/one").exists());

    assert_eq!((said("logs one"), said("logs one --agent"), said("status feature/two --json")), before);
    assert!(before.0.contains("iteration 2/20") && before.1.contains("▶ Iteration 2 · "), "{before:?}");
    assert!(said("ls").contains("feature/two"));
    assert_eq!(said("status --json").matches("\"name\":").count(), 2);
    let run = scratch.run("revert one");
    assert!(run.code == Some(1) && run.stderr.contains("the work tree of 'one' is gone"), "{run:?}");
    // Also without a home directory.
    fs::remove_dir_all(project.home_path("state")).unwrap();
    assert_eq!(said("status one --json").lines().count(), 1);

    let ends: Vec<PathBuf> = fs::read_dir(scratch.path(".ralph/runs"))
        .unwrap()
        .map(|run| run.unwrap().path().join("end.json"))
        .filter(|end| end.exists())
        .collect();
    let [end] = &ends[..] else { panic!("{ends:?}") };
    let folder = end.parent().unwrap();
    let end: serde_json::Value = serde_json::from_str(&fs::read_to_string(end).unwrap()).unwrap();
    assert_eq!((&end["event"], &end["exit_code"]), (&"build_ended".into(), &0.into()));
    assert_eq!(end["branches"][1]["branch"], "feature/two");
    assert_eq!(end["run"], folder.file_name().unwrap().to_str().unwrap());
    assert!(folder.join("feature%2Ftwo").is_dir() && folder.join("one").is_dir());
    // Its records are never committed.
    assert_eq!(scratch.git(&["status", "--porcelain", "--", ".ralph"]), "");

    said("clean");
    assert_eq!(said("status"), "");
    assert!(scratch.path(".ralph/runs/branches/one/iterations.log").exists(), "logs stay");
    assert!(!scratch.path(".worktrees").join("one").exists(), "and no tree is begun");
}

#[test]
fn a_build_goes_on_after_its_work_tree_was_removed() {
    let project = cut_off();
    good(&project.scratch.run("clean --worktrees"));
    let run = project.scratch.run("resume");
    assert!(run.stderr.contains("resuming at iteration 2"), "{run:?}");
    assert_eq!((run.code, project.calls("one")), (Some(0), 3), "{run:?}");
    assert_eq!(project.commits("one"), ["Do 1 of one", "Do 2 of one"]);
    assert_eq!(project.state("one")["iteration"].as_integer(), Some(2));
    let log = good(&project.scratch.run("logs one")).to_owned();
    assert_eq!(log.matches("[START] iteration 2").count(), 2, "{log}");
}

#[test]
fn a_lost_state_of_a_branch_is_made_anew_from_its_newest_run() {
    for is_gone in [false, true] {
        let project = BranchProject::without_remote(&plan(&[("one", 9)]));
        project.agent("work; end");
        for iteration in 1..=4 {
            project.scratch.run("loop build --max-iterations 1");
            assert_eq!(project.state("one")["iteration"].as_integer(), Some(iteration));
        }
        let state = project.scratch.path(".ralph/runs/branches/one/state.toml");
        if is_gone {
            fs::remove_file(state).unwrap();
        } else {
            fs::write(state, "").unwrap();
        }
        let said = project.scratch.run("status one").stdout;
        assert!(said.contains("Iteration: 4"), "{said}");
        project.scratch.run("loop build --max-iterations 1");
        assert_eq!(project.state("one")["iteration"].as_integer(), Some(5));
    }
}

#[test]
fn another_loop_in_a_work_tree_keeps_its_own_records() {
    let project = BranchProject::without_remote(&plan(&[("one", 1)]));
    let scratch = &project.scratch;
    good(&scratch.run("loop build"));
    let tree = scratch.path(".worktrees/one");
    fs::write(tree.join("p.md"), "Do it, then say <promise>COMPLETE</promise>.\n").unwrap();
    scratch.agent("claude", "cat > /dev/null; say '<promise>COMPLETE</promise>'; result");
    let prompt = Scratch::finish(scratch.ralph("prompt p.md 1").current_dir(&tree));
    assert_eq!(prompt.code, Some(0), "{prompt:?}");
    fs::remove_file(tree.join("p.md")).unwrap();

    let names = |run: &Run| {
        let value: serde_json::Value = serde_json::from_str(good(run)).unwrap();
        let loops = value.as_array().cloned().unwrap_or_else(|| vec![value]);
        let mut names: Vec<String> =
            loops.iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect();
        names.sort();
        names
    };
    assert_eq!(names(&scratch.run("status --json")), ["one", "prompt"]);
    let again = project.plan().replace("Status: done\n", "");
    scratch.write("IMPLEMENTATION_PLAN.md", again);
    good(&scratch.run("loop build"));
    assert!(tree.join(".ralph/state.toml").exists(), "it is not taken for the branch's");

    good(&scratch.run("clean --worktrees"));
    assert_eq!(names(&scratch.run("status --json")), ["one"]);
    let kept = scratch.path(".ralph/runs/earlier/one/others");
    assert!(kept.join("state.toml").exists() && kept.join("iterations.log").exists());
}

#[test]
fn two_ralph_dirs_never_build_in_one_work_tree() {
    let project = BranchProject::without_remote(&plan(&[("one", 2)]));
    project.agent(HOLDS);
    let first = project.scratch.start("loop build");
    wait_for("the second iteration", || project.home_path("held").exists().then_some(()));
    let calls = project.calls("one");
    let second = project.scratch.run("loop build --ralph-dir other");
    assert!(second.code == Some(1) && second.stderr.contains("another loop is running here"), "{second:?}");
    assert_eq!(project.calls("one"), calls);
    fs::write(project.home_path("go"), "").unwrap();
    assert_eq!(finish(first).code, Some(0));
}
