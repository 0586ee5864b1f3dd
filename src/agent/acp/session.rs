//! One session: our requests to the agent, one after the other, and the meaning of its answers.

use std::collections::VecDeque;

use agent_client_protocol_schema::ProtocolVersion;
use agent_client_protocol_schema::v1::{
    AuthMethod, InitializeResponse, NewSessionResponse, PromptResponse, StopReason,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::envelope::{read, request};
use super::error::{Fault, LOGIN};
use super::introduction::{Introduction, Login};
use super::options::{Choice, Models, Modes, PERMISSIVE, READ_ONLY};
use crate::agent::codec::Turn;
use crate::process::launch::Launch;
use crate::reply::decode::Item;
use crate::reply::show::Show;
use crate::reply::usage::{Class, UsageNote};
use crate::text::nearest::meant;

/// Variables with a key, and the login method that uses it.
const KEYS: [(&str, &str); 6] = [
    ("ANTHROPIC_API_KEY", "anthropic"),
    ("OPENAI_API_KEY", "openai"),
    ("CODEX_API_KEY", "openai"),
    ("OPENAI_API_KEY", "api-key"),
    ("GEMINI_API_KEY", "google"),
    ("GEMINI_API_KEY", "gemini-api-key"),
];

/// The name in place of a model that the agent chooses by itself.
const NO_MODELS: [&str; 2] = ["default", "auto"];

/// What the session should have.
#[derive(Debug, Clone, Default)]
pub(in crate::agent) struct Wanted {
    /// The model, by the agent's name for it.
    pub(in crate::agent) model: Option<String>,
    /// Whether the agent may read everything, and change nothing.
    pub(in crate::agent) read_only: bool,
    /// Whether it reads files by itself: see [`Preset::reads_itself`](crate::presets::Preset::reads_itself).
    pub(in crate::agent) reads_itself: bool,
    /// Whether walls stand around it: then it does everything by itself, behind them.
    pub(in crate::agent) is_enclosed: bool,
}

/// The progress of the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Initialize,
    Authenticate,
    NewSession,
    /// Mode and model are being chosen.
    Choosing,
    Prompted,
    Over,
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
    /// The login methods whose keys are in the agent's environment.
    keys: Vec<&'static str>,
    /// The choices to make; the first one is requested.
    choices: VecDeque<Choice>,
    /// The mode of the session, if it is one that we want.
    mode: Option<String>,
    /// The agent's introduction, if it only has to introduce itself.
    introduction: Introduction,
    is_visit: bool,
}

impl Session {
    /// A session of an agent with this launch.
    pub(super) fn new(wanted: Wanted, launch: &Launch) -> Self {
        let is_set = |name: &str| launch.variable(name).is_some_and(|value| !value.is_empty());
        Self {
            wanted,
            cwd: launch.cwd.to_string_lossy().into_owned(),
            prompt: String::new(),
            stage: Stage::Initialize,
            asked: 0,
            id: String::new(),
            methods: Vec::new(),
            keys: KEYS.iter().filter(|(name, _)| is_set(name)).map(|(_, of)| *of).collect(),
            choices: VecDeque::new(),
            mode: None,
            introduction: Introduction::default(),
            is_visit: false,
        }
    }

    /// A session that is closed as soon as it is open.
    pub(super) fn visit(launch: &Launch) -> Self {
        Self { is_visit: true, ..Self::new(Wanted::default(), launch) }
    }

    /// The agent's introduction so far.
    pub(super) fn introduction(&self) -> &Introduction {
        &self.introduction
    }

    pub(super) fn stage(&self) -> Stage {
        self.stage
    }

    /// The first request.
    pub(super) fn open(&mut self, prompt: &str) -> Vec<u8> {
        prompt.clone_into(&mut self.prompt);
        let Wanted { reads_itself, read_only, is_enclosed, .. } = self.wanted;
        let params = json!({
            "protocolVersion": 1,
            "clientCapabilities": {
                "fs": { "readTextFile": !reads_itself && !is_enclosed, "writeTextFile": !read_only && !is_enclosed },
                "terminal": !is_enclosed,
                // Without it agents put their notices into the assistant's text.
                "session": { "notices": {} },
            },
            "clientInfo": { "name": "ralph", "title": "ralph", "version": env!("CARGO_PKG_VERSION") },
        });
        self.request("initialize", &params)
    }

    fn request(&mut self, method: &str, params: &Value) -> Vec<u8> {
        self.asked += 1;
        request(self.asked, method, params)
    }

    /// The session's id; empty before there is one.
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// The open request.
    pub(super) fn step(&self) -> &'static str {
        match self.stage {
            Stage::Initialize => "initialize",
            Stage::Authenticate => "authenticate",
            Stage::NewSession => "session/new",
            Stage::Choosing => self.choices.front().map_or("session/set_mode", |choice| choice.method),
            Stage::Prompted | Stage::Over => "session/prompt",
        }
    }

    /// The number and the method of an open request before the prompt.
    pub(super) fn unanswered(&self) -> Option<(u64, &'static str)> {
        (!matches!(self.stage, Stage::Prompted | Stage::Over)).then(|| (self.asked, self.step()))
    }

    /// The message that cancels the turn; empty without a turn.
    pub(super) fn cancel(&self) -> Vec<u8> {
        if self.stage != Stage::Prompted {
            return Vec::new();
        }
        let cancel =
            json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": self.id } });
        format!("{cancel}\n").into_bytes()
    }

    /// Takes the agent's report about its login.
    pub(super) fn told_login(&mut self, login: Login) {
        self.introduction.login = login;
    }

    /// Why the attempt must end: the agent has left its read-only mode.
    pub(super) fn leaves_mode(&self, mode: &str) -> Option<String> {
        let quiet = self.mode.as_ref().filter(|_| self.wanted.read_only)?;
        (mode != quiet).then(|| format!("it has left the mode '{quiet}' for '{mode}', and may only look"))
    }

    /// Takes the agent's answer to a request; one without a request is ignored. `failure` is why its turn has failed, from its
    /// reports beside the answers.
    pub(super) fn answered(
        &mut self,
        id: &str,
        answer: Result<Option<&RawValue>, Fault>,
        failure: Option<&Fault>,
        turn: &mut Turn,
    ) {
        if id != self.asked.to_string() || self.stage == Stage::Over {
            return;
        }
        match (self.stage, answer) {
            (Stage::Initialize, Ok(result)) => {
                if let Some(response) = read::<InitializeResponse>(result) {
                    let version = response.protocol_version;
                    if version != ProtocolVersion::V1 {
                        let message = format!(
                            "it speaks version {} of the protocol, and ralph version 1",
                            version.as_u16()
                        );
                        return self.end(Fault { message, ..Fault::default() }, turn);
                    }
                    self.introduction.agent =
                        response.agent_info.map(|agent| format!("{} {}", agent.name, agent.version));
                    self.methods = response.auth_methods;
                }
                self.ask_for_session(turn);
            }
            (Stage::Authenticate, Ok(_)) => self.ask_for_session(turn),
            (Stage::NewSession, Ok(result)) => self.begin(result, turn),
            (Stage::NewSession, Err(fault)) if fault.code == LOGIN => self.authenticate(fault, turn),
            (Stage::Choosing, answer) => self.chosen(answer.err(), turn),
            (Stage::Prompted, Ok(result)) => self.stopped(result, failure, turn),
            (_, Err(fault)) => {
                let message = match self.stage {
                    Stage::Prompted => fault.message,
                    _ => format!("{}: {}", self.step(), fault.message),
                };
                let class = match (self.stage, fault.class) {
                    (Stage::Authenticate, Class::Other) => Class::Auth,
                    (_, class) => class,
                };
                self.end(Fault { message, class, ..fault }, turn);
            }
            (Stage::Over, Ok(_)) => {}
        }
    }

    fn ask_for_session(&mut self, turn: &mut Turn) {
        self.stage = Stage::NewSession;
        let params = json!({ "cwd": self.cwd, "mcpServers": [] });
        turn.answer(self.request("session/new", &params));
    }

    /// Logs in with a key of the environment. Browsers and terminals are for people.
    fn authenticate(&mut self, fault: Fault, turn: &mut Turn) {
        let has_key = |method: &AuthMethod| {
            let AuthMethod::Agent(method) = method else { return false };
            let id: &str = &method.id.0;
            let meta = method.meta.as_ref().and_then(|meta| meta.get("api-key")?.get("provider")?.as_str());
            self.keys.iter().any(|of| id == *of || meta == Some(of))
        };
        // Requested once: a second one is refused.
        let method = self.methods.iter().find(|method| has_key(method)).cloned();
        self.methods.clear();
        let Some(method) = method else {
            return self.end(Fault { class: Class::Auth, ..fault }, turn);
        };
        self.introduction.key = Some(method.id().0.to_string());
        self.stage = Stage::Authenticate;
        let params = json!({ "methodId": method.id() });
        turn.answer(self.request("authenticate", &params));
    }

    /// The session is open: chooses its mode and its model, if it offers any.
    fn begin(&mut self, result: Option<&RawValue>, turn: &mut Turn) {
        let Some(session) = read::<NewSessionResponse>(result) else {
            let message = "session/new: the answer is none that the protocol knows".to_owned();
            return self.end(Fault { message, ..Fault::default() }, turn);
        };
        self.id = session.session_id.0.to_string();
        note(turn, UsageNote { session_id: Some(self.id.clone()), ..UsageNote::default() });
        let options = session.config_options.unwrap_or_default();
        let modes = Modes::of(session.modes.as_ref(), &options);
        let offered = Models::of(result, &options);
        if self.is_visit {
            return self.leave(&modes, offered.known, turn);
        }
        self.choose_mode(&modes);
        if let Some(word) = self.wanted.model.clone() {
            let id = match offered.find(&word) {
                Ok(id) => id.to_owned(),
                Err(having) => return self.unknown_model(&word, &having, &offered.known, turn),
            };
            self.choices.push_back(offered.choice(&self.id, &id));
            note(turn, UsageNote { model: Some(id), ..UsageNote::default() });
        } else if let Some(model) = offered.current.filter(|model| !NO_MODELS.contains(&model.as_str())) {
            note(turn, UsageNote { model: Some(model), ..UsageNote::default() });
        }
        self.choose_or_prompt(turn);
    }

    /// The introduction of the agent is complete.
    fn leave(&mut self, modes: &Modes<'_>, known: Vec<String>, turn: &mut Turn) {
        self.introduction.mode = modes.first(&PERMISSIVE);
        self.introduction.quiet_mode = modes.first(&READ_ONLY);
        self.introduction.models = known;
        self.stage = Stage::Over;
        turn.hang_up();
    }

    /// Chooses the best of the modes that exist.
    fn choose_mode(&mut self, modes: &Modes<'_>) {
        let wanted: &[&str] = if self.wanted.read_only { &READ_ONLY } else { &PERMISSIVE };
        self.choices.extend(modes.choices(&self.id, wanted));
        self.mode = modes.current(wanted);
    }

    /// The requested value is chosen, or `refused`. A refused mode is followed by the next one, down to the current mode of the
    /// session.
    fn chosen(&mut self, refused: Option<Fault>, turn: &mut Turn) {
        let Some(choice) = self.choices.pop_front() else { return };
        let is_last = self.mode.is_none() && self.choices.front().is_none_or(|next| next.mode.is_none());
        match (refused, choice.mode) {
            (None, Some(mode)) => {
                self.choices.retain(|other| other.mode.is_none());
                self.mode = Some(mode);
            }
            (None, None) => {}
            (Some(fault), Some(_)) if !is_last => {
                let words = format!("{} is refused, another one is chosen: {}", choice.what, fault.message);
                turn.item(Item::Show(Show::notice(&words)));
            }
            (Some(fault), _) => {
                let message = format!("{}: {}", choice.what, fault.message);
                return self.end(Fault { message, ..fault }, turn);
            }
        }
        self.choose_or_prompt(turn);
    }

    fn unknown_model(&mut self, model: &str, having: &[&str], known: &[String], turn: &mut Turn) {
        let meant = meant(model, known.iter().map(String::as_str));
        let known = crate::text::list::some_of(known, 8);
        let message = if known.is_empty() {
            format!("it offers no choice of models, so that '{model}' cannot be used")
        } else if !having.is_empty() {
            let having = crate::text::list::some_of(having, 8);
            format!("several of its models have '{model}' in their names: choose one of {having}")
        } else {
            format!("it has no model '{model}': {meant}choose one of {known}")
        };
        // A retry would fail again.
        self.end(Fault { message, class: Class::Permission, code: 0 }, turn);
    }

    fn choose_or_prompt(&mut self, turn: &mut Turn) {
        if let Some(Choice { method, params, .. }) = self.choices.front().cloned() {
            self.stage = Stage::Choosing;
            turn.answer(self.request(method, &params));
            return;
        }
        self.stage = Stage::Prompted;
        let prompt = std::mem::take(&mut self.prompt);
        let params = json!({ "sessionId": self.id, "prompt": [{ "type": "text", "text": prompt }] });
        turn.answer(self.request("session/prompt", &params));
    }

    /// Takes the answer to the prompt: the result of the attempt.
    fn stopped(&mut self, result: Option<&RawValue>, failure: Option<&Fault>, turn: &mut Turn) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Reason {
            stop_reason: String,
        }
        let reason = read::<Reason>(result).map(|reason| reason.stop_reason);
        let Some(response) = read::<PromptResponse>(result) else {
            let reason = reason.unwrap_or_else(|| "none".to_owned());
            let message = format!("it stopped for an unknown reason: {reason}");
            return self.end(Fault { message, ..Fault::default() }, turn);
        };
        note(turn, tokens(&response));
        let (message, class) = match response.stop_reason {
            StopReason::EndTurn => {
                if let Some(failure) = failure {
                    return self.end(failure.clone(), turn);
                }
                note(turn, UsageNote { is_final: true, ..UsageNote::default() });
                self.stage = Stage::Over;
                turn.hang_up();
                return;
            }
            StopReason::Refusal => ("it refused to go on", Class::Refused),
            StopReason::MaxTokens => ("it has reached its limit of tokens", Class::Context),
            StopReason::MaxTurnRequests => ("it has reached its limit of requests in a turn", Class::Other),
            StopReason::Cancelled => ("its turn was cancelled", Class::Other),
            _ => ("it stopped for an unknown reason", Class::Other),
        };
        self.end(Fault { message: message.to_owned(), class, code: 0 }, turn);
    }

    /// The session is over.
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

fn note(turn: &mut Turn, note: UsageNote) {
    turn.item(Item::Note(Box::new(note)));
}

/// The usage of the turn, from wherever the agent reports it.
fn tokens(response: &PromptResponse) -> UsageNote {
    let quota = response.meta.as_ref().and_then(|meta| meta.get("quota"));
    let model = quota.and_then(|quota| busiest(quota.get("model_usage")?));
    if let Some(usage) = &response.usage {
        let cached = usage
            .cached_read_tokens
            .unwrap_or_default()
            .saturating_add(usage.cached_write_tokens.unwrap_or_default());
        return UsageNote {
            input_tokens: Some(usage.input_tokens.saturating_add(cached)),
            output_tokens: Some(usage.output_tokens),
            model,
            ..UsageNote::default()
        };
    }
    let count = |key: &str| quota.and_then(|quota| quota.get("token_count")?.get(key)?.as_u64());
    UsageNote {
        input_tokens: count("input_tokens"),
        output_tokens: count("output_tokens"),
        model,
        ..UsageNote::default()
    }
}

/// The model that has written the most: titles and the like are often written by another one.
fn busiest(models: &Value) -> Option<String> {
    let written = |model: &&Value| {
        let count = |key| model.get("token_count")?.get(key)?.as_u64();
        count("outputTokens").or_else(|| count("output_tokens")).unwrap_or_default()
    };
    models.as_array()?.iter().max_by_key(written)?.get("model")?.as_str().map(str::to_owned)
}
