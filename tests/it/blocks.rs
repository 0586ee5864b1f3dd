//! Header, footer and summary, and the destinations of each text.

use regex::Regex;

use crate::scratch::{CLAUDE_RESULT, Run, Scratch, claude_says, claude_text, says};

/// A text with its times and durations replaced.
fn masked(text: &str) -> String {
    let time = Regex::new(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d").unwrap();
    let duration = Regex::new(r"(?m)Duration: \d+s$").unwrap();
    let text = time.replace_all(text, "TIME");
    duration.replace_all(&text, "Duration: Ns").into_owned()
}

/// The seed's blocks with the lines drawn.
fn blocks(text: &str) -> String {
    text.replace("====", &"=".repeat(80)).replace("----", &"-".repeat(80))
}

/// The parts of a text that are blocks: everything but the lines that no block has.
fn only_blocks(log: &str, others: &[&str]) -> String {
    log.split_inclusive('\n').filter(|line| !others.iter().any(|other| line.trim_end() == *other)).collect()
}

fn header(iteration: u32, mode: &str) -> String {
    blocks(&format!("====\nITERATION {iteration}\n====\nMode: {mode}\nStart Time: TIME\n----\n"))
}

fn footer(iteration: u32, lines: &str) -> String {
    blocks(&format!("----\nITERATION {iteration} COMPLETE\nEnd Time: TIME\nDuration: Ns\n{lines}====\n\n"))
}

/// The block after an attempt that did not succeed.
fn ended_footer(iteration: u32, lines: &str) -> String {
    footer(iteration, lines).replace("COMPLETE", "ENDED")
}

const DONE: &str = "completion signal detected";

fn summary(counts: [u32; 3], reason: &str, code: i32, attempts: &str) -> String {
    let [total, good, bad] = counts;
    let proof = if reason == DONE { "Proof: unchecked: the agent's word\n" } else { "" };
    blocks(&format!(
        "====\nSESSION SUMMARY\n====\nTotal Iterations: {total}\nSuccessful: {good}\nFailed: {bad}\n\
         Total Duration: Ns\nExit Reason: {reason}\nExit Code: {code}\n{attempts}{proof}====\n"
    ))
}

const USAGE: &str = "Input Tokens: 10\nOutput Tokens: 5\nAgent Cost: $0.0100\n";

fn ended(run: &Run, code: i32) {
    assert_eq!(run.code, Some(code), "{run:?}");
}

#[test]
fn each_text_goes_where_it_belongs() {
    let scratch = Scratch::new();
    let said = claude_text("Working.\n<promise>COMPLETE</promise>");
    scratch.agent("claude", &format!("{}\necho complaint >&2", says(&[&said, CLAUDE_RESULT])));
    let run = scratch.run("prompt p.md 3");
    ended(&run, 0);

    let expected = [
        header(1, "prompt"),
        footer(1, &format!("{USAGE}Status: success\n")),
        summary([1, 1, 0], DONE, 0, ""),
    ]
    .concat();
    assert_eq!(masked(&run.stdout), expected);

    let log = masked(&scratch.session_log());
    assert_eq!(only_blocks(&log, &[&said, CLAUDE_RESULT, "complaint"]), expected);
    for line in [&said, CLAUDE_RESULT, "complaint"] {
        assert_eq!(log.matches(&format!("{line}\n")).count(), 1, "{line}: {log}");
        assert!(!run.stdout.contains(line) && !run.stderr.contains(line), "{line}: {run:?}");
    }
    let (start, end) = (log.find(&header(1, "prompt")).unwrap(), log.find("ITERATION 1 COMPLETE").unwrap());
    assert!(log[start..end].contains("complaint"), "stderr belongs to its attempt: {log}");

    assert!(run.stderr.contains("Working.\n<promise>COMPLETE</promise>\n"), "{run:?}");
    assert_eq!(scratch.read(".ralph/last_agent_output"), format!("{said}\n{CLAUDE_RESULT}\n"));
}

#[test]
fn every_attempt_has_its_own_header_and_footer() {
    let scratch = Scratch::new();
    scratch.write("good.sh", claude_says("<promise>COMPLETE</promise>"));
    scratch.agent(
        "claude",
        "echo x >> tries\n[ $(wc -l < tries) = 3 ] || { printf half; exit 7; }\n. ./good.sh",
    );
    let run = scratch.run("prompt p.md 1");
    ended(&run, 0);
    let expected = [
        header(1, "prompt"),
        ended_footer(1, "Skipped Lines: 1\nStatus: agent-failure\n"),
        header(1, "prompt"),
        ended_footer(1, "Retries: 1\nSkipped Lines: 1\nStatus: agent-failure\n"),
        header(1, "prompt"),
        footer(1, &format!("Retries: 2\n{USAGE}Status: success\n")),
        summary([1, 1, 0], DONE, 0, "Attempts: 3 (2 failed)\n"),
    ]
    .concat();
    assert_eq!(masked(&run.stdout), expected);
    for text in [
        "Agent failure on iteration 1, retry 1/3...",
        "Agent failure on iteration 1, retry 2/3...",
        "claude exited with code 7",
    ] {
        assert!(run.stderr.contains(text), "{text}: {run:?}");
    }
    let log = masked(&scratch.session_log());
    assert_eq!(
        (log.matches("ITERATION 1 COMPLETE\n").count(), log.matches("ITERATION 1 ENDED\n").count()),
        (1, 2)
    );
    assert!(log.contains(&format!("\nhalf\n[ralph] claude exited with code 7\n{}", "-".repeat(80))), "{log}");
    assert!(!scratch.read(".ralph/last_agent_output").contains("half"), "only the last attempt's output");
}

#[test]
fn the_end_of_a_loop_names_its_reason() {
    let scratch = Scratch::new();
    scratch.agent("claude", &claude_says("The plan is wrong. <promise>REPLAN</promise>"));
    let run = scratch.run("build");
    ended(&run, 3);
    assert!(masked(&run.stdout).ends_with(&summary([1, 1, 0], "replan signal detected", 3, "")), "{run:?}");
    let told = "Agent requested re-planning. Run 'ralph plan' to regenerate the implementation plan.";
    assert!(run.stderr.contains(told), "{run:?}");
    assert!(run.stdout.contains("Mode: build\n"));

    scratch.agent("claude", &claude_says("One done, more to do."));
    let run = scratch.run("plan 2");
    ended(&run, 0);
    assert!(masked(&run.stdout).ends_with(&summary([2, 2, 0], "max iterations reached", 0, "")), "{run:?}");

    scratch.agent("claude", "exit 1");
    let run = scratch.run("plan");
    ended(&run, 4);
    let expected = summary([1, 0, 1], "agent failure exceeded retries", 4, "Attempts: 4 (4 failed)\n");
    assert!(masked(&run.stdout).ends_with(&expected), "MAX_RETRIES=3 means four runs: {run:?}");
    assert!(masked(&scratch.session_log()).ends_with(&expected));
}

#[test]
fn two_sessions_in_one_second_have_two_logs() {
    let scratch = Scratch::new();
    scratch.agent("claude", &claude_says("<promise>COMPLETE</promise>"));
    for _ in 0..3 {
        ended(&scratch.run("prompt p.md 1 --quiet"), 0);
    }
    let logs = scratch.session_logs();
    assert_eq!(logs.len(), 3, "{logs:?}");
    let name = Regex::new(r"^session-\d{8}-\d{6}(-\d+)?\.log$").unwrap();
    for log in logs {
        assert!(name.is_match(log.file_name().unwrap().to_str().unwrap()), "{log:?}");
        let text = std::fs::read_to_string(&log).unwrap();
        assert_eq!(text.matches("SESSION SUMMARY").count(), 1, "{log:?}");
        assert!(log.with_extension("events.jsonl").is_file(), "{log:?}");
    }
}

#[test]
fn the_iterations_log_has_a_line_per_step() {
    let scratch = Scratch::new();
    scratch.agent("claude", "exit 9");
    ended(&scratch.run("prompt p.md 5 --max-retries 1"), 4);
    scratch.agent("claude", &claude_says("<promise>COMPLETE</promise>"));
    ended(&scratch.run("prompt p.md 5"), 0);

    let log = scratch.read(".ralph/iterations.log");
    let time = Regex::new(r"(?m)^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d ").unwrap();
    let duration = Regex::new(r"duration=\d+s").unwrap();
    assert_eq!(time.find_iter(&log).count(), log.lines().count(), "{log}");
    let steps = duration.replace_all(&time.replace_all(&log, ""), "duration=Ns").into_owned();
    assert_eq!(
        steps,
        "[START] iteration 1/5\n\
         [FAIL] iteration 1 exit=9 duration=Ns: claude exited with code 9\n\
         [START] iteration 1/5\n\
         [FAIL] iteration 1 exit=9 duration=Ns: claude exited with code 9\n\
         [DONE] loop complete after 1 iterations reason=failed: claude exited with code 9\n\
         [START] iteration 1/5\n\
         [END] iteration 1 exit=0 duration=Ns\n\
         [DONE] loop complete after 1 iterations reason=complete\n"
    );
}

/// A project whose usage command prints a balance that shrinks with every attempt.
fn with_balance(command: &str, parser: &str) -> Scratch {
    let scratch = Scratch::new();
    scratch.agent("claude", &format!("echo x >> spent\n{}", claude_says("<promise>COMPLETE</promise>")));
    scratch.agent("balance", "[ -e spent ] && echo 'You have $9.50 left' || echo 'You have $9.92 left'");
    scratch.write(".ralph/config", format!("AGENT_USAGE_CMD={command}\nAGENT_USAGE_PARSER={parser}\n"));
    scratch
}

const DOLLARS: &str = r#""grep -o '\$[0-9.]*' | head -1 | tr -d '\$'""#;

#[test]
fn a_usage_command_adds_cost_and_balance() {
    let scratch = with_balance("balance", DOLLARS);
    let run = scratch.run("prompt p.md 1");
    ended(&run, 0);
    let expected = footer(1, &format!("Iteration Cost: $0.42\nBalance: $9.50\n{USAGE}Status: success\n"));
    assert!(masked(&run.stdout).contains(&expected), "{run:?}");
    assert!(masked(&scratch.session_log()).contains(&expected));
}

#[test]
fn a_usage_command_that_fails_is_silent() {
    for (command, parser) in [
        ("false", "cat"),
        ("no-such-command", "cat"),
        ("'echo 9.50'", "false"),
        ("'echo nothing of use'", "cat"),
        ("'echo lots >&2; exit 3'", "cat"),
        ("balance", "''"),
        ("'kill -9 $$'", "cat"),
    ] {
        let scratch = with_balance(command, parser);
        let run = scratch.run("prompt p.md 1");
        ended(&run, 0);
        assert!(
            !run.stdout.contains("Balance") && !run.stdout.contains("Iteration Cost"),
            "{command}: {run:?}"
        );
        assert!(!run.stderr.contains("lots") && !run.stderr.contains("not found"), "{command}: {run:?}");
    }
}

#[test]
fn a_usage_command_that_hangs_is_given_up() {
    // The first query hangs for its ten seconds, the second one answers.
    let scratch = with_balance("\"[ -e spent ] || sleep 60; echo 9.50\"", "cat");
    let run = scratch.run("prompt p.md 1");
    ended(&run, 0);
    assert!(run.stdout.contains("\nBalance: $9.50\n") && !run.stdout.contains("Iteration Cost"), "{run:?}");
}

#[test]
fn quiet_shows_the_summary_and_what_went_wrong() {
    let scratch = Scratch::new();
    scratch.agent("claude", &claude_says("Nothing to see. <promise>COMPLETE</promise>"));
    let run = scratch.run("prompt p.md 1 --quiet");
    ended(&run, 0);
    assert_eq!(masked(&run.stdout), summary([1, 1, 0], DONE, 0, ""));
    assert_eq!(run.stderr, "");
    assert!(scratch.session_log().contains("ITERATION 1 COMPLETE"), "the log has everything");

    scratch.agent("claude", "echo 'the disk is on fire' >&2; exit 1");
    let run = scratch.run("-q prompt p.md 1 --max-retries 0");
    ended(&run, 4);
    assert!(run.stderr.contains("the disk is on fire"), "{run:?}");
}

#[test]
fn unread_output_does_not_stop_a_loop() {
    let scratch = Scratch::new();
    scratch.agent("claude", &claude_says("said"));
    let mut child = scratch.start("prompt p.md 2");
    drop((child.stdout.take(), child.stderr.take()));
    assert_eq!(crate::scratch::finish(child).code, Some(0));
    assert!(masked(&scratch.session_log()).ends_with(&summary([2, 2, 0], "max iterations reached", 0, "")));
}

#[test]
fn the_state_file_tells_how_it_ended() {
    let scratch = Scratch::new();
    scratch.agent("claude", &claude_says("<promise>COMPLETE</promise>"));
    ended(&scratch.run("prompt p.md 5"), 0);
    let state = scratch.state();
    assert_eq!(state["active"].as_bool(), Some(false));
    assert_eq!(state["mode"].as_str(), Some("prompt"));
    assert_eq!(state["exit_reason"].as_str(), Some("complete"));
    assert_eq!(state["exit_code"].as_integer(), Some(0));
}

#[test]
fn the_iterations_log_says_why_work_is_not_proven() {
    let scratch = Scratch::new();
    scratch.agent("claude", &claude_says("<promise>COMPLETE</promise>"));
    let mut command = scratch.ralph("prompt p.md 1 --validate");
    ended(&Scratch::finish(command.arg("echo no good; exit 3")), 4);
    let log = scratch.read(".ralph/iterations.log");
    let reason = Regex::new(r"\[END\] iteration 1 exit=0 duration=\d+s: \S").unwrap();
    assert!(reason.is_match(&log), "{log}");
}
