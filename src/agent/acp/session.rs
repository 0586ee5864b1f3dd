//! The life of one session: what we ask of the agent, one thing after the other, and what its answers mean.

use std::collections::VecDeque;
use std::path::Path;

use agent_client_protocol_schema::v1::{
    AuthMethod, InitializeResponse, NewSessionResponse, PromptResponse, SessionConfigKind,
    SessionConfigOption, SessionConfigOptionCategory, SessionConfigSelectOptions, SessionModeState,
    StopReason,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::error::{Fault, LOGIN};
use crate::agent::codec::Turn;
use crate::reply::decode::Item;
use crate::reply::show::Show;
use crate::reply::usage::{Class, UsageNote};

/// The modes in which nobody is asked, the most permissive first.
const PERMISSIVE: [&str; 6] =
    ["bypassPermissions", "yolo", "agent-full-access", "full-access", "agent", "build"];
/// The modes in which nothing is changed.
const READ_ONLY: [&str; 2] = ["read-only", "plan"];
/// Variables with a key, and how the method that uses it is called.
const KEYS: [(&str, &str); 6] = [
    ("ANTHROPIC_API_KEY", "anthropic"),
    ("OPENAI_API_KEY", "openai"),
    ("CODEX_API_KEY", "openai"),
    ("OPENAI_API_KEY", "api-key"),
    ("GEMINI_API_KEY", "google"),
    ("GEMINI_API_KEY", "gemini-api-key"),
];

/// What is wanted of the session.
#[derive(Debug, Clone, Default)]
pub(in crate::agent) struct Wanted {
    /// The model, by a name that the agent knows.
    pub(in crate::agent) model: Option<String>,
    /// The agent may look at everything, and change nothing.
    pub(in crate::agent) read_only: bool,
    /// It reads files by itself: see [`Preset::reads_itself`](crate::agent::preset::Preset::reads_itself).
    pub(in crate::agent) reads_itself: bool,
}

/// What an agent says of itself before it is given any work.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Introduction {
    /// Its name and version, where it tells them.
    pub agent: Option<String>,
    /// The way by which it was logged in with a key of the environment; `None`: it did not ask for that.
    pub key: Option<String>,
    /// The mode in which it works; `None`: it offers none that we know.
    pub mode: Option<String>,
    /// The mode in which it only looks, likewise.
    pub quiet_mode: Option<String>,
    /// The models that can be chosen.
    pub models: Vec<String>,
}

/// How far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Initialize,
    Authenticate,
    NewSession,
    /// The mode, the model: what has to be chosen before the prompt.
    Choosing,
    Prompted,
    Over,
}

impl Stage {
    /// The request that it waits for.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Initialize => "initialize",
            Self::Authenticate => "authenticate",
            Self::NewSession => "session/new",
            Self::Choosing => "session/set_mode",
            Self::Prompted | Self::Over => "session/prompt",
        }
    }
}

/// A session with an agent.
pub(super) struct Session {
    wanted: Wanted,
    cwd: String,
    prompt: String,
    stage: Stage,
    /// The number of the request that waits for its answer.
    asked: u64,
    id: String,
    methods: Vec<AuthMethod>,
    /// What has to be chosen: a method and its parameters, and what that is in words.
    choices: VecDeque<(&'static str, Value, String)>,
    /// The mode that was chosen to keep the agent from changing anything.
    quiet_mode: Option<String>,
    /// An error that the agent has told beside its answers.
    told: Option<Fault>,
    /// The agent only has to introduce itself; what it has said of itself.
    introduction: Introduction,
    is_visit: bool,
}

impl Session {
    pub(super) fn new(wanted: Wanted, root: &Path) -> Self {
        Self {
            wanted,
            cwd: root.to_string_lossy().into_owned(),
            prompt: String::new(),
            stage: Stage::Initialize,
            asked: 0,
            id: String::new(),
            methods: Vec::new(),
            choices: VecDeque::new(),
            quiet_mode: None,
            told: None,
            introduction: Introduction::default(),
            is_visit: false,
        }
    }

    /// A session that is closed when it has been opened.
    pub(super) fn visit(root: &Path) -> Self {
        Self { is_visit: true, ..Self::new(Wanted::default(), root) }
    }

    /// What the agent has said of itself so far.
    pub(super) fn introduction(&self) -> &Introduction {
        &self.introduction
    }

    pub(super) fn stage(&self) -> Stage {
        self.stage
    }

    /// The first request.
    pub(super) fn open(&mut self, prompt: &str) -> Vec<u8> {
        prompt.clone_into(&mut self.prompt);
        let params = json!({
            "protocolVersion": 1,
            "clientCapabilities": {
                "fs": { "readTextFile": !self.wanted.reads_itself, "writeTextFile": !self.wanted.read_only },
                "terminal": true,
            },
            "clientInfo": { "name": "ralph", "title": "ralph", "version": env!("CARGO_PKG_VERSION") },
        });
        self.request("initialize", &params)
    }

    fn request(&mut self, method: &str, params: &Value) -> Vec<u8> {
        #[derive(Serialize)]
        struct Request<'a> {
            jsonrpc: &'static str,
            id: u64,
            method: &'a str,
            params: &'a Value,
        }
        self.asked += 1;
        let request = Request { jsonrpc: "2.0", id: self.asked, method, params };
        // Texts and numbers: that cannot fail.
        let mut line = serde_json::to_vec(&request).unwrap_or_default();
        line.push(b'\n');
        line
    }

    /// What cancels the turn; nothing where there is none.
    pub(super) fn cancel(&self) -> Vec<u8> {
        if self.stage != Stage::Prompted {
            return Vec::new();
        }
        let cancel =
            json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": self.id } });
        format!("{cancel}\n").into_bytes()
    }

    /// The agent has told an error beside its answers.
    pub(super) fn told_error(&mut self, fault: Fault) {
        self.told = Some(fault);
    }

    #[cfg(test)]
    pub(super) fn set_quiet_mode(&mut self, mode: &str) {
        self.quiet_mode = Some(mode.to_owned());
    }

    /// Why the attempt has to end: the agent has left the mode in which it changes nothing.
    pub(super) fn leaves_mode(&self, mode: &str) -> Option<String> {
        let quiet = self.quiet_mode.as_ref().filter(|_| self.wanted.read_only)?;
        (mode != quiet).then(|| format!("it has left the mode '{quiet}' for '{mode}', and may only look"))
    }

    /// The agent has answered a request; an answer to nothing is passed over.
    pub(super) fn answered(&mut self, id: &str, answer: Result<Option<&RawValue>, Fault>, turn: &mut Turn) {
        if id != self.asked.to_string() || self.stage == Stage::Over {
            return;
        }
        match (self.stage, answer) {
            (Stage::Initialize, Ok(result)) => {
                if let Some(response) = read::<InitializeResponse>(result) {
                    self.introduction.agent =
                        response.agent_info.map(|agent| format!("{} {}", agent.name, agent.version));
                    self.methods = response.auth_methods;
                }
                self.ask_for_session(turn);
            }
            (Stage::Authenticate, Ok(_)) => self.ask_for_session(turn),
            (Stage::NewSession, Ok(result)) => self.begin(result, turn),
            (Stage::NewSession, Err(fault)) if fault.code == LOGIN => self.authenticate(fault, turn),
            (Stage::Choosing, answer) => {
                let choice = self.choices.pop_front();
                if let (Err(fault), Some((_, _, what))) = (answer, choice) {
                    return self.end(Fault { message: format!("{what}: {}", fault.message), ..fault }, turn);
                }
                self.choose_or_prompt(turn);
            }
            (Stage::Prompted, Ok(result)) => self.stopped(result, turn),
            (_, Err(fault)) => {
                let message = match self.stage {
                    Stage::Prompted => fault.message,
                    stage => format!("{}: {}", stage.word(), fault.message),
                };
                self.end(Fault { message, ..fault }, turn);
            }
            (Stage::Over, Ok(_)) => {}
        }
    }

    fn ask_for_session(&mut self, turn: &mut Turn) {
        self.stage = Stage::NewSession;
        let params = json!({ "cwd": self.cwd, "mcpServers": [] });
        turn.answer(&self.request("session/new", &params));
    }

    /// Logs in by a key of the environment. Browsers and terminals are for people.
    fn authenticate(&mut self, fault: Fault, turn: &mut Turn) {
        let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let has_key = |method: &AuthMethod| {
            let AuthMethod::Agent(method) = method else { return false };
            let id: &str = &method.id.0;
            let meta = method.meta.as_ref().and_then(|meta| meta.get("api-key")?.get("provider")?.as_str());
            KEYS.iter().any(|(name, of)| (id == *of || meta == Some(of)) && is_set(name))
        };
        // Asked once: afterwards there is none left.
        let Some(method) = std::mem::take(&mut self.methods).into_iter().find(has_key) else {
            return self.end(Fault { class: Class::Auth, ..fault }, turn);
        };
        self.introduction.key = Some(method.id().0.to_string());
        self.stage = Stage::Authenticate;
        let params = json!({ "methodId": method.id() });
        turn.answer(&self.request("authenticate", &params));
    }

    /// The session is there: its mode and its model are chosen, where it offers any.
    fn begin(&mut self, result: Option<&RawValue>, turn: &mut Turn) {
        let Some(session) = read::<NewSessionResponse>(result) else {
            let message = "session/new: the answer is none that the protocol knows".to_owned();
            return self.end(Fault { message, ..Fault::default() }, turn);
        };
        self.id = session.session_id.0.to_string();
        note(turn, UsageNote { session_id: Some(self.id.clone()), ..UsageNote::default() });
        let options = session.config_options.unwrap_or_default();
        let modes = Modes::of(session.modes.as_ref(), option(&options, &SessionConfigOptionCategory::Mode));
        let by_option = option(&options, &SessionConfigOptionCategory::Model);
        let known = by_option.map_or_else(|| raw_models(result), values);
        if self.is_visit {
            return self.leave(&modes, known, turn);
        }
        self.choose_mode(&modes);
        if let Some(model) = self.wanted.model.clone() {
            if !known.contains(&model) {
                return self.unknown_model(&model, &known, turn);
            }
            let choice = match by_option {
                Some(option) => (
                    "session/set_config_option",
                    json!({ "sessionId": self.id, "configId": option.id, "value": model }),
                ),
                None => ("session/set_model", json!({ "sessionId": self.id, "modelId": model })),
            };
            self.choices.push_back((choice.0, choice.1, format!("model '{model}'")));
            note(turn, UsageNote { model: Some(model), ..UsageNote::default() });
        }
        self.choose_or_prompt(turn);
    }

    /// The agent has introduced itself.
    fn leave(&mut self, modes: &Modes<'_>, known: Vec<String>, turn: &mut Turn) {
        self.introduction.mode = modes.first(&PERMISSIVE);
        self.introduction.quiet_mode = modes.first(&READ_ONLY);
        self.introduction.models = known;
        self.stage = Stage::Over;
        turn.hang_up();
    }

    /// Chooses the mode that is wanted among those that there are.
    fn choose_mode(&mut self, modes: &Modes<'_>) {
        let wanted: &[&str] = if self.wanted.read_only { &READ_ONLY } else { &PERMISSIVE };
        let Some(mode) = modes.first(wanted) else { return };
        self.quiet_mode = self.wanted.read_only.then(|| mode.clone());
        if modes.current.as_ref() == Some(&mode) {
            return;
        }
        let (method, params) = match modes.option {
            Some(option) => (
                "session/set_config_option",
                json!({ "sessionId": self.id, "configId": option.id, "value": mode }),
            ),
            None => ("session/set_mode", json!({ "sessionId": self.id, "modeId": mode })),
        };
        self.choices.push_back((method, params, format!("mode '{mode}'")));
    }

    fn unknown_model(&mut self, model: &str, known: &[String], turn: &mut Turn) {
        let known = crate::text::list::some_of(known, 8);
        let message = if known.is_empty() {
            format!("it offers no choice of models, so that '{model}' cannot be used")
        } else {
            format!("it has no model '{model}': choose one of {known}")
        };
        // Trying again is of no use.
        self.end(Fault { message, class: Class::Permission, code: 0 }, turn);
    }

    fn choose_or_prompt(&mut self, turn: &mut Turn) {
        if let Some((method, params, _)) = self.choices.front().cloned() {
            self.stage = Stage::Choosing;
            turn.answer(&self.request(method, &params));
            return;
        }
        self.stage = Stage::Prompted;
        let prompt = std::mem::take(&mut self.prompt);
        let params = json!({ "sessionId": self.id, "prompt": [{ "type": "text", "text": prompt }] });
        turn.answer(&self.request("session/prompt", &params));
    }

    /// The prompt has its answer: what that says of the attempt.
    fn stopped(&mut self, result: Option<&RawValue>, turn: &mut Turn) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Reason {
            stop_reason: String,
        }
        let reason = read::<Reason>(result).map(|reason| reason.stop_reason);
        let Some(response) = read::<PromptResponse>(result) else {
            let reason = reason.unwrap_or_else(|| "none".to_owned());
            let message = format!("it stopped for a reason that nobody knows: {reason}");
            return self.end(Fault { message, ..Fault::default() }, turn);
        };
        note(turn, tokens(&response));
        let (message, class) = match response.stop_reason {
            StopReason::EndTurn => {
                if let Some(told) = self.told.take() {
                    return self.end(told, turn);
                }
                note(turn, UsageNote { is_final: true, ..UsageNote::default() });
                self.stage = Stage::Over;
                turn.hang_up();
                return;
            }
            StopReason::Refusal => ("it refused to go on", Class::Other),
            StopReason::MaxTokens => ("it has reached its limit of tokens", Class::Context),
            StopReason::MaxTurnRequests => ("it has reached its limit of requests in a turn", Class::Other),
            StopReason::Cancelled => ("its turn was cancelled", Class::Other),
            _ => ("it stopped for a reason that nobody knows", Class::Other),
        };
        self.end(Fault { message: message.to_owned(), class, code: 0 }, turn);
    }

    /// Nothing more comes of it.
    fn end(&mut self, fault: Fault, turn: &mut Turn) {
        self.stage = Stage::Over;
        turn.item(Item::Show(Show::Error(fault.message.clone())));
        let error = UsageNote {
            error: Some(fault.message),
            class: Some(fault.class),
            is_final: true,
            ..UsageNote::default()
        };
        note(turn, error.with_named_reset());
        turn.hang_up();
    }
}

/// The modes of a session.
#[derive(Default)]
struct Modes<'a> {
    known: Vec<String>,
    current: Option<String>,
    /// The option by which one is chosen, where modes are an option.
    option: Option<&'a SessionConfigOption>,
}

impl<'a> Modes<'a> {
    /// Either the session's own or those of an option.
    fn of(modes: Option<&SessionModeState>, option: Option<&'a SessionConfigOption>) -> Self {
        match (modes, option) {
            (Some(modes), _) => Self {
                known: modes.available_modes.iter().map(|mode| mode.id.0.to_string()).collect(),
                current: Some(modes.current_mode_id.0.to_string()),
                option: None,
            },
            (None, Some(option)) => {
                Self { known: values(option), current: current_value(option), option: Some(option) }
            }
            (None, None) => Self::default(),
        }
    }

    /// The first of these that there is.
    fn first(&self, wanted: &[&str]) -> Option<String> {
        wanted.iter().find_map(|wanted| self.known.iter().find(|known| known == wanted)).cloned()
    }
}

fn note(turn: &mut Turn, note: UsageNote) {
    turn.item(Item::Note(Box::new(note)));
}

fn read<'a, T: Deserialize<'a>>(json: Option<&'a RawValue>) -> Option<T> {
    serde_json::from_str(json?.get()).ok()
}

fn option<'a>(
    options: &'a [SessionConfigOption],
    category: &SessionConfigOptionCategory,
) -> Option<&'a SessionConfigOption> {
    options.iter().find(|option| option.category.as_ref() == Some(category))
}

/// What is chosen already.
fn current_value(option: &SessionConfigOption) -> Option<String> {
    match &option.kind {
        SessionConfigKind::Select(select) => Some(select.current_value.0.to_string()),
        _ => None,
    }
}

/// The models that the answer names beside the protocol.
fn raw_models(result: Option<&RawValue>) -> Vec<String> {
    #[derive(Deserialize, Default)]
    #[serde(rename_all = "camelCase")]
    struct Models {
        #[serde(default)]
        available_models: Vec<Model>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Model {
        model_id: String,
    }
    #[derive(Deserialize, Default)]
    struct More {
        #[serde(default)]
        models: Option<Models>,
    }
    let models = read::<More>(result).and_then(|more| more.models).unwrap_or_default();
    models.available_models.into_iter().map(|model| model.model_id).collect()
}

/// What can be chosen.
fn values(option: &SessionConfigOption) -> Vec<String> {
    let SessionConfigKind::Select(select) = &option.kind else { return Vec::new() };
    match &select.options {
        SessionConfigSelectOptions::Ungrouped(all) => all.iter().map(|one| one.value.0.to_string()).collect(),
        SessionConfigSelectOptions::Grouped(groups) => {
            groups.iter().flat_map(|group| &group.options).map(|one| one.value.0.to_string()).collect()
        }
        _ => Vec::new(),
    }
}

/// What the turn has used up, wherever the agent says so.
fn tokens(response: &PromptResponse) -> UsageNote {
    if let Some(usage) = &response.usage {
        let cached =
            usage.cached_read_tokens.unwrap_or_default() + usage.cached_write_tokens.unwrap_or_default();
        return UsageNote {
            input_tokens: Some(usage.input_tokens + cached),
            output_tokens: Some(usage.output_tokens),
            ..UsageNote::default()
        };
    }
    let quota = response.meta.as_ref().and_then(|meta| meta.get("quota")?.get("token_count"));
    let count = |key: &str| quota.and_then(|quota| quota.get(key)?.as_u64());
    UsageNote {
        input_tokens: count("input_tokens"),
        output_tokens: count("output_tokens"),
        ..UsageNote::default()
    }
}
