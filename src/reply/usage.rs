//! An agent's reports about its own run: cost, tokens, model, session, tools in flight, errors.
//!
//! # The result filter's contract
//!
//! A result filter is a jq program that gets every event of the agent. For each it may emit any number of objects;
//! every key is optional, and a value of another type than given here is ignored:
//!
//! | key | value | meaning |
//! |---|---|---|
//! | `final` | `true` | this is the agent's own last event |
//! | `error` | text | the attempt failed, unless a later `final` comes without `error`; an empty text repeats the message before |
//! | `class` | `"limit"`, `"auth"`, `"context"`, `"permission"`, `"overload"`, `"network"`, `"billing"`, `"model"`, `"refused"`, `"other"` | what kind of error; without it, with `"other"`, or where an error is told again, the class of the error before stays |
//! | `hopeless` | `true` | the agent tries what cannot succeed: it is ended, and this error is its last word |
//! | `reset_at` | seconds since the epoch | when a usage limit ends; also valid for an error that comes later |
//! | `cost_usd` | number | cost of the run so far in US dollars |
//! | `input_tokens` | number | all input of the run so far, cached or not |
//! | `output_tokens` | number | all output of the run so far, reasoning included |
//! | `add` | `true` | the three numbers above are not totals: add them to what came before |
//! | `context_tokens` | number | what the latest turn has read, cached or not |
//! | `context_window` | number | how many tokens the model's context holds |
//! | `window_of` | text | the model whose `context_window` it is, where several were used |
//! | `model` | text | the model's name |
//! | `session_id` | text | what the agent calls the session |
//! | `tool_started`, `tool_finished` | text | id of a tool call; one in flight is a sign of life |
//! | `session_started` | text | the same of one whose end may never be told: it counts while a process of it lives that is no server |
//! | `background` | list of texts | what is at work in the background, all of it; a `final` is not the last one while there is something |
//! | `wakes_in` | seconds | the agent has arranged to go on by itself after a `final` |
//! | `turn_started` | `true` | the agent goes on, or begins |
//! | `sub_agent` | `true` | the tool call is a sub-agent's |
//! | `message` | text | id of the message that the assistant's text in this event is a block of; an empty one begins a new message |

use std::fmt::{self, Display, Formatter};

use jiff::Zoned;
use serde::de::{DeserializeOwned, IntoDeserializer as _, value};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::reset;

/// The kind of error that an agent reported; decides whether and when to retry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// A usage or rate limit: wait, then retry.
    Limit,
    /// Not logged in, or the key is refused: a retry is useless.
    Auth,
    /// The context is too long: the same prompt fails again.
    Context,
    /// The agent, or ralph with it, is not allowed to do something, or does not offer it: a retry is useless.
    Permission,
    /// The provider is overloaded or down: wait, then retry.
    Overload,
    /// There is no connection to the provider: wait, then retry.
    Network,
    /// The account is out of credit: waiting is useless.
    Billing,
    /// The agent or its provider does not have the model: a retry is useless.
    Model,
    /// The model refuses to answer, or a content filter has stopped it: the same prompt is refused again.
    Refused,
    /// Anything else.
    #[default]
    Other,
}

impl Class {
    /// Whether the provider cannot be reached or does not work, which passes by itself.
    #[must_use]
    pub const fn is_outage(self) -> bool {
        matches!(self, Self::Overload | Self::Network)
    }
}

/// One output of a result filter; see the module's documentation.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "they are keys of the contract, each by itself")]
pub struct UsageNote {
    /// The agent's own last event.
    pub is_final: bool,
    /// The attempt failed, with this message.
    pub error: Option<String>,
    /// Kind of the error.
    pub class: Option<Class>,
    /// The agent tries something that cannot succeed.
    pub hopeless: bool,
    /// When a usage limit ends, in seconds since the epoch.
    pub reset_at: Option<i64>,
    /// That time from the words of the error; `reset_at` has precedence.
    pub named_reset: Option<i64>,
    /// Cost in US dollars.
    pub cost_usd: Option<f64>,
    /// Input tokens, cached ones included.
    pub input_tokens: Option<u64>,
    /// Output tokens, reasoning included.
    pub output_tokens: Option<u64>,
    /// Cost and tokens are added to what came before instead of replacing it.
    pub add: bool,
    /// Tokens that the latest turn has read, cached ones included.
    pub context_tokens: Option<u64>,
    /// How many tokens the model's context holds.
    pub context_window: Option<u64>,
    /// The model whose window it is.
    pub window_of: Option<String>,
    /// The model's name.
    pub model: Option<String>,
    /// What the agent calls the session.
    pub session_id: Option<String>,
    /// Id of a tool call that begins.
    pub tool_started: Option<String>,
    /// Id of a tool call that begins, and whose end may never be reported.
    pub session_started: Option<String>,
    /// Id of a tool call that ended.
    pub tool_finished: Option<String>,
    /// Everything at work in the background.
    pub background: Option<Vec<String>>,
    /// In how many seconds the agent will continue by itself.
    pub wakes_in: Option<u64>,
    /// The agent begins or continues a turn.
    pub turn_started: bool,
    /// The tool call is a sub-agent's.
    pub sub_agent: bool,
    /// Id of the message of this event's text; an empty one begins a new message.
    pub message: Option<String>,
}

/// The agent's own last error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "LineFault"))]
pub struct Fault {
    /// Its kind.
    #[serde(deserialize_with = "known_word")]
    pub class: Class,
    /// The agent's message; may have several lines, may be empty.
    pub message: String,
    /// When a usage limit ends, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reset_at: Option<i64>,
}

/// Reads a word; an unknown one of a later release becomes the default.
pub(super) fn known_word<'de, D: Deserializer<'de>, T: DeserializeOwned + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    let word = String::deserialize(deserializer)?.into_deserializer();
    Ok(T::deserialize(word).unwrap_or_else(|_: value::Error| T::default()))
}

impl Fault {
    /// An error known only by its message, which may name the end of a usage limit.
    #[must_use]
    pub fn told(class: Class, message: String) -> Self {
        let reset_at = reset::named(&message, &Zoned::now()).filter(|_| class == Class::Limit);
        Self { class, message, reset_at }
    }
}

/// All [`UsageNote`]s of one attempt, folded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Usage {
    /// Cost in US dollars.
    pub cost_usd: Option<f64>,
    /// Input tokens, cached ones included.
    pub input_tokens: Option<u64>,
    /// Output tokens, reasoning included.
    pub output_tokens: Option<u64>,
    /// Tokens that the latest turn has read, cached ones included.
    pub context_tokens: Option<u64>,
    /// How many tokens the model's context holds.
    pub context_window: Option<u64>,
    /// The model's name.
    pub model: Option<String>,
    /// What the agent calls the session.
    pub session_id: Option<String>,
    /// Whether the agent's own last event came.
    pub final_seen: bool,
    /// The last error without a successful final event after it.
    pub fault: Option<Fault>,
    /// Ids of the tool calls in progress.
    pub tools_in_flight: Vec<String>,
    /// Ids of those whose end may never be reported.
    pub sessions_in_flight: Vec<String>,
    /// What is at work in the background.
    pub background: Vec<String>,
    /// In how many seconds the agent will continue by itself.
    pub wakes_in: Option<u64>,
    /// Whether it has called a tool.
    pub called_tools: bool,
    /// The agent is ended for this fault: later errors only count if they have the same class.
    hopeless: bool,
    /// A reset time that came before its error.
    reset_at: Option<i64>,
}

/// How full a model's context is, in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextUse {
    /// The tokens in use.
    pub tokens: u64,
    /// The capacity.
    pub window: u64,
}

impl ContextUse {
    /// The share in use, in whole percents.
    #[must_use]
    pub fn percent(self) -> u64 {
        self.tokens.saturating_mul(100).checked_div(self.window).unwrap_or_default()
    }
}

impl Display for ContextUse {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} tokens ({} %)", self.tokens, self.window, self.percent())
    }
}

impl UsageNote {
    /// Adds the end of a usage limit that the error's message names.
    #[must_use]
    pub(crate) fn with_named_reset(self) -> Self {
        let named_reset = self.error.as_deref().and_then(|words| reset::named(words, &Zoned::now()));
        Self { named_reset, ..self }
    }

    /// Reads one output of a result filter. `None` if it is not a JSON object.
    #[must_use]
    pub fn from_json(json: &str) -> Option<Self> {
        let Ok(Value::Object(map)) = serde_json::from_str(json) else { return None };
        let text = |key: &str| map.get(key).and_then(Value::as_str).map(str::to_owned);
        let flag = |key: &str| map.get(key).and_then(Value::as_bool) == Some(true);
        let number = |key: &str| map.get(key).and_then(Value::as_f64).filter(|number| *number >= 0.0);
        // `as` saturates, which is right for absurdly large counts and times.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let count = |key: &str| number(key).map(|number| number as u64);
        Some(Self {
            is_final: flag("final"),
            error: text("error"),
            class: map.get("class").and_then(|class| Class::deserialize(class).ok()),
            hopeless: flag("hopeless"),
            reset_at: count("reset_at").and_then(|seconds| seconds.try_into().ok()),
            named_reset: None,
            cost_usd: number("cost_usd"),
            input_tokens: count("input_tokens"),
            output_tokens: count("output_tokens"),
            add: flag("add"),
            context_tokens: count("context_tokens"),
            context_window: count("context_window").filter(|window| *window > 0),
            window_of: text("window_of"),
            model: text("model"),
            session_id: text("session_id"),
            tool_started: text("tool_started"),
            session_started: text("session_started"),
            tool_finished: text("tool_finished"),
            background: map
                .get("background")
                .and_then(Value::as_array)
                .map(|tasks| tasks.iter().filter_map(Value::as_str).map(str::to_owned).collect()),
            wakes_in: count("wakes_in"),
            turn_started: flag("turn_started"),
            sub_agent: flag("sub_agent"),
            message: text("message"),
        })
    }
}

impl UsageNote {
    /// The id of the tool call that begins, if one does.
    #[must_use]
    pub fn begun(&self) -> Option<&String> {
        self.tool_started.as_ref().or(self.session_started.as_ref())
    }
}

impl Usage {
    /// Adds the next note.
    pub fn fold(&mut self, note: &UsageNote) {
        // Agents' values cannot be trusted: limits in money depend on this.
        let cost = note.cost_usd.filter(|cost| cost.is_finite() && *cost >= 0.0);
        if note.add {
            self.cost_usd = sum(self.cost_usd, cost, |a, b| (a + b).min(f64::MAX));
            self.input_tokens = sum(self.input_tokens, note.input_tokens, u64::saturating_add);
            self.output_tokens = sum(self.output_tokens, note.output_tokens, u64::saturating_add);
        } else {
            self.cost_usd = cost.or(self.cost_usd);
            self.input_tokens = note.input_tokens.or(self.input_tokens);
            self.output_tokens = note.output_tokens.or(self.output_tokens);
        }
        self.context_tokens = note.context_tokens.or(self.context_tokens);
        let is_ours = note.window_of.is_none() || note.window_of == self.model;
        if is_ours || self.context_window.is_none() {
            self.context_window = note.context_window.or(self.context_window);
        }
        replace(&mut self.model, note.model.as_ref());
        replace(&mut self.session_id, note.session_id.as_ref());
        self.reset_at = note.reset_at.or(self.reset_at);
        // A later turn has to end by itself.
        self.final_seen = note.is_final || self.final_seen && !note.turn_started;
        let is_about_it = || self.fault.as_ref().map(|fault| fault.class) == note.class;
        match &note.error {
            _ if self.hopeless && !is_about_it() => {}
            Some(message) => self.fail(message, note),
            None if note.is_final => self.fault = None,
            None => {}
        }
        self.hopeless |= note.hopeless;
        if let Some(tasks) = &note.background {
            self.background.clone_from(tasks);
        }
        self.wakes_in = note.wakes_in.or(self.wakes_in.filter(|_| !note.turn_started));
        if let Some(id) = &note.tool_finished {
            self.tools_in_flight.retain(|started| started != id);
            self.sessions_in_flight.retain(|started| started != id);
        }
        if note.begun().is_some()
            && let Some(fault @ Fault { class: Class::Context | Class::Network, .. }) = &mut self.fault
        {
            // It has compacted its context, or has its connection again, and has continued.
            fault.class = Class::Other;
        }
        self.called_tools |= note.begun().is_some();
        let begun = [
            (&note.tool_started, &mut self.tools_in_flight),
            (&note.session_started, &mut self.sessions_in_flight),
        ];
        for (id, in_flight) in begun {
            if let Some(id) = id
                && !in_flight.contains(id)
            {
                in_flight.push(id.clone());
            }
        }
    }

    /// Adds another agent's usage.
    pub fn add(&mut self, other: &Self) {
        self.cost_usd = sum(self.cost_usd, other.cost_usd, |a, b| a + b);
        self.input_tokens = sum(self.input_tokens, other.input_tokens, u64::saturating_add);
        self.output_tokens = sum(self.output_tokens, other.output_tokens, u64::saturating_add);
    }

    /// How full the model's context is, if the agent reports it.
    #[must_use]
    pub fn context(&self) -> Option<ContextUse> {
        Some(ContextUse { tokens: self.context_tokens?, window: self.context_window? })
    }

    /// What the agent will continue with by itself after a final event, in words; `None` if nothing.
    #[must_use]
    pub fn announced(&self) -> Option<String> {
        let wakes = self.wakes_in.map(|seconds| format!("a wake-up after {seconds} s"));
        let all: Vec<&str> = self.background.iter().chain(&wakes).map(String::as_str).collect();
        (!all.is_empty()).then(|| all.join(", "))
    }

    /// Whether the agent reported by itself that it is done and successful.
    #[must_use]
    pub fn good_final(&self) -> bool {
        self.final_seen && self.fault.is_none()
    }

    fn fail(&mut self, message: &str, note: &UsageNote) {
        let before = self.fault.take();
        let is_same = |before: &Fault| message.is_empty() || message == before.message;
        let (class, message, reset_before) = match before {
            Some(before) if is_same(&before) && before.class != Class::Other => {
                (before.class, before.message, before.reset_at)
            }
            // An error without a class does not change the class of the one before.
            Some(before) => {
                let class = note.class.filter(|class| *class != Class::Other).unwrap_or(before.class);
                (class, if message.is_empty() { before.message } else { message.to_owned() }, before.reset_at)
            }
            None => (note.class.unwrap_or_default(), message.to_owned(), None),
        };
        let reset_at = self.reset_at.or(note.named_reset).or(reset_before).filter(|_| class == Class::Limit);
        self.fault = Some(Fault { class, message, reset_at });
    }
}

fn sum<T>(before: Option<T>, more: Option<T>, add: impl FnOnce(T, T) -> T) -> Option<T> {
    match (before, more) {
        (Some(before), Some(more)) => Some(add(before, more)),
        (before, more) => before.or(more),
    }
}

fn replace(known: &mut Option<String>, new: Option<&String>) {
    if new.is_some() && known.as_ref() != new {
        *known = new.cloned();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fold(notes: &[&str]) -> Usage {
        let mut usage = Usage::default();
        for note in notes {
            usage.fold(&UsageNote::from_json(note).unwrap());
        }
        usage
    }

    #[test]
    fn totals_replace_and_steps_add() {
        let usage = fold(&[
            r#"{"cost_usd":0.5,"input_tokens":10}"#,
            r#"{"add":true,"cost_usd":0.25,"input_tokens":5,"output_tokens":7}"#,
        ]);
        assert_eq!(
            (usage.cost_usd, usage.input_tokens, usage.output_tokens),
            (Some(0.75), Some(15), Some(7))
        );
        let usage = fold(&[r#"{"input_tokens":10,"model":"a"}"#, r#"{"input_tokens":12}"#]);
        assert_eq!((usage.input_tokens, usage.model.as_deref()), (Some(12), Some("a")));
    }

    #[test]
    fn a_good_final_clears_an_error_before_it() {
        let usage = fold(&[r#"{"error":"flaky","class":"limit","reset_at":5}"#, r#"{"final":true}"#]);
        assert!(usage.good_final());
        let usage = fold(&[r#"{"final":true}"#, r#"{"error":"late"}"#]);
        assert!(usage.final_seen && !usage.good_final());
    }

    #[test]
    fn an_error_inherits_what_it_does_not_say() {
        let usage = fold(&[
            r#"{"class":"limit","reset_at":99}"#,
            r#"{"error":"too many","class":"limit"}"#,
            r#"{"error":"","final":true}"#,
        ]);
        let fault = Fault { class: Class::Limit, message: "too many".into(), reset_at: Some(99) };
        assert_eq!(usage.fault, Some(fault));
        let usage = fold(&[r#"{"reset_at":99}"#, r#"{"error":"x","class":"auth"}"#]);
        assert_eq!(usage.fault, Some(Fault { class: Class::Auth, message: "x".into(), reset_at: None }));
    }

    #[test]
    fn the_window_is_that_of_the_model_which_did_the_work() {
        let usage = fold(&[
            r#"{"model":"big"}"#,
            r#"{"context_tokens":100}"#,
            r#"{"window_of":"small","context_window":150}"#,
            r#"{"window_of":"big","context_window":1000}"#,
            r#"{"window_of":"other","context_window":2000}"#,
            r#"{"context_tokens":170,"context_window":0}"#,
        ]);
        let context = usage.context().unwrap();
        assert_eq!(context, ContextUse { tokens: 170, window: 1000 });
        assert_eq!(context.to_string(), "170 of 1000 tokens (17 %)");
        let usage = fold(&[r#"{"window_of":"any","context_window":150}"#]);
        assert_eq!((usage.context_window, usage.context()), (Some(150), None));
        assert_eq!(ContextUse { tokens: u64::MAX, window: 0 }.percent(), 0);
    }

    #[test]
    fn a_class_is_not_taken_back_by_what_has_none() {
        for (later, class) in [
            (r#"{"error":"other words"}"#, Class::Billing),
            (r#"{"error":"other words","class":"other"}"#, Class::Billing),
            (r#"{"error":"no credit","class":"auth"}"#, Class::Billing),
            (r#"{"error":"","class":"auth"}"#, Class::Billing),
            (r#"{"error":"other words","class":"auth"}"#, Class::Auth),
        ] {
            let usage = fold(&[r#"{"error":"no credit","class":"billing"}"#, later]);
            assert_eq!(usage.fault.unwrap().class, class, "{later}");
        }
        let usage = fold(&[r#"{"error":"a","class":"limit"}"#, r#"{"final":true}"#, r#"{"error":"b"}"#]);
        assert_eq!(usage.fault.unwrap().class, Class::Other);
    }

    #[test]
    fn who_calls_a_tool_has_a_connection_again() {
        let usage = fold(&[r#"{"error":"away","class":"network"}"#, r#"{"tool_started":"1"}"#]);
        assert_eq!(usage.fault.unwrap().class, Class::Other);
    }

    #[test]
    fn what_comes_after_a_hopeless_error_is_not_its_reason() {
        for later in [r#"{"final":true,"error":"aborted"}"#, r#"{"final":true}"#] {
            let usage = fold(&[r#"{"error":"401","class":"auth","hopeless":true}"#, later]);
            let fault = usage.fault.unwrap();
            assert_eq!((fault.class, fault.message.as_str()), (Class::Auth, "401"), "{later}");
        }
        let better = r#"{"error":"Invalid API key","class":"auth"}"#;
        let usage = fold(&[r#"{"error":"401","class":"auth","hopeless":true}"#, better]);
        assert_eq!(usage.fault.unwrap().message, "Invalid API key");
    }

    #[test]
    fn a_reset_by_field_counts_more_than_one_by_words() {
        let words = UsageNote {
            error: Some("resets 3pm".into()),
            class: Some(Class::Limit),
            named_reset: Some(5),
            ..UsageNote::default()
        };
        let mut usage = Usage::default();
        usage.fold(&words);
        assert_eq!(usage.fault.as_ref().unwrap().reset_at, Some(5));
        usage.fold(&UsageNote::from_json(r#"{"error":"","final":true}"#).unwrap());
        assert_eq!(usage.fault.unwrap().reset_at, Some(5), "an error that repeats it knows it, too");
        let mut usage = Usage::default();
        usage.fold(&UsageNote::from_json(r#"{"reset_at":9}"#).unwrap());
        usage.fold(&words);
        assert_eq!(usage.fault.unwrap().reset_at, Some(9));
    }

    #[test]
    fn tools_are_in_flight_until_they_end() {
        let usage = fold(&[
            r#"{"tool_started":"a"}"#,
            r#"{"tool_started":"b"}"#,
            r#"{"tool_started":"a"}"#,
            r#"{"tool_finished":"b"}"#,
            r#"{"tool_finished":"nobody"}"#,
        ]);
        assert_eq!(usage.tools_in_flight, ["a"]);
    }

    #[test]
    fn values_of_another_type_are_ignored() {
        assert_eq!(UsageNote::from_json("[]"), None);
        assert_eq!(UsageNote::from_json("nope"), None);
        let odd =
            r#"{"final":"yes","error":5,"class":"odd","reset_at":"x","cost_usd":-1,"model":null,"more":1}"#;
        assert_eq!(UsageNote::from_json(odd), Some(UsageNote::default()));
        let huge = UsageNote::from_json(r#"{"input_tokens":1e300,"reset_at":1e300}"#).unwrap();
        assert_eq!((huge.input_tokens, huge.reset_at), (Some(u64::MAX), None));
    }
}
