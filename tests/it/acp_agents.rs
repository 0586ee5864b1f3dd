//! Agents over the Agent Client Protocol: that of `tests/agents` speaks it, and makes the requests that real agents make.
//! Real agents are not on every machine; their recorded messages are played to the codec in its own tests.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::policies::assert_end;
use crate::scratch::{Run, Scratch, agent_over_acp, finish, side_by_side, wait_for};

/// A loop of one iteration whose agent plays this.
fn command(scratch: &Scratch, plays: &str, args: &str) -> Command {
    let mut command = scratch.ralph(&format!("prompt p.md 1 --max-retries 0 {args}"));
    command.arg("--agent").arg(agent_over_acp()).env("RALPH_SCRIPT_PLAY", plays);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn play(scratch: &Scratch, plays: &str, args: &str) -> Run {
    finish(command(scratch, plays, args).spawn().unwrap())
}

fn start(scratch: &Scratch, plays: &str) -> Child {
    command(scratch, plays, "").spawn().unwrap()
}

#[test]
fn what_an_agent_asks_for_it_gets() {
    let scratch = Scratch::new();
    scratch.write("mine.txt", "what I say\n");
    let root = scratch.root().canonicalize().unwrap();
    let root = root.display();
    for (plays, words) in [
        ("work".to_owned(), r"I change nothing for this prompt."),
        (format!("read {root}/mine.txt"), r#"{"content":"what I say\n"}"#),
        (format!("write {root}/new/file.txt what it says"), "null"),
        ("permission edit".to_owned(), "the allow_once one"),
        ("terminal cat mine.txt".to_owned(), r#""output":"what I say\n","truncated":false"#),
        // No shell expands it.
        ("terminal echo $HOME;ls".to_owned(), r#""output":"$HOME;ls\n""#),
        ("terminal false".to_owned(), r#"{"exitCode":1,"signal":null}"#),
        ("terminal printenv PLAYED RALPH_ITERATION RALPH_TOTAL".to_owned(), r#""output":"over ACP\n1\n1\n""#),
        ("kill sleep 1000".to_owned(), r#""signal":"SIGINT""#),
        ("leave sleep 1000".to_owned(), r#"{"terminalId":"terminal-1"}"#),
        ("garbage".to_owned(), r#"{"code":-32601,"message":"method not found: no/such"}"#),
        ("flood 1000".to_owned(), "1000 answers"),
        ("race".to_owned(), r#"3 before {"exitCode":0,"signal":null}: {"output":"at last\n""#),
        ("twice".to_owned(), ""),
    ] {
        let run = play(&scratch, &plays, "");
        assert_end(&scratch, &run, 0, "complete", "stopped");
        assert!(format!("{}{}", run.stdout, run.stderr).contains(words), "{plays}: {run:?}");
        scratch.assert_nothing_left();
    }
    assert_eq!(scratch.read("new/file.txt"), "what it says\n");
}

#[test]
fn what_it_must_not_have_is_refused_and_each_way_to_stop_has_its_end() {
    let scratch = Scratch::new();
    let root = scratch.root().canonicalize().unwrap();
    let root = root.display();
    for (plays, code, reason, words) in [
        (format!("read {root}/none"), 4, "failed", "ENOENT: no such file or directory"),
        (format!("write {root}/.git/config x"), 4, "failed", "it is not for agents"),
        (format!("write {root}/.ralph/state.toml x"), 4, "failed", "it is not for agents"),
        ("write /etc/passwd x".to_owned(), 4, "failed", "it is outside of the project"),
        ("terminal no-such-program".to_owned(), 4, "failed", "cannot start 'no-such-program'"),
        ("stop refusal".to_owned(), 4, "failed", "it refused to go on"),
        ("stop max_tokens".to_owned(), 4, "failed", "its limit of tokens"),
        ("stop max_turn_requests".to_owned(), 4, "failed", "its limit of requests"),
        ("stop bored".to_owned(), 4, "failed", "an unknown reason: bored"),
        ("auth".to_owned(), 4, "not_logged_in", "Not logged in"),
        ("context".to_owned(), 4, "failed", "The prompt is too long"),
        ("sing".to_owned(), 4, "failed", "has 'sing', which is none of limit"),
    ] {
        let run = play(&scratch, &plays, "");
        assert_end(&scratch, &run, code, reason, "failed");
        assert!(run.stderr.contains(words), "{plays}: {run:?}");
    }
}

/// A key in the environment is the only login without a user.
#[test]
fn a_login_is_made_with_a_key_or_asked_for() {
    let scratch = Scratch::new();
    let run = play(&scratch, "login", "");
    assert_end(&scratch, &run, 4, "not_logged_in", "failed");
    assert!(run.stderr.contains("Authentication required"), "{run:?}");
    let run = finish(command(&scratch, "login", "").env("CODEX_API_KEY", "canary").spawn().unwrap());
    assert_end(&scratch, &run, 0, "complete", "stopped");
    // The agent's own environment counts.
    scratch.write(".ralph/config", "export CODEX_API_KEY=canary\n");
    let run = play(&scratch, "login", "");
    assert_end(&scratch, &run, 0, "complete", "stopped");
    let logs = scratch.session_logs().iter().map(|log| fs::read_to_string(log).unwrap()).collect::<String>();
    assert!(!format!("{run:?}{logs}").contains("canary"), "the agent reads it where it is");
}

/// Replays an agent's messages from a recorded session with ralph, waiting for each of ralph's lines.
const REPLAY: &str = r#"
exec 3<"$1"
while IFS= read -r _; do
  while IFS= read -r line <&3 && [ "$line" != -- ]; do printf '%s\n' "$line"; done
done
"#;

/// A loop of one iteration whose agent repeats a recorded session.
fn replay(scratch: &Scratch, recording: &str) -> Run {
    let path = format!("{}/tests/recordings/acp/{recording}.jsonl", env!("CARGO_MANIFEST_DIR"));
    let recorded = fs::read_to_string(path).unwrap();
    let lines = recorded.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let said = lines.map(|line| match line["dir"].as_str() {
        Some("agent->client") => format!("{}\n", line["msg"]),
        _ => "--\n".to_owned(),
    });
    // The agent says nothing before ralph's first line.
    scratch.write("said", said.skip(1).collect::<String>());
    scratch.write("replay", REPLAY);
    let mut command = scratch.ralph("prompt p.md 1 --max-retries 0 --max-limit-wait 1s");
    Scratch::finish(command.args(["--agent", "acp:bash replay said"]))
}

#[test]
fn turns_that_have_failed_in_real_sessions_are_failures() {
    let recorded = [
        ("codex-acp.403", "not_logged_in", "unexpected status 403 Forbidden: Your account is not allowed"),
        (
            "codex-acp.tool.403",
            "not_logged_in",
            "unexpected status 403 Forbidden: Your account is not allowed",
        ),
        (
            "codex-acp.context",
            "failed",
            "reported an error: Your input exceeds the context window of this model.",
        ),
        ("codex-acp.cut", "no_connection", "stream disconnected before completion: Transport error"),
        ("codex-acp.content_filter", "failed", "Incomplete response returned, reason: content_filter"),
        ("codex-acp.max_output_tokens", "failed", "Incomplete response returned, reason: max_output_tokens"),
        ("codex-acp.at_capacity", "overloaded", "Selected model is at capacity."),
        ("codex-acp.empty", "failed", "ended without saying anything"),
        ("claude-agent-acp.refusal", "failed", "it refused to go on"),
        (
            "copilot.401",
            "not_logged_in",
            "Authentication failed with provider at http://127.0.0.1:8765/v1 (HTTP 401).",
        ),
        (
            "copilot.403",
            "not_logged_in",
            "Authentication failed with provider at http://127.0.0.1:8765/v1 (HTTP 403).",
        ),
        ("copilot.404", "no_model", "Model 'script' not found on provider"),
        ("copilot.429", "usage_limit", "Last error: 429 Rate limit reached for requests"),
        ("copilot.503", "overloaded", "Last error: 503 The server is overloaded"),
        ("copilot.quota", "out_of_credit", "Last error: 429 You exceeded your current quota"),
        ("copilot.context", "failed", "This model's maximum context length is 128000 tokens."),
        ("copilot.cut", "no_connection", "unexpected EOF during chunk size line"),
        ("copilot.empty", "failed", "reported an error: No response was returned."),
        ("gemini.403", "not_logged_in", "reported an error: Your account is not allowed to use this model"),
        ("gemini.404", "no_model", "reported an error: model: no-such-model"),
        ("gemini.503", "overloaded", "reported an error: The model is overloaded."),
        (
            "gemini.bad_key",
            "not_logged_in",
            "reported an error: API key not valid. Please pass a valid API key.",
        ),
        ("gemini.cut", "no_connection", "reported an error: terminated"),
        ("kimi.401", "not_logged_in", "Authentication required: 401 Incorrect API key provided: dummy-key."),
        ("kimi.403", "not_logged_in", "Authentication required: 403 Your account may not use this."),
        (
            "kimi.404",
            "failed",
            "it ended its turn without a word, as it does where its provider refuses a request",
        ),
        (
            "kimi.quota",
            "failed",
            "it ended its turn without a word, as it does where its provider refuses a request",
        ),
        ("kimi.context", "failed", "its context is full, and it could not make it smaller"),
        ("kimi.tool.429", "failed", "it ended its turn without a word"),
        ("kimi.content_filter", "failed", "it refused to go on"),
        ("vibe.401", "not_logged_in", "Invalid API key (from env var FAKE_KEY)."),
        ("vibe.403", "not_logged_in", "Invalid API key."),
        ("vibe.maxtok", "failed", "it has reached its limit of tokens"),
        ("vibe.empty", "failed", "ended without saying anything"),
        ("opencode.401", "not_logged_in", "reported an error: Incorrect API key provided: none."),
        ("opencode.content_filter", "failed", "it refused to go on"),
    ];
    side_by_side(&recorded, |(recording, reason, words)| {
        let scratch = Scratch::new();
        let run = replay(&scratch, &format!("failed/{recording}"));
        assert_end(&scratch, &run, 4, reason, "failed");
        assert!(run.stderr.contains(words), "{recording}: {run:?}");
        // An error is shown once, as an error.
        assert_eq!(run.stderr.matches(words).count(), 1, "{recording}: {run:?}");
    });
}

/// A notice of the agent follows the claim.
#[test]
fn a_claim_counts_whatever_an_agent_has_to_say_beside_it() {
    for recording in ["claude-agent-acp.informational", "claude-agent-acp.notice"] {
        let scratch = Scratch::new();
        let run = replay(&scratch, recording);
        assert_end(&scratch, &run, 0, "complete", "stopped");
        assert!(run.stderr.contains("The disk is nearly full"), "{run:?}");
    }
}

/// The model of a loop around us is not passed on.
#[test]
fn an_agent_gets_no_model_of_another_loop() {
    let scratch = Scratch::new();
    let mut nested = command(&scratch, "terminal printenv RALPH_MODEL", "");
    let run = finish(nested.env("RALPH_RUN", "outer").env("RALPH_MODEL", "outer-model").spawn().unwrap());
    assert_end(&scratch, &run, 0, "complete", "stopped");
    assert!(run.stderr.contains(r#""output":"\n""#), "{run:?}");
}

#[test]
fn a_command_stands_directly_behind_acp_and_is_quoted_where_it_is_named() {
    let scratch = Scratch::new();
    let refused = |args: &str, agent: &str, words: &str| {
        let run = Scratch::finish(scratch.ralph(args).args(["--agent", agent]));
        assert!(run.code == Some(1) && run.stderr.contains(words), "{run:?}");
    };
    refused("prompt p.md 1", "acp: sh x", "has a blank behind 'acp:'");
    refused("init", "acp:'my agent", "a quote is not closed");
    scratch.write(".ralph/config", "AGENT_TYPE=script\n");
    let run = Scratch::finish(scratch.ralph("init").args(["--agent", "acp:my agent"]));
    assert!(run.stdout.contains("set AGENT_TYPE='acp:my agent' there, or run"), "{run:?}");
    assert!(run.stdout.contains("--force --agent 'acp:my agent'"), "{run:?}");
}

#[test]
fn what_was_decided_is_an_event() {
    let scratch = Scratch::new();
    let run = play(&scratch, "permission edit", "--json");
    let events = run.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let events: Vec<Value> = events.filter(|event| event["event"] == "permission").collect();
    let [event] = events.as_slice() else { panic!("{run:?}") };
    assert_eq!(
        (&event["answer"], &event["kind"], &event["what"]),
        (&json!("allowed"), &json!("edit"), &json!("to edit"))
    );
}

#[test]
fn an_agent_that_does_not_answer_is_ended_and_the_step_is_named() {
    for (method, named) in
        [("initialize", true), ("session/new", true), ("session/set_mode", true), ("session/prompt", false)]
    {
        let scratch = Scratch::new();
        let run = play(&scratch, &format!("mute {method}"), "--timeout 1");
        assert_end(&scratch, &run, 4, "failed", "failed");
        let words = format!("without an answer to '{method}'");
        assert_eq!(run.stderr.contains(&words), named, "{method}: {run:?}");
        assert!(run.stderr.contains("ran longer than 1s"), "{run:?}");
        scratch.assert_nothing_left();
    }
}

/// An agent that has begun, and is stopped.
fn cut_short(plays: &str) -> (Scratch, Run) {
    let scratch = Scratch::with_default_ladder();
    let ralph = start(&scratch, plays);
    wait_for("its first words", || {
        let log = fs::read_to_string(scratch.session_logs().pop()?).ok()?;
        log.contains("I wait.").then_some(())
    });
    // The first stop waits for the end of the attempt.
    scratch.ask_to_stop(ralph.id(), Signal::INT);
    scratch.ask_to_stop(ralph.id(), Signal::INT);
    let run = finish(ralph);
    assert_end(&scratch, &run, 130, "interrupted", "stopped");
    scratch.assert_nothing_left();
    (scratch, run)
}

#[test]
fn a_turn_is_cancelled_before_anybody_is_killed() {
    let (scratch, run) = cut_short("wait");
    assert_eq!(scratch.read("cancelled"), "by its client\n");
    // The agent has exited by itself: the ladder begins after 3 s.
    assert!(run.elapsed < Duration::from_secs(3), "{run:?}");
    let (_, run) = cut_short("stubborn");
    // It is measured from a moment after the signals.
    assert!(run.elapsed >= Duration::from_millis(2900), "it had its time: {run:?}");
}

#[test]
fn a_good_turn_is_one_whatever_an_agent_does_after_it() {
    let scratch = Scratch::new();
    let run = play(&scratch, "stay", "--inactivity-timeout 5");
    assert_end(&scratch, &run, 0, "complete", "stopped");
    assert!(!format!("{run:?}").contains("I stay"), "nobody hears that: {run:?}");
    scratch.assert_nothing_left();
}

#[test]
fn who_closes_its_stdout_is_waited_for_no_longer_than_it_may_take_to_leave() {
    let scratch = Scratch::new();
    scratch.write("closes", "exec >&-; exec sleep 1000\n");
    let run = finish(
        scratch
            .ralph("prompt p.md 1 --max-retries 0")
            .args(["--agent", "acp:sh closes"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap(),
    );
    assert_end(&scratch, &run, 4, "failed", "failed");
    assert!(run.stderr.contains("it closed its stdout without an answer to 'initialize'"), "{run:?}");
    scratch.assert_nothing_left();
}

#[test]
fn silence_ends_an_agent_and_a_long_message_has_an_answer() {
    let scratch = Scratch::new();
    let run = play(&scratch, "wait", "--inactivity-timeout 1");
    assert_end(&scratch, &run, 4, "failed", "failed");
    assert!(run.stderr.contains("no sign of life for 1s"), "{run:?}");
    let run = play(&scratch, "large 102760448", "");
    assert_end(&scratch, &run, 0, "complete", "stopped");
    assert!(run.stderr.contains("the message is longer than 97 MiB"), "{run:?}");
}

#[test]
fn plans_builds_and_a_ralph_md_go_over_acp() {
    let scratch = Scratch::new();
    scratch.git(&["init", "-q", "-b", "main"]);
    scratch.write("specs/hello.md", "# Hello\n\n- `hello.sh NAME` prints `Hello, NAME`\n");
    let agent = agent_over_acp();
    scratch.write("fix/RALPH.md", format!("---\nagent: {agent}\n---\nDo it.\n"));
    scratch.git(&["add", "-A"]);
    scratch.git(&["commit", "-qm", "Wanted"]);
    for args in ["plan 1", "build 2"] {
        let run = Scratch::finish(scratch.ralph(args).args(["--agent", &agent]));
        assert_eq!(run.code, Some(0), "{run:?}");
    }
    assert!(scratch.read("hello.sh").contains("Hello"));
    assert!(scratch.git(&["log", "--format=%s"]).contains("prints `Hello, NAME`"));
    let run = scratch.run("run fix -n 1");
    assert_eq!(run.code, Some(0), "{run:?}");
    scratch.assert_nothing_left();
}

/// A task that a read-only agent verifies; its actions are played.
fn verified(plays: &str) -> (Scratch, Run) {
    let scratch = Scratch::new();
    assert_eq!(scratch.run("task add first").code, Some(0));
    let mut run = scratch.ralph("run --all --max-retries 0");
    run.arg("--agent").arg(agent_over_acp()).env("RALPH_SCRIPT_PLAY", plays);
    let run = Scratch::finish(&mut run);
    (scratch, run)
}

#[test]
fn a_verification_over_acp_may_only_look() {
    for (plays, words) in [
        ("done,write /tmp/no x", "this session may look at files and change none"),
        ("done,permission edit", "the reject_once one"),
        ("done,leave-mode", "it has left the mode 'plan' for 'yolo', and may only look"),
    ] {
        let (_scratch, run) = verified(plays);
        assert!(format!("{}{}", run.stdout, run.stderr).contains(words), "{plays}: {run:?}");
    }
    let (_, run) = verified("done,verify pass");
    assert_eq!(run.code, Some(0), "{run:?}");
}

#[test]
fn what_an_agent_leaves_behind_ends_with_its_attempt() {
    let scratch = Scratch::new();
    let run = play(&scratch, "child", "");
    assert_end(&scratch, &run, 0, "complete", "stopped");
    assert!(run.stderr.contains("child ") || run.stdout.contains("child "), "{run:?}");
    scratch.assert_nothing_left();
}

/// Whenever ralph is killed, neither the agent nor the programs that ralph has started for it survive.
#[test]
fn nothing_outlives_a_killed_ralph() {
    let plays = [
        ("mute initialize", 3),
        ("mute session/new", 3),
        ("mute session/set_mode", 3),
        ("mute session/prompt", 3),
        ("wait", 3),
        // The command and its supervisor.
        ("terminal sleep 1000", 5),
    ];
    side_by_side(&plays, |(plays, processes)| {
        let scratch = Scratch::new();
        let mut ralph = start(&scratch, plays);
        let name = |pid| fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        wait_for("all processes", || {
            let living = scratch.living();
            let is_there = |word: &str| living.iter().any(|&pid| name(pid).contains(word));
            let is_last_there =
                if plays.starts_with("terminal") { is_there("1000") } else { is_there("--acp") };
            (is_last_there && living.len() >= *processes).then_some(())
        });
        ralph.kill().unwrap();
        ralph.wait().unwrap();
        scratch.await_nothing_left();
        let run = play(&scratch, "work", "");
        assert_end(&scratch, &run, 0, "complete", "stopped");
    });
}
