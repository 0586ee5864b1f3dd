//! Requests of an agent to us: permission, files to read and write, commands to run.

use agent_client_protocol_schema::v1::{
    CreateTerminalRequest, KillTerminalRequest, PermissionOption, PermissionOptionKind, ReadTextFileRequest,
    ReleaseTerminalRequest, TerminalOutputRequest, ToolCallUpdate, ToolKind, WaitForTerminalExitRequest,
    WriteTextFileRequest,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::Grounds;
use super::envelope::raw;
use super::error::Refusal;
use super::files::Files;
use super::terminals::Terminals;
use super::update::Updates;
use crate::agent::codec::{Answers, Turn};
use crate::agent::message::Message;
use crate::engine::inbox::Port;
use crate::reply::decode::Item;
use crate::reply::show::{Leave, Show};

/// Methods whose answers may be long.
const LONG: [&str; 2] = ["fs/read_text_file", "terminal/output"];
/// The most bytes of long answers that may wait for an agent that does not read them; further ones are refused.
const MOST_UNREAD: usize = 32 << 20;

/// Answers the requests of an agent.
pub(super) struct Asks {
    files: Files,
    terminals: Terminals,
    /// Whether the agent must change nothing.
    read_only: bool,
}

impl Asks {
    pub(super) fn new(grounds: &Grounds, read_only: bool, port: Option<Port<Message>>) -> Self {
        let terminals = Terminals::new(&grounds.launch, port);
        Self { files: Files::new(grounds), terminals, read_only }
    }

    /// The channel for answers that have to wait.
    pub(super) fn connect(&mut self, answers: &Answers) {
        self.terminals.connect(answers);
    }

    /// The session is over: none of its commands is left when this returns.
    pub(super) fn end(&mut self) {
        self.terminals.end();
    }

    /// The result of a request, or why it is refused; `None`: it is answered later.
    pub(super) fn answer(
        &mut self,
        id: &RawValue,
        method: &str,
        params: Option<&RawValue>,
        updates: &mut Updates,
        turn: &mut Turn,
    ) -> Result<Option<Box<RawValue>>, Refusal> {
        if LONG.contains(&method) && turn.unread().bytes > MOST_UNREAD {
            return Err(Refusal::because("busy: read the answers to what you have asked, and ask again"));
        }
        if method == "terminal/wait_for_exit" {
            let WaitForTerminalExitRequest { terminal_id, .. } = read(params)?;
            return Ok(self.terminals.wait(&terminal_id.0, id)?.map(|exit| raw(&exit)));
        }
        if method == "session/request_permission" {
            return Ok(Some(self.leave(&read(params)?, updates, turn)));
        }
        self.answer_now(method, params).map(Some)
    }

    fn answer_now(&mut self, method: &str, params: Option<&RawValue>) -> Result<Box<RawValue>, Refusal> {
        match method {
            "fs/read_text_file" => {
                let ReadTextFileRequest { path, line, limit, .. } = read(params)?;
                let content = self.files.read(&path, line, limit)?;
                Ok(raw(&json!({ "content": content })))
            }
            "terminal/create" => {
                let request: CreateTerminalRequest = read(params)?;
                let cwd = request.cwd.as_deref().map(|cwd| self.files.folder(cwd)).transpose()?;
                let id = self.terminals.create(request, cwd)?;
                Ok(raw(&json!({ "terminalId": id })))
            }
            "terminal/output" => {
                let TerminalOutputRequest { terminal_id, .. } = read(params)?;
                Ok(raw(&self.terminals.output(&terminal_id.0)?))
            }
            "terminal/kill" => {
                let KillTerminalRequest { terminal_id, .. } = read(params)?;
                self.terminals.kill(&terminal_id.0)?;
                Ok(raw(&json!({})))
            }
            "terminal/release" => {
                let ReleaseTerminalRequest { terminal_id, .. } = read(params)?;
                self.terminals.release(&terminal_id.0)?;
                Ok(raw(&json!({})))
            }
            "fs/write_text_file" if self.read_only => {
                Err(Refusal::because("this session may look at files and change none"))
            }
            "fs/write_text_file" => {
                let WriteTextFileRequest { path, content, .. } = read(params)?;
                self.files.write(&path, &content)?;
                Ok(raw(&json!(null)))
            }
            _ => Err(Refusal::method(method)),
        }
    }

    /// Grants or refuses permission; no user can be asked.
    fn leave(&self, request: &Request, updates: &mut Updates, turn: &mut Turn) -> Box<RawValue> {
        let fields = &request.tool_call.fields;
        let kind = fields.kind.unwrap_or_default();
        let is_granted = !self.read_only || changes_nothing(kind);
        let options = request.options.iter().filter_map(|option| PermissionOption::deserialize(option).ok());
        let option = chosen(&options.collect::<Vec<_>>(), is_granted).cloned();
        let leave = match (is_granted, &option) {
            (true, Some(_)) => Leave::Allowed,
            (false, Some(_)) => Leave::Refused,
            (_, None) => Leave::Unanswered,
        };
        updates
            .asked(&request.tool_call, leave == Leave::Allowed)
            .into_iter()
            .for_each(|item| turn.item(item));
        let what = fields.title.as_deref().unwrap_or("something");
        turn.item(Item::Show(Show::permission(leave, word(kind), what)));
        raw(&match option {
            Some(option) => json!({ "outcome": { "outcome": "selected", "optionId": option.option_id } }),
            None => json!({ "outcome": { "outcome": "cancelled" } }),
        })
    }
}

/// A request for permission. An unknown option is no reason to refuse the others.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request {
    tool_call: ToolCallUpdate,
    #[serde(default)]
    options: Vec<Value>,
}

/// Whether a tool of this kind leaves files as they are. One that switches the mode may offer to ask no more.
fn changes_nothing(kind: ToolKind) -> bool {
    matches!(kind, ToolKind::Read | ToolKind::Search | ToolKind::Think | ToolKind::Fetch | ToolKind::Execute)
}

/// The protocol's name for a kind of tool.
fn word(kind: ToolKind) -> String {
    serde_json::to_value(kind).ok().and_then(|word| word.as_str().map(str::to_owned)).unwrap_or_default()
}

/// The option that grants or refuses, by its kind: once before always.
fn chosen(options: &[PermissionOption], is_granted: bool) -> Option<&PermissionOption> {
    use PermissionOptionKind::{AllowAlways, AllowOnce, RejectAlways, RejectOnce};
    let kinds = if is_granted { [AllowOnce, AllowAlways] } else { [RejectOnce, RejectAlways] };
    kinds.iter().find_map(|kind| options.iter().find(|option| option.kind == *kind))
}

fn read<'a, T: Deserialize<'a>>(params: Option<&'a RawValue>) -> Result<T, Refusal> {
    let params = params.ok_or_else(|| Refusal::params("there are none"))?;
    serde_json::from_str(params.get()).map_err(|error| Refusal::params(&error.to_string()))
}
