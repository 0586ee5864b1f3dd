//! Filters that misbehave, and where a sigil counts.

use crate::scratch::{CLAUDE_RESULT, Run, Scratch, claude_says, claude_text, says, side_by_side};

/// A project whose agent says COMPLETE, with this line in its config.
fn with_config(config: &str) -> Scratch {
    let scratch = Scratch::new();
    scratch.agent("claude", &claude_says("<promise>COMPLETE</promise>"));
    scratch.write(".ralph/config", format!("{config}\n"));
    scratch
}

fn ends(run: &Run, code: i32, reason: &str) {
    assert_eq!(run.code, Some(code), "{run:?}");
    assert!(run.stdout.contains(&format!("Exit Reason: {reason}\n")), "{run:?}");
}

/// A filter of the user's that dies fails the attempt and is named, with the reason.
fn dies(setting: &str, filter: &str, words: &[&str]) {
    let scratch = with_config(&format!("{setting}='{filter}'"));
    let run = scratch.run("prompt p.md 1 --max-retries 0");
    ends(&run, 4, "agent failure, not retried");
    for word in words {
        assert!(run.stderr.contains(word), "{word}: {run:?}");
    }
    assert!(run.stdout.contains("Status: agent-failure\n"), "{run:?}");
    assert!(scratch.read(".ralph/last_agent_output").contains("COMPLETE"), "the stream goes on");
}

#[test]
fn a_response_or_result_filter_that_halts() {
    dies("AGENT_RESPONSE_FILTER", "halt", &["response filter", "halt"]);
    dies(
        "AGENT_RESULT_FILTER",
        "if .type == \"result\" then halt else empty end",
        &["result filter", "halt"],
    );
}

#[test]
fn a_response_filter_that_never_ends() {
    dies("AGENT_RESPONSE_FILTER", "def f: f; f", &["response filter", "10s"]);
}

#[test]
fn a_response_filter_that_eats_memory_or_stack() {
    dies("AGENT_RESPONSE_FILTER", "def f: [., .] | f; f", &["response filter"]);
    dies("AGENT_RESPONSE_FILTER", "def f: 1 + f; f", &["response filter"]);
}

#[test]
fn a_response_filter_that_floods() {
    dies("AGENT_RESPONSE_FILTER", "repeat(\"yes\")", &["response filter", "1 MiB"]);
}

#[test]
fn a_jq_error_on_one_line_is_no_death() {
    let filter = r#"AGENT_RESPONSE_FILTER='.message.content[0].text, error("x")'"#;
    let run = with_config(filter).run("prompt p.md 1");
    ends(&run, 0, "completion signal detected");
}

#[test]
fn no_display_stops_the_stream() {
    let filters = [
        "env; exit 1",
        "true",
        "false",
        "cat | no-such-program",
        "head -c 1",
        "sleep 1000",
        "yes",
        "cat /dev/zero",
        "kill -9 $$",
        "env >&- <&-",
        "halt",
        r#"repeat("yes")"#,
        r#"error("x")"#,
        "def f: 1 + f; f",
    ];
    side_by_side(&filters, |filter| {
        let scratch = with_config(&format!("AGENT_DISPLAY_FILTER='{filter}'"));
        let stream = format!(
            "head -c 3000000 /dev/zero | tr '\\0' ' '; echo; {}",
            claude_says("<promise>COMPLETE</promise>")
        );
        scratch.agent("claude", &stream);
        let run = scratch.run("prompt p.md 1");
        assert_eq!(run.code, Some(0), "{filter}: {:.2000}", run.stderr);
        let notices = run.stderr.matches("display filter").count();
        assert!(notices <= 1, "{filter}: {notices} notices");
        assert!(
            scratch.read(".ralph/last_agent_output").ends_with(&format!("{CLAUDE_RESULT}\n")),
            "{filter}"
        );
    });
}

#[test]
fn a_display_that_dies_is_told_and_one_that_has_seen_enough_is_not() {
    for (filter, notice) in [
        ("env; exit 3", Some("it exited with code 3")),
        ("sh -c false", Some("it exited with code 1")),
        ("cat | no-such-program", Some("it exited with code 127")),
        ("cat; kill -9 $$", Some("signal 9 killed it")),
        ("halt", Some("it called halt")),
        ("head -c 1", None),
        ("sh -c true", None),
        ("cat", None),
        ("env >&- <&-; sleep 600", None),
    ] {
        let run = with_config(&format!("AGENT_DISPLAY_FILTER='{filter}'")).run("prompt p.md 1");
        ends(&run, 0, "completion signal detected");
        let told = run.stderr.lines().filter(|line| line.contains("display filter")).collect::<Vec<_>>();
        assert_eq!(told.len(), usize::from(notice.is_some()), "{filter}: {run:?}");
        assert!(notice.is_none_or(|notice| told[0].contains(notice)), "{filter}: {told:?}");
    }
}

#[test]
fn a_display_that_never_reads_a_long_stream_is_dropped_with_one_notice() {
    let scratch = with_config("AGENT_DISPLAY_FILTER='sleep 1000'");
    let line = claude_text(&"x".repeat(100_000));
    scratch.write("line", format!("{line}\n"));
    scratch.agent(
        "claude",
        &format!("for i in $(seq 120); do cat line; done; {}", claude_says("<promise>COMPLETE</promise>")),
    );
    let run = scratch.run("prompt p.md 1");
    ends(&run, 0, "completion signal detected");
    assert_eq!(run.stderr.matches("the display filter is dropped").count(), 1, "{:.2000}", run.stderr);
    assert!(run.stderr.contains("AGENT_DISPLAY_FILTER"));
}

#[test]
fn control_characters_never_reach_the_terminal() {
    let evil = "a\x1b[2Jb\rc\x07d\x08e\x1b]0;title\x07f\tg\u{9b}2Kh \x1b[31mred\x1b[0m\u{0}i\x7fj";
    let clean = "a[2Jbcde]0;titlef\tg2Kh redij";
    let scratch = Scratch::new();
    scratch.agent("claude", &claude_says(evil));
    let run = scratch.run("prompt p.md 1");
    assert!(run.stderr.contains(clean), "{:?}", run.stderr);

    // Also what a display filter or a plain agent prints, and what tools are called.
    let tool = serde_json::json!({"type":"assistant","message":{"content":[
        {"type":"tool_use","id":"t","name":evil,"input":{"command":evil}}]},"parent_tool_use_id":null});
    let failure = serde_json::json!({"type":"result","is_error":true,"result":evil});
    scratch.agent("claude", &says(&[&tool.to_string(), &failure.to_string()]));
    scratch.write("evil", evil);
    scratch.agent("plain", "cat evil; cat evil >&2; exit 1");
    for (config, args) in [
        ("", "prompt p.md 1 --max-retries 0"),
        ("AGENT_DISPLAY_FILTER='cat evil'", "prompt p.md 1 --max-retries 0"),
        ("AGENT_TYPE=custom\nAGENT_CLI=plain", "prompt p.md 1 --max-retries 0"),
    ] {
        scratch.write(".ralph/config", format!("{config}\n"));
        let run = scratch.run(args);
        assert_eq!(run.code, Some(4), "{config}: {run:?}");
        let shown = format!("{}{}", run.stdout, run.stderr);
        let bad = shown.chars().find(|char| char.is_control() && !matches!(char, '\n' | '\t'));
        assert_eq!(bad, None, "{config}: {shown:?}");
    }
}

#[test]
fn text_in_pieces_is_shown_whole() {
    let scratch = Scratch::new();
    scratch.agent(
        "plain",
        "cat > /dev/null; for b in '\\303' '\\251' '\\342' '\\234' '\\223\\n'; do printf $b; sleep 0.1; done",
    );
    for config in ["", "AGENT_DISPLAY_FILTER='cat | cat'\n"] {
        scratch.write(".ralph/config", format!("AGENT_TYPE=custom\nAGENT_CLI=plain\n{config}"));
        let run = scratch.run("prompt p.md 1");
        assert!(run.stderr.contains("é✓\n"), "{config}: {run:?}");
    }
}

/// Where a sigil stands in claude's stream, in a run that ends well and says "working" besides.
fn claude_line(place: &str) -> String {
    let sigil = "<promise>COMPLETE</promise>";
    let line = match place {
        "tool input" => serde_json::json!({"type":"assistant","message":{"content":[
            {"type":"tool_use","id":"t","name":"Bash","input":{"command":sigil}}]},"parent_tool_use_id":null}),
        "tool output" => serde_json::json!({"type":"user","message":{"content":[
            {"type":"tool_result","tool_use_id":"t","content":sigil}]},"parent_tool_use_id":null}),
        "thinking" => serde_json::json!({"type":"assistant","message":{"content":[
            {"type":"thinking","thinking":sigil}]},"parent_tool_use_id":null}),
        "echoed prompt" => serde_json::json!({"type":"user","message":{"role":"user","content":[
            {"type":"text","text":sigil}]},"parent_tool_use_id":null}),
        "error text" => serde_json::json!({"type":"assistant","message":{"model":"<synthetic>","content":[
            {"type":"text","text":sigil}]},"parent_tool_use_id":null}),
        "sub-agent" => serde_json::json!({"type":"assistant","message":{"model":"m","content":[
            {"type":"text","text":sigil}]},"parent_tool_use_id":"t"}),
        "system" => serde_json::json!({"type":"system","subtype":"init","model":"m","cwd":sigil}),
        "no object" => serde_json::json!([sigil]),
        "own text" => return claude_text(sigil),
        other => panic!("{other}"),
    };
    line.to_string()
}

#[test]
fn a_sigil_counts_only_in_the_assistants_own_text() {
    for place in [
        "tool input",
        "tool output",
        "thinking",
        "echoed prompt",
        "error text",
        "sub-agent",
        "system",
        "no object",
    ] {
        let scratch = Scratch::new();
        let line = claude_line(place);
        scratch.agent(
            "claude",
            &says(&["<promise>COMPLETE</promise>", &claude_text("working"), &line, CLAUDE_RESULT]),
        );
        let run = scratch.run("prompt p.md 1");
        assert!(run.stdout.contains("Exit Reason: max iterations reached\n"), "{place}: {run:?}");
        assert!(run.stdout.contains("Status: success\n"), "{place}: {run:?}");
    }
    let scratch = Scratch::new();
    scratch.agent("claude", &says(&[&claude_line("own text"), CLAUDE_RESULT]));
    ends(&scratch.run("prompt p.md 1"), 0, "completion signal detected");
}

#[test]
fn a_split_or_escaped_sigil_counts() {
    let scratch = Scratch::new();
    let escaped = claude_text("@").replace('@', r"\u003cpromise\u003eCOMPLETE\u003c\/promise\u003e");
    scratch.agent("claude", &says(&[&escaped, CLAUDE_RESULT]));
    ends(&scratch.run("prompt p.md 1"), 0, "completion signal detected");

    scratch.agent(
        "claude",
        &says(&[&claude_text("<promise>COMP"), &claude_text("LETE</promise>"), CLAUDE_RESULT]),
    );
    ends(&scratch.run("prompt p.md 1"), 0, "completion signal detected");

    let echo = r#"{"type":"message","role":"user","content":"say <promise>REPLAN</promise>"}"#;
    let delta =
        |text: &str| format!(r#"{{"type":"message","role":"assistant","content":"{text}","delta":true}}"#);
    let end = r#"{"type":"result","status":"success","stats":{}}"#;
    let pieces = ["<prom", "ise>", "COMPLETE<", "/promise", ">"].map(delta);
    let lines: Vec<&str> = [echo].into_iter().chain(pieces.iter().map(String::as_str)).chain([end]).collect();
    scratch.agent("gemini", &says(&lines));
    let run = scratch.run("prompt p.md 1 --agent gemini");
    ends(&run, 0, "completion signal detected");
    assert!(run.stderr.contains("<promise>COMPLETE</promise>"), "the pieces are shown as one text: {run:?}");
}

#[test]
fn near_misses_do_not_count() {
    let scratch = Scratch::new();
    for text in
        ["COMPLETE", "<promise>complete</promise>", "<promise> COMPLETE </promise>", "<promise>COMPLETE"]
    {
        scratch.agent("claude", &claude_says(text));
        ends(&scratch.run("prompt p.md 1"), 0, "max iterations reached");
    }
}

#[test]
fn complete_beats_replan() {
    let scratch = Scratch::new();
    scratch.agent("claude", &claude_says("<promise>REPLAN</promise> or rather <promise>COMPLETE</promise>"));
    ends(&scratch.run("build 3"), 0, "completion signal detected");
}

#[test]
fn the_sigils_of_a_failed_attempt_do_not_count() {
    let scratch = Scratch::new();
    let said = claude_text("<promise>COMPLETE</promise>");
    let good = claude_says("Not done after all.");
    scratch.agent(
        "claude",
        &format!("[ -e tried ] || {{ touch tried; {}\nexit 1; }}\n{good}", says(&[&said, CLAUDE_RESULT])),
    );
    let run = scratch.run("prompt p.md 1");
    ends(&run, 0, "max iterations reached");

    // Exit code 0 is not enough: the final event says error, or never comes.
    let error =
        r#"{"type":"result","subtype":"success","is_error":true,"result":"API Error: something broke"}"#;
    for lines in [&[said.as_str(), error][..], &[&said]] {
        scratch.agent("claude", &says(lines));
        ends(&scratch.run("prompt p.md 1 --max-retries 0"), 4, "agent failure, not retried");
    }
}
