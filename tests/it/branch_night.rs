//! Eight branches in parallel, some of which fail, and a ralph that is killed in the middle.

use std::collections::BTreeSet;

use crate::branch_project::{BranchProject, plan};
use crate::scratch::{Run, Started, wait_for};

/// Two always fail, one hangs, one reaches a usage limit at first, four do their work.
const NIGHT: &str = r#"case $RALPH_BRANCH in
  fails-*) echo 'no luck today' >&2; exit 1 ;;
  hangs) setsid sleep 600 & sleep 600 ;;
  limited)
    if mkdir "$HOME/limited" 2> /dev/null; then
      printf '{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":%s}}\n' $(( $(date +%s) + 3 ))
      echo '{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"result":"You have hit your limit"}'
      exit 1
    fi ;;
esac
sleep 0.2; work; end"#;

const GOOD: [&str; 5] = ["one", "two", "feature/three", "four", "limited"];

/// The results of the branches: each task exactly once, all published.
fn everything_once(project: &BranchProject) {
    for branch in GOOD {
        let commits = project.commits(branch);
        let tasks: BTreeSet<&String> = commits.iter().collect();
        assert_eq!((commits.len(), tasks.len()), (3, 3), "{branch}: {commits:?}");
        assert_eq!(project.pushed(branch), Some(project.head(branch)), "{branch}");
    }
    let gh = project.home("gh");
    for branch in GOOD {
        assert_eq!(gh.matches(&format!("--head {branch} ")).count(), 1, "{branch}: {gh}");
    }
    assert_eq!(project.plan().matches("Status: done\nPR: https://").count(), GOOD.len());
}

#[test]
fn eight_branches_survive_failures_and_a_kill() {
    let branches =
        [GOOD.as_slice(), &["fails-always", "fails-too", "hangs"]].concat().into_iter().map(|name| (name, 3));
    let project = BranchProject::new(&plan(&branches.collect::<Vec<_>>()));
    project.agent(NIGHT);
    let command = "loop build --timeout 6s";
    let ralph = Started::new(&project.scratch, command);
    wait_for("work in progress", || {
        let calls = project.home("calls");
        (calls.lines().any(|line| line.ends_with(" 2")) && calls.contains("hangs")).then_some(())
    });
    drop(ralph); // kill -9
    project.scratch.await_nothing_left();
    let killed = project.scratch.run("status --json");
    assert!(
        killed.stdout.contains("\"status\":\"killed\"") && !killed.stdout.contains("\"running\""),
        "{killed:?}"
    );
    let exists = |branch: &str| !project.scratch.git(&["branch", "--list", branch]).is_empty();
    // On a slow machine some have not been made by then.
    let commits = |branch: &&str| if exists(branch) { project.commits(branch) } else { Vec::new() };
    let before: Vec<Vec<String>> = GOOD.iter().map(commits).collect();

    let run: Run = project.scratch.run(command);
    assert_eq!(run.code, Some(4), "{run:?}");
    for (branch, before) in GOOD.iter().zip(before) {
        assert!(project.commits(branch).starts_with(&before), "{branch} lost something");
    }
    everything_once(&project);
    project.scratch.await_nothing_left();
    for (branch, reason) in [("fails-always", "failed"), ("fails-too", "failed"), ("hangs", "failed")] {
        assert_eq!(project.state(branch)["exit_reason"].as_str(), Some(reason), "{branch}");
    }
    assert_eq!(project.state("hangs")["timeouts"].as_integer().map(|count| count >= 3), Some(true));
    for text in ["fails-always", "failed", "https://example.com/pr/"] {
        assert!(run.stdout.contains(text), "{text}: {run:?}");
    }
}
