//! Records of agents: model and session from the first message on, cost, changes, context, prompts that are too long.

use std::fs;

use serde_json::{Value, json};

use crate::json_events::events;
use crate::scratch::{Run, Scratch, Started, claude_says, claude_text, says, wait_for};

fn status(scratch: &Scratch) -> Value {
    serde_json::from_str(&scratch.run("status --json").stdout).unwrap()
}

fn the<'a>(events: &'a [Value], name: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["event"] == name).collect()
}

#[test]
fn model_and_session_are_known_from_the_first_event() {
    let scratch = Scratch::new();
    let init = r#"{"type":"system","subtype":"init","model":"opus-9","session_id":"s-1"}"#;
    scratch.agent(
        "claude",
        &format!(
            "cat > /dev/null\necho '{init}'\nuntil [ -e go ]; do sleep 0.02; done\n{}",
            claude_says("more")
        ),
    );
    let running = Started::new(&scratch, "prompt p.md 1");
    let known = wait_for("the model", || {
        let status = scratch.path(".ralph/state.toml").exists().then(|| status(&scratch))?;
        status["agent_model"].is_string().then_some(status)
    });
    assert_eq!((&known["status"], &known["agent_session"]), (&"running".into(), &"s-1".into()));
    assert!(known["agent_command"].as_str().unwrap().starts_with("claude --dangerously"), "{known}");
    let text = scratch.run("status prompt").stdout;
    assert!(text.contains("\nModel: opus-9\n"), "{text}");
    scratch.write("go", "");
    assert_eq!(running.finish().code, Some(0));
    assert_eq!(
        (&status(&scratch)["agent_model"], &status(&scratch)["agent_session"]),
        (&"opus-9".into(), &"s-1".into())
    );

    // The next attempt begins without them.
    scratch.agent("claude", &claude_says("more"));
    let run = scratch.run("prompt p.md 1 --json");
    assert!(the(&events(&run), "agent_known").is_empty(), "{run:?}");
    assert_eq!(status(&scratch)["agent_session"], Value::Null);
    scratch.agent("claude", &format!("echo '{init}'\n{}", claude_says("more")));
    let events = events(&scratch.run("prompt p.md 1 --json"));
    let [known] = the(&events, "agent_known")[..] else { panic!("{events:?}") };
    assert_eq!((&known["model"], &known["session_id"]), (&"opus-9".into(), &"s-1".into()));
}

#[test]
fn the_models_that_gemini_used_are_told() {
    let scratch = Scratch::new();
    let said = r#"{"type":"message","role":"assistant","content":"more","delta":true}"#;
    for (init, models, expected) in [
        ("auto", r#"{"gemini-pro":{},"gemini-flash":{}}"#, json!("gemini-flash, gemini-pro")),
        ("gemini-pro", r#"{"gemini-pro":{}}"#, json!("gemini-pro")),
        ("gemini-pro", "{}", json!("gemini-pro")),
        ("auto", "{}", Value::Null),
        ("auto", "null", Value::Null),
    ] {
        let init = format!(r#"{{"type":"init","session_id":"s","model":"{init}"}}"#);
        let result = format!(r#"{{"type":"result","status":"success","stats":{{"models":{models}}}}}"#);
        scratch.agent("gemini", &says(&[&init, said, &result]));
        let events = events(&scratch.run("prompt p.md 1 --agent gemini --json"));
        let ended = the(&events, "attempt_ended")[0];
        assert_eq!(ended["usage"].get("model").cloned().unwrap_or_default(), expected, "{models}");
        assert_eq!(status(&scratch)["agent_model"], expected, "{models}");
    }
}

#[test]
fn an_unreported_cost_is_absent() {
    let scratch = Scratch::new();
    let silent = r#"{"type":"result","subtype":"success","is_error":false,"result":"","usage":{"input_tokens":10,"output_tokens":5}}"#;
    scratch.agent("claude", &says(&[&claude_text("more"), silent]));
    let run = scratch.run("prompt p.md 2 --json");
    let told = events(&run);
    let ended = the(&told, "loop_ended")[0];
    assert!(ended.get("cost_usd").is_none() && ended["input_tokens"] == 20, "{ended}");
    assert!(!scratch.state().contains_key("cost_usd"), "{:?}", scratch.state());
    assert_eq!(status(&scratch)["cost_usd"], Value::Null);

    let free = silent.replace("\"usage\"", "\"total_cost_usd\":0.0,\"usage\"");
    scratch.agent("claude", &says(&[&claude_text("more"), &free]));
    let told = events(&scratch.run("prompt p.md 1 --json"));
    assert_eq!(the(&told, "loop_ended")[0]["cost_usd"], 0.0, "reported is reported");
    assert_eq!(status(&scratch)["cost_usd"], 0.0);
}

#[test]
fn a_commit_is_a_change_without_idle_detection() {
    let scratch = Scratch::new();
    let commits = "[ $RALPH_ITERATION != 2 ] || git commit --quiet --allow-empty -m two\necho x > \"f$RALPH_ITERATION\"\n";
    scratch.agent("claude", &format!("{commits}{}", claude_says("more")));
    let changed = |run: &Run| -> Vec<Value> {
        the(&events(run), "attempt_ended").iter().map(|ended| ended["changed"].clone()).collect()
    };
    // The first iteration only writes, which is not checked; the validation's own commit is not an agent's.
    let run = scratch.run("prompt p.md 3 --json");
    assert_eq!(changed(&run), [Value::Null, json!(true), Value::Null], "{run:?}");
    let mut command = scratch.ralph("prompt p.md 1 --json --validate");
    let run = Scratch::finish(command.arg("git commit --quiet --allow-empty -m proof"));
    assert_eq!(changed(&run), [Value::Null], "{run:?}");
    // A failed attempt may have changed something, too.
    scratch.agent("claude", "git commit --quiet --allow-empty -m three; exit 7");
    assert_eq!(changed(&scratch.run("prompt p.md 1 --json --max-retries 0")), [json!(true)]);
}

/// A claude whose last turn read so many tokens, of a window of 200,000.
fn reads(scratch: &Scratch, tokens: u64) {
    let turn = |tokens: u64, id: &str, parent: &str| {
        format!(
            r#"{{"type":"assistant","message":{{"id":"{id}","model":"big","content":[{{"type":"text","text":"more"}}],"usage":{{"input_tokens":{tokens},"cache_read_input_tokens":50}}}},"parent_tool_use_id":{parent}}}"#
        )
    };
    let init = r#"{"type":"system","subtype":"init","model":"big","session_id":"s"}"#;
    let result = r#"{"type":"result","subtype":"success","is_error":false,"result":"","total_cost_usd":0.01,"modelUsage":{"small":{"inputTokens":1,"contextWindow":1000},"big":{"inputTokens":999999,"contextWindow":200000}}}"#;
    let lines =
        [init, &turn(10, "a", "null"), &turn(tokens - 50, "b", "null"), &turn(199_000, "c", "\"t\""), result];
    scratch.agent("claude", &says(&lines));
}

#[test]
fn how_full_the_context_is() {
    let scratch = Scratch::new();
    reads(&scratch, 159_999);
    let run = scratch.run("prompt p.md 1 --json");
    let told = events(&run);
    let usage = &the(&told, "attempt_ended")[0]["usage"];
    assert_eq!((&usage["context_tokens"], &usage["context_window"]), (&json!(159_999), &json!(200_000)));
    assert!(the(&told, "notice").is_empty(), "{run:?}");
    assert_eq!(
        (&status(&scratch)["context_tokens"], &status(&scratch)["context_window"]),
        (&json!(159_999), &json!(200_000))
    );
    assert!(scratch.run("status prompt").stdout.contains("\nContext: 159999 of 200000 tokens (79 %)\n"));
    assert!(scratch.session_log().contains("\nContext: 159999 of 200000 tokens (79 %)\n"));

    reads(&scratch, 160_000);
    let run = scratch.run("prompt p.md 1");
    assert!(
        run.stderr.contains("the context of claude's model is nearly full: 160000 of 200000 tokens (80 %)"),
        "{run:?}"
    );
}

#[test]
fn a_prompt_that_is_too_long_is_refused_before_the_agent_starts() {
    let scratch = Scratch::new();
    for (agent, limit, unit) in [
        ("codex", 1_048_576, "characters"),
        ("claude", 10_485_760, "characters"),
        ("gemini", 8_388_608, "bytes"),
    ] {
        scratch.agent(agent, "touch started; cat > got; exit 3");
        let start = "<promise>COMPLETE</promise> ";
        // Characters of two bytes show which is counted.
        let fill = if agent == "codex" { "é" } else { "a" };
        scratch.write("p.md", start.to_owned() + &fill.repeat(limit - start.len() + 1));
        let run = scratch.run(&format!("prompt p.md 3 --agent {agent}"));
        let said =
            format!("{agent} takes at most {limit} {unit} in a prompt, and this one has {}", limit + 1);
        assert!(run.code == Some(4) && run.stderr.contains(&said), "{:?} {}", run.code, run.stderr);
        assert!(!scratch.path("started").exists(), "{agent}");
        // There is no retry: it would be too long again.
        assert!(!run.stderr.contains("retry"), "{}", run.stderr);

        scratch.write("p.md", start.to_owned() + &fill.repeat(limit - start.len()));
        scratch.run(&format!("prompt p.md 1 --max-retries 0 --agent {agent}"));
        let got = fs::metadata(scratch.path("got")).unwrap().len();
        assert_eq!(got, ((limit - start.len()) * fill.len() + start.len()) as u64, "{agent}");
        fs::remove_file(scratch.path("started")).unwrap();
    }
    // Output of commands counts; like a context that is too long, it ends the loop.
    scratch.write("long.sh", "head -c 1048576 /dev/zero | tr '\\0' a");
    scratch.write(
        "fix/RALPH.md",
        "---\nagent: codex exec -\ncommands:\n- {name: c, run: bash long.sh}\n---\n{{ commands.c }} more\n",
    );
    let run = scratch.run("run fix -n 2");
    assert!(run.code == Some(4) && run.stderr.contains("has 1048582"), "{:?} {}", run.code, run.stderr);
    assert!(!scratch.path("started").exists());
}
