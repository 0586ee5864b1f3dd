//! Tools that an agent calls, in whatever way it tells of that.

use super::*;

fn call(kind: &str, status: &str) -> Value {
    json!({ "sessionUpdate": kind, "toolCallId": "t", "title": "to write", "status": status })
}

#[test]
fn a_call_begins_with_whatever_is_told_of_it_first() {
    for (first, is_in_flight) in [
        (call("tool_call", "pending"), true),
        (call("tool_call_update", "in_progress"), true),
        (call("tool_call_update", "failed"), false),
        (call("tool_call", "completed"), false),
    ] {
        let mut talk = prompted(false);
        talk.chunk(COMPLETE);
        talk.update(&first);
        assert_eq!(talk.reply.usage.tools_in_flight.is_empty(), !is_in_flight, "{first}");
        talk.update(&call("tool_call_update", "completed"));
        talk.update(&call("tool_call", "completed"));
        let usage = &talk.reply.usage;
        assert!(usage.called_tools && usage.tools_in_flight.is_empty(), "{first}");
        let shown = talk.shown.iter().filter(|show| show.contains("Tool")).count();
        assert_eq!(shown, 1, "{:?}", talk.shown);
        talk.chunk(" and more");
        talk.end_turn();
        // What was said before is not its last word.
        assert!(!talk.reply.speech.sigils().complete(), "{first}");
    }
}

#[test]
fn a_call_may_begin_with_a_request_for_leave() {
    for (read_only, is_in_flight) in [(false, true), (true, false)] {
        let mut talk = prompted(read_only);
        talk.chunk(COMPLETE);
        talk.hear(&json!({ "jsonrpc": "2.0", "id": 1, "method": "session/request_permission", "params": {
            "sessionId": "s", "toolCall": { "toolCallId": "t", "title": "to write", "kind": "edit" }, "options": [
            { "optionId": "no", "name": "No", "kind": "reject_once" },
            { "optionId": "yes", "name": "Yes", "kind": "allow_once" }] } }));
        assert_eq!(
            talk.said.last().unwrap()["result"]["outcome"]["optionId"],
            if read_only { "no" } else { "yes" }
        );
        let usage = &talk.reply.usage;
        assert!(usage.called_tools && usage.tools_in_flight.is_empty() != is_in_flight);
        talk.chunk("It is done.");
        talk.end_turn();
        assert!(!talk.reply.speech.sigils().complete());
    }
}

#[test]
fn an_option_that_nobody_knows_is_no_reason_to_refuse_the_others_and_no_cost_is_below_nothing() {
    let mut talk = prompted(false);
    talk.hear(&json!({ "jsonrpc": "2.0", "id": 1, "method": "session/request_permission", "params": {
        "sessionId": "s", "toolCall": { "toolCallId": "t" }, "options": [
        { "optionId": "odd", "name": "Odd", "kind": "allow_on_tuesdays" },
        { "optionId": "yes", "name": "Yes", "kind": "allow_once" }] } }));
    assert_eq!(talk.said.last().unwrap()["result"]["outcome"]["optionId"], "yes");
    for (amount, known) in [(0.5, 0.5), (-100.0, 0.5), (0.75, 0.75)] {
        let cost = json!({ "amount": amount, "currency": "USD" });
        talk.update(&json!({ "sessionUpdate": "usage_update", "used": 1, "size": 2, "cost": cost }));
        assert_eq!(talk.reply.usage.cost_usd, Some(known));
    }
}

#[test]
fn another_version_of_the_protocol_is_not_spoken() {
    let mut talk = Talk::new(Wanted::default());
    talk.answer(json!({ "result": { "protocolVersion": 7 } }));
    assert!(talk.is_over);
    assert_eq!(
        talk.reply.usage.fault.unwrap().message,
        "it speaks version 7 of the protocol, and ralph version 1"
    );
}

#[test]
fn calls_without_end_and_long_ids_do_not_fill_our_memory() {
    let mut talk = prompted(false);
    let start = |talk: &mut Talk, id: &str| {
        talk.update(
            &json!({ "sessionUpdate": "tool_call", "toolCallId": id, "title": "t", "status": "pending" }),
        );
    };
    let long = "x".repeat(1 << 20);
    start(&mut talk, &long);
    assert!(talk.reply.usage.tools_in_flight[0].len() < 100);
    let over = json!({ "sessionUpdate": "tool_call_update", "toolCallId": long, "status": "completed" });
    talk.update(&over);
    assert_eq!(talk.reply.usage.tools_in_flight.len(), 0);
    for id in 0..3000 {
        start(&mut talk, &id.to_string());
    }
    assert_eq!(talk.reply.usage.tools_in_flight.len(), 1000);
}
