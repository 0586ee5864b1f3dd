//! A fresh agent reviews work before it counts as done.

use std::fs;

use rustix::process::Signal;
use serde_json::Value;

use crate::processes::send;
use crate::scratch::{Run, Scratch, claude_says, codex_says, finish, wait_for};

const DONE: &str = "<promise>COMPLETE</promise>";

/// A project whose claude works and claims, and whose codex does this; both keep their prompts as `AGENT.N` beside it.
fn project(works: &str, reviews: &str) -> Scratch {
    let scratch = Scratch::new();
    scratch.git(&["add", "-A"]);
    scratch.git(&["commit", "-qm", "begin"]);
    for (name, body) in [("claude", works), ("codex", reviews)] {
        let counted = format!(
            "n=$(($(cat ../{name}.n 2> /dev/null || echo 0) + 1)); echo $n > ../{name}.n; cat > ../{name}.$n\n{body}"
        );
        scratch.agent(name, &counted);
    }
    scratch.write("ralph.toml", "[review]\nagent = 'codex'\n");
    scratch
}

fn works() -> String {
    format!("echo $n > work-$n; git add work-$n; git commit -qm \"work $n\"\n{}", claude_says(DONE))
}

fn prompt(scratch: &Scratch, name: &str) -> String {
    fs::read_to_string(scratch.outside().join(name)).unwrap_or_default()
}

fn starts(scratch: &Scratch) -> [String; 2] {
    ["claude.n", "codex.n"].map(|name| prompt(scratch, name).trim().to_owned())
}

fn end(run: &Run) -> Value {
    let line = run.stdout.lines().rfind(|line| line.contains("\"loop_ended\"")).unwrap();
    serde_json::from_str(line).unwrap()
}

#[test]
fn what_a_review_wants_changed_is_in_the_next_prompt_and_then_it_counts() {
    let reviews = format!(
        "if [ $n = 1 ]; then\n{}\nelse\n{}\nfi",
        codex_says("I looked.\n<review-changes>work-1 is not tested</review-changes>"),
        codex_says("I looked.\n<review-pass/>")
    );
    let scratch = project(&works(), &reviews);
    let base = scratch.git(&["rev-parse", "HEAD"]).trim().to_owned();
    let run = scratch.run("prompt p.md 5 --json --validate true");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(starts(&scratch), ["2", "2"]);
    let first = prompt(&scratch, "codex.1");
    assert!(first.contains(&format!("git diff {base}")) && first.contains("and it has passed"), "{first}");
    assert!(first.contains("+1") && first.contains("> Do it, then say"), "{first}");
    let second = prompt(&scratch, "claude.2");
    assert!(second.contains("work-1 is not tested"), "{second}");
    assert!(!prompt(&scratch, "claude.1").contains("work-1 is not tested"));
    let by = end(&run)["proof"]["by"].as_str().unwrap().to_owned();
    assert!(by.ends_with(" and a reviewing agent") && by.contains("clean tree"), "{by}");
}

#[test]
fn a_review_that_is_never_content_ends_the_loop_unproven_with_its_words() {
    let scratch = project(&works(), &codex_says("<review-changes>it is too slow</review-changes>"));
    scratch.write("ralph.toml", "[review]\nagent = 'codex'\nrounds = 2\n");
    let run = scratch.run("prompt p.md 9 --json");
    assert_eq!(run.code, Some(4), "{run:?}");
    assert_eq!(starts(&scratch), ["2", "2"]);
    let end = end(&run);
    assert_eq!(end["exit_reason"], "unproven");
    assert!(end["detail"].as_str().unwrap().contains("it is too slow"), "{end}");
    // The next run begins with what is wrong.
    let resumed = scratch.run("resume prompt --max-iterations 4");
    assert!(prompt(&scratch, "claude.3").contains("it is too slow"), "{resumed:?}");
}

#[test]
fn a_reviewing_agent_that_changes_something_or_says_nothing_proves_nothing() {
    let reviews = format!("echo more >> work-1; git commit -qam mine\n{}", codex_says("<review-pass/>"));
    let scratch = project(&works(), &reviews);
    let run = scratch.run("prompt p.md 1 --json");
    assert_eq!(run.code, Some(4), "{run:?}");
    assert_eq!(scratch.git(&["log", "-1", "--format=%s"]).trim(), "work 1", "it is taken back");
    assert_eq!(starts(&scratch), ["1", "2"], "it is asked twice");
    let scratch = project(&works(), &codex_says("It looks good to me."));
    let run = scratch.run("prompt p.md 1 --json");
    assert_eq!(run.code, Some(4), "{run:?}");
    assert!(end(&run)["detail"].as_str().unwrap().contains("did not emit a review sigil"), "{run:?}");
}

#[test]
fn without_a_claim_or_a_green_proof_nobody_is_asked_and_the_flag_needs_no_other_agent() {
    let scratch = project(&claude_says("more"), &codex_says("<review-pass/>"));
    let run = scratch.run("prompt p.md 2 --json");
    assert_eq!(starts(&scratch), ["2", ""], "{run:?}");
    let scratch = project(&works(), &codex_says("<review-pass/>"));
    let run = scratch.run("prompt p.md 1 --json --validate false");
    assert_eq!((run.code, starts(&scratch)), (Some(4), ["1".to_owned(), String::new()]), "{run:?}");

    let claude = format!(
        "if grep -q '^# Review work' ../claude.$n; then\n{}\nelse\n{}\nfi",
        claude_says("<review-pass/>"),
        works()
    );
    let scratch = project(&claude, "exit 1");
    scratch.write("ralph.toml", "");
    let run = scratch.run("prompt p.md 1 --json --review");
    assert_eq!((run.code, starts(&scratch)), (Some(0), ["2".to_owned(), String::new()]), "{run:?}");
    assert_eq!(end(&run)["proof"]["by"], "a reviewing agent");
}

#[test]
fn plans_and_branches_are_reviewed_too() {
    let scratch = project(
        &format!("echo '- [ ] more' >> .ralph/implementation_plan.md\n{}", claude_says(DONE)),
        &codex_says("<review-pass/>"),
    );
    let run = scratch.run("plan 1 --json");
    assert_eq!((run.code, starts(&scratch)), (Some(0), ["1".to_owned(), "1".to_owned()]), "{run:?}");

    let works = format!(
        "echo x > x; git add x; sed -i 's/- \\[ \\]/- [x]/' IMPLEMENTATION_PLAN.md; git add -A; git commit -qm x\n{}",
        claude_says(DONE)
    );
    let scratch = project(&works, &codex_says("<review-pass/>"));
    scratch.write("IMPLEMENTATION_PLAN.md", "# Plan\n\n## Branch: one\nGoal: Have one\n\n- [ ] one\n");
    scratch.git(&["add", "-A"]);
    scratch.git(&["commit", "-qm", "plan"]);
    let run = scratch.run("loop build --json");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stdout.contains("a reviewing agent"), "{run:?}");
}

#[test]
fn what_the_plan_refutes_is_not_reviewed_and_a_limit_of_the_reviewer_is_its_own() {
    let scratch = project(&works(), &codex_says("<review-pass/>"));
    scratch.write(".ralph/implementation_plan.md", "- [ ] one\n");
    let run = scratch.run("build 2 --json");
    assert_eq!((run.code, starts(&scratch)), (Some(4), ["2".to_owned(), String::new()]), "{run:?}");

    let limited = "echo '{\"type\":\"turn.failed\",\"error\":{\"message\":\"You have hit your usage limit. Try again in 2 hours.\"}}'; exit 1";
    let scratch = project(&works(), limited);
    let child = scratch.start("prompt p.md 1");
    wait_for("a wait", || {
        scratch.read_if_there(".ralph/state.toml").contains("status = \"waiting\"").then_some(())
    });
    send(child.id(), Signal::INT);
    finish(child);
    let folder = fs::read_dir(scratch.outside().join("home/state/ralph/limits"));
    let known = folder.into_iter().flatten().map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap());
    assert!(known.into_iter().all(|text| !text.contains("claude")));
}

#[test]
fn a_ralph_md_is_reviewed_by_the_agent_of_the_settings() {
    let scratch = project(&works(), &codex_says("<review-pass/>"));
    scratch.write("RALPH.md", "---\nagent: claude --output-format stream-json -p\n---\nDo it.\n");
    let run = scratch.run("run RALPH.md -n 1 --json");
    assert_eq!((run.code, starts(&scratch)), (Some(0), ["1".to_owned(), "1".to_owned()]), "{run:?}");
}
