//! The report of eight branches that end in eight ways: each in its own words, with the next command.

use serde_json::Value;

use crate::branch_project::{BranchProject, plan};
use crate::scratch::{Scratch, Started, wait_for};

/// Each branch has the name of its end.
const NIGHT: &str = r#"
fault() { printf '{"type":"result","subtype":"success","is_error":true,"api_error_status":%s,"result":"%s"}\n' "$1" "$2"; exit 1; }
case $RALPH_BRANCH in
  done) work; end ;;
  unproven) say 'All is well. <promise>COMPLETE</promise>'; result ;;
  failed) echo 'error: no luck today' >&2; exit 1 ;;
  error) fault 401 'Invalid API key' ;;
  limit) work; say 'one more'; result ;;
  idle) say 'there is nothing to do'; result ;;
  replan) say '<promise>REPLAN</promise>'; result ;;
  cancelled) work; touch "$HOME/at-work"; exec sleep 600 ;;
esac"#;

/// A branch, its tasks, how many of them are done, the sign of its end, words of its reason, what to do next, and its group.
const BRANCHES: [(&str, usize, usize, &str, &str, &str, &str); 8] = [
    ("done", 2, 2, "✓", "unchecked: the agent's word", "ralph diff done", "needs_you"),
    ("unproven", 2, 0, "?", "2 tasks of the plan are open", "ralph logs unproven --agent", "needs_you"),
    ("failed", 2, 0, "✗", "error: no luck today", "ralph logs failed --agent", "needs_you"),
    ("error", 2, 0, "✗", "Invalid API key", "claude", "needs_you"),
    ("limit", 9, 5, "■", "max iterations reached", "ralph loop build limit", "can_go_on"),
    (
        "idle",
        2,
        0,
        "■",
        "nothing changes any more, and 2 tasks are open",
        "ralph logs idle --agent",
        "needs_you",
    ),
    ("replan", 2, 0, "■", "", "ralph loop plan", "needs_you"),
    ("cancelled", 2, 1, "■", "", "ralph loop build cancelled", "can_go_on"),
];

/// Runs the night, and returns what it printed at its end.
fn night() -> (BranchProject, String) {
    let branches = BRANCHES.map(|(name, tasks, ..)| (name, tasks));
    let project = BranchProject::without_remote(&plan(&branches));
    project.agent(NIGHT);
    let ralph = Started::new(&project.scratch, "loop build -m 5 --jobs 8");
    wait_for("the branch that is cancelled", || project.home_path("at-work").exists().then_some(()));
    // Before it ends all of them are there as well, and what is ticked in a work tree counts.
    wait_for("a report of the night as far as it has come", || {
        let report: Value = serde_json::from_str(&report(&project, " --json")).unwrap();
        let rows = report["loops"].as_array().unwrap();
        let names: Vec<_> = rows.iter().filter_map(|row| row["name"].as_str()).collect();
        let cancelled = rows.iter().find(|row| row["name"] == "cancelled")?;
        (names.len() == BRANCHES.len() && cancelled["tasks"]["done"] == 1).then_some(())
    });
    let cancelled = project.scratch.run("cancel --now cancelled");
    assert_eq!(cancelled.code, Some(0), "{cancelled:?}");
    let run = ralph.finish();
    assert_eq!(run.code, Some(4), "the worst of all: {run:?}");
    (project, run.stdout)
}

fn report(project: &BranchProject, args: &str) -> String {
    let run = project.scratch.run(&format!("report{args}"));
    assert_eq!((run.code, &*run.stderr), (Some(0), ""), "{run:?}");
    run.stdout
}

#[test]
fn eight_branches_that_end_in_eight_ways_are_told_in_their_own_words() {
    let (project, printed) = night();
    let text = report(&project, "");
    let json: Value = serde_json::from_str(&report(&project, " --json")).unwrap();
    let rows = json["loops"].as_array().unwrap();
    assert_eq!(rows.len(), BRANCHES.len());
    let groups: Vec<&str> = rows.iter().filter_map(|row| row["group"].as_str()).collect();
    assert!(groups[..6] == ["needs_you"; 6] && groups[6..] == ["can_go_on"; 2], "{groups:?}");
    for (name, total, done, sign, reason, next, group) in BRANCHES {
        let row = rows.iter().find(|row| row["name"] == name).unwrap();
        assert_eq!((&row["end"], &row["group"]), (&name.into(), &group.into()));
        assert_eq!((&row["tasks"]["done"], &row["tasks"]["total"]), (&done.into(), &total.into()), "{name}");
        let why = [&row["reason"], &row["proof"]].map(ToString::to_string).join(" ");
        assert!(why.contains(reason.trim_start_matches("unchecked: ")), "{row:#}");
        assert_eq!(row["next"], next, "{name}");

        let mut lines = text.lines().skip_while(|line| line.split_whitespace().nth(1) != Some(name));
        let line: Vec<&str> = lines.next().unwrap().split_whitespace().collect();
        assert_eq!(line[..4], [sign, name, name, &format!("{done}/{total}")], "{text}");
        assert_eq!(line.contains(&"commit") || line.contains(&"commits"), done > 0, "{line:?}");
        let below: Vec<&str> = lines.take_while(|line| line.starts_with("    ")).collect();
        let (advice, why) = below.split_last().unwrap();
        assert!(advice.starts_with(&format!("    → {next}")), "{text}");
        assert!(why.join(" ").contains(reason), "{text}");
        assert!(printed.contains(name), "the build tells it as well: {printed}");
    }
    let total = text.lines().find(|line| line.starts_with("8 loops: ")).unwrap();
    for (name, ..) in BRANCHES {
        assert!(total.contains(&format!("1 {name}")), "{total}");
    }
    assert!(total.contains(" · 8 commits · "), "{total}");
    assert_eq!(text.lines().last(), Some("Next: ralph diff done"));

    // A merged branch has no next step.
    project.scratch.git(&["merge", "--quiet", "done"]);
    let merged = report(&project, "");
    assert!(!merged.contains("git merge done") && !merged.contains("ralph diff done"), "{merged}");
    assert!(
        !merged.contains("Next: ralph loop build"),
        "nothing that is refuted is paid for again: {merged}"
    );
    project.scratch.git(&["reset", "--quiet", "--hard", "HEAD~2"]);

    // Checking out a branch does not merge it.
    project.scratch.git(&["checkout", "--quiet", "--ignore-other-worktrees", "done"]);
    assert_eq!(report(&project, ""), text);
    project.scratch.git(&["checkout", "--quiet", "master"]);

    // Who stands in the work tree of a branch is told of it, and of the runs of the project.
    let in_tree = |verb| {
        let mut command = project.scratch.ralph(verb);
        Scratch::finish(command.current_dir(project.scratch.path(".worktrees/failed"))).stdout
    };
    let (own, history) = (in_tree("report"), in_tree("history"));
    assert!(own.contains("✗ failed  failed  0/2") && !own.contains("✓ done"), "{own}");
    assert_eq!(history, project.scratch.run("history").stdout);

    // After cleaning, everything can still be reported.
    for clean in ["clean --worktrees --force", "clean"] {
        let run = project.scratch.run(clean);
        assert_eq!(run.code, Some(0), "{run:?}");
    }
    assert!(!project.scratch.path(".worktrees/done").exists());
    assert_eq!(project.scratch.run("ls").stdout, "no loops on this machine\n");
    assert_eq!(report(&project, ""), text);
    let history = project.scratch.run("history").stdout;
    assert_eq!(history.lines().count(), 2, "{history}");
    for (name, ..) in BRANCHES {
        assert!(history.contains(&format!("1 {name}")), "{history}");
    }
}
