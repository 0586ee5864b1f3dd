//! What a loop does when its agent is refused: not logged in, out of credit, not allowed, overloaded.

use std::time::Duration;

use crate::policies::{assert_end, attempts, number, project};
use crate::scratch::{Scratch, Started, says, side_by_side, wait_for};

/// claude's own retry of a request that was refused with 401.
fn retry(attempt: u32) -> String {
    format!(
        r#"{{"type":"system","subtype":"api_retry","attempt":{attempt},"max_retries":10,"retry_delay_ms":566,"error_status":401,"error":"authentication_failed"}}"#
    )
}

#[test]
fn a_key_that_is_refused_again_and_again_ends_the_attempt_at_once() {
    // Ended by SIGINT, claude reports that as its own error.
    let aborted = "trap 'bad 0 aborted_streaming \"I was aborted\"' INT";
    let scratch = project(&format!("{aborted}; echo '{}'; echo '{}'; sleep 600 & wait", retry(1), retry(2)));
    let run = scratch.run("prompt p.md 1");
    assert_end(&scratch, &run, 4, "not_logged_in", "failed");
    assert!(run.elapsed < Duration::from_secs(20), "{run:?}");
    assert_eq!(attempts(&scratch), 1);
    let reason = "claude reported an error: 401 authentication failed; to log in, run 'claude' and log in";
    assert!(run.stderr.contains(reason), "{run:?}");
    assert!(!run.stderr.contains("I was aborted"), "{run:?}");
}

#[test]
fn a_login_that_is_renewed_after_one_refusal_goes_on() {
    let scratch = project(&format!("echo '{}'; complete", retry(1)));
    let run = scratch.run("prompt p.md 1");
    assert_end(&scratch, &run, 0, "complete", "stopped");
}

#[test]
fn what_waiting_does_not_mend_ends_the_loop_with_the_agents_words() {
    for (agent, lines, code, stderr, reason, words) in [
        (
            "claude",
            &[
                r#"{"type":"assistant","error":"billing_error","message":{"model":"<synthetic>","content":[{"type":"text","text":"Credit balance is too low"}]}}"#,
                r#"{"type":"result","subtype":"success","is_error":true,"result":"Credit balance is too low"}"#,
            ][..],
            1,
            "",
            "out_of_credit",
            "Credit balance is too low; add credit, or let another agent work (--agent)\n",
        ),
        (
            "codex",
            &[
                r#"{"type":"turn.failed","error":{"message":"Quota exceeded. Check your plan and billing details."}}"#,
            ],
            1,
            "",
            "out_of_credit",
            "Check your plan and billing details",
        ),
        (
            "gemini",
            &[],
            41,
            "Invalid auth method selected.",
            "not_logged_in",
            "Invalid auth method selected; to log in",
        ),
        (
            "gemini",
            &[],
            55,
            "\x1b[31mIt is not running in a trusted directory\x1b[0m",
            "failed",
            "a trusted directory\n",
        ),
        (
            "claude",
            &[],
            1,
            "--dangerously-skip-permissions cannot be used with root/sudo privileges for security reasons",
            "failed",
            "refuses --dangerously-skip-permissions as root",
        ),
    ] {
        let scratch = Scratch::new();
        scratch.agent(
            agent,
            &format!("echo x >> ../attempts\n{}\necho '{stderr}' >&2; exit {code}", says(lines)),
        );
        // Also where failures are only counted.
        for args in ["prompt p.md 3", "prompt p.md 3 --max-errors 3"] {
            let run = scratch.run(&format!("{args} --agent {agent}"));
            assert_end(&scratch, &run, 4, reason, "failed");
            assert!(run.stderr.contains(words) && !run.stderr.contains("[31m"), "{agent}: {run:?}");
        }
        assert_eq!(scratch.read("../attempts").lines().count(), 2, "{agent}: no retry");
    }
}

#[test]
fn an_overloaded_provider_is_waited_for_without_a_retry() {
    let scratch = project("[ $n -lt 3 ] && bad 529 x Overloaded; complete");
    let run = scratch.run("prompt p.md 1 --max-retries 0 --backoff 0.2 --json");
    assert_end(&scratch, &run, 0, "complete", "stopped");
    assert_eq!((attempts(&scratch), number(&scratch, "iteration"), number(&scratch, "retries")), (3, 1, 0));
    let waits = run.stdout.matches(r#""event":"waiting","reason":"overload""#).count();
    assert_eq!(waits, 2, "{run:?}");
    assert!(run.stdout.contains(r#""class":"overload""#), "{run:?}");
}

#[test]
fn an_overload_that_lasts_ends_the_loop_and_can_be_taken_up_again() {
    let scratch = project("bad 503 x 'The service is unavailable'");
    let run = scratch.run("prompt p.md 3 --max-retries 0 --backoff 0.1 --max-limit-wait 1");
    assert_end(&scratch, &run, 4, "overloaded", "failed");
    assert!(run.stderr.contains("provider overloaded; waiting until"), "{run:?}");
    assert!(run.stderr.contains("■ 1s is the longest wait: resume later"), "{run:?}");
    let told = run.stderr.matches("The service is unavailable").count();
    assert_eq!(told, attempts(&scratch) as usize, "{run:?}");
    let before = attempts(&scratch);
    let run = scratch.run("prompt p.md 3 --resume --max-retries 0 --backoff 0.1 --max-limit-wait 1");
    assert_end(&scratch, &run, 4, "overloaded", "failed");
    assert!(attempts(&scratch) > before, "{run:?}");
    assert_eq!(number(&scratch, "iteration"), 1);
}

#[test]
fn an_overload_after_tool_calls_uses_up_a_retry() {
    let call = r#"echo '{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t","name":"x","input":{}}]},"parent_tool_use_id":null}'"#;
    let scratch = project(&format!("{call}; bad 500 x 'Internal server error'"));
    let run = scratch.run("prompt p.md 3 --max-retries 1 --backoff 0.1");
    assert_end(&scratch, &run, 4, "failed", "failed");
    assert!(run.stderr.contains("retry 1/1"), "{run:?}");
    assert_eq!(attempts(&scratch), 2);
}

#[test]
fn a_reset_that_only_the_words_name_is_waited_for() {
    let line = r#"{"type":"turn.failed","error":{"message":"You’ve hit your usage limit. Try again in 2 seconds."}}"#;
    let done = r#"{"type":"item.completed","item":{"id":"1","type":"agent_message","text":"<promise>COMPLETE</promise>"}}
{"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":1}}"#;
    let scratch = Scratch::new();
    scratch.agent(
        "codex",
        &format!("cat > /dev/null; [ -e ../second ] || {{ touch ../second; echo '{line}'; exit 1; }}\necho '{done}'"),
    );
    let run = scratch.run("prompt p.md 1 --agent codex --json");
    assert_end(&scratch, &run, 0, "complete", "stopped");
    assert!(run.stdout.contains(r#""reset_at":"#), "{run:?}");
}

#[test]
fn short_named_limits_add_up() {
    let scratch = project("limit $(( $(date +%s) + 2 ))");
    let run = scratch.run("prompt p.md 1 --max-limit-wait 5");
    assert_end(&scratch, &run, 4, "usage_limit", "failed");
    // Each wait is one to two seconds long, because reset times are whole seconds.
    assert!((3..=6).contains(&attempts(&scratch)), "{run:?}");
}

#[test]
fn one_failure_is_told_once() {
    let words = "API Error: it is a long story";
    for args in ["prompt p.md 1 --max-retries 0", "prompt p.md 1 --max-retries 0 --quiet"] {
        let scratch = project(&format!("bad 400 x '{words}'"));
        let run = scratch.run(args);
        assert_end(&scratch, &run, 4, "failed", "failed");
        assert_eq!(run.stderr.matches(words).count(), 1, "{run:?}");
        assert!(run.stderr.starts_with(&format!("✗ claude exited with code 1: {words}\n")), "{run:?}");
    }
    // The lines of `ralph run` name the reason at the end.
    let scratch = project(&format!("bad 400 x '{words}'"));
    scratch.write("RALPH.md", "---\nagent: claude -p\n---\nDo it.\n");
    let run = scratch.run("run RALPH.md -n 1 --stop-on-error");
    assert_eq!((run.code, run.stderr.matches(words).count()), (Some(4), 1), "{run:?}");
    assert!(run.stderr.contains("■ an iteration failed\n"), "{run:?}");
}

#[test]
fn an_error_that_the_agent_recovers_from_is_told_where_it_was() {
    let error = r#"echo '{"type":"error","severity":"error","message":"a tool is missing"}'"#;
    let text = |text: &str| {
        format!(r#"echo '{{"type":"message","role":"assistant","content":"{text}","delta":true}}'"#)
    };
    let end = r#"echo '{"type":"result","status":"success","stats":{}}'"#;
    let scratch = Scratch::new();
    scratch.agent("gemini", &format!("cat > /dev/null\n{}\n{error}\n{}\n{end}", text("one"), text("two")));
    let run = scratch.run("prompt p.md 1 --agent gemini");
    assert!(run.stderr.starts_with("one\n✗ a tool is missing\ntwo"), "{run:?}");
    scratch.agent("gemini", &format!("cat > /dev/null\n{}\n{error}\n{end}", text("one")));
    let run = scratch.run("prompt p.md 1 --agent gemini");
    assert!(run.stderr.starts_with("one\n✗ a tool is missing\n"), "{run:?}");
}

/// The provider may have recovered.
#[test]
fn a_loop_that_an_overload_has_ended_is_resumed_by_another_attempt_at_once() {
    let scratch = project("[ $n -lt 2 ] && sleep 1.1 && bad 529 x Overloaded; complete");
    let run = scratch.run("prompt p.md 1 --max-limit-wait 1s");
    assert_end(&scratch, &run, 4, "overloaded", "failed");
    let run = scratch.run("resume");
    assert_end(&scratch, &run, 0, "complete", "stopped");
    assert_eq!((attempts(&scratch), number(&scratch, "iteration")), (2, 1));
    // The user has asked for that, so there is no warning.
    assert!(run.stderr.contains("starting loop") && !run.stderr.contains("warning"), "{run:?}");
    // Its time is that of both processes, as in reports.
    let status = scratch.run("status prompt").stdout;
    let total = status.lines().find_map(|line| line.strip_prefix("Total duration: ")).unwrap();
    assert_ne!(total, "0s", "{status}");
}

/// What agents print without a network, each in its own way: as an error of its stream, or on stderr alone.
#[test]
fn no_network_is_waited_for_whatever_the_agent_and_told_as_that() {
    let opencode = r#"{"type":"error","error":{"name":"APIError","data":{"message":"Cannot connect to API: EAI_AGAIN"}}}"#;
    let codex = r#"{"type":"turn.failed","error":{"message":"stream disconnected before completion: error sending request"}}"#;
    let gemini = r#"{"type":"result","status":"error","error":{"message":"[API Error: exception TypeError: fetch failed]"}}"#;
    let claude =
        r#"{"type":"result","subtype":"success","is_error":true,"result":"API Error: Connection error."}"#;
    let cline = r#"{"type":"error","message":"Cannot connect to API: connect ECONNREFUSED 127.0.0.1:1"}"#;
    let agents = [
        ("claude", claude, ""),
        ("codex", codex, ""),
        ("gemini", gemini, ""),
        ("opencode", opencode, ""),
        ("cline", cline, ""),
        ("amp", "", "Error: getaddrinfo ENOTFOUND ampcode.com"),
    ];
    side_by_side(&agents, |(agent, said, complained)| {
        let scratch = Scratch::new();
        let body =
            format!("cat > /dev/null\necho >> ../attempts\necho '{said}'\necho '{complained}' >&2\nexit 1");
        scratch.agent(agent, &body);
        let run = scratch.run(&format!(
            "prompt p.md 1 --agent {agent} --max-retries 0 --backoff 0.2 --max-limit-wait 1 --json"
        ));
        assert_end(&scratch, &run, 4, "no_connection", "failed");
        assert!(run.stdout.contains(r#""event":"waiting","reason":"network""#), "{agent}: {run:?}");
        assert!(scratch.read("../attempts").lines().count() > 1, "{agent}: {run:?}");
    });
    let scratch = Scratch::new();
    scratch
        .agent("mine", "cat > /dev/null\necho 'curl: (6) Could not resolve host: example.org' >&2\nexit 6");
    let args = "prompt p.md 1 --agent mine --max-retries 0 --backoff 0.2 --max-limit-wait 1";
    let run = scratch.run(args);
    assert_end(&scratch, &run, 4, "no_connection", "failed");
    assert!(run.stderr.contains("no connection to the provider; waiting until"), "{run:?}");
    assert!(!run.stderr.contains("overloaded"), "{run:?}");
}

/// A codex waits for its network by itself, without an end.
#[test]
fn an_agent_that_waits_for_its_network_until_a_timeout_uses_up_no_retry() {
    let scratch = Scratch::new();
    let waits = r#"{"type":"error","message":"Reconnecting... waiting for network (Connection failed: error sending request)"}"#;
    scratch.agent("codex", &format!("cat > /dev/null\necho >> ../attempts\necho '{waits}'\nsleep 600"));
    let run = scratch
        .run("prompt p.md 1 --agent codex --timeout 1s --max-retries 0 --backoff 0.2 --max-limit-wait 1");
    assert_end(&scratch, &run, 4, "no_connection", "failed");
    let words = "codex ran longer than 1s without a connection to its provider and was ended (--timeout)";
    assert!(run.stderr.contains(words), "{run:?}");
    assert!(run.stderr.contains("no connection to the provider; waiting until"), "{run:?}");
    assert!(scratch.read("../attempts").lines().count() > 1, "{run:?}");
}

#[test]
fn what_is_refused_or_unknown_is_tried_once() {
    let filtered = r#"{"type":"turn.failed","error":{"message":"stream disconnected before completion: Incomplete response returned, reason: content_filter"}}"#;
    let unknown = r#"{"type":"turn.failed","error":{"message":"unexpected status 404 Not Found: The model `gpt-x` does not exist or you do not have access to it."}}"#;
    for (said, words, reason) in [
        (filtered, "reason: content_filter", "failed"),
        (unknown, "name a model that it has (--model)", "no_model"),
    ] {
        let scratch = Scratch::new();
        scratch.agent("codex", &format!("cat > /dev/null\necho >> ../attempts\necho '{said}'\nexit 1"));
        let run = scratch.run("prompt p.md 3 --agent codex --max-retries 3");
        assert_end(&scratch, &run, 4, reason, "failed");
        assert!(run.stderr.contains(words), "{run:?}");
        assert_eq!(scratch.read("../attempts").lines().count(), 1, "{run:?}");
    }
}

/// What claude says through a gateway that has other models.
#[test]
fn an_unknown_model_is_replaced_by_resume() {
    let scratch = Scratch::new();
    let words = r#"API Error: 404 {\"type\":\"error\",\"error\":{\"type\":\"not_found_error\",\"message\":\"model: nope\"}}"#;
    let result = format!(
        r#"{{"type":"result","subtype":"success","is_error":true,"api_error_status":404,"result":"{words}"}}"#
    );
    scratch.agent(
        "claude",
        &format!(
            "cat > /dev/null; case \"$*\" in *'--model opus'*) say '<promise>COMPLETE</promise>'; result;;
            *) cat <<'END'\n{result}\nEND\nexit 1;; esac"
        ),
    );
    let run = scratch.run("prompt p.md 3 --model nope --max-retries 3");
    assert_end(&scratch, &run, 4, "no_model", "failed");
    let said = "model: nope; name a model that it has, such as haiku, sonnet, opus (--model)";
    assert!(run.stderr.contains(said), "{run:?}");
    for shown in ["", "status prompt", "report"] {
        let run = scratch.run(shown);
        assert!(run.stdout.contains("ralph resume prompt --model opus"), "{shown}: {run:?}");
    }
    let run = scratch.run("resume prompt --model opus");
    assert_end(&scratch, &run, 0, "complete", "stopped");
    assert_eq!(number(&scratch, "iteration"), 1, "{run:?}");
}

#[test]
fn an_opencode_that_may_lack_the_model_says_how_its_models_are_listed() {
    let scratch = Scratch::new();
    let error = r#"{"type":"error","sessionID":"s","error":{"name":"UnknownError","data":{"message":"Unexpected server error. Check server logs for details."}}}"#;
    scratch.agent("opencode", &says(&[error]));
    let run = scratch.run("prompt p.md 1 --agent opencode --max-retries 0");
    assert_end(&scratch, &run, 4, "failed", "failed");
    assert!(run.stderr.contains("'opencode models' lists those that it has (--model)"), "{run:?}");
}

/// Retries come at once, then after pauses; a resumed loop has the next one now.
#[test]
fn a_resumed_loop_waits_for_no_pause_before_a_retry() {
    let scratch = project("[ $n -lt 3 ] && exit 1; complete");
    let ralph = Started::quietly(scratch.ralph("prompt p.md 1").args(["--backoff", "0 1h"]));
    wait_for("the second failure", || {
        scratch.read_if_there(".ralph/state.toml").contains("error_count = 2\n").then_some(())
    });
    drop(ralph);
    let run = scratch.run("resume");
    assert_end(&scratch, &run, 0, "complete", "stopped");
    assert_eq!((attempts(&scratch), number(&scratch, "iteration")), (3, 1), "{run:?}");
}
