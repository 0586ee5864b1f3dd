//! What an agent says that is not the assistant's.

use super::*;

#[test]
fn what_is_said_of_the_mode_is_nothing_that_the_assistant_says() {
    let mut talk = prompted(false);
    for text in ["[MODE_UPDATE] yolo", "It is [MODE_UPDATE] yolo."] {
        talk.hear(&json!({ "jsonrpc": "2.0", "method": "session/update", "params": { "sessionId": "s",
            "update": { "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": text } } } }));
    }
    assert_eq!(talk.text(), r#"Delta("It is [MODE_UPDATE] yolo.")"#);
}

fn named(id: &str, text: &str) -> Value {
    json!({ "sessionUpdate": "agent_message_chunk", "messageId": id, "content": { "type": "text", "text": text } })
}

#[test]
fn notices_are_shown_and_are_nothing_that_was_said() {
    let notice = json!({ "sessionUpdate": "notice", "severity": "warning", "title": "Model metadata not found",
        "description": "Defaulting to fallback metadata" });
    let informational = json!({ "sessionUpdate": "agent_message_chunk",
        "content": { "type": "text", "text": "**Notice:** Stop says: the disk is nearly full" },
        "_meta": { "claudeCode": { "kind": "informational", "level": "notice" } } });
    let mut talk = prompted_as("@agentclientprotocol/claude-agent-acp", false);
    assert_eq!(talk.said[0]["params"]["clientCapabilities"]["session"], json!({ "notices": {} }));
    talk.update(&notice);
    talk.update(&informational);
    assert!(!talk.reply.said, "{:?}", talk.shown);
    talk.update(&named("1", COMPLETE));
    talk.update(&informational);
    talk.chunk("Warning: what belongs to no message, where others belong to one");
    talk.end_turn();
    assert!(talk.reply.speech.sigils().complete());
    let shown = [
        r#"Notice("Model metadata not found: Defaulting to fallback metadata")"#,
        r#"Notice("**Notice:** Stop says: the disk is nearly full")"#,
        r#"Delta("<promise>COMPLETE</promise>")"#,
        r#"Notice("**Notice:** Stop says: the disk is nearly full")"#,
        r#"Notice("Warning: what belongs to no message, where others belong to one")"#,
    ];
    assert_eq!(talk.shown, shown);
}

#[test]
fn an_agent_that_names_its_messages_once_goes_on_without() {
    for (agent, is_claimed) in
        [("goose", true), ("codex-acp-fork", true), ("@agentclientprotocol/codex-acp", false)]
    {
        let mut talk = prompted_as(agent, false);
        talk.update(&named("1", "It is done.\n\n"));
        talk.chunk(COMPLETE);
        talk.end_turn();
        assert_eq!(talk.reply.speech.sigils().complete(), is_claimed, "{agent}: {:?}", talk.shown);
    }
}

#[test]
fn messages_of_an_agent_that_names_none_are_the_assistants() {
    let mut talk = prompted(false);
    talk.chunk("It is done.\n\n");
    talk.chunk(COMPLETE);
    talk.end_turn();
    assert!(talk.reply.said && talk.reply.speech.sigils().complete());
}

fn codex(told: &Value) -> Value {
    json!({ "sessionUpdate": "session_info_update", "_meta": { "codex": told } })
}

fn status(kind: &str) -> Value {
    codex(&json!({ "threadStatus": { "type": kind } }))
}

fn retries(status: u64) -> Value {
    codex(
        &json!({ "error": { "message": "Reconnecting... 1/5", "willRetry": true, "additionalDetails": "gone",
        "codexErrorInfo": { "responseStreamDisconnected": { "httpStatusCode": status } } } }),
    )
}

#[test]
fn a_codex_that_waits_for_its_network_says_so_until_it_goes_on() {
    let waits =
        codex(&json!({ "error": { "message": "Reconnecting... waiting for network", "willRetry": true,
        "additionalDetails": "Connection failed: error sending request" } }));
    let mut talk = prompted(false);
    talk.update(&waits);
    let fault = talk.reply.usage.fault.clone().unwrap();
    assert_eq!(
        (fault.class, fault.message.as_str()),
        (Class::Network, "Connection failed: error sending request")
    );
    talk.update(&named("1", "It is done."));
    talk.end_turn();
    assert_eq!(talk.reply.usage.fault, None);
}

#[test]
fn a_turn_of_codex_fails_with_the_thread_and_not_with_a_retry() {
    // (what it tells, the kind of error and its words)
    for (told, expected) in [
        (vec![retries(503), named("1", "It is done.")], None),
        (vec![status("systemError"), status("active"), named("1", "It is done.")], None),
        (vec![retries(503), status("systemError")], Some((Class::Overload, "gone"))),
        (
            vec![status("systemError")],
            Some((Class::Other, "its turn has failed, for a reason it does not name")),
        ),
        // It has gone on since: that error was another one.
        (vec![retries(503), named("1", "x"), status("systemError")], Some((Class::Other, "its turn"))),
    ] {
        let mut talk = prompted(false);
        for update in &told {
            talk.update(update);
        }
        talk.update_of("another", &status("systemError"));
        talk.end_turn();
        let fault = talk.reply.usage.fault.as_ref().map(|fault| (fault.class, fault.message.as_str()));
        assert_eq!(fault.map(|(class, _)| class), expected.map(|(class, _)| class), "{told:?}");
        let (words, expected) = (fault.unwrap_or_default().1, expected.unwrap_or_default().1);
        assert!(words.starts_with(expected), "{told:?}: {words}");
    }
    // Its words come behind, once; what they say of the kind counts most.
    for (words, class) in
        [("unexpected status 401 Unauthorized", Class::Auth), ("it is broken", Class::Overload)]
    {
        let mut talk = prompted(false);
        talk.update(&retries(503));
        talk.update(&status("systemError"));
        talk.chunk(&format!("{words}\n\n"));
        talk.end_turn();
        let fault = talk.reply.usage.fault.unwrap();
        assert_eq!((fault.class, fault.message.as_str()), (class, words));
        assert!(!talk.reply.said, "{:?}", talk.shown);
    }
}

#[test]
fn vibe_says_once_why_it_asks_again_and_that_is_over_when_it_goes_on() {
    let mut talk = prompted_as("@mistralai/mistral-vibe", false);
    let params = json!({ "sessionId": "s", "category": "rate_limited", "detail": "HTTP 429" });
    for _ in 0..3 {
        talk.hear(&json!({ "jsonrpc": "2.0", "method": "_session/retrying", "params": params }));
    }
    assert_eq!(talk.shown, [r#"Notice("the agent tries again: HTTP 429")"#]);
    assert_eq!(talk.reply.usage.fault.as_ref().map(|fault| fault.class), Some(Class::Limit));
    talk.chunk(COMPLETE);
    talk.end_turn();
    assert!(talk.reply.usage.good_final() && talk.reply.speech.sigils().complete());
}

#[test]
fn kimi_has_failed_where_it_says_nothing_after_the_prompt_or_after_a_tool() {
    let call =
        json!({ "sessionUpdate": "tool_call", "toolCallId": "t", "title": "Bash", "status": "completed" });
    for (agent, chunks, is_good) in [
        ("Kimi Code CLI", &[][..], false),
        ("Kimi Code CLI", &["I look.", "tool"], false),
        ("Kimi Code CLI", &["tool", COMPLETE], true),
        ("Kimi Code CLI", &["Compacting conversation context…", "Compaction cancelled."], false),
        ("Kimi Code CLI", &["Compaction completed: 2 messages", COMPLETE], true),
        ("Kimi Code CLI", &["I look.", "tool", "Compaction completed: 2 messages"], false),
        ("goose", &["I look.", "tool"], true),
    ] {
        let mut talk = prompted_as(agent, false);
        for chunk in chunks {
            if *chunk == "tool" { talk.update(&call) } else { talk.chunk(chunk) }
        }
        talk.end_turn();
        assert_eq!(talk.reply.usage.good_final(), is_good, "{chunks:?}: {:?}", talk.shown);
        assert!(!talk.text().contains("Compact"), "{:?}", talk.shown);
    }
}
