//! The updates of a session, as items of an attempt's stream.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use agent_client_protocol_schema::v1::{
    ContentBlock, ContentChunk, MessageId, Meta, Notice, SessionNotification, SessionUpdate, ToolCallStatus,
    ToolCallUpdate, UsageUpdate,
};
use serde_json::Value;
use serde_json::value::RawValue;

use super::codex::Beside;
use super::error::{Aside, Fault};
use super::options::current_mode;
use super::{copilot, kimi, vibe};
use crate::reply::decode::Item;
use crate::reply::show::Show;
use crate::reply::usage::{Class, UsageNote};
use crate::text::list::some_of;

/// The longest id of a call that is kept as it is, in bytes.
const LONGEST_ID: usize = 256;
/// The most tool calls that are kept, and the most that are not over; no real session has as many.
const MOST_KNOWN: usize = 100_000;
const MOST_OPEN: usize = 1000;
/// Agents that name each message of the assistant. Text without a name is a notice of theirs, or the text of an error: they send
/// these so to a client that did not ask for notices.
const NAMES_MESSAGES: [&str; 2] = ["claude-agent-acp", "codex-acp"];
/// The names of these agents in their introductions.
const COPILOT: &str = "Copilot";
const KIMI: &str = "Kimi";
/// How many entries of a plan are shown.
const SOME: usize = 3;

/// One update.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// What the assistant says or does.
    pub(super) items: Vec<Item>,
    /// The usage of the session.
    pub(super) used: Option<Item>,
    /// The new mode of the session.
    pub(super) mode: Option<String>,
}

/// The state that later updates depend on.
#[derive(Debug, Default)]
pub(super) struct Updates {
    /// Whether the agent is one of [`NAMES_MESSAGES`].
    names_messages: bool,
    /// The current message.
    message: Option<String>,
    /// Tools that were called, by the id of the call.
    known: HashSet<String>,
    /// Calls that are not over, with their names if these are not shown yet, because their input is unknown.
    open: HashMap<String, Option<String>>,
    /// The reports of codex about its turn.
    beside: Beside,
    /// Reads a piece of text as what the agent says of itself, where it says that as if it were the assistant.
    aside: Option<fn(&str) -> Option<Aside>>,
    /// Why a turn has failed after whose prompt, or after whose last tool, nothing follows.
    silence: Option<fn() -> Fault>,
    /// The last text, if it reads as an error, or none: an error only if nothing follows.
    held: Option<(String, Fault)>,
    /// Why vibe asks its provider again, until it goes on.
    retried: Option<Fault>,
}

impl Updates {
    /// Reads an update, and ignores those of other sessions; `None`: the protocol has no such update.
    pub(super) fn take(&mut self, params: &RawValue, session: &str) -> Option<Told> {
        let notification: SessionNotification = serde_json::from_str(params.get()).ok()?;
        let mut told = Told::default();
        if &*notification.session_id.0 != session {
            return Some(told);
        }
        match notification.update {
            SessionUpdate::AgentMessageChunk(chunk) => told.items = self.said(chunk),
            SessionUpdate::AgentThoughtChunk(chunk) => told.items.extend(thought(chunk)),
            SessionUpdate::ToolCall(call) => told.items = self.called(call.into()),
            SessionUpdate::ToolCallUpdate(update) => told.items = self.called(update),
            SessionUpdate::Plan(plan) => {
                let entries = plan.entries.iter().map(|entry| entry.content.as_str());
                let first = some_of(entries, SOME);
                told.items.push(Item::Show(Show::tool("plan", Some(&Value::String(first)))));
            }
            SessionUpdate::UsageUpdate(usage) => told.used = Some(used(&usage)),
            SessionUpdate::CurrentModeUpdate(mode) => told.mode = Some(mode.current_mode_id.0.to_string()),
            SessionUpdate::ConfigOptionUpdate(update) => told.mode = current_mode(&update.config_options),
            SessionUpdate::SessionInfoUpdate(info) => {
                if let Some(codex) = info.meta.as_ref().and_then(|meta| meta.get("codex")) {
                    told.items = self.beside.take(codex).map(unconnected).into_iter().flatten().collect();
                }
            }
            SessionUpdate::Notice(notice) => told.items.push(noticed(&notice)),
            // The other updates are for clients with menus.
            _ => {}
        }
        Some(told)
    }

    /// Why the turn has failed, if no answer will say so.
    pub(super) fn failure(&self) -> Option<&Fault> {
        self.held.as_ref().map(|(_, fault)| fault).or_else(|| self.beside.failure())
    }

    /// Takes the agent's name from its introduction, as in `@agentclientprotocol/codex-acp 1.2`.
    pub(super) fn introduced(&mut self, agent: &str) {
        let name = agent.split_whitespace().next().unwrap_or_default();
        self.aside = match name {
            COPILOT => Some(copilot::aside),
            KIMI => Some(kimi::aside),
            _ => None,
        };
        self.silence = (name == KIMI).then_some(kimi::silence);
        self.hold_silence();
        self.names_messages = NAMES_MESSAGES.contains(&name.rsplit('/').next().unwrap_or_default());
    }

    /// A piece of a message. A different id begins another message; a piece without an id continues the current one, unless it is a
    /// notice.
    fn said(&mut self, chunk: ContentChunk) -> Vec<Item> {
        let ContentBlock::Text(text) = chunk.content else { return Vec::new() };
        if is_about_the_mode(&text.text) {
            return Vec::new();
        }
        let aside = self.aside.and_then(|aside| aside(&text.text));
        if aside == Some(Aside::Notice) {
            // The assistant has not gone on with it.
            return vec![Item::Show(Show::notice(&text.text))];
        }
        let mut items = self.went_on();
        match aside {
            Some(Aside::Error(fault)) => self.held = Some((text.text, fault)),
            _ => items.extend(self.said_text(text.text, chunk.message_id, chunk.meta.as_ref())),
        }
        items
    }

    /// What was held is the assistant's: it has gone on after it.
    fn went_on(&mut self) -> Vec<Item> {
        self.retried = None;
        let held = self.held.take().filter(|(text, _)| !text.is_empty());
        held.map_or_else(Vec::new, |(text, _)| words(text).into())
    }

    /// vibe asks its provider again, for minutes: a timeout of ours may be the end, and this the reason.
    pub(super) fn tries_again(&mut self, params: &RawValue) -> Vec<Item> {
        let Some(fault) = vibe::retries(params).filter(|fault| self.retried.as_ref() != Some(fault)) else {
            return Vec::new();
        };
        let words = format!("the agent tries again: {}", fault.message);
        let note = UsageNote {
            error: Some(fault.message.clone()),
            class: Some(fault.class),
            ..UsageNote::default()
        };
        self.retried = Some(fault);
        vec![Item::Show(Show::notice(&words)), Item::Note(Box::new(note))]
    }

    /// From here on something has to follow.
    fn hold_silence(&mut self) {
        self.held = self.silence.map(|silence| (String::new(), silence()));
    }

    fn said_text(&mut self, text: String, id: Option<MessageId>, meta: Option<&Meta>) -> Vec<Item> {
        let id = id.map(|id| id.0.to_string());
        let is_named = id.is_some();
        if !is_named && self.beside.take_text(&text) {
            return Vec::new();
        }
        let kind = meta.and_then(|meta| meta.get("claudeCode")?.get("kind"));
        if !is_named && (kind.is_some() || self.names_messages && self.message.is_some()) {
            self.beside.begins_message();
            self.beside.take_piece(&text);
            return vec![Item::Show(Show::notice(&text))];
        }
        self.beside.tries_again_no_more();
        let begun = id.filter(|id| self.message.as_ref() != Some(id)).map(|id| {
            self.beside.begins_message();
            self.message = Some(id.clone());
            Item::Note(Box::new(UsageNote { message: Some(id), ..UsageNote::default() }))
        });
        self.beside.take_piece(&text);
        begun.into_iter().chain(words(text)).collect()
    }

    /// Takes news of a tool call. The first news begins it: not all agents announce the beginning.
    fn called(&mut self, update: ToolCallUpdate) -> Vec<Item> {
        self.beside.tries_again_no_more();
        self.beside.begins_message();
        let (id, fields) = (short(&update.tool_call_id.0), update.fields);
        let input = fields.raw_input.as_ref();
        let is_over = matches!(fields.status, Some(ToolCallStatus::Completed | ToolCallStatus::Failed));
        let name = fields.name.or(fields.title).unwrap_or_else(|| "a tool".to_owned());
        let note = |note| Item::Note(Box::new(note));
        let mut items = self.went_on();
        if self.known.len() >= MOST_KNOWN {
            self.known = self.open.keys().cloned().collect();
        }
        if self.known.insert(id.clone()) && self.open.len() < MOST_OPEN {
            items.push(note(UsageNote { tool_started: Some(id.clone()), ..UsageNote::default() }));
            self.open.insert(id.clone(), Some(name.clone()));
        }
        let mut unshown = None;
        if is_over && let Some(name) = self.open.remove(&id) {
            items.push(note(UsageNote { tool_finished: Some(id), ..UsageNote::default() }));
            unshown = name;
        } else if has_something(input) {
            unshown = self.open.get_mut(&id).and_then(Option::take);
        }
        if is_over {
            self.hold_silence();
        }
        items.extend(unshown.map(|name| Item::Show(Show::tool(&name, input))));
        if fields.status == Some(ToolCallStatus::Failed) {
            items.push(Item::Show(Show::Notice(format!("{name} failed"))));
        }
        items
    }

    /// The agent asks for permission for a call. A refused call is over: not all agents report that.
    pub(super) fn asked(&mut self, call: &ToolCallUpdate, is_granted: bool) -> Vec<Item> {
        let mut call = call.clone();
        if !is_granted {
            call.fields.status = Some(ToolCallStatus::Completed);
        }
        self.called(call)
    }
}

/// Words of the assistant.
fn words(text: String) -> [Item; 2] {
    [Item::Text(text.clone()), Item::Show(Show::Delta(text))]
}

/// gemini says so, in the assistant's text, when we have chosen its mode.
fn is_about_the_mode(text: &str) -> bool {
    let mode = text.trim().strip_prefix("[MODE_UPDATE] ");
    mode.is_some_and(|mode| mode.chars().all(|char| char.is_alphanumeric() || char == '_'))
}

/// A notice of the agent, not of the assistant.
fn noticed(notice: &Notice) -> Item {
    let description = notice.description.iter().map(String::as_str);
    let words: Vec<&str> = [notice.title.as_str()].into_iter().chain(description).collect();
    Item::Show(Show::notice(&words.join(": ")))
}

/// codex waits for its connection, without an end: a timeout of ours may be the end, and this the reason.
fn unconnected(fault: &Fault) -> [Item; 2] {
    let words = format!("the agent is waiting for network ({})", fault.message);
    let error = Some(fault.message.clone());
    let note = UsageNote { error, class: Some(Class::Network), ..UsageNote::default() };
    [Item::Show(Show::notice(&words)), Item::Note(Box::new(note))]
}

/// A piece of its thoughts, which are not its words.
fn thought(chunk: ContentChunk) -> Option<Item> {
    let ContentBlock::Text(text) = chunk.content else { return None };
    Some(Item::Show(Show::Thought(text.text)))
}

/// An id as we keep it: one that is too long becomes a number.
fn short(id: &str) -> String {
    if id.len() <= LONGEST_ID {
        return id.to_owned();
    }
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    format!("long-{:x}", hasher.finish())
}

fn has_something(input: Option<&Value>) -> bool {
    match input {
        None | Some(Value::Null) => false,
        Some(Value::Object(map)) => !map.is_empty(),
        Some(_) => true,
    }
}

fn used(usage: &UsageUpdate) -> Item {
    let dollars = usage.cost.as_ref().filter(|cost| cost.currency == "USD").map(|cost| cost.amount);
    let model = usage.meta.as_ref().and_then(|meta| meta.get("_claude/model")?.as_str());
    Item::Note(Box::new(UsageNote {
        context_tokens: Some(usage.used),
        context_window: Some(usage.size).filter(|size| *size > 0),
        cost_usd: dollars,
        model: model.map(str::to_owned),
        ..UsageNote::default()
    }))
}
