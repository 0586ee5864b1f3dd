//! Agents that flood, stammer, hang, lie or die.

use std::fs;
use std::time::Duration;

use crate::processes::tail;
use crate::scratch::{Run, Scratch, finish, side_by_side, wait_for};

const DONE: &str = "say '<promise>COMPLETE</promise>'; result";

/// Runs an agent that is expected to say COMPLETE in its only attempt.
fn complete(agent: &str, flags: &str) -> (Scratch, Run) {
    complete_with("", agent, flags)
}

/// [`complete`] with this line in the config.
fn complete_with(config: &str, agent: &str, flags: &str) -> (Scratch, Run) {
    let scratch = Scratch::new();
    scratch.write(".ralph/config", config);
    scratch.agent("claude", agent);
    let run = scratch.run(&format!("prompt p.md 3 --max-retries 0 {flags}"));
    assert_eq!(run.code, Some(0), "{run:?}\n{}", tail(&scratch.session_log()));
    assert!(run.stdout.contains("Exit Reason: completion signal detected"), "{run:?}");
    scratch.assert_true_files(&run, "stopped");
    scratch.assert_nothing_left();
    (scratch, run)
}

/// Runs an agent that is expected to fail in its only attempt, with this status.
fn fail(agent: &str, flags: &str, status: &str) -> (Scratch, Run) {
    let scratch = Scratch::new();
    scratch.agent("claude", agent);
    let mut stranger = scratch.look_alike("claude");
    let run = scratch.run(&format!("prompt p.md 3 --max-retries 0 {flags}"));
    assert_eq!(run.code, Some(4), "{run:?}");
    assert!(run.stdout.contains(&format!("Status: {status}\n")), "{run:?}");
    assert!(run.stdout.contains("Exit Reason: agent failure, not retried"), "{run:?}");
    scratch.assert_true_files(&run, "failed");
    scratch.assert_nothing_left();
    stranger.assert_alive();
    (scratch, run)
}

#[test]
fn a_prompt_that_is_never_read() {
    let scratch = Scratch::new();
    scratch.write("p.md", format!("{}\n<promise>COMPLETE</promise>\n", "blah ".repeat(2_000_000)));
    scratch.agent("claude", &format!("exec <&-; {DONE}"));
    let run = scratch.run("prompt p.md 3");
    assert_eq!(run.code, Some(0), "{run:?}");
    // Also while stdin stays open.
    scratch.agent("claude", DONE);
    let run = scratch.run("prompt p.md 3");
    assert_eq!(run.code, Some(0), "{run:?}");
    scratch.assert_nothing_left();
}

#[test]
fn a_prompt_of_ten_megabytes_arrives_whole() {
    let scratch = Scratch::new();
    let prompt = format!("{}\n<promise>COMPLETE</promise>\n", "blah ".repeat(2_000_000));
    scratch.write("p.md", &prompt);
    scratch.agent("claude", &format!("cat > $HOME/prompt; {DONE}"));
    let run = scratch.run("prompt p.md 3");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(fs::read_to_string(scratch.home().join("prompt")).unwrap() == prompt, "the prompt was changed");
}

#[test]
fn a_flood_on_stderr_is_kept_and_breaks_no_line() {
    // Lines in two halves, while stderr writes unfinished lines.
    let agent = format!(
        r#"cat > /dev/null
        ( for n in {{1..100}}; do head -c 100000 /dev/zero | tr '\0' '#' >&2; done ) &
        for n in {{1..200}}; do printf '{{"type":"user","half":'; printf '%s}}\n' $n; done
        wait; {DONE}"#
    );
    let (scratch, _) = complete(&agent, "");
    let log = scratch.session_log();
    assert_eq!(log.matches('#').count(), 10_000_000);
    for n in 1..=200 {
        assert!(log.contains(&format!("\n{{\"type\":\"user\",\"half\":{n}}}\n")), "line {n} is broken");
    }
    let raw = scratch.read(".ralph/last_agent_output");
    assert!(!raw.contains('#') && raw.lines().count() == 202, "{}", tail(&raw));
}

#[test]
fn a_line_of_a_hundred_megabytes_takes_no_memory() {
    let scratch = Scratch::new();
    scratch.agent(
        "claude",
        &format!(
            r#"cat > /dev/null; printf '{{"type":"user","x":"'; head -c 100000000 /dev/zero | tr '\0' x; echo '"}}'
            until [ -e $HOME/go ]; do sleep 0.05; done; {DONE}"#
        ),
    );
    let ralph = scratch.start("prompt p.md 3");
    let raw = scratch.path(".ralph/last_agent_output");
    wait_for("the whole line", || (fs::metadata(&raw).ok()?.len() >= 100_000_022).then_some(()));
    let status = fs::read_to_string(format!("/proc/{}/status", ralph.id())).unwrap();
    let peak =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")).unwrap();
    fs::write(scratch.home().join("go"), "").unwrap();
    let run = finish(ralph);
    assert!(peak.trim().parse::<u64>().unwrap() < 64 * 1024, "peak memory: {peak} kB");
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stdout.contains("Skipped Lines: 1\n"), "{run:?}");
    let text = scratch.session_log();
    let long: Vec<&str> = text.lines().filter(|line| line.len() > 1_000_000).collect();
    let whole = format!(r#"{{"type":"user","x":"{}"}}"#, "x".repeat(100_000_000));
    assert!(
        long == [whole],
        "not each byte once: {:?}",
        long.iter().map(|line| line.len()).collect::<Vec<_>>()
    );
}

#[test]
fn bytes_that_are_no_text_and_lines_that_are_no_objects() {
    let agent = r#"cat > /dev/null
printf '\xff\xfe\x00\n'
printf '%s\n' '[1,2]' 42 null '"text"' 'plain words' '{"type":"assistant"' '' '{}' '{"type":7}'
printf '{"type":"user","bytes":"\xff\xfe"}\n'
say $'half a character: \xe2\x82'
say '\ud83d <promise>COMPLETE</promise> \udc00'
result
printf '{"type":"assi'"#;
    let (scratch, run) = complete(agent, "");
    // Blank lines are nothing; the seven others and the last one are skipped.
    assert!(run.stdout.contains("Skipped Lines: 8\n"), "{run:?}");
    assert!(run.stderr.contains("half a character: \u{fffd}"), "{run:?}");
    let log = fs::read(scratch.session_logs().pop().unwrap()).unwrap();
    assert!(log.windows(4).any(|bytes| bytes == b"\xff\xfe\x00\n"), "the bytes were changed");
    assert!(scratch.session_log().contains("{\"type\":\"assi\n----"), "no newline before the footer");
}

#[test]
fn an_agent_that_says_nothing_is_tried_four_times_with_the_same_prompt() {
    let scratch = Scratch::new();
    scratch.agent(
        "claude",
        "cat > $HOME/prompt.$(wc -l < $HOME/pids); echo 'Changed. <promise>COMPLETE</promise>' >> p.md",
    );
    let run = scratch.run("prompt p.md 3");
    assert_eq!(run.code, Some(4), "{run:?}");
    let retries: Vec<&str> = run.stderr.lines().filter(|line| line.contains("retry")).collect();
    for (line, retry) in retries.iter().zip(1..) {
        assert!(line.ends_with(&format!("Agent failure on iteration 1, retry {retry}/3...")), "{line}");
    }
    assert_eq!(retries.len(), 3, "{run:?}");
    let booked: Vec<&str> = run.stdout.lines().filter(|line| line.starts_with("Retries: ")).collect();
    assert_eq!(booked, ["Retries: 1", "Retries: 2", "Retries: 3"]);
    assert_eq!(run.stdout.matches("\nITERATION 1\n").count(), 4, "{run:?}");
    assert!(run.stdout.contains("Total Iterations: 1\nSuccessful: 0\nFailed: 1\n"), "{run:?}");
    assert!(run.stderr.contains("claude printed no JSON object"), "{run:?}");
    let prompts: Vec<String> =
        (1..=4).map(|n| fs::read_to_string(scratch.home().join(format!("prompt.{n}"))).unwrap()).collect();
    assert!(prompts.iter().all(|prompt| *prompt == prompts[0]), "{prompts:?}");
    assert!(!scratch.home().join("prompt.5").exists());
    scratch.assert_true_files(&run, "failed");
}

#[test]
fn a_success_starts_the_count_of_retries_anew() {
    let scratch = Scratch::new();
    scratch.write(".ralph/config", "MAX_RETRIES=1\n");
    scratch.agent(
        "claude",
        "cat > /dev/null; n=$(wc -l < $HOME/pids); [ $((n % 2)) = 0 ] || exit 1; say $n; result",
    );
    let run = scratch.run("prompt p.md 3");
    assert_eq!(run.code, Some(0), "{run:?}");
    for iteration in 1..=3 {
        assert!(
            run.stderr.contains(&format!("Agent failure on iteration {iteration}, retry 1/1...")),
            "{run:?}"
        );
    }
    assert!(run.stdout.contains("Total Iterations: 3\nSuccessful: 3\nFailed: 0\n"), "{run:?}");
}

#[test]
fn death_by_a_signal() {
    for (signal, number) in [("KILL", 9), ("SEGV", 11), ("TERM", 15)] {
        let (scratch, run) = fail(&format!("{DONE}; kill -{signal} $$; sleep 5"), "", "agent-failure");
        assert!(run.stderr.contains(&format!("claude was killed by signal {number}")), "{run:?}");
        assert!(
            scratch
                .read(".ralph/iterations.log")
                .contains(&format!("[FAIL] iteration 1 exit=signal-{number} "))
        );
    }
}

#[test]
fn a_result_without_an_end_is_a_success_after_the_grace() {
    // The limit does not apply after an agent's final event.
    let agent = format!("trap '' INT; cat > /dev/null; {DONE}; while :; do sleep 0.1; done");
    let (_, run) = complete_with("AGENT_GRACE=5", &agent, "--inactivity-timeout 3s");
    assert!(
        run.elapsed > Duration::from_millis(5400),
        "five seconds of grace, a half on the ladder: {run:?}"
    );
}

/// As claude does when background work has ended.
#[test]
fn a_tool_call_after_a_result_means_that_the_agent_goes_on() {
    let call = r#"{"type":"assistant","message":{"model":"m","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{}}]},"parent_tool_use_id":null}"#;
    let agent = format!("cat > /dev/null; say early; result; echo '{call}'; sleep 4; {DONE}");
    complete_with("AGENT_GRACE=2", &agent, "");
}

#[test]
fn too_long_is_too_long_with_and_without_words() {
    for agent in ["sleep 600", "while :; do say still; sleep 0.05; done"] {
        let (scratch, run) = fail(agent, "--timeout 1.5s", "timeout");
        assert!(run.stderr.contains("claude ran longer than 1.5s and was ended (--timeout)"), "{run:?}");
        assert!(
            run.elapsed > Duration::from_millis(1500) && run.elapsed < Duration::from_secs(14),
            "{run:?}"
        );
        assert!(scratch.read(".ralph/iterations.log").contains("[TIMEOUT] iteration 1 "));
    }
}

#[test]
fn silence_is_inactivity() {
    // CPU time of the agent itself while it waits for its model is no sign of life.
    for agent in ["sleep 600", "while :; do :; done"] {
        let (_, run) = fail(agent, "--inactivity-timeout 1s", "timeout");
        assert!(
            run.stderr.contains("claude showed no sign of life for 1s and was ended: no output, "),
            "{run:?}"
        );
        for looked_at in
            ["no tool call in flight", "CPU used by its tools", "no file written", "(--inactivity-timeout)"]
        {
            assert!(run.stderr.contains(looked_at), "{run:?}");
        }
    }
}

#[test]
fn signs_of_life() {
    let tool = r#"echo '{"type":"assistant","message":{"model":"m","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"make"}}]},"parent_tool_use_id":null}'
sleep 5
echo '{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"ok"}]}}'"#;
    let busy = "( end=$((SECONDS + 6)); while [ $SECONDS -lt $end ]; do :; done )";
    let files = "for n in {1..50}; do echo $n > written; sleep 0.1; done";
    side_by_side(&[tool, busy, files], |agent| {
        let (_, run) = complete(&format!("{agent}\n{DONE}"), "--inactivity-timeout 2s");
        assert!(run.elapsed > Duration::from_millis(4900), "{run:?}");
    });
}

#[test]
fn a_tool_call_that_is_over_is_no_sign_of_life() {
    let agent = r#"echo '{"type":"assistant","message":{"model":"m","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{}}]},"parent_tool_use_id":null}'
echo '{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"ok"}]}}'
sleep 600"#;
    fail(agent, "--inactivity-timeout 1s", "timeout");
}
