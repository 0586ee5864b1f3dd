//! When a loop stops or waits: every policy, through the flags and through the settings.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::scratch::{Run, Scratch, finish, wait_for};

/// What an agent's script can say, in claude's words. It counts its attempts as lines of `../attempts`, right wherever it is
/// cut off, and keeps every prompt in `../prompt-N`: outside of the project, where nothing of it is a change.
const WORDS: &str = r#"
echo >> ../attempts; mapfile -t attempts < ../attempts; n=${#attempts[@]}
cat > ../prompt-$n
say() { printf '{"type":"assistant","message":{"model":"m","content":[{"type":"text","text":"%s"}]},"parent_tool_use_id":null}\n' "$1"; }
tool_says() { printf '{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t","content":"%s"}]}}\n' "$1"; }
ok() { printf '{"type":"result","subtype":"success","is_error":false,"result":"","total_cost_usd":0.02,"usage":{"input_tokens":10,"output_tokens":5}}\n'; }
bad() { printf '{"type":"result","subtype":"success","is_error":true,"api_error_status":%s,"terminal_reason":"%s","result":"%s"}\n' "$1" "$2" "$3"; exit 1; }
limit() { printf '{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":%s}}\n' "$1"; bad 429 x "You have hit your limit"; }
complete() { say '<promise>COMPLETE</promise>'; ok; }
"#;

/// A project with an agent `claude` that does this.
pub(crate) fn project(body: &str) -> Scratch {
    let scratch = Scratch::new();
    agent(&scratch, body);
    scratch.write("tracked.txt", "one\n");
    scratch.git(&["add", "."]);
    scratch.git(&["commit", "--quiet", "--message", "begin"]);
    scratch
}

pub(crate) fn agent(scratch: &Scratch, body: &str) {
    scratch.agent("claude", &format!("{WORDS}\n{body}"));
}

pub(crate) fn beside(scratch: &Scratch, name: &str) -> PathBuf {
    scratch.root().parent().unwrap().join(name)
}

pub(crate) fn attempts(scratch: &Scratch) -> u32 {
    let lines = std::fs::read_to_string(beside(scratch, "attempts")).unwrap_or_default();
    u32::try_from(lines.lines().count()).unwrap()
}

pub(crate) fn prompt(scratch: &Scratch, attempt: u32) -> String {
    std::fs::read_to_string(beside(scratch, &format!("prompt-{attempt}"))).unwrap()
}

/// `exit_reason` and `status` of the state file.
fn end(scratch: &Scratch) -> (String, String) {
    let state = scratch.state();
    let text = |key: &str| state[key].as_str().unwrap_or_default().to_owned();
    (text("exit_reason"), text("status"))
}

pub(crate) fn number(scratch: &Scratch, key: &str) -> i64 {
    scratch.state()[key].as_integer().unwrap_or(-1)
}

pub(crate) fn assert_end(scratch: &Scratch, run: &Run, code: i32, reason: &str, status: &str) {
    assert_eq!(run.code, Some(code), "{run:?}");
    assert_eq!(end(scratch), (reason.to_owned(), status.to_owned()), "{run:?}");
}

pub(crate) fn signal(child: &std::process::Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

/// Like [`Scratch::run`], for arguments with blanks in them.
pub(crate) fn run(scratch: &Scratch, args: &str, more: &[&str]) -> Run {
    let mut command = scratch.ralph(args);
    finish(captured(command.args(more)))
}

fn captured(command: &mut Command) -> std::process::Child {
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap()
}

#[test]
fn the_number_of_iterations_is_exact() {
    let scratch = project("say hello; ok");
    let run = scratch.run("prompt p.md 3");
    assert_end(&scratch, &run, 0, "max_iterations", "stopped");
    assert_eq!(attempts(&scratch), 3);
}

#[test]
fn a_failed_iteration_is_tried_again_with_the_same_prompt_after_a_pause_that_doubles() {
    let scratch = project("say hm; bad 400 x broken");
    let run = scratch.run("prompt p.md 3 --max-retries 2 --backoff 0.4");
    assert_end(&scratch, &run, 4, "failed", "failed");
    assert!(run.stdout.contains("Exit Reason: agent failure exceeded retries"), "{run:?}");
    assert!(run.stderr.contains("retry 1/2") && run.stderr.contains("retry 2/2"), "{run:?}");
    assert!(run.stderr.contains("broken"), "{run:?}");
    assert_eq!(attempts(&scratch), 3);
    assert_eq!(prompt(&scratch, 1), prompt(&scratch, 3));
    // Half a second and one, each up to a quarter less.
    assert!(run.elapsed > Duration::from_millis(900), "{run:?}");
    assert!(scratch.session_log().contains("\nRetries: 2\n"));

    agent(&scratch, "if [ $n = 4 ]; then bad 400 x broken; else complete; fi");
    let run = scratch.run("prompt p.md 3");
    assert_end(&scratch, &run, 0, "complete", "stopped");
    assert_eq!((attempts(&scratch), number(&scratch, "iteration")), (5, 1));
}

#[test]
fn a_retry_after_a_crash_gets_the_same_prompt_too() {
    let scratch = project("[ $n = 1 ] && bad 400 x broken; complete");
    let child = scratch.start("prompt p.md 1 --backoff 10m");
    wait_for("the failure in the state", || {
        let state = std::fs::read_to_string(scratch.path(".ralph/state.toml")).ok()?;
        state.contains("failed = \"other\"").then_some(())
    });
    signal(&child, Signal::KILL);
    assert_eq!(finish(child).code, None);
    let run = scratch.run("prompt p.md 1 --resume");
    assert_end(&scratch, &run, 0, "complete", "stopped");
    assert_eq!((number(&scratch, "iteration"), number(&scratch, "retries")), (1, 1));
    assert_eq!(prompt(&scratch, 1), prompt(&scratch, 2));
}

#[test]
fn the_breaker_counts_failures_in_a_row_and_stop_on_error_needs_one() {
    let scratch = project("if [ $n = 2 ]; then say fine; ok; else bad 400 x broken; fi");
    let run = scratch.run("prompt p.md 9 --max-retries 0 --max-errors 2");
    assert_end(&scratch, &run, 4, "failed", "failed");
    assert!(run.stdout.contains("Exit Reason: too many failures in a row"), "{run:?}");
    assert_eq!(attempts(&scratch), 4, "the success in between restarts the count");

    for flags in ["--max-errors 2 --stop-on-error", "--stop-on-error", "--max-errors 0"] {
        let before = attempts(&scratch);
        let run = scratch.run(&format!("prompt p.md 9 --max-retries 0 {flags}"));
        assert_eq!((run.code, attempts(&scratch) - before), (Some(4), 1), "{flags}: {run:?}");
    }
}

#[test]
fn an_idle_loop_ends_and_what_ralph_or_a_validation_writes_is_no_change() {
    let lazy =
        "say thinking; ok; echo $n > .ralph/last_agent_output; mkdir -p .ralph/logs; echo > .ralph/logs/x$n";
    for body in [lazy, "say nothing; ok"] {
        let scratch = project(body);
        let run = scratch.run("prompt p.md 9 --idle 2");
        assert_end(&scratch, &run, 0, "idle", "stopped");
        assert_eq!(attempts(&scratch), 2, "{body}");
    }
    let scratch = project("say nothing; ok");
    let run = run(&scratch, "prompt p.md 9 --idle 2", &["--validate", "echo >> trace"]);
    assert_end(&scratch, &run, 0, "idle", "stopped");
    assert_eq!(attempts(&scratch), 2);
}

#[test]
fn a_loop_that_changes_something_is_not_idle() {
    for change in [
        "echo $n >> tracked.txt",
        "echo $n > new-$n.txt",
        "git commit --quiet --allow-empty --message $n",
        "echo $n >> .ralph/implementation_plan.md",
        // Changes of equal size, within one second.
        "printf %03d $n > new.txt",
    ] {
        let scratch = project(&format!("say working; ok; {change}"));
        let run = scratch.run("prompt p.md 3 --idle 1");
        assert_end(&scratch, &run, 0, "max_iterations", "stopped");
        assert_eq!(attempts(&scratch), 3, "{change}");
    }
}

#[test]
fn an_attempt_that_runs_past_the_loops_time_is_ended_and_can_be_resumed() {
    let scratch = project("say starting; setsid sleep 300 & sleep 300");
    let run = scratch.run("prompt p.md 3 --max-duration 1.5s");
    assert_end(&scratch, &run, 0, "max_duration", "paused");
    assert!(run.elapsed < Duration::from_secs(25), "{run:?}");
    scratch.assert_nothing_left();
    assert_eq!(number(&scratch, "iteration"), 1);

    agent(&scratch, "complete");
    let run = scratch.run("prompt p.md 3 --resume");
    assert_end(&scratch, &run, 0, "complete", "stopped");
    assert!(run.stderr.contains("resuming at iteration 1"), "{run:?}");
    assert_eq!(number(&scratch, "iteration"), 1);
}

#[test]
fn pauses_and_validations_end_with_the_loops_time() {
    let scratch = project("say hello; ok");
    let run = scratch.run("prompt p.md 3 --max-duration 1.5s --delay 5m");
    assert_end(&scratch, &run, 0, "max_duration", "paused");
    assert_eq!(attempts(&scratch), 1);

    agent(&scratch, "complete");
    let run =
        crate::policies::run(&scratch, "prompt p.md 3 --max-duration 1.5s", &["--validate", "sleep 300"]);
    // The work could not be validated.
    assert_end(&scratch, &run, 4, "max_duration", "paused");
    assert!(run.elapsed < Duration::from_secs(25), "{run:?}");
}

#[test]
fn budgets_stop_the_next_iteration() {
    for budget in ["--max-cost 0.05", "--max-tokens 40"] {
        let scratch = project("say hello; ok");
        let run = scratch.run(&format!("prompt p.md 9 {budget}"));
        assert_end(&scratch, &run, 0, "budget", "paused");
        assert_eq!(attempts(&scratch), 3, "{budget}");
        // No run begins in which nothing could be begun; the next one has its own limit.
        for again in [&*format!("prompt p.md 9 --resume {budget}"), "resume prompt", "resume"] {
            let run = scratch.run(again);
            let (flag, _) = budget.split_once(' ').unwrap();
            let why = format!(
                "loop 'prompt' has used up what it may: raise {flag}, as in 'ralph resume prompt {flag} "
            );
            assert!(run.code == Some(1) && run.stderr.contains(&why), "{again}: {run:?}");
        }
        assert_eq!((attempts(&scratch), scratch.session_logs().len()), (3, 1), "{budget}");
        let status = scratch.run("status prompt").stdout;
        assert!(status.contains(" (exit code 0; 'ralph resume prompt --max-"), "{status}");
        assert_eq!(scratch.run("prompt p.md 4 --resume --max-cost 0.07 --max-tokens 50").code, Some(0));
        assert_eq!(attempts(&scratch), 4, "{budget}");
    }
}

#[test]
fn an_attempt_that_failed_does_not_outlive_the_validation_before_it() {
    // The second attempt breaks the first one's work, and fails; the budget allows no third.
    for (second, reason) in [("rm proof", "budget"), ("touch other", "budget_failed")] {
        let scratch = project(&format!(
            "if [ $n = 1 ]; then touch proof; say hello; ok; else {second}; ok; exit 1; fi"
        ));
        let run = crate::policies::run(
            &scratch,
            "prompt p.md 9 --max-tokens 25 --proof place",
            &["--validate", "test -e proof"],
        );
        assert_end(&scratch, &run, 4, reason, "paused");
        assert_eq!(attempts(&scratch), 2, "{run:?}");
        let bare = scratch.run("").stdout;
        if reason == "budget_failed" {
            let why = "the budget is used up, and the last iteration failed: ";
            assert!(run.stderr.contains(why) && bare.contains(why), "{bare} {run:?}");
        }
        assert!(bare.contains(", then ralph resume prompt --max-tokens 60"), "{bare}");
        let log = std::fs::read_to_string(scratch.session_logs().pop().unwrap()).unwrap();
        let results = ["[ralph] passed: test -e proof", "[ralph] test -e proof failed"];
        let count = |line: &&str| results.iter().any(|result| line.starts_with(result));
        assert_eq!(log.lines().filter(count).count(), 2, "{log}");
    }
}

#[test]
fn a_budget_in_money_needs_an_agent_that_tells_its_cost() {
    let scratch = Scratch::new();
    scratch.agent("codex", "exit 1");
    let run = scratch.run("prompt p.md 3 --agent codex --max-cost 5");
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.stderr.contains("codex") && run.stderr.contains("--max-tokens"), "{run:?}");
    assert_eq!(run.stderr.lines().count(), 1, "{run:?}");
    assert!(scratch.session_logs().is_empty());
}

#[test]
fn the_done_pattern_looks_at_what_the_assistant_says_and_at_nothing_else() {
    let body = "tool_says 'all green'; [ $n = 2 ] && say 'Now it is all  green.' || say hello; ok; echo 'all green' >&2";
    let scratch = project(body);
    scratch.write("p.md", "Work until it is all green. <promise>COMPLETE</promise>\n");
    let run = run(&scratch, "prompt p.md 5", &["--done-pattern", r"all\s+green\."]);
    assert_end(&scratch, &run, 0, "done_pattern", "stopped");
    assert_eq!(attempts(&scratch), 2);

    let run = crate::policies::run(&scratch, "prompt p.md 5", &["--done-pattern", "(all"]);
    assert_eq!((run.code, run.stderr.lines().count()), (Some(1), 1), "{run:?}");
    assert!(run.stderr.contains("--done-pattern") && run.stderr.contains("unclosed group"), "{run:?}");
    assert_eq!(attempts(&scratch), 2);
}

#[test]
fn an_unproven_complete_is_not_believed_and_the_next_prompt_says_why() {
    let scratch = project("complete; echo $n > work");
    let validate = "echo 'expected ``` 3'; echo >&2 from stderr; test $(cat work) = 3";
    let run = run(&scratch, "prompt p.md 9 --proof place", &["--validate", validate]);
    assert_end(&scratch, &run, 0, "complete", "stopped");
    assert_eq!((attempts(&scratch), number(&scratch, "iteration")), (3, 3));
    let log = scratch.session_log();
    assert_eq!(log.matches("Status: complete-unproven\n").count(), 2, "{log}");
    assert_eq!(log.matches("Status: success\n").count(), 1, "{log}");
    assert!(!prompt(&scratch, 1).contains("## "));
    let second = prompt(&scratch, 2);
    let (before, section) = second.split_once("\n## ").expect("a section about the validation");
    assert_eq!(before.trim(), "Do it, then say <promise>COMPLETE</promise>.");
    assert!(section.to_lowercase().contains("validation error of the previous iteration"), "{section}");
    assert!(section.contains("\n````\nexpected ``` 3\nfrom stderr\n(exit code 1)\n````\n"), "{section}");
    assert!(section.contains("Fix this first"), "{section}");
}

#[test]
fn a_validation_that_hangs_is_ended_and_leaves_nothing_behind() {
    let scratch = project("[ $n = 1 ] && say first || complete; ok");
    scratch.write(".ralph/config", "VALIDATION_TIMEOUT=1.5\n");
    let validate = "test -f ../begun && exit 0; touch ../begun; setsid sleep 300 & echo working; sleep 300";
    let run = run(&scratch, "prompt p.md 5 --proof place", &["--validate", validate]);
    assert_end(&scratch, &run, 0, "complete", "stopped");
    let second = prompt(&scratch, 2);
    assert!(second.contains("working\n(did not end within 1.5s and was ended)"), "{second}");
    scratch.assert_nothing_left();
    assert!(run.elapsed < Duration::from_secs(30), "{run:?}");

    // A command that ends by itself also takes its children with it, even if they hold its output open.
    let validate = "sleep 300 & touch ../again; exit 0";
    let run = crate::policies::run(&scratch, "prompt p.md 1 --proof place", &["--validate", validate]);
    assert!(run.code == Some(0) && beside(&scratch, "again").exists(), "{run:?}");
    scratch.assert_nothing_left();
}

#[test]
fn what_cannot_get_better_is_not_tried_again() {
    let scratch = project("bad 401 x 'OAuth token has expired'");
    let run = scratch.run("prompt p.md 3");
    assert_end(&scratch, &run, 4, "not_logged_in", "failed");
    assert!(run.stderr.contains("token has expired"), "{run:?}");
    assert!(run.stderr.contains("run 'claude' and log in, or set ANTHROPIC_API_KEY"), "{run:?}");
    assert_eq!(attempts(&scratch), 1);

    agent(&scratch, "bad null prompt_too_long 'Prompt is too long'");
    let run = scratch.run("prompt p.md 3");
    assert_end(&scratch, &run, 4, "failed", "failed");
    assert!(run.stderr.contains("Prompt is too long"), "{run:?}");
    assert_eq!(attempts(&scratch), 2);
}

#[test]
fn settings_do_what_the_flags_do() {
    let scratch = project("say hello; ok");
    let run = |env: &[(&str, &str)], args: &str| {
        let before = attempts(&scratch);
        let mut command = scratch.ralph(args);
        let run = finish(captured(command.envs(env.iter().copied())));
        assert_eq!(run.code, Some(0), "{run:?}");
        (end(&scratch).0, attempts(&scratch) - before)
    };
    let idle = ("idle".to_owned(), 2);
    let all = ("max_iterations".to_owned(), 4);
    assert_eq!(run(&[("RALPH_IDLE_THRESHOLD", "2")], "prompt p.md 4"), idle);
    assert_eq!(run(&[("RALPH_DONE_PATTERN", "hell")], "prompt p.md 4"), ("done_pattern".to_owned(), 1));
    assert_eq!(run(&[("RALPH_MAX_TOKENS", "20")], "prompt p.md 4"), ("budget".to_owned(), 2));
    scratch.write("ralph.toml", "[completion]\nidle_threshold = 2\n[loop]\nmax_iterations = 4\n");
    assert_eq!(run(&[], "prompt p.md"), idle);
    assert_eq!(run(&[], "prompt p.md --idle 0"), all);
    scratch.write(".ralph/config", "IDLE_THRESHOLD=0\n");
    assert_eq!(run(&[], "prompt p.md"), all);
    scratch.write(".ralph/config", "IDLE_THRESHOLD=0\nMAX_COST=0.03\n");
    assert_eq!(run(&[], "prompt p.md"), ("budget".to_owned(), 2));

    let scratch = project("bad 400 x broken");
    scratch.write("ralph.toml", "[loop]\nmax_retries = 1\n[monitoring]\nmax_consecutive_errors = 2\n");
    assert_eq!(scratch.run("prompt p.md 9").code, Some(4));
    assert_eq!(attempts(&scratch), 4, "two iterations, each tried twice");
    scratch.write(".ralph/config", "STOP_ON_ERROR=true\nMAX_RETRIES=0\n");
    assert_eq!(scratch.run("prompt p.md 9").code, Some(4));
    assert_eq!(attempts(&scratch), 5);

    let scratch = project("complete");
    scratch.write("ralph.toml", "[validation]\ncommand = \"false\"\n");
    let run = scratch.run("prompt p.md 2");
    assert_end(&scratch, &run, 4, "unproven", "failed");
    scratch.write("ralph.toml", "[validation]\nenabled = false\ncommand = \"false\"\n");
    assert_end(&scratch, &scratch.run("prompt p.md 2"), 0, "complete", "stopped");
}

#[test]
fn bad_values_are_refused_before_anything_starts() {
    let scratch = project("complete");
    for bad in [
        "--idle -1",
        "--idle two",
        "--max-errors 1.5",
        "--max-duration 0",
        "--max-duration soon",
        "--max-cost 0",
        "--max-cost -3",
        "--max-cost NaN",
        "--max-tokens 0",
        "--max-limit-wait -5m",
        "--backoff soon",
        "--backoff -3",
        "--delay x",
        "--done-pattern [a-",
    ] {
        let run = scratch.run(&format!("prompt p.md 2 {bad}"));
        let flag = bad.split(' ').next().unwrap();
        assert_eq!((run.code, run.stderr.lines().count()), (Some(1), 1), "{bad}: {run:?}");
        assert!(run.stderr.starts_with("error: ") && run.stderr.contains(flag), "{bad}: {run:?}");
    }
    assert_eq!(attempts(&scratch), 0);
    assert!(scratch.session_logs().is_empty());
}

#[test]
fn a_context_that_is_too_long_ends_also_a_loop_that_counts_failures() {
    let scratch = project("bad null prompt_too_long 'Prompt is too long'");
    let run = scratch.run("prompt p.md --max-errors 5");
    assert_eq!(run.code, Some(4), "{run:?}");
    assert!(run.stdout.contains("Total Iterations: 1\n"), "{run:?}");
}

#[test]
fn time_counts_over_all_processes_of_a_loop() {
    let scratch = project("sleep 600");
    let first = scratch.run("prompt p.md --max-duration 1");
    assert_eq!(first.code, Some(0), "{first:?}");
    let second = scratch.run("prompt p.md --max-duration 1 --resume");
    assert!(second.code == Some(1) && second.stderr.contains("raise --max-duration, as in "), "{second:?}");
    assert_eq!(attempts(&scratch), 1, "a loop whose time was over began another attempt");
}

#[test]
fn a_validation_error_outlives_an_iteration_that_failed() {
    let scratch = project("[ $n = 2 ] && exit 7; say working; ok");
    let run = scratch.run("prompt p.md 3 --max-retries 0 --max-errors 9 --validate false");
    assert!(run.stdout.contains("Total Iterations: 3\n"), "{run:?}");
    for n in [2, 3] {
        let prompt = std::fs::read_to_string(beside(&scratch, &format!("prompt-{n}"))).unwrap();
        assert!(prompt.contains("Validation error of the previous iteration"), "{n}: {prompt}");
    }
}

#[test]
fn a_validation_command_that_prints_the_words_of_no_verdict_has_failed() {
    let scratch = project("complete");
    let ended =
        run(&scratch, "prompt p.md 1 --max-errors 9 --validate", &["echo 'not verified: by me'; exit 1"]);
    assert_eq!(ended.code, Some(4), "{ended:?}");
    let status = scratch.run("status prompt").stdout;
    assert!(status.contains(" failed (exit code 1): not verified: by me"), "{status}");
    let transcript = scratch.run("logs --agent").stdout;
    assert!(transcript.contains("\n    not verified: by me"), "{transcript}");
    let report = scratch.run("report --json").stdout;
    assert!(!report.contains("\"undecided\":true") && !report.contains("\"undecided\": true"), "{report}");
}

#[test]
fn the_reason_in_a_long_line_of_stderr_keeps_its_head() {
    for after in ["", "; echo; echo 'and a shorter one'"] {
        let scratch = project(&format!(
            "{{ printf 'error: the disk is on fire '; printf 'x%.0s' {{1..20000}}{after}; }} >&2; exit 1"
        ));
        let run = scratch.run("prompt p.md 1 --max-retries 0");
        assert_eq!(run.code, Some(4), "{run:?}");
        let told = scratch.run("status prompt").stdout;
        assert!(told.contains("error: the disk is on fire x"), "{after}: {told}");
    }
}
