//! Streams that no well-behaved agent writes: nothing is lost, no claim counts wrongly, and there is no panic.

use proptest::prelude::*;
use ralph::reply::decode::Counters;
use ralph::reply::show::Show;
use ralph::reply::usage::Class;
use ralph::reply::verdict::{AgentEnd, Kind};

use crate::play::{Played, play};

const OK: &str = r#"{"type":"result","subtype":"success","is_error":false}"#;

fn claude(lines: &[&[u8]]) -> Played {
    play("claude", &lines.join(b"\n".as_slice()), "", AgentEnd::Exited(0), 4096)
}

fn says(text: &str) -> String {
    format!(r#"{{"type":"assistant","message":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#)
}

fn complete(played: &Played) -> bool {
    played.reply.speech.sigils().complete()
}

#[test]
fn a_sigil_split_across_deltas_is_found_also_when_escaped() {
    let delta =
        |text: &str| format!(r#"{{"type":"message","role":"assistant","content":"{text}","delta":true}}"#);
    let lines = ["\\u003cprom", "ise\\u003e", "COMP", "LETE<", "/promise\\u003E"].map(delta).join("\n");
    assert!(complete(&play("gemini", lines.as_bytes(), "", AgentEnd::Exited(0), 3)));
}

#[test]
fn an_escaped_sigil_is_found() {
    let line = says(r"\u003cpromise\u003eCOMPLETE\u003c\/promise\u003e");
    assert!(complete(&claude(&[line.as_bytes(), OK.as_bytes()])));
}

#[test]
fn lone_surrogates_and_invalid_utf8_do_not_hide_a_sigil() {
    let surrogate = says(r"half \ud83d of it <promise>COMPLETE</promise>");
    let played = claude(&[surrogate.as_bytes(), OK.as_bytes()]);
    assert_eq!(played.text, "half \u{fffd} of it <promise>COMPLETE</promise>");
    assert!(complete(&played) && played.verdict.is_ok());

    let invalid = says("X <promise>COMPLETE</promise>").into_bytes();
    let invalid: Vec<u8> = invalid.into_iter().map(|byte| if byte == b'X' { 0xff } else { byte }).collect();
    let played = claude(&[&invalid, OK.as_bytes()]);
    assert_eq!(played.text, "\u{fffd} <promise>COMPLETE</promise>");
    assert!(complete(&played) && played.verdict.is_ok());
}

#[test]
fn what_is_no_object_is_skipped_and_counted() {
    let line = says("<promise>COMPLETE</promise>");
    let odd: [&[u8]; 8] =
        [b"warning: hello", b"5", b"null", b"[{}]", b"\"text\"", b"{\"type\":", b"{}}", b"\x00\xff"];
    let mut lines = odd.to_vec();
    lines.extend([b"".as_slice(), b" \r", line.as_bytes(), OK.as_bytes()]);
    let played = claude(&lines);
    assert_eq!(played.counters, Counters { objects: 2, malformed: 8, oversized: 0 });
    assert!(complete(&played) && played.verdict.is_ok());
}

#[test]
fn a_last_line_without_newline_counts_when_it_is_complete() {
    let line = says("hello");
    let played = claude(&[line.as_bytes(), OK.as_bytes()]);
    assert!(played.verdict.is_ok());
    let played = claude(&[line.as_bytes(), &OK.as_bytes()[..OK.len() - 2]]);
    assert_eq!(played.counters, Counters { objects: 1, malformed: 1, oversized: 0 });
    let failure = played.verdict.unwrap_err();
    assert_eq!(failure.kind, Kind::NoFinal);
    assert_eq!(failure.message, "claude ended without its final event (1 unreadable lines)");
}

#[test]
fn a_line_over_the_limit_is_counted_and_the_next_one_read() {
    let long = says(&"x".repeat(17 << 20));
    let line = says("<promise>COMPLETE</promise>");
    let played = claude(&[long.as_bytes(), line.as_bytes(), OK.as_bytes(), long.as_bytes()]);
    assert_eq!(played.counters, Counters { objects: 2, malformed: 0, oversized: 2 });
    assert_eq!(played.text, "<promise>COMPLETE</promise>");

    let fits = says(&"x".repeat(15 << 20));
    let played = claude(&[fits.as_bytes(), OK.as_bytes()]);
    assert_eq!((played.text.len(), played.counters.oversized), (15 << 20, 0));
}

#[test]
fn deep_nesting_does_not_exhaust_the_stack() {
    let tool = |depth: usize| {
        let (open, close) = ("[".repeat(depth), "]".repeat(depth));
        format!(
            r#"{{"type":"assistant","message":{{"content":[{{"type":"tool_use","name":"t","input":{open}{close}}}]}}}}"#
        )
    };
    let played = claude(&[tool(110).as_bytes(), tool(100_000).as_bytes(), OK.as_bytes()]);
    assert_eq!(played.counters, Counters { objects: 2, malformed: 1, oversized: 0 });
    let input = format!("{}{}…", "[".repeat(110), "]".repeat(9));
    assert_eq!(played.shows, [Show::Tool { name: "t".into(), input }]);
}

#[test]
fn only_the_assistants_own_text_counts() {
    let sigil = "<promise>COMPLETE</promise>";
    let content = format!(r#"[{{"type":"text","text":"{sigil}"}}]"#);
    let lines = [
        format!(r#"{{"type":"user","message":{{"content":{content}}}}}"#),
        format!(r#"{{"type":"assistant","parent_tool_use_id":"toolu_1","message":{{"content":{content}}}}}"#),
        format!(r#"{{"type":"assistant","message":{{"model":"<synthetic>","content":{content}}}}}"#),
        format!(r#"{{"type":"assistant","aborted":true,"message":{{"content":{content}}}}}"#),
        format!(
            r#"{{"type":"assistant","message":{{"content":[{{"type":"thinking","thinking":"{sigil}"}}]}}}}"#
        ),
        format!(r#"{{"type":"result","is_error":false,"result":"{sigil}"}}"#),
        sigil.to_owned(),
    ];
    let played = play("claude", lines.join("\n").as_bytes(), "", AgentEnd::Exited(0), 4096);
    assert_eq!(played.text, "");
    assert!(!complete(&played));
    assert_eq!(played.verdict.unwrap_err().kind, Kind::Silent);
}

#[test]
fn a_limit_in_tool_output_is_no_limit() {
    let tool = r#"{"type":"user","message":{"content":[{"type":"tool_result","content":"429 rate limit exceeded"}]}}"#;
    let text = says("The log says: rate_limit, status 429, usage limit reached.");
    let played = play("claude", [tool, &text].join("\n").as_bytes(), "", AgentEnd::Exited(1), 4096);
    assert_eq!(played.verdict.unwrap_err().class, Class::Other);
}

#[test]
fn errors_are_classified_by_the_agents_own_codes() {
    for (agent, line, class) in [
        (
            "claude",
            r#"{"type":"result","is_error":true,"terminal_reason":"prompt_too_long","result":"x"}"#,
            Class::Context,
        ),
        ("claude", r#"{"type":"result","is_error":true,"api_error_status":403,"result":"x"}"#, Class::Auth),
        (
            "claude",
            r#"{"type":"result","is_error":true,"api_error_status":529,"result":"429"}"#,
            Class::Overload,
        ),
        ("claude", r#"{"type":"assistant","error":"rate_limit","message":{"content":[]}}"#, Class::Limit),
        (
            "codex",
            r#"{"type":"turn.failed","error":{"message":"You've hit your usage limit."}}"#,
            Class::Limit,
        ),
        (
            "codex",
            r#"{"type":"turn.failed","error":{"message":"ran out of room in the model's context window"}}"#,
            Class::Context,
        ),
        ("codex", r#"{"type":"turn.failed","error":null}"#, Class::Other),
        (
            "codex",
            r#"{"type":"turn.failed","error":{"message":"Quota exceeded. Check your plan and billing details."}}"#,
            Class::Billing,
        ),
        (
            "codex",
            r#"{"type":"turn.failed","error":{"message":"exceeded retry limit, last status: 503 Service Unavailable"}}"#,
            Class::Overload,
        ),
        (
            "gemini",
            r#"{"type":"result","status":"error","error":{"message":"{\"error\":{\"code\":503,\"status\":\"UNAVAILABLE\"}}"}}"#,
            Class::Overload,
        ),
        (
            // Its limit for each minute, in the words of an account without money.
            "gemini",
            r#"{"type":"result","status":"error","error":{"message":"You exceeded your current quota, please check your plan and billing details. Please retry in 52.6s."}}"#,
            Class::Limit,
        ),
        (
            "gemini",
            r#"{"type":"result","status":"error","error":{"message":"You have exhausted your daily quota on this model."}}"#,
            Class::Limit,
        ),
        (
            "opencode",
            r#"{"type":"error","error":{"name":"APIError","data":{"message":"You exceeded your current quota, please check your plan and billing details.","statusCode":429}}}"#,
            Class::Billing,
        ),
        (
            "opencode",
            r#"{"type":"error","error":{"name":"APIError","data":{"message":"x","statusCode":502}}}"#,
            Class::Overload,
        ),
        (
            "cline",
            r#"{"type":"agent_event","event":{"type":"error","error":{"message":"insufficient_quota"},"errorClass":"quota"}}"#,
            Class::Billing,
        ),
        ("cline", r#"{"type":"error","message":"503 Service Unavailable"}"#, Class::Overload),
        (
            "gemini",
            r#"{"type":"result","status":"error","error":{"message":"{\"error\":{\"code\":429,\"status\":\"X\"}}"}}"#,
            Class::Limit,
        ),
        (
            "opencode",
            r#"{"type":"error","error":{"name":"APIError","data":{"message":"x","statusCode":429}}}"#,
            Class::Limit,
        ),
        (
            "opencode",
            r#"{"type":"error","error":{"name":"ProviderAuthError","data":{"message":"x"}}}"#,
            Class::Auth,
        ),
        (
            "cline",
            r#"{"type":"agent_event","event":{"type":"error","error":{"message":"x"},"errorClass":"rate_limit"}}"#,
            Class::Limit,
        ),
        (
            "amp",
            r#"{"type":"result","subtype":"error_during_execution","is_error":true,"error":"x"}"#,
            Class::Other,
        ),
    ] {
        assert_class(agent, line, class);
    }
}

#[track_caller]
fn assert_class(agent: &str, line: &str, class: Class) {
    let failure = play(agent, line.as_bytes(), "", AgentEnd::Exited(0), 4096).verdict.unwrap_err();
    assert_eq!((failure.kind, failure.class), (Kind::Reported, class), "{agent}: {line}");
}

#[test]
fn words_that_sound_like_another_class_do_not_hide_it() {
    for (agent, line, class) in [
        (
            "cline",
            r#"{"type":"agent_event","event":{"type":"error","error":{"message":"x"},"errorClass":"context_limit"}}"#,
            Class::Context,
        ),
        (
            "cline",
            r#"{"type":"run_result","finishReason":"error","text":"401 Unauthorized: invalid api key"}"#,
            Class::Auth,
        ),
        ("codex", r#"{"type":"error","message":"Disk quota exceeded (os error 122)"}"#, Class::Other),
        (
            "codex",
            r#"{"type":"turn.failed","error":{"message":"stream disconnected before completion: error sending request"}}"#,
            Class::Network,
        ),
        (
            "codex",
            r#"{"type":"turn.failed","error":{"message":"{\"error\":{\"message\":\"Unsupported parameter: 'rate_limit_tier'\",\"type\":\"invalid_request_error\"}}"}}"#,
            Class::Other,
        ),
        (
            "codex",
            r#"{"type":"error","message":"status: 400 Unsupported parameter: 'rate_limit_tier'"}"#,
            Class::Other,
        ),
        (
            "opencode",
            r#"{"type":"error","error":{"name":"APIError","data":{"message":"Cannot connect to API: ECONNREFUSED"}}}"#,
            Class::Network,
        ),
        (
            "opencode",
            r#"{"type":"error","error":{"name":"APIError","data":{"message":"usage_limit is no field","statusCode":400}}}"#,
            Class::Other,
        ),
        ("cline", r#"{"type":"error","message":"Cannot connect to API: "}"#, Class::Network),
        (
            "gemini",
            r#"{"type":"result","status":"error","error":{"message":"exception TypeError: fetch failed sending request"}}"#,
            Class::Network,
        ),
        (
            "gemini",
            r#"{"type":"result","status":"error","error":{"message":"{\"error\":{\"code\":403,\"message\":\"The API requires a quota project\",\"status\":\"PERMISSION_DENIED\"}}"}}"#,
            Class::Auth,
        ),
        (
            "claude",
            r#"{"type":"result","subtype":"success","is_error":true,"terminal_reason":"blocking_limit","result":"Prompt is too long"}"#,
            Class::Context,
        ),
        (
            "claude",
            r#"{"type":"result","subtype":"success","is_error":true,"api_error_status":400,"result":"Your ANTHROPIC_API_KEY belongs to a disabled organization"}"#,
            Class::Auth,
        ),
        (
            "codex",
            r#"{"type":"error","message":"The model gpt-9 is unavailable for your account"}"#,
            Class::Other,
        ),
        (
            "claude",
            r#"{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"result":"API Error: 429 Quota exceeded. Check your plan and billing details."}"#,
            Class::Billing,
        ),
    ] {
        assert_class(agent, line, class);
    }
}

#[test]
fn the_class_that_claude_names_stays_whatever_its_result_lacks() {
    for (name, status, class) in [
        ("authentication_failed", "null", Class::Auth),
        ("oauth_org_not_allowed", "null", Class::Auth),
        ("cloud_credential_error", "null", Class::Auth),
        ("rate_limit", "null", Class::Limit),
        ("billing_error", "null", Class::Billing),
        ("billing_error", "403", Class::Billing),
        ("overloaded", "null", Class::Overload),
        ("server_error", "null", Class::Overload),
        ("unknown", "503", Class::Overload),
        ("account_on_hold", "null", Class::Permission),
        ("verification_required", "null", Class::Permission),
        ("invalid_request", "null", Class::Other),
        ("model_not_found", "404", Class::Model),
    ] {
        let words = r#"{"model":"<synthetic>","content":[{"type":"text","text":"no"}]}"#;
        let said = format!(r#"{{"type":"assistant","error":"{name}","message":{words}}}"#);
        let end = format!(
            r#"{{"type":"result","subtype":"success","is_error":true,"api_error_status":{status},"result":"no"}}"#
        );
        let stream = [said, end].join("\n");
        let failure = play("claude", stream.as_bytes(), "", AgentEnd::Exited(1), 4096).verdict.unwrap_err();
        assert_eq!(failure.class, class, "{name}");
        assert_eq!(failure.message, "claude exited with code 1: no");
    }
    let credit =
        r#"{"type":"result","is_error":true,"api_error_status":400,"result":"Credit balance is too low"}"#;
    let failure = play("claude", credit.as_bytes(), "", AgentEnd::Exited(1), 4096).verdict.unwrap_err();
    assert_eq!(failure.class, Class::Billing);
}

#[test]
fn diagnostics_for_the_makers_are_no_reason() {
    for (fields, words) in [
        (
            r#""subtype":"error_during_execution","errors":["[ede_diagnostic] result_type=user","No luck"]"#,
            "No luck",
        ),
        (r#""subtype":"error_during_execution","errors":["[ede_diagnostic] x"]"#, "error during execution"),
        (r#""subtype":"error_max_turns","result":"","errors":[]"#, "error max turns"),
        (r#""result":"[ede_diagnostic] x","errors":["a","b"]"#, "a; b"),
        (r#""result":5,"errors":3"#, "unknown error"),
    ] {
        let line = format!(r#"{{"type":"result","is_error":true,{fields}}}"#);
        let played = play("claude", line.as_bytes(), "", AgentEnd::Exited(1), 4096);
        assert_eq!(played.verdict.unwrap_err().message, format!("claude exited with code 1: {words}"));
        assert_eq!(played.shows, [Show::Error(words.into())]);
    }
}

#[test]
fn a_retry_after_header_gives_the_reset_time() {
    let line = r#"{"type":"error","error":{"data":{"message":"x","statusCode":429,"responseHeaders":{"retry-after":"60"}}}}"#;
    let failure = play("opencode", line.as_bytes(), "", AgentEnd::Exited(1), 4096).verdict.unwrap_err();
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs();
    let wait = failure.reset_at.unwrap() - i64::try_from(now).unwrap();
    assert!((55..=60).contains(&wait), "{wait}");
}

#[test]
fn the_formats_without_a_recording_are_read_as_documented() {
    let script = r#"{"type":"start","model":"script","session":"s1"}
{"type":"tool","name":"write","input":"src/lib.rs"}
{"type":"text","text":"<promise>COMPLETE</promise>"}
{"type":"result","status":"ok","cost_usd":0.25,"input_tokens":10,"output_tokens":5}"#;
    let played = play("script", script.as_bytes(), "", AgentEnd::Exited(0), 4096);
    assert!(complete(&played) && played.verdict.is_ok());
    let usage = &played.reply.usage;
    assert_eq!((usage.cost_usd, usage.input_tokens, usage.output_tokens), (Some(0.25), Some(10), Some(5)));
    assert_eq!((usage.model.as_deref(), usage.session_id.as_deref()), (Some("script"), Some("s1")));
    assert_eq!(played.shows[0], Show::Tool { name: "write".into(), input: "src/lib.rs".into() });
    let failed = r#"{"type":"text","text":"x"}
{"type":"result","status":"error","message":"no luck"}"#;
    let failure = play("script", failed.as_bytes(), "", AgentEnd::Exited(0), 4096).verdict.unwrap_err();
    assert_eq!(failure.message, "script reported an error: no luck");

    let amp = r#"{"type":"system","subtype":"init","session_id":"T-1"}
{"type":"user","message":{"content":[{"type":"text","text":"<promise>REPLAN</promise>"}]},"parent_tool_use_id":null}
{"type":"assistant","message":{"content":[{"type":"text","text":"done"}],"usage":{"input_tokens":3,"cache_read_input_tokens":4,"output_tokens":2}},"parent_tool_use_id":null}
{"type":"result","subtype":"success","is_error":false,"result":"done","session_id":"T-1"}"#;
    let played = play("amp", amp.as_bytes(), "", AgentEnd::Exited(0), 4096);
    assert!(played.verdict.is_ok() && !played.reply.speech.sigils().replan());
    assert_eq!((played.text.as_str(), played.reply.usage.input_tokens), ("done", Some(7)));
}

#[test]
fn long_inputs_and_messages_are_cut_to_one_line() {
    let command = format!(r"echo\n\t{}", "é".repeat(400));
    let line = format!(
        r#"{{"type":"assistant","message":{{"content":[{{"type":"tool_use","name":"Bash","input":{{"command":"{command}"}}}}]}}}}"#
    );
    let played = claude(&[line.as_bytes()]);
    let [Show::Tool { input, .. }] = played.shows.as_slice() else { panic!("{:?}", played.shows) };
    assert_eq!(input, &format!("echo {}…", "é".repeat(114)));
}

proptest! {
    #[test]
    fn any_bytes_in_any_pieces_lead_to_the_same(
        lines in prop::collection::vec(
            prop_oneof![
                prop::collection::vec(any::<u8>(), 0..40),
                Just(says(r"a\ud83d<promise>COMPLETE</promise>").into_bytes()),
                Just(OK.as_bytes().to_vec()),
                Just(br#"{"type":"assistant","message":5,"error":{}}"#.to_vec()),
                Just(br#"{"type":"result","modelUsage":[1],"usage":"x","errors":3,"is_error":1}"#.to_vec()),
                Just(br#"{"type":"system","subtype":"api_retry","retry_delay_ms":"x"}"#.to_vec()),
            ],
            0..12,
        ),
        step in 1_usize..50,
    ) {
        let stream = lines.join(b"\n".as_slice());
        let (whole, pieces) = (
            play("claude", &stream, "", AgentEnd::Exited(0), usize::MAX),
            play("claude", &stream, "", AgentEnd::Exited(0), step),
        );
        prop_assert_eq!(whole.text, pieces.text);
        prop_assert_eq!(whole.shows, pieces.shows);
        prop_assert_eq!(whole.counters, pieces.counters);
        prop_assert_eq!(whole.verdict, pieces.verdict);
    }
}

#[test]
fn an_error_that_is_told_as_json_is_told_in_its_words() {
    let json = r#"{\"error\":{\"code\":400,\"message\":\"API key not valid.\"}}"#;
    for (agent, line) in [
        ("codex", format!(r#"{{"type":"turn.failed","error":{{"message":"{json}"}}}}"#)),
        ("gemini", format!(r#"{{"type":"result","status":"error","error":{{"message":"{json}"}}}}"#)),
    ] {
        let failure = play(agent, line.as_bytes(), "", AgentEnd::Exited(1), 4096).verdict.unwrap_err();
        assert_eq!(failure.message, format!("{agent} exited with code 1: API key not valid."));
    }
}
