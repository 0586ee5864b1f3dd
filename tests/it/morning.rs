//! Every view after a night: the same loops in the same order, each with the same proof and the same reason.

use regex::Regex;

use crate::branch_project::{BranchProject, plan};
use crate::scratch::{Started, wait_for};

/// Each branch has the name of its end; `sh check.sh` refutes one of them.
const NIGHT: &str = r#"
fault() { printf '{"type":"result","subtype":"success","is_error":true,"api_error_status":%s,"result":"%s"}\n' "$1" "$2"; exit 1; }
costs() { echo '{"type":"result","subtype":"success","is_error":false,"result":"","total_cost_usd":'"$1"',"usage":{"input_tokens":10,"output_tokens":5}}'; }
case $RALPH_BRANCH in
  budget)
    [ "$RALPH_ITERATION" = 1 ] || until [ -e "$HOME/go" ]; do sleep 0.05; done
    work; say 'one more'; costs 3 ;;
  idle) say 'there is nothing to do'; result ;;
  killed) work; touch "$HOME/at-work"; exec sleep 600 ;;
  login) fault 401 'Invalid API key' ;;
  *) work; work; end ;;
esac"#;

/// The branches in the order of every view, with their proof and their reason.
const BRANCHES: [(&str, &str, &str); 7] = [
    ("proven", "proven: sh check.sh", ""),
    (
        "idle",
        "passed: sh check.sh",
        "nothing changes any more, and 2 tasks are open: Do 1 of idle, Do 2 of idle",
    ),
    ("login", "", "Invalid API key"),
    ("refuted", "refuted: sh check.sh failed (exit code 1): 1..2 | not ok 1 - adds", ""),
    // It was built before the others.
    ("unchecked", "unchecked: the agent's word", ""),
    ("budget", "passed: sh check.sh", "budget reached"),
    ("killed", "", "ralph was killed, or the machine went down"),
];

/// The night, up to the `kill -9`.
fn night() -> BranchProject {
    let branches = ["killed", "refuted", "budget", "unchecked", "login", "idle", "proven"];
    let project = BranchProject::without_remote(&plan(&branches.map(|name| (name, 2))));
    let scratch = &project.scratch;
    scratch.write(
        "check.sh",
        "[ \"$(git branch --show-current)\" != refuted ] || { echo 1..2; echo 'not ok 1 - adds'; exit 1; }\n",
    );
    scratch.git(&["add", "check.sh"]);
    scratch.git(&["commit", "--quiet", "--message", "Check"]);
    project.agent(NIGHT);
    assert_eq!(scratch.run("loop build unchecked").code, Some(0));
    // The check asks for the branch that it stands on.
    scratch.write("ralph.toml", "[validation]\ncommand = 'sh check.sh'\n[proof]\nlevel = 'place'\n");
    let ralph = Started::new(scratch, "loop build -m 3 --jobs 6 --max-cost 5");
    let await_ends = |count: usize| {
        wait_for("branches to end", || {
            let told = scratch.run("status").stdout;
            let ended = told.lines().filter(|line| line.contains(" ended ")).count();
            (ended == count && project.home_path("at-work").exists()).then_some(())
        });
    };
    // The budget that they share must not end the others.
    await_ends(BRANCHES.len() - 2);
    std::fs::write(project.home_path("go"), "").unwrap();
    await_ends(BRANCHES.len() - 1);
    // What the branches share is told once, of all of them.
    let shared = "\nbudget of all 6 branches: $6.00/$5.00\n";
    for view in ["", "status"] {
        let told = scratch.run(view).stdout;
        assert!(told.contains(shared) && told.contains("killed  "), "{view}: {told}");
    }
    let one = scratch.run("status budget").stdout;
    assert!(one.contains("Budget: at most $5.00, for all branches together\n"), "{one}");
    drop(ralph);
    scratch.await_nothing_left();
    project
}

/// A name at the begin of a line, behind a sign or none.
fn at_begin_of_line(name: &str) -> Regex {
    Regex::new(&format!(r"(?m)^(?:[^\s\w] |\| `|- `)?({name})(?:`|  )")).unwrap()
}

/// The names of branches at the begins of lines.
fn order(told: &str) -> Vec<String> {
    let line = at_begin_of_line(r"\w+");
    let names = line.captures_iter(told).map(|found| found[1].to_owned());
    names.filter(|name| BRANCHES.iter().any(|(known, ..)| known == name)).collect()
}

#[test]
fn every_view_has_the_same_order_and_the_same_words() {
    let project = night();
    let scratch = &project.scratch;
    let all: Vec<&str> = BRANCHES.iter().map(|(name, ..)| *name).collect();
    let of_run: Vec<&str> = all.iter().copied().filter(|name| *name != "unchecked").collect();
    for (view, expected) in [("", &all), ("status", &all), ("ls", &all), ("report", &of_run)] {
        let told = scratch.run(view).stdout;
        assert_eq!(order(&told), *expected, "{view}: {told}");
        for (name, proof, reason) in BRANCHES.iter().filter(|(name, ..)| expected.contains(name)) {
            let reason = if view == "ls" { "" } else { reason };
            let own = &told[at_begin_of_line(name).find(&told).unwrap().end()..];
            // Up to the line of the next one.
            let own: Vec<&str> = own
                .lines()
                .enumerate()
                .take_while(|(at, line)| *at == 0 || line.starts_with(' '))
                .map(|(_, line)| line)
                .collect();
            let own = own.join("\n");
            assert!(own.contains(proof) && own.contains(reason), "{view} {name}: {told}");
            assert!(!proof.is_empty() || !own.contains("proven:"), "{view} {name}: {told}");
        }
    }
    let markdown = scratch.run("report --md").stdout;
    assert_eq!(order(&markdown), [&of_run[..], &of_run[..]].concat(), "{markdown}");
    assert!(scratch.run("report").stdout.lines().next().unwrap().contains(", last heard of at "));

    let history = scratch.run("history").stdout;
    assert!(history.lines().nth(1).unwrap().ends_with("  1 proven, 2 passed, 1 refuted"), "{history}");
    assert!(history.lines().nth(2).unwrap().ends_with("  unchecked: the agent's word"), "{history}");
    let history: serde_json::Value = serde_json::from_str(&scratch.run("history --json").stdout).unwrap();
    assert_eq!(history[1]["loops"][0]["proof"]["standing"], "unchecked", "{history:#}");

    // What is to be typed next is the same, too, and what is merged is over.
    let next = |branch: &str| {
        let status = scratch.run(&format!("status {branch}")).stdout;
        status.lines().find_map(|line| line.strip_prefix("Next: ").map(str::to_owned))
    };
    assert_eq!(next("proven").as_deref(), Some("git merge proven"));
    scratch.git(&["merge", "--quiet", "proven"]);
    assert_eq!(next("proven"), None);
    let moved: Vec<&str> = all[1..].iter().chain(&all[..1]).copied().collect();
    for view in ["", "status", "ls"] {
        assert_eq!(order(&scratch.run(view).stdout), moved, "{view}");
    }
    let told = scratch.run("").stdout;
    let over = told.split_once("\nOver\n").unwrap().1.lines().next().unwrap();
    assert!(over.starts_with("✓ proven  done ") && over.ends_with("  proven: sh check.sh"), "{told}");
}
