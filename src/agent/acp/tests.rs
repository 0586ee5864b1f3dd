//! What real agents have said, played to the codec; and what none should say.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::*;
use crate::agent::codec::ToWrite;
use crate::reply::Reply;
use crate::reply::sigil::COMPLETE;

mod modes;
mod notices;
mod odd_lines;
mod outside_the_turn;
mod tools;

/// A conversation with a codec of ours.
struct Talk {
    codec: AcpCodec,
    reply: Reply,
    shown: Vec<String>,
    /// What we have said, line by line.
    said: Vec<Value>,
    turn: Turn,
    to_write: ToWrite,
    /// We have hung up.
    is_over: bool,
}

impl Talk {
    fn new(wanted: Wanted) -> Self {
        Self::at("/home/dev/project", wanted)
    }

    fn at(root: impl Into<PathBuf>, wanted: Wanted) -> Self {
        let launch = Launch { cwd: root.into(), ..Launch::default() };
        Self::with(&Grounds { launch, ours: Vec::new() }, wanted)
    }

    fn with(grounds: &Grounds, wanted: Wanted) -> Self {
        let mut codec = AcpCodec::new(wanted, grounds, None);
        let (first, then) = codec.open("Do one task.");
        assert_eq!(then, Stdin::KeepOpen);
        let (answers, to_write) = Answers::new();
        codec.connect(&answers);
        Self {
            codec,
            reply: Reply::default(),
            shown: Vec::new(),
            said: vec![serde_json::from_slice(&first).unwrap()],
            turn: Turn::new(answers),
            to_write,
            is_over: false,
        }
    }

    /// Hears what an agent says that reads none of our answers.
    fn hear_and_not_read(&mut self, bytes: &[u8]) {
        self.codec.read(bytes, &mut self.turn);
        let (items, _) = self.turn.take_items();
        for item in items {
            self.reply.fold(&item);
            if let Item::Show(show) = item {
                self.shown.push(format!("{show:?}"));
            }
        }
    }

    fn hear_bytes(&mut self, bytes: &[u8]) {
        self.hear_and_not_read(bytes);
        let answer = self.to_write.so_far();
        let lines = answer.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
        self.said.extend(lines.map(|line| serde_json::from_slice::<Value>(line).unwrap()));
        self.is_over = !self.to_write.is_open();
    }

    fn hear(&mut self, message: &Value) {
        self.hear_bytes(format!("{message}\n").as_bytes());
    }

    /// The method and the number of our last request.
    fn asked(&self) -> (String, Value) {
        let last = self.said.iter().rev().find(|said| said.get("method").is_some()).unwrap();
        (last["method"].as_str().unwrap().to_owned(), last["id"].clone())
    }

    /// Answers what we have asked, whatever its number.
    fn answer(&mut self, mut message: Value) {
        message["id"] = self.asked().1;
        self.hear(&message);
    }

    /// Hears an update of the session.
    fn update(&mut self, update: &Value) {
        self.update_of("s", update);
    }

    fn update_of(&mut self, session: &str, update: &Value) {
        let params = json!({ "sessionId": session, "update": update });
        self.hear(&json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }));
    }

    fn chunk(&mut self, text: &str) {
        self.update(
            &json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": text } }),
        );
    }

    fn end_turn(&mut self) {
        self.answer(json!({ "result": { "stopReason": "end_turn" } }));
    }

    fn text(&self) -> String {
        self.shown.iter().filter(|show| show.starts_with("Delta")).cloned().collect()
    }
}

fn transcripts() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings/acp");
    let mut all: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    all.retain(|path| path.is_file());
    all.sort();
    all
}

fn transcript(name: &str) -> PathBuf {
    transcripts().into_iter().find(|path| path.ends_with(format!("{name}.jsonl"))).unwrap()
}

/// What the agent has said in a transcript, but for its answers to what we choose in our own way.
fn of_agent(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let is_choice = |line: &&Value| {
        let method = line["msg"]["method"].as_str().unwrap_or_default();
        line["dir"] == "client->agent" && method.starts_with("session/set_")
    };
    let choices: Vec<Value> = lines.iter().filter(is_choice).map(|line| line["msg"]["id"].clone()).collect();
    let said =
        lines.into_iter().filter(|line| line["dir"] == "agent->client").map(|line| line["msg"].clone());
    said.filter(|said| said.get("method").is_some() || !choices.contains(&said["id"])).collect()
}

/// Plays a transcript. Its numbers are those of another client.
fn play(path: &Path, wanted: Wanted) -> Talk {
    let mut talk = Talk::new(wanted);
    for message in of_agent(path) {
        let is_answer = message.get("method").is_none();
        if !is_answer {
            talk.hear(&message);
            continue;
        }
        talk.answer(message);
        while talk.asked().0.starts_with("session/set_") && !talk.is_over {
            talk.answer(json!({ "jsonrpc": "2.0", "id": 0, "result": {} }));
        }
    }
    talk
}

#[test]
fn what_real_agents_have_said_is_understood() {
    let mut seen = 0;
    for path in transcripts() {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let talk = play(&path, Wanted::default());
        let usage = &talk.reply.usage;
        assert!(talk.is_over, "{name} comes to its end");
        assert_eq!((talk.codec.counters.malformed, talk.codec.counters.oversized), (0, 0), "{name}");
        assert!(usage.session_id.is_some() && usage.final_seen, "{name}");
        // gemini never tells how its writing ended where that was refused.
        if name.contains(".tool.") {
            assert!(usage.called_tools && usage.tools_in_flight.is_empty(), "{name}");
        }
        if name.contains(".cancel.") {
            assert_eq!(usage.fault.as_ref().unwrap().message, "its turn was cancelled", "{name}");
        } else if name == "opencode.write.reject.jsonl" {
            assert_eq!(
                (usage.fault.as_ref(), talk.reply.speech.sigils().complete()),
                (None, false),
                "it stops there"
            );
        } else {
            assert_eq!(usage.fault, None, "{name}");
            assert!(talk.reply.speech.sigils().complete(), "{name}: {}", talk.text());
            let text = talk.text().replace(r#"")Delta(""#, "");
            assert!(text.contains(COMPLETE), "{name}: {text}");
            // kimi tells no tokens but those of its context.
            assert_eq!(usage.output_tokens.is_some(), !name.starts_with("kimi"), "{name}");
            // copilot names no model.
            assert_eq!(usage.model.is_some(), !name.starts_with("copilot"), "{name}");
        }
        if name.starts_with("claude") && !name.contains("cancel") {
            assert!(usage.cost_usd.is_some_and(|cost| cost > 0.0), "{name}");
        }
        // Each request of the agent's has exactly one answer of ours, with its own number.
        let asked = of_agent(&path)
            .into_iter()
            .filter(|said| said.get("method").is_some() && said.get("id").is_some());
        let answered = talk.said.iter().filter(|said| said.get("method").is_none());
        assert_eq!(
            asked.map(|asked| asked["id"].clone()).collect::<Vec<_>>(),
            answered.map(|answer| answer["id"].clone()).collect::<Vec<_>>(),
            "{name}"
        );
        seen += 1;
    }
    assert_eq!(seen, 29);
}

#[test]
fn a_model_is_chosen_where_it_is_offered_and_else_its_absence_is_told() {
    let path = transcript("claude-agent-acp.tool");
    let wanted = |model: &str| Wanted { model: Some(model.to_owned()), ..Wanted::default() };
    let talk = play(&path, wanted("opus"));
    assert!(talk.said.iter().any(|said| said["params"]["value"] == "opus"));
    assert_eq!(talk.reply.usage.fault, None);
    let talk = play(&path, wanted("gpt"));
    let fault = talk.reply.usage.fault.unwrap();
    assert!(
        fault.message.starts_with("it has no model 'gpt': choose one of default, opus"),
        "{}",
        fault.message
    );
    assert!(!talk.said.iter().any(|said| said["method"] == "session/prompt"));
    // The beginning of another one's id.
    let talk = play(&transcript("codex-acp.tool"), wanted("gpt-5.1"));
    assert!(talk.reply.usage.fault.unwrap().message.starts_with("it has no model 'gpt-5.1'"));
}

#[test]
fn a_model_is_found_by_a_word_of_its_id_or_its_name() {
    for (name, word, id) in [
        ("gemini.tool", "gemini-3.1-pro-preview", Some("gemini-3.1-pro-preview-customtools")),
        ("gemini.tool", "3.5-Flash", Some("gemini-3.5-flash-lite")),
        ("gemini.tool", "AUTO", Some("auto")),
        ("gemini.tool", "flash", None),
        ("claude-agent-acp.tool", "recommended", Some("default")),
        ("codex-acp.tool", "6.1 terra", Some("gpt-6.1-terra")),
    ] {
        let talk = play(&transcript(name), Wanted { model: Some(word.to_owned()), ..Wanted::default() });
        let chosen = ["value", "modelId"].map(|key| {
            talk.said.iter().find_map(|said| {
                said["params"][key].as_str().filter(|_| said["params"]["configId"] != "mode")
            })
        });
        assert_eq!(chosen[0].or(chosen[1]), id, "{word}");
        let fault = talk.reply.usage.fault.map(|fault| fault.message).unwrap_or_default();
        assert_eq!(
            fault.starts_with("several of its models have 'flash' in their names: choose one of gemini-3-"),
            id.is_none(),
            "{fault}"
        );
    }
}

/// A session that waits for the end of its turn.
fn prompted(read_only: bool) -> Talk {
    prompted_as("other", read_only)
}

/// A talk with the agent of this name.
fn prompted_as(agent: &str, read_only: bool) -> Talk {
    let mut talk = Talk::new(Wanted { read_only, ..Wanted::default() });
    let info = json!({ "name": agent, "version": "1.2" });
    talk.answer(json!({ "jsonrpc": "2.0", "result": { "protocolVersion": 1, "agentInfo": info } }));
    talk.answer(json!({ "jsonrpc": "2.0", "result": { "sessionId": "s" } }));
    assert_eq!(talk.asked().0, "session/prompt");
    talk
}

#[test]
fn each_way_to_stop_says_whether_it_was_good() {
    for (answer, class, message) in [
        (json!({ "result": { "stopReason": "refusal" } }), Class::Refused, "it refused to go on"),
        (
            json!({ "result": { "stopReason": "max_tokens" } }),
            Class::Context,
            "it has reached its limit of tokens",
        ),
        (json!({ "result": { "stopReason": "cancelled" } }), Class::Other, "its turn was cancelled"),
        (json!({ "result": { "stopReason": "bored" } }), Class::Other, "unknown reason: bored"),
        (json!({ "result": null }), Class::Other, "unknown reason: none"),
        (
            json!({ "error": { "code": -32000, "message": "Authentication required" } }),
            Class::Auth,
            "Authentication",
        ),
        (json!({ "error": { "code": 429, "message": "slow down" } }), Class::Limit, "slow down"),
        (
            json!({ "error": { "code": -32603, "message": "Internal error", "data": { "errorKind": "rate_limit", "details": "until 9" } } }),
            Class::Limit,
            "until 9",
        ),
        (json!({ "error": { "code": -32603, "message": "Prompt is too long" } }), Class::Context, "too long"),
        (json!({ "error": "odd" }), Class::Other, "odd"),
        (json!({ "error": {} }), Class::Other, "error 0"),
        (
            json!({ "error": { "code": "429", "message": null, "data": "slow down" } }),
            Class::Limit,
            "slow down",
        ),
        (
            json!({ "result": { "stopReason": "max_turn_requests", "usage": { "totalTokens": 1, "inputTokens": u64::MAX,
                "outputTokens": 1, "cachedReadTokens": u64::MAX, "cachedWriteTokens": u64::MAX } } }),
            Class::Other,
            "requests in a turn",
        ),
    ] {
        let mut talk = prompted(false);
        talk.answer(answer.clone());
        let fault = talk.reply.usage.fault.unwrap_or_else(|| panic!("{answer}"));
        assert_eq!(
            (fault.class, fault.message.contains(message)),
            (class, true),
            "{answer}: {}",
            fault.message
        );
        assert!(talk.is_over, "{answer}");
    }
    let mut talk = prompted(false);
    talk.answer(json!({ "result": { "stopReason": "end_turn" } }));
    assert_eq!((talk.is_over, talk.reply.usage.final_seen, talk.reply.usage.fault), (true, true, None));
}

#[test]
fn what_codex_says_beside_a_good_answer_counts() {
    let mut talk = prompted(false);
    let update = |error: Value| {
        json!({ "jsonrpc": "2.0", "method": "session/update", "params": { "sessionId": "s", "update": {
            "sessionUpdate": "session_info_update", "_meta": { "codex": { "error": error } } } } })
    };
    talk.hear(&update(
        json!({ "httpStatusCode": 429, "message": "hit your usage limit", "willRetry": true }),
    ));
    talk.hear(&update(
        json!({ "codexErrorInfo": { "http": { "httpStatusCode": 429 } }, "message": "hit your usage limit" }),
    ));
    talk.answer(json!({ "result": { "stopReason": "end_turn", "usage": null } }));
    let fault = talk.reply.usage.fault.unwrap();
    assert_eq!((fault.class, fault.message.as_str()), (Class::Limit, "hit your usage limit"));
    assert_eq!(fault.reset_at, None);
}

#[test]
fn the_words_of_a_limit_name_its_end() {
    let mut talk = prompted(false);
    let message = "You've hit your usage limit; try again at 2100-01-31T12:00:00Z.";
    talk.answer(json!({ "error": { "code": 429, "message": message } }));
    let fault = talk.reply.usage.fault.unwrap();
    assert_eq!((fault.class, fault.reset_at), (Class::Limit, Some(4_105_080_000)));
}

#[test]
fn an_agent_that_reads_by_itself_is_not_offered_to_read() {
    let offered = |wanted| Talk::new(wanted).said[0]["params"]["clientCapabilities"]["fs"].clone();
    assert_eq!(offered(Wanted::default()), json!({ "readTextFile": true, "writeTextFile": true }));
    let wanted = Wanted { reads_itself: true, ..Wanted::default() };
    assert_eq!(offered(wanted), json!({ "readTextFile": false, "writeTextFile": true }));
}

#[test]
fn thoughts_are_shown_and_are_nothing_that_was_said() {
    let mut talk = prompted(false);
    for (kind, text) in [("agent_thought_chunk", "It is done: "), ("agent_thought_chunk", COMPLETE)] {
        talk.hear(&json!({ "jsonrpc": "2.0", "method": "session/update", "params": { "sessionId": "s",
            "update": { "sessionUpdate": kind, "content": { "type": "text", "text": text } } } }));
    }
    talk.answer(json!({ "result": { "stopReason": "end_turn" } }));
    assert_eq!(talk.shown.concat().matches("Thought").count(), 2, "{:?}", talk.shown);
    assert!(!talk.reply.speech.sigils().complete() && talk.text().is_empty());
}

#[test]
fn a_login_is_asked_for_once_and_only_by_a_key() {
    let refused = json!({ "error": { "code": -32000, "message": "Authentication required" } });
    let mut talk = Talk::new(Wanted::default());
    talk.answer(
        json!({ "result": { "protocolVersion": 1, "authMethods": [{ "id": "oauth", "name": "Browser" }] } }),
    );
    talk.answer(refused);
    assert_eq!(talk.reply.usage.fault.unwrap().class, Class::Auth);
    assert!(!talk.said.iter().any(|said| said["method"] == "authenticate"));
}

#[test]
fn leave_is_given_by_its_kind_and_never_to_who_may_only_look() {
    let request = |kind: &str, options: Value| {
        json!({ "jsonrpc": "2.0", "id": "p-1", "method": "session/request_permission", "params": { "sessionId": "s",
            "toolCall": { "toolCallId": "t", "title": "do it", "kind": kind }, "options": options } })
    };
    let both = json!([
        { "optionId": "x", "name": "No", "kind": "reject_once" },
        { "optionId": "y", "name": "Always", "kind": "allow_always" },
        { "optionId": "z", "name": "Yes", "kind": "allow_once" },
    ]);
    for (read_only, kind, expected) in [
        (false, "edit", "z"),
        (false, "switch_mode", "z"),
        (true, "execute", "z"),
        (true, "read", "z"),
        (true, "edit", "x"),
        (true, "switch_mode", "x"),
        (true, "other", "x"),
        (true, "brand_new", "x"),
    ] {
        let mut talk = prompted(read_only);
        talk.hear(&request(kind, both.clone()));
        let answer = talk.said.last().unwrap();
        assert_eq!(
            (&answer["id"], &answer["result"]["outcome"]["optionId"]),
            (&json!("p-1"), &json!(expected)),
            "{kind}"
        );
        assert!(talk.shown.last().unwrap().contains("do it"), "{:?}", talk.shown);
    }
    let mut talk = prompted(true);
    talk.hear(&request("edit", json!([{ "optionId": "y", "name": "Yes", "kind": "allow_once" }])));
    assert_eq!(talk.said.last().unwrap()["result"]["outcome"]["outcome"], "cancelled");
}
