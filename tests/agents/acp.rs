//! The agent over the Agent Client Protocol. It asks of its client what real agents ask.

use super::talk::{Talk, Then};
use super::{Attempt, text};
use anyhow::{Context as _, bail};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{self, BufRead, StdinLock, StdoutLock, Write as _};
use std::process::{Command, Stdio};

/// The turn was cancelled.
#[derive(Debug, thiserror::Error)]
#[error("cancelled")]
struct Cancelled;

/// The conversation with the client.
struct Wire {
    input: StdinLock<'static>,
    out: StdoutLock<'static>,
    session: String,
    /// The number of the latest request of ours.
    asked: u64,
    /// How many messages and tool calls there were.
    said: u64,
    /// What the turn's answer says.
    answer: Option<Value>,
}

/// Talks until the client hangs up.
pub(super) fn converse(attempt: &Attempt) -> anyhow::Result<()> {
    let mut wire = Wire {
        input: io::stdin().lock(),
        out: io::stdout().lock(),
        session: format!("script-{}", std::process::id()),
        asked: 0,
        said: 0,
        answer: None,
    };
    wire.serve(attempt)
}

impl Wire {
    fn serve(&mut self, attempt: &Attempt) -> anyhow::Result<()> {
        let words: Vec<&str> = attempt.words.split_whitespace().collect();
        let talk = Talk::read(&words);
        let mut is_logged_in = talk != Some(Talk::Login);
        while let Some(message) = self.hear()? {
            let Some(id) = message.get("id") else { continue };
            let method = message["method"].as_str().unwrap_or_default();
            if matches!(&talk, Some(Talk::Mute(mute)) if mute == method) {
                continue;
            }
            let answer = match method {
                "initialize" => json!({ "result": { "protocolVersion": 1,
                    "authMethods": [{ "id": "browser", "name": "Browser" }, { "id": "openai", "name": "Key" }],
                    "agentInfo": { "name": "script", "version": env!("CARGO_PKG_VERSION") } } }),
                "authenticate" => {
                    is_logged_in = true;
                    json!({ "result": {} })
                }
                "session/new" if !is_logged_in => {
                    json!({ "error": { "code": -32000, "message": "Authentication required" } })
                }
                "session/new" => self.open(talk.as_ref())?,
                "session/set_mode" => json!({ "result": {} }),
                "session/prompt" => self.turn(attempt, talk.as_ref(), &message["params"]),
                _ => json!({ "error": { "code": -32601, "message": format!("method not found: {method}") } }),
            };
            if talk == Some(Talk::Twice) {
                self.say(&json!({ "jsonrpc": "2.0", "id": id }), answer.clone())?;
            }
            self.say(&json!({ "jsonrpc": "2.0", "id": id }), answer)?;
            if method == "session/prompt" && talk == Some(Talk::Stay) {
                self.say_text("I stay.")?;
                loop {
                    std::thread::park();
                }
            }
        }
        Ok(())
    }

    /// What a session begins with.
    fn open(&mut self, talk: Option<&Talk>) -> anyhow::Result<Value> {
        let mut session = json!({ "sessionId": self.session });
        match talk {
            Some(Talk::Modeless) => return Ok(json!({ "result": session })),
            Some(Talk::Status(kind)) => {
                let status = json!({ "params": { "authStatus": { "kind": kind } } });
                self.say(&json!({ "jsonrpc": "2.0", "method": "_auth/status_update" }), status)?;
            }
            _ => {}
        }
        let mode = |id: &str| json!({ "id": id, "name": id });
        session["modes"] =
            json!({ "currentModeId": "ask", "availableModes": [mode("ask"), mode("plan"), mode("yolo")] });
        Ok(json!({ "result": session }))
    }

    /// One turn, from the prompt to its answer.
    fn turn(&mut self, attempt: &Attempt, talk: Option<&Talk>, params: &Value) -> Value {
        if let Some(talk) = talk {
            return self.play_over(talk);
        }
        let blocks = params["prompt"].as_array().into_iter().flatten();
        let prompt: String = blocks.filter_map(|block| block["text"].as_str()).collect();
        // The result comes as an event, and is the answer.
        match attempt.play(&attempt.words, &prompt, |event| self.event(event)) {
            Ok(()) => self.answer.take().unwrap_or_else(|| stopped("cancelled")),
            Err(error) => failed(-32603, &format!("{error:#}")),
        }
    }

    fn play_over(&mut self, talk: &Talk) -> Value {
        match self.play(talk) {
            Ok(reason) => stopped(&reason),
            Err(error) if error.is::<Cancelled>() => stopped("cancelled"),
            Err(error) => failed(-32603, &format!("{error:#}")),
        }
    }

    /// Plays, and returns the reason to stop.
    fn play(&mut self, talk: &Talk) -> anyhow::Result<String> {
        let heard = match talk {
            Talk::Read(file) => self.ask("fs/read_text_file", json!({ "path": file }))?.to_string(),
            Talk::Write(file, words) => {
                let params = json!({ "path": file, "content": format!("{words}\n") });
                self.ask("fs/write_text_file", params)?.to_string()
            }
            Talk::Terminal(words, then) => self.terminal(words, *then)?,
            Talk::Permission(kind) => {
                let options = ["reject_once", "reject_always", "allow_always", "allow_once"]
                    .map(|kind| json!({ "optionId": format!("the {kind} one"), "name": kind, "kind": kind }));
                let call = json!({ "toolCallId": "asked", "title": format!("to {kind}"), "kind": kind });
                let params = json!({ "toolCall": call, "options": options });
                self.ask("session/request_permission", params)?.to_string()
            }
            Talk::Flood(count) => self.flood(*count)?,
            Talk::Race => self.race()?,
            Talk::Login | Talk::Twice | Talk::Stay | Talk::Modeless | Talk::Status(_) => String::new(),
            Talk::LeaveMode => {
                self.update(&json!({ "sessionUpdate": "current_mode_update", "currentModeId": "yolo" }))?;
                return self.wait();
            }
            Talk::Large(bytes) => {
                let params = json!({ "path": "/no/such/file", "content": "x".repeat(*bytes) });
                let answer = self.ask("fs/write_text_file", params);
                answer.map_or_else(|error| error.to_string(), |answer| answer.to_string())
            }
            Talk::Stubborn => {
                self.say_text("I wait.")?;
                while self.hear()?.is_some() {}
                loop {
                    std::thread::park();
                }
            }
            Talk::Stop(reason) => return Ok(reason.clone()),
            Talk::Garbage => {
                writeln!(
                    self.out,
                    "no JSON\n[]\n{{\"id\":99,\"result\":1}}\n{{\"method\":1}}\n\u{0}\n{}",
                    "x".repeat(1 << 20)
                )?;
                self.ask("no/such", json!({})).map_or_else(|error| error.to_string(), |_| String::new())
            }
            Talk::Wait | Talk::Mute(_) => return self.wait(),
            Talk::Child => {
                let mut child = Command::new("sh");
                child.args(["-c", "trap '' INT TERM; while :; do sleep 60; done"]).stdin(Stdio::null());
                format!("child {}", child.spawn()?.id())
            }
        };
        self.say_text(&format!("{heard}\n\n<promise>COMPLETE</promise>"))?;
        Ok("end_turn".to_owned())
    }

    /// Waits to be cancelled; it leaves a file then, as the last thing that it does.
    fn wait(&mut self) -> anyhow::Result<String> {
        self.say_text("I wait.")?;
        loop {
            let message = self.hear()?.context("the client is gone")?;
            if let Err(cancelled) = is_cancelled(&message) {
                std::fs::write("cancelled", "by its client\n")?;
                return Err(cancelled.into());
            }
        }
    }

    fn terminal(&mut self, words: &[String], then: Then) -> anyhow::Result<String> {
        let [command, args @ ..] = words else { bail!("there is no command for the terminal") };
        let env = json!([{ "name": "PLAYED", "value": "over ACP" }]);
        let created = self.ask("terminal/create", json!({ "command": command, "args": args, "env": env }))?;
        let terminal = json!({ "terminalId": created["terminalId"] });
        if then == Then::Leave {
            return Ok(created.to_string());
        }
        if then == Then::Kill {
            self.ask("terminal/kill", terminal.clone())?;
        }
        let exit = self.ask("terminal/wait_for_exit", terminal.clone())?;
        let output = self.ask("terminal/output", terminal.clone())?;
        self.ask("terminal/release", terminal.clone())?;
        let gone = self.ask("terminal/output", terminal).err();
        let gone = gone.map_or_else(|| "still there".to_owned(), |error| error.to_string());
        Ok(format!("{exit}\n{output}\n{gone}"))
    }

    /// Asks everything before it listens to any answer.
    fn flood(&mut self, count: usize) -> anyhow::Result<String> {
        let ask = |wire: &mut Self| wire.send("fs/read_text_file", json!({ "path": "/no/such/file" }));
        let mut open = (0..count).map(|_| ask(self)).collect::<anyhow::Result<BTreeSet<String>>>()?;
        while !open.is_empty() {
            let message = self.hear()?.context("the client is gone")?;
            open.remove(message["id"].as_str().unwrap_or_default());
        }
        Ok(format!("{count} answers"))
    }

    /// Waits for a command, and asks for other things before it is told of its end.
    fn race(&mut self) -> anyhow::Result<String> {
        let fifo = std::env::temp_dir().join(&self.session);
        let (fifo, shown) = (fifo.as_path(), fifo.display().to_string());
        Command::new("mkfifo").arg(fifo).status().context("cannot make a fifo")?;
        let created = self.ask("terminal/create", json!({ "command": "cat", "args": [shown] }))?;
        let terminal = json!({ "terminalId": created["terminalId"] });
        let late = self.send("terminal/wait_for_exit", terminal.clone())?;
        let others = (0..3).map(|_| self.ask("terminal/output", terminal.clone()));
        let others = others.collect::<anyhow::Result<Vec<Value>>>()?;
        std::fs::write(fifo, "at last\n")?;
        let exit = self.answer_to(&late, "terminal/wait_for_exit")?;
        let output = self.ask("terminal/output", terminal)?;
        std::fs::remove_file(fifo)?;
        Ok(format!("{} before {exit}: {output}", others.len()))
    }

    /// Asks the client, and waits for its answer.
    fn ask(&mut self, method: &str, params: Value) -> anyhow::Result<Value> {
        let id = self.send(method, params)?;
        self.answer_to(&id, method)
    }

    /// Asks the client; returns what the answer will be known by.
    fn send(&mut self, method: &str, mut params: Value) -> anyhow::Result<String> {
        self.asked += 1;
        // As some real ones do, it names its requests by words.
        let id = format!("ask-{}", self.asked);
        params["sessionId"] = self.session.as_str().into();
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }), json!({}))?;
        Ok(id)
    }

    fn answer_to(&mut self, id: &str, method: &str) -> anyhow::Result<Value> {
        loop {
            let mut message = self.hear()?.context("the client is gone")?;
            is_cancelled(&message)?;
            if message["id"] == id {
                if let Some(error) = message.get("error") {
                    bail!("{method}: {error}");
                }
                return Ok(message["result"].take());
            }
        }
    }

    /// The next message; `None`: the client has hung up.
    fn hear(&mut self) -> anyhow::Result<Option<Value>> {
        let mut line = String::new();
        let count = self.input.read_line(&mut line).context("cannot read from stdin")?;
        if count == 0 {
            return Ok(None);
        }
        serde_json::from_str(&line).map(Some).context("the client says what is no JSON")
    }

    /// Says a message that has the members of both objects.
    fn say(&mut self, head: &Value, mut rest: Value) -> anyhow::Result<()> {
        let mut message = head.clone();
        if let (Some(message), Some(rest)) = (message.as_object_mut(), rest.as_object_mut()) {
            message.append(rest);
        }
        writeln!(self.out, "{message}").and_then(|()| self.out.flush()).context("cannot write to stdout")
    }

    fn update(&mut self, update: &Value) -> anyhow::Result<()> {
        let params = json!({ "sessionId": self.session, "update": update });
        self.say(&json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }), json!({}))
    }
    fn say_text(&mut self, words: &str) -> anyhow::Result<()> {
        self.event(&json!({ "type": "text", "text": words }))
    }

    /// Says what ralph's scripted agent has said.
    fn event(&mut self, event: &Value) -> anyhow::Result<()> {
        self.said += 1;
        match text(event, "type") {
            "text" => self.update(&json!({ "sessionUpdate": "agent_message_chunk",
                "messageId": format!("message-{}", self.said), "content": { "type": "text", "text": event["text"] } }))?,
            "tool" => {
                let id = format!("call-{}", self.said);
                self.update(&json!({ "sessionUpdate": "tool_call", "toolCallId": id, "title": event["name"],
                    "status": "in_progress", "rawInput": { "input": event["input"] } }))?;
                self.update(
                    &json!({ "sessionUpdate": "tool_call_update", "toolCallId": id, "status": "completed" }),
                )?;
            }
            "background" => bail!("over ACP nothing goes on after the answer"),
            "result" if text(event, "status") == "ok" => {
                let [input, output] = ["input_tokens", "output_tokens"].map(|name| event[name].as_u64().unwrap_or(0));
                self.answer = Some(json!({ "result": { "stopReason": "end_turn", "usage": {
                    "totalTokens": input + output, "inputTokens": input, "outputTokens": output } } }));
            }
            "result" => {
                let code = match text(event, "class") {
                    "auth" => -32000,
                    "limit" => 429,
                    "overload" => 529,
                    _ => -32603,
                };
                self.answer = Some(failed(code, text(event, "message")));
            }
            _ => {}
        }
        Ok(())
    }
}

fn failed(code: i64, message: &str) -> Value {
    json!({ "error": { "code": code, "message": message } })
}

fn stopped(reason: &str) -> Value {
    json!({ "result": { "stopReason": reason } })
}

fn is_cancelled(message: &Value) -> Result<(), Cancelled> {
    if message["method"] == "session/cancel" { Err(Cancelled) } else { Ok(()) }
}
