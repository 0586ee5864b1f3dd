//! `ralph resume NAME --max-iterations N`, for loops that run, hold, were cut off, or have reached their limit.

use serde_json::Value;

use crate::scratch::{CLAUDE_RESULT, Run, Scratch, Started, claude_text, wait_for};

/// An agent that tells which limit it knows, and works until there is a file `go.N`.
fn patient(scratch: &Scratch) {
    let says = format!("echo '{}'\necho '{CLAUDE_RESULT}'", claude_text("on it"));
    scratch.agent(
        "claude",
        &format!(
            "cat > prompt.new; echo $RALPH_TOTAL > total.$RALPH_ITERATION; mv prompt.new prompt.$RALPH_ITERATION\n\
             while [ ! -e go.$RALPH_ITERATION ]; do sleep 0.02; done\n{says}"
        ),
    );
    scratch.write("limited.md", "At most $MAX_ITERATIONS.\n<promise>COMPLETE</promise>\n");
}

fn status(scratch: &Scratch) -> Value {
    serde_json::from_str(&scratch.run("status --json").stdout).unwrap_or(Value::Null)
}

fn wait_for_attempt(scratch: &Scratch, number: u32) {
    let prompt = scratch.path(&format!("prompt.{number}"));
    wait_for("an attempt", || prompt.exists().then_some(()));
}

fn go(scratch: &Scratch, numbers: std::ops::RangeInclusive<u32>) {
    numbers.for_each(|number| scratch.write(&format!("go.{number}"), ""));
}

fn said(run: &Run) -> &str {
    assert_eq!(run.code, Some(0), "{run:?}");
    &run.stdout
}

fn starts(scratch: &Scratch) -> Vec<String> {
    let log = scratch.read(".ralph/iterations.log");
    log.lines().filter_map(|line| Some(line.split_once("[START] iteration ")?.1.to_owned())).collect()
}

#[test]
fn a_loop_at_work_goes_by_the_new_limit() {
    let scratch = Scratch::new();
    patient(&scratch);
    let ralph = Started::new(&scratch, "prompt limited.md 2");
    wait_for_attempt(&scratch, 1);
    let run = scratch.run("resume prompt --max-iterations 3");
    assert_eq!(said(&run), "loop 'prompt' runs at most 3 iterations now\n");
    assert_eq!(status(&scratch)["max_iterations"], 3);
    go(&scratch, 1..=3);
    let run = ralph.finish();
    assert!(run.stdout.contains("Total Iterations: 3\n"), "{run:?}");
    assert_eq!(starts(&scratch), ["1/2", "2/3", "3/3"]);
    assert_eq!(scratch.read("total.1"), "2\n");
    assert!(scratch.read("prompt.3").starts_with("At most 3."), "{}", scratch.read("prompt.3"));
    assert_eq!(scratch.read("total.3"), "3\n");
}

#[test]
fn a_new_limit_survives_a_kill() {
    let scratch = Scratch::new();
    patient(&scratch);
    let ralph = Started::new(&scratch, "prompt limited.md 2");
    wait_for_attempt(&scratch, 1);
    said(&scratch.run("resume prompt --max-iterations 3"));
    drop(ralph); // kill -9
    go(&scratch, 1..=3);
    let run = scratch.run("resume prompt");
    assert!(run.stdout.contains("Total Iterations: 3\n"), "{run:?}");
}

#[test]
fn a_loop_that_holds_goes_on_with_it_and_one_with_less_than_it_has_run_ends() {
    let scratch = Scratch::new();
    patient(&scratch);
    let ralph = Started::new(&scratch, "prompt limited.md 9");
    wait_for_attempt(&scratch, 1);
    said(&scratch.run("pause"));
    go(&scratch, 1..=1);
    wait_for("the pause", || (status(&scratch)["status"] == "paused").then_some(()));
    let run = scratch.run("resume prompt -n 2");
    assert_eq!(said(&run), "loop 'prompt' runs at most 2 iterations now\nresumed ralph loop for prompt\n");
    wait_for_attempt(&scratch, 2);
    said(&scratch.run("resume prompt -n 1"));
    go(&scratch, 2..=2);
    assert!(ralph.finish().stdout.contains("Total Iterations: 2\n"));
    assert_eq!(status(&scratch)["exit_reason"], "max_iterations");
}

#[test]
fn one_that_was_killed_or_has_reached_its_limit_runs_up_to_the_new_one() {
    let scratch = Scratch::new();
    patient(&scratch);
    let ralph = Started::new(&scratch, "prompt limited.md 2");
    wait_for_attempt(&scratch, 1);
    drop(ralph);
    go(&scratch, 1..=9);
    let run = scratch.run("resume prompt --max-iterations 3");
    assert!(said(&run).contains("Total Iterations: 3\n"), "{run:?}");
    let refused = scratch.run("resume prompt --max-iterations 3");
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("has run 3 iterations: --max-iterations has to be more"), "{refused:?}");
    let run = scratch.run("resume prompt --max-iterations 5");
    assert!(
        said(&run).contains("Total Iterations: 2\nSuccessful: 2\n"),
        "its own, as its time and cost: {run:?}"
    );
    let refused = scratch.run("resume");
    assert!(
        refused.stderr.contains("(limit)")
            && refused.stderr.contains("'ralph resume prompt --max-iterations 7'")
    );
    assert_eq!(starts(&scratch), ["1/2", "1/3", "2/3", "3/3", "4/5", "5/5"]);
    // It counts all attempts so far, also after an earlier raise.
    assert_eq!(scratch.run("resume prompt --max-iterations 5").code, Some(1));
    said(&scratch.run("resume prompt --max-iterations 6"));
    assert_eq!(starts(&scratch).last().map(String::as_str), Some("6/6"));
    for (args, words) in [("resume prompt -n 0", "'0' is not a number"), ("resume -n 3", "<NAME>")] {
        let run = scratch.run(args);
        assert!(run.code == Some(1) && run.stderr.contains(words), "{run:?}");
    }
}

#[test]
fn a_ralph_md_that_has_reached_its_limit_runs_up_to_the_new_one() {
    let scratch = Scratch::new();
    scratch
        .write("fix/RALPH.md", "---\nagent: sh -c 'echo on it'\n---\nAt most {{ ralph.max_iterations }}.\n");
    said(&scratch.run("run fix -n 2"));
    assert!(said(&scratch.run("resume fix --max-iterations 3")).contains("Done: 1 iterations"));
    assert_eq!(status(&scratch)["current_iteration"], 3);
}

#[test]
fn a_budget_that_is_used_up_without_proof_is_unproven_and_goes_on_with_a_higher_one() {
    use crate::policies::{assert_end, attempts, beside, project, prompt, run};
    let scratch = project("complete");
    let validate = "test -e ../good && exit 0; echo nothing is good; exit 1";
    for (budget, reason) in [("--max-tokens 20", "budget"), ("--max-duration 2s", "max_duration")] {
        let before = attempts(&scratch);
        let _ = std::fs::remove_file(beside(&scratch, "good"));
        let ended = run(&scratch, &format!("prompt p.md 500 {budget} --proof place --validate"), &[validate]);
        assert_end(&scratch, &ended, 4, reason, "paused");
        assert!(ended.stdout.contains("the last work is not proven\n"), "{ended:?}");
        assert!(
            ended.stdout.contains("Proof: refuted: test -e ../good ")
                && ended.stdout.contains(": nothing is good\n"),
            "{ended:?}"
        );
        let told = scratch.run("status prompt").stdout;
        assert!(
            told.contains("Status: unproven\n")
                && told.contains("failed (exit code 1): nothing is good\n")
                && told.contains("\nProof: refuted: "),
            "{told}"
        );

        // The suggested next command is valid as printed.
        let overview = scratch.run("").stdout;
        let next = overview.lines().find_map(|line| line.split_once("then ralph resume prompt --max-"));
        let next = next.unwrap_or_else(|| panic!("{overview}")).1.split(',').next().unwrap_or_default();
        std::fs::write(beside(&scratch, "good"), "").unwrap();
        let resumed = scratch.run(&format!("resume prompt --max-{next}"));
        assert_end(&scratch, &resumed, 0, "complete", "stopped");
        assert!(attempts(&scratch) > before + 1);
        let last = prompt(&scratch, attempts(&scratch));
        assert!(last.contains("nothing is good"), "{last}");
    }

    let ralph = scratch.run("resume prompt --max-cost 9");
    assert!(ralph.code == Some(1) && ralph.stderr.contains("has come to its end (done)"), "{ralph:?}");
}
