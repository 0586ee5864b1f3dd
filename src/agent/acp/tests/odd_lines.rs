//! Lines that are too long, broken, or no messages.

use std::fs;

use proptest::prelude::*;

use super::*;

#[test]
fn what_nobody_should_say_is_answered_or_passed_over() {
    let mut talk = Talk::new(Wanted::default());
    talk.hear(&json!({ "jsonrpc": "2.0", "id": 7, "method": "fs/read_text_file", "params": {} }));
    assert_eq!(talk.said.last().unwrap()["error"]["code"], -32601, "before there is a session");
    let mut talk = prompted(false);
    for (message, code) in [
        (json!({ "jsonrpc": "2.0", "id": 1, "method": "no/such" }), -32601),
        (json!({ "jsonrpc": "2.0", "id": null, "method": "fs/read_text_file" }), -32602),
        (
            json!({ "jsonrpc": "2.0", "id": "a", "method": "fs/read_text_file", "params": { "path": 1 } }),
            -32602,
        ),
        (json!({ "jsonrpc": "2.0", "id": 2, "method": "session/request_permission", "params": [] }), -32602),
        (
            json!({ "jsonrpc": "2.0", "id": 3, "method": "fs/read_text_file",
            "params": { "sessionId": "s", "path": "/home/dev/project/../../x" } }),
            -32603,
        ),
    ] {
        talk.hear(&message);
        let answer = talk.said.last().unwrap();
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&message["id"], &json!(code)), "{message}");
    }
    let count = talk.said.len();
    for line in
        ["", "no JSON", "[]", "{}", "null", r#"{"jsonrpc":"2.0","id":99,"result":{}}"#, r#"{"method":"x"}"#]
    {
        talk.hear_bytes(format!("{line}\n").as_bytes());
    }
    talk.hear_bytes(&vec![b'x'; LONGEST + 1]);
    talk.hear_bytes(b"\n");
    assert_eq!((talk.said.len(), talk.codec.counters.oversized), (count, 1));
    assert!(talk.codec.counters.malformed >= 4, "{:?}", talk.codec.counters);
    for number in 0..1000 {
        talk.hear(&json!({ "jsonrpc": "2.0", "id": number, "method": "no/such" }));
    }
    assert_eq!(talk.said.len(), count + 1000);
    talk.answer(json!({ "result": { "stopReason": "end_turn" } }));
    assert!(talk.is_over);
}

#[test]
fn what_is_too_long_gets_an_answer_and_is_one() {
    let mut talk = prompted(false);
    let blank = vec![b' '; LONGEST];
    for (head, code) in [
        (r#"{"jsonrpc":"2.0","id":"a","method":"fs/write_text_file","params":{"content":""#, Some(-32700)),
        (r#"{"jsonrpc":"2.0","method":"session/update","params":{"x":""#, None),
        // It is unknown whose it is.
        (r#"{"jsonrpc":"2.0","params":{"x":""#, None),
    ] {
        let count = talk.said.len();
        talk.hear_bytes(&[head.as_bytes(), &blank, b"\n"].concat());
        let answer = talk.said.get(count);
        assert_eq!(answer.map(|answer| answer["error"]["code"].as_i64().unwrap()), code, "{head}");
        assert!(answer.is_none_or(|answer| answer["id"] == "a"), "{answer:?}");
    }
    assert_eq!(talk.codec.counters.oversized, 3);
    let head = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"x":""#, talk.asked().1);
    talk.hear_bytes(&[head.as_bytes(), &blank, b"\n"].concat());
    assert!(talk.is_over);
    assert_eq!(talk.reply.usage.fault.unwrap().message, "its answer is longer than 97 MiB");
}

#[test]
fn a_file_of_the_largest_size_can_be_written_whatever_is_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let mut talk = Talk::at(&root, Wanted::default());
    talk.answer(json!({ "result": { "protocolVersion": 1 } }));
    talk.answer(json!({ "result": { "sessionId": "s" } }));
    let (path, content) = (root.join("lines"), "\u{1}".repeat(files::LARGEST));
    talk.hear(&json!({ "jsonrpc": "2.0", "id": 1, "method": "fs/write_text_file",
        "params": { "sessionId": "s", "path": path, "content": content } }));
    assert_eq!(talk.said.last().unwrap()["result"], Value::Null);
    assert_eq!(fs::metadata(path).unwrap().len(), files::LARGEST as u64);
}

#[test]
fn half_a_character_is_no_reason_to_hear_nothing() {
    let mut talk = prompted(false);
    let update = |text: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s","update":{{"sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"{text}"}}}}}}}}"#
        )
    };
    talk.hear_bytes(
        format!("{}\n", update(&format!(r"half \ud83d, whole \ud83d\ude00\n\n{COMPLETE}"))).as_bytes(),
    );
    assert!(talk.text().contains("half \u{fffd}, whole \u{1f600}"), "{}", talk.text());
    for (bytes, id) in [
        (b"{\"id\":1,\"method\":\"fs/read_text_file\",\"params\":{\"sessionId\":\"s\",\"path\":\"/\xff\"}}\n".as_slice(), 1),
        (b"{\"id\":2,\"method\":\"fs/read_text_file\",\"params\":{\"sessionId\":\"s\",\"path\":\"/\\udc00\"}}\n", 2),
        // No message at all, but a request waits for an answer.
        (b"{\"id\":3,\"method\":5}\n", 3),
        (b"{\"id\":4,\"method\":\"x\",\"params\":[}\n", 4),
    ] {
        talk.hear_bytes(bytes);
        let answer = talk.said.last().unwrap();
        assert!(answer["id"] == id && answer["error"].is_object(), "{answer}");
    }
    assert_eq!((talk.codec.counters.malformed, talk.codec.counters.oversized), (2, 0));
    talk.end_turn();
    assert!(talk.reply.speech.sigils().complete());
}

#[test]
fn our_memory_is_not_filled_by_who_does_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let mut talk = Talk::at(&root, Wanted::default());
    talk.answer(json!({ "result": { "protocolVersion": 1 } }));
    talk.answer(json!({ "result": { "sessionId": "s" } }));
    fs::write(root.join("large"), "x".repeat(files::LARGEST)).unwrap();
    let ask = |id: usize, method: &str| {
        let params = json!({ "sessionId": "s", "path": root.join("large") });
        format!("{}\n", json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
    };
    // All in one piece, as it may come.
    let many: String = (0..25).map(|id| ask(id, "fs/read_text_file")).collect();
    talk.hear_and_not_read(many.as_bytes());
    let unread = talk.turn.unread();
    assert!(unread.answers == 25 && unread.bytes < 4 * files::LARGEST, "{unread:?}");
    talk.hear_bytes(ask(25, "fs/read_text_file").as_bytes());
    let refused = talk.said.iter().filter(|said| said["error"].to_string().contains("busy")).count();
    assert_eq!((refused, talk.turn.unread().bytes), (24, 0));
    talk.hear_bytes(ask(26, "fs/read_text_file").as_bytes());
    assert!(talk.said.last().unwrap()["result"]["content"].is_string());
    let many = ask(0, "no/such").repeat(MOST_UNREAD + 1);
    talk.hear_and_not_read(many.as_bytes());
    assert_eq!(talk.reply.usage.fault.unwrap().message, "it does not read its answers");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    /// Whatever is changed in what an agent says, and however it comes cut: no panic, and no second opinion.
    #[test]
    fn mutated_transcripts_do_no_harm(
        which in 0..16_usize,
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut in 1..5000_usize,
    ) {
        let path = &transcripts()[which];
        let mut bytes: Vec<u8> = of_agent(path).iter().flat_map(|said| format!("{said}\n").into_bytes()).collect();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let (mut whole, mut pieces) = (Talk::new(Wanted::default()), Talk::new(Wanted::default()));
        whole.hear_bytes(&bytes);
        bytes.chunks(cut).for_each(|piece| pieces.hear_bytes(piece));
        prop_assert_eq!(whole.said, pieces.said);
        prop_assert_eq!(whole.codec.counters, pieces.codec.counters);
        prop_assert_eq!(whole.reply.usage, pieces.reply.usage);
    }
}
