//! What goes wrong around agents that work side by side, and what people do at a bad moment.

use std::fs;
use std::process::Stdio;

use rustix::process::Signal;

use crate::jobs::{RUN, assert_all_landed, attempts, ended, events, jobs, refs};
use crate::policies::signal;
use crate::run_tasks::{add, status};
use crate::scratch::{Scratch, finish, wait_for};

/// The second one that rewrites the line is returned, and the first agent that gets it does this.
fn returned(body: &str) -> (Scratch, [String; 2]) {
    let scratch = jobs(&format!(
        r#"
if [ "$(wc -l < "$HOME/attempts")" -le 2 ]; then
    until [ "$(wc -l < "$HOME/attempts")" -ge 2 ]; do sleep 0.02; done
fi
if [ $fixes = 0 ] && [ ! -e "$HOME/resolved" ]; then echo "$title" > tracked.txt; work
elif [ ! -e "$HOME/resolved" ]; then touch "$HOME/resolved"; {body}
else echo both > tracked.txt; fi
done_"#
    ));
    let ids = [add(&scratch, "first"), add(&scratch, "second")];
    (scratch, ids)
}

#[test]
fn conflict_markers_do_not_land() {
    // Left where they were, and committed twice.
    let commits =
        r#"git add .; git commit -qm merged; elif [ ! -e "$HOME/again" ]; then touch "$HOME/again""#;
    for (leaves, said, attempted) in
        [("true", "there are conflict markers", 4), (commits, "there are still conflict markers", 5)]
    {
        let (scratch, ids) = returned(leaves);
        let run = scratch.run(&format!("{RUN} 2 --validate true"));
        ended(&run, 0);
        assert_all_landed(&scratch, &ids);
        assert_eq!(fs::read_to_string(scratch.path("tracked.txt")).unwrap(), "both\n");
        assert!(run.stderr.contains(&format!("{said} in tracked.txt")), "{run:?}");
        assert_eq!(attempts(&scratch), attempted, "{run:?}");
        assert!(!scratch.git(&["show", "main:tracked.txt"]).contains("<<<<<<<"));
    }
}

#[test]
fn what_an_agent_commits_on_the_trunk_is_told() {
    let scratch = jobs("git checkout -q develop; work; done_");
    scratch.git(&["branch", "develop"]);
    let id = add(&scratch, "first");
    let run = scratch.run(&format!("{RUN} 2 --onto develop --validate ls"));
    ended(&run, 0);
    assert!(run.stderr.contains("the agent has committed on develop itself"), "{run:?}");
    assert_eq!(status(&scratch, &id), "done");
}

#[test]
fn a_conflict_is_resolved_by_either_side_also_without_a_commit_and_whatever_the_users_settings_are() {
    let (scratch, ids) = returned("git checkout --ours tracked.txt; git add tracked.txt");
    scratch.git(&["config", "merge.ff", "only"]);
    let run = scratch.run(&format!("{RUN} 2 --validate true"));
    ended(&run, 0);
    assert_all_landed(&scratch, &ids);
    assert_eq!(attempts(&scratch), 3, "{run:?}");
}

#[test]
fn what_a_person_takes_back_while_the_gate_runs_does_not_land() {
    let scratch = jobs("work; done_");
    let ids = [add(&scratch, "first"), add(&scratch, "second")];
    let gate = "touch \"$PROJECT/../gate\"; until [ -e \"$PROJECT/../go\" ]; do sleep 0.02; done";
    let mut command = scratch.ralph(&format!("{RUN} 2"));
    command.env("PROJECT", scratch.path("")).env("RALPH_LANDING_COMMAND", gate);
    let (gate, go) = (scratch.path("../gate"), scratch.path("../go"));
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for("both to wait for the gate", || {
        (gate.exists() && ids.iter().all(|id| status(&scratch, id) == "landing")).then_some(())
    });
    let taken = scratch.run(&format!("task fail {}", ids[0]));
    assert!(taken.stderr.contains("nothing of it is landed"), "{taken:?}");
    fs::write(go, "").unwrap();
    assert_eq!(finish(child).code, Some(4));
    assert!(!scratch.path(&format!("work-{}", ids[0])).exists());
    assert!(scratch.path(&format!("work-{}", ids[1])).exists());
    // A claim may have been returned before its agent began.
    let kept = refs(&scratch, "tasks");
    assert!(kept.len() == 1 && kept[0].starts_with(&format!("refs/ralph/tasks/{}/", ids[0])), "{kept:?}");
}

#[test]
fn a_tree_is_prepared_again_until_that_has_worked_and_not_once_more() {
    let scratch = jobs("[ -e prepared ] || exit 1; work; done_");
    scratch.write(".gitignore", "prepared\n");
    scratch.git(&["add", "."]);
    scratch.git(&["commit", "-qm", "ignore"]);
    let id = add(&scratch, "first");
    let run = |prepare: &str| {
        let mut command = scratch.ralph(&format!("{RUN} 2 --validate true"));
        Scratch::finish(command.env("RALPH_TASK_PREPARE", prepare))
    };
    let failed = run("exit 1");
    ended(&failed, 1);
    assert!(failed.stdout.contains("execution.prepare fails in "), "{failed:?}");
    let prepare = "touch prepared; echo >> \"$HOME/prepared\"";
    ended(&run(prepare), 0);
    assert_all_landed(&scratch, &[id]);
    let prepared = || fs::read_to_string(scratch.home().join("prepared")).unwrap().lines().count();
    let before = prepared();
    let second = add(&scratch, "second");
    ended(&run(prepare), 0);
    assert_eq!(status(&scratch, &second), "done");
    assert!(prepared() <= before + 1, "at most the other job's tree was new");
}

#[test]
fn ctrl_c_ends_the_command_that_prepares_a_tree() {
    let scratch = jobs("work; done_");
    let id = add(&scratch, "first");
    let mut command = scratch.ralph(&format!("{RUN} 2 --validate true"));
    command.env("RALPH_TASK_PREPARE", "touch \"$HOME/prepares\"; sleep 600");
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for("a tree to be prepared", || scratch.home().join("prepares").exists().then_some(()));
    signal(&child, Signal::INT);
    ended(&finish(child), 130);
    assert_eq!((status(&scratch, &id).as_str(), attempts(&scratch)), ("pending", 0));
}

#[test]
fn an_agent_sees_the_loops_of_its_run() {
    let ralph = env!("CARGO_BIN_EXE_ralph");
    let scratch = jobs(&format!("{ralph} status --json > \"$HOME/sees\"; work; done_"));
    let id = add(&scratch, "first");
    ended(&scratch.run(&format!("{RUN} 2 --validate true")), 0);
    assert_all_landed(&scratch, &[id]);
    let seen: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(scratch.home().join("sees")).unwrap()).unwrap();
    // One loop is an object, several are an array; the other lane may not have begun.
    let loops = seen.as_array().map_or(std::slice::from_ref(&seen), Vec::as_slice);
    let at_work = loops.iter().find(|one| one["current_iteration"] == 1);
    let at_work = at_work.unwrap_or_else(|| panic!("{seen}"));
    assert_eq!(at_work["status"], "running", "{at_work}");
}

#[test]
fn a_job_waits_for_another_one_however_many_tasks_there_are() {
    let scratch = jobs("work; done_");
    let ids: Vec<String> = (0..110).map(|number| add(&scratch, &format!("task-{number}"))).collect();
    // The first one that is ready is the last one of the list.
    for pair in ids.windows(2) {
        ended(&scratch.run(&format!("task deps add {} {}", pair[1], pair[0])), 0);
    }
    let run = scratch.run(&format!("{RUN} 2 --validate true --limit 6"));
    assert!(!run.stderr.contains("nothing is ready: t-"), "{run:?}");
    assert_eq!(events(&scratch, "landed").len(), 6, "{run:?}");
}

#[test]
fn agents_start_from_what_the_user_has_committed_since_the_last_run() {
    let scratch = jobs("ls > \"$HOME/saw\"; work; done_");
    let first = add(&scratch, "first");
    ended(&scratch.run(&format!("{RUN} 2 --validate true")), 0);
    scratch.write("theirs.txt", "");
    scratch.git(&["add", "."]);
    scratch.git(&["commit", "-qm", "theirs"]);
    let second = add(&scratch, "second");
    ended(&scratch.run(&format!("run {second} --no-verify --proof place --validate true")), 0);
    let third = add(&scratch, &format!("third --after {second}"));
    ended(&scratch.run(&format!("{RUN} 2 --validate true")), 0);
    let saw = fs::read_to_string(scratch.home().join("saw")).unwrap();
    assert!(saw.contains("theirs.txt") && saw.contains(&format!("work-{second}")), "{saw}");
    assert_all_landed(&scratch, &[first, second, third]);
}
