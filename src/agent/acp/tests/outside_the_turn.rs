//! What is said before the prompt, after its answer, or of another session.

use super::*;

#[test]
fn what_comes_after_the_end_of_the_turn_is_no_part_of_it() {
    let mut talk = prompted(false);
    talk.chunk("Done.");
    talk.end_turn();
    talk.hear_and_not_read(b"");
    let shown = talk.shown.len();
    for late in [
        json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": COMPLETE } }),
        json!({ "sessionUpdate": "tool_call", "toolCallId": "t", "title": "late", "status": "in_progress" }),
        json!({ "sessionUpdate": "usage_update", "used": 7, "size": 100 }),
    ] {
        talk.update(&late);
    }
    assert!(talk.is_over && talk.reply.usage.final_seen);
    assert!(!talk.reply.usage.called_tools && !talk.reply.speech.sigils().complete());
    assert_eq!((talk.shown.len(), talk.reply.usage.context_tokens), (shown, Some(7)));
}

#[test]
fn what_comes_before_the_prompt_or_of_another_session_is_no_part_of_the_turn() {
    let mut talk = Talk::new(Wanted { model: Some("m".to_owned()), ..Wanted::default() });
    talk.answer(json!({ "result": { "protocolVersion": 1 } }));
    talk.chunk("one");
    talk.answer(
        json!({ "result": { "sessionId": "s", "models": { "availableModels": [{ "modelId": "m" }] } } }),
    );
    assert_eq!(talk.asked().0, "session/set_model");
    talk.chunk("two");
    talk.answer(json!({ "result": {} }));
    talk.update_of(
        "another",
        &json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": "three" } }),
    );
    talk.chunk("four");
    assert_eq!(talk.text(), r#"Delta("four")"#);
}

fn of_mode(mode: &str) -> Value {
    json!({ "sessionUpdate": "current_mode_update", "currentModeId": mode })
}

fn mode_option(mode: &str) -> Value {
    json!([{ "id": "mode", "name": "Mode", "category": "mode", "type": "select", "currentValue": mode,
        "options": [{ "value": "build", "name": "Build" }, { "value": "plan", "name": "Plan" }] }])
}

/// It is judged by the mode that was really chosen, and from the prompt on.
#[test]
fn who_may_only_look_is_ended_when_it_leaves_its_mode() {
    let modes = json!({ "currentModeId": "build", "availableModes": [
        { "id": "build", "name": "Build" }, { "id": "plan", "name": "Plan" }] });
    for (offer, method, left) in [
        (json!({ "sessionId": "s", "modes": modes }), "session/set_mode", of_mode("build")),
        (
            json!({ "sessionId": "s", "configOptions": mode_option("build") }),
            "session/set_config_option",
            json!({ "sessionUpdate": "config_option_update", "configOptions": mode_option("build") }),
        ),
    ] {
        for read_only in [true, false] {
            let mut talk = Talk::new(Wanted { read_only, ..Wanted::default() });
            talk.answer(json!({ "result": { "protocolVersion": 1 } }));
            talk.answer(json!({ "result": offer }));
            if read_only {
                assert_eq!((talk.asked().0.as_str(), talk.codec.session.step()), (method, method));
                // Told of before our choice arrived.
                talk.update(&left);
                talk.answer(json!({ "result": {} }));
            }
            assert_eq!((talk.asked().0.as_str(), &talk.reply.usage.fault), ("session/prompt", &None));
            talk.update(&of_mode(if read_only { "plan" } else { "build" }));
            assert_eq!(talk.reply.usage.fault, None);
            talk.update(&left);
            let class = talk.reply.usage.fault.as_ref().map(|fault| fault.class);
            assert_eq!(class, read_only.then_some(Class::Permission), "{method}");
        }
    }
}

/// Versions of codex that report nothing beside their answers end a turn with these words as if they were an answer.
#[test]
fn a_codex_that_gives_up_has_met_a_limit() {
    let words = "exceeded retry limit, last status: 429 Too Many Requests";
    for (pieces, class) in [
        (&[words][..], Some(Class::Limit)),
        (&["\nexceeded retry", " limit, last status: 429 Too", " Many Requests\n"], Some(Class::Limit)),
        (&["exceeded retry limit, last status: 503 Service Unavailable"], Some(Class::Overload)),
        // It is about such words.
        (&["The log says: ", words], None),
        (&["exceeded"], None),
    ] {
        let mut talk = prompted(false);
        for piece in pieces {
            talk.chunk(piece);
        }
        talk.end_turn();
        let fault = talk.reply.usage.fault.as_ref();
        assert_eq!(fault.map(|fault| fault.class), class, "{pieces:?}: {fault:?}");
    }
    let mut talk = prompted(false);
    talk.chunk(words);
    talk.update(
        &json!({ "sessionUpdate": "tool_call", "toolCallId": "t", "title": "ls", "status": "completed" }),
    );
    talk.chunk("Done.");
    talk.end_turn();
    assert_eq!(talk.reply.usage.fault, None);
    // Beside a message, where it is shown as a notice.
    let mut talk = prompted_as("@agentclientprotocol/codex-acp", false);
    talk.update(&json!({ "sessionUpdate": "agent_message_chunk", "messageId": "m",
        "content": { "type": "text", "text": "I begin." } }));
    talk.chunk(words);
    talk.end_turn();
    assert_eq!(talk.reply.usage.fault.as_ref().map(|fault| fault.class), Some(Class::Limit));
}

#[test]
fn a_refused_login_is_one() {
    let launch = Launch { env: vec![("CODEX_API_KEY".into(), "k".into())], ..Launch::default() };
    let mut talk = Talk::with(&Grounds { launch, ours: Vec::new() }, Wanted::default());
    let methods = json!([{ "id": "browser", "name": "Browser" }, { "id": "openai", "name": "Key" }]);
    talk.answer(json!({ "result": { "protocolVersion": 1, "authMethods": methods } }));
    talk.answer(json!({ "error": { "code": -32000, "message": "Authentication required" } }));
    // The key is in the agent's own environment, not in ours.
    assert_eq!(talk.asked().0, "authenticate");
    assert_eq!(talk.codec.unanswered().unwrap().1, "authenticate");
    talk.answer(json!({ "error": { "code": -32603, "message": "it is of another project" } }));
    let fault = talk.reply.usage.fault.unwrap();
    assert_eq!(fault.class, Class::Auth);
    assert_eq!(fault.message, "authenticate: it is of another project");
}

#[test]
fn what_an_agent_says_of_its_login_is_read() {
    for (status, expected) in [
        (
            json!({ "kind": "api_key", "label": "Anthropic API key" }),
            Login::Known("Anthropic API key".into()),
        ),
        (json!({ "kind": "gateway" }), Login::Known("gateway".into())),
        (json!({ "kind": "none", "label": "Not logged in" }), Login::Missing),
        (json!("odd"), Login::Unknown),
    ] {
        let mut talk = Talk::new(Wanted::default());
        talk.hear(&json!({ "method": Login::METHOD, "params": { "authStatus": status } }));
        assert_eq!(talk.codec.session.introduction().login, expected, "{status}");
    }
}
