//! The modes and models of a session.

use agent_client_protocol_schema::v1::{
    SessionConfigKind, SessionConfigOption, SessionConfigOptionCategory, SessionConfigSelectOptions,
    SessionModeState,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::envelope::read;

/// The modes in which the agent may do everything, the most permissive first. In the last ones it asks us; there is none in
/// which a classifier of its own refuses tools.
pub(super) const PERMISSIVE: [&str; 12] = [
    "bypassPermissions",
    "yolo",
    "agent-full-access",
    "full-access",
    "auto-approve",
    "agent",
    "build",
    "acceptEdits",
    "accept-edits",
    "autoEdit",
    "auto-edit",
    "default",
];
/// The modes in which nothing is changed; in the last one only because it asks us.
pub(super) const READ_ONLY: [&str; 3] = ["read-only", "plan", "ask"];

/// The name of a mode: copilot gives modes addresses, with the name behind `#`.
fn name_of(mode: &str) -> &str {
    mode.rsplit_once('#').map_or(mode, |(_, name)| name)
}

/// A choice to make.
#[derive(Debug, Clone)]
pub(super) struct Choice {
    pub(super) method: &'static str,
    pub(super) params: Value,
    /// What is chosen, in words.
    pub(super) what: String,
    /// The chosen mode, if it is one.
    pub(super) mode: Option<String>,
}

/// The modes of a session.
#[derive(Default)]
pub(super) struct Modes<'a> {
    known: Vec<String>,
    current: Option<String>,
    /// The option that sets the mode, if modes are an option.
    option: Option<&'a SessionConfigOption>,
}

impl<'a> Modes<'a> {
    /// The modes of the session, or those of an option.
    pub(super) fn of(modes: Option<&SessionModeState>, options: &'a [SessionConfigOption]) -> Self {
        if let Some(modes) = modes {
            return Self {
                known: modes.available_modes.iter().map(|mode| mode.id.0.to_string()).collect(),
                current: Some(modes.current_mode_id.0.to_string()),
                option: None,
            };
        }
        option(options, &SessionConfigOptionCategory::Mode).map_or_else(Self::default, |option| Self {
            known: values(option),
            current: current_value(option),
            option: Some(option),
        })
    }

    /// The first of these modes that exists.
    pub(super) fn first(&self, wanted: &[&str]) -> Option<String> {
        wanted.iter().find_map(|wanted| self.known(wanted)).cloned()
    }

    /// The current mode of the session, if it is one of these.
    pub(super) fn current(&self, wanted: &[&str]) -> Option<String> {
        self.current.clone().filter(|current| wanted.contains(&name_of(current)))
    }

    /// The choices of these modes that exist, down to the current one.
    pub(super) fn choices(&self, session: &str, wanted: &[&str]) -> Vec<Choice> {
        let is_other = |mode: &&String| self.current.as_ref() != Some(*mode);
        let choose = |mode: &String| {
            let otherwise = ("session/set_mode", json!({ "sessionId": session, "modeId": mode }));
            let choice = choice(self.option, session, mode, otherwise, format!("mode '{mode}'"));
            Choice { mode: Some(mode.clone()), ..choice }
        };
        wanted.iter().filter_map(|wanted| self.known(wanted)).take_while(is_other).map(choose).collect()
    }

    /// The id of the mode with this name.
    fn known(&self, name: &str) -> Option<&String> {
        self.known.iter().find(|known| name_of(known) == name)
    }
}

/// The models of a session.
pub(super) struct Models<'a> {
    /// Their ids.
    pub(super) known: Vec<String>,
    /// Their names for people, in the same order.
    names: Vec<String>,
    /// The current model.
    pub(super) current: Option<String>,
    option: Option<&'a SessionConfigOption>,
}

impl<'a> Models<'a> {
    /// The models of an option, or those that the answer names beside the protocol.
    pub(super) fn of(answer: Option<&RawValue>, options: &'a [SessionConfigOption]) -> Self {
        let Some(option) = option(options, &SessionConfigOptionCategory::Model) else {
            let RawModels { available_models, current_model_id } = raw_models(answer);
            let (known, names) = available_models
                .into_iter()
                .map(|model| (model.model_id, model.name.unwrap_or_default()))
                .unzip();
            return Self { known, names, current: current_model_id, option: None };
        };
        let (known, names) = named_values(option).unzip();
        Self { known, names, current: current_value(option), option: Some(option) }
    }

    /// The id of the model that a user calls `word`: its id or its name, or else the only one with this word or these words in one of
    /// them, in capitals or not. What begins another id is the id of a model that is not there.
    ///
    /// # Errors
    /// The ids of all models that have it.
    pub(super) fn find(&self, word: &str) -> Result<&str, Vec<&str>> {
        let wanted = word.to_lowercase();
        let models =
            || self.known.iter().zip(&self.names).map(|(id, name)| (id.as_str(), name.to_lowercase()));
        let exact =
            models().find(|(id, _)| *id == word).or_else(|| models().find(|(_, name)| *name == wanted));
        if let Some((id, _)) = exact {
            return Ok(id);
        }
        let words = words_of(&wanted);
        let is_in = |text: &str| words_of(text).windows(words.len().max(1)).any(|some| some == words);
        let has_it = |(id, name): &(&str, String)| {
            let id = id.to_lowercase();
            (is_in(&id) || is_in(name)) && (words.len() == 1 || !id.starts_with(&wanted))
        };
        let having: Vec<&str> = models().filter(has_it).map(|(id, _)| id).collect();
        if let [only] = having[..] { Ok(only) } else { Err(having) }
    }

    /// How a model is chosen.
    pub(super) fn choice(&self, session: &str, model: &str) -> Choice {
        let otherwise = ("session/set_model", json!({ "sessionId": session, "modelId": model }));
        choice(self.option, session, model, otherwise, format!("model '{model}'"))
    }
}

/// The letters and digits of a text, by what stands between them.
fn words_of(text: &str) -> Vec<&str> {
    text.split(|one: char| !one.is_alphanumeric()).filter(|word| !word.is_empty()).collect()
}

/// The chosen mode, if modes are an option.
pub(super) fn current_mode(options: &[SessionConfigOption]) -> Option<String> {
    current_value(option(options, &SessionConfigOptionCategory::Mode)?)
}

/// With an option if there is one.
fn choice(
    option: Option<&SessionConfigOption>,
    session: &str,
    value: &str,
    otherwise: (&'static str, Value),
    what: String,
) -> Choice {
    let by_option = |option: &SessionConfigOption| {
        let params = json!({ "sessionId": session, "configId": option.id, "value": value });
        ("session/set_config_option", params)
    };
    let (method, params) = option.map_or(otherwise, by_option);
    Choice { method, params, what, mode: None }
}

fn option<'a>(
    options: &'a [SessionConfigOption],
    category: &SessionConfigOptionCategory,
) -> Option<&'a SessionConfigOption> {
    options.iter().find(|option| option.category.as_ref() == Some(category))
}

fn current_value(option: &SessionConfigOption) -> Option<String> {
    match &option.kind {
        SessionConfigKind::Select(select) => Some(select.current_value.0.to_string()),
        _ => None,
    }
}

/// The models that an answer names beside the protocol.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct RawModels {
    #[serde(default)]
    available_models: Vec<RawModel>,
    #[serde(default)]
    current_model_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawModel {
    model_id: String,
    #[serde(default)]
    name: Option<String>,
}

fn raw_models(answer: Option<&RawValue>) -> RawModels {
    #[derive(Deserialize, Default)]
    struct More {
        #[serde(default)]
        models: Option<RawModels>,
    }
    read::<More>(answer).and_then(|more| more.models).unwrap_or_default()
}

/// The values that can be chosen.
fn values(option: &SessionConfigOption) -> Vec<String> {
    named_values(option).map(|(value, _)| value).collect()
}

/// The values that can be chosen, with their names for people.
fn named_values(option: &SessionConfigOption) -> impl Iterator<Item = (String, String)> {
    let options = match &option.kind {
        SessionConfigKind::Select(select) => match &select.options {
            SessionConfigSelectOptions::Ungrouped(all) => all.iter().collect(),
            SessionConfigSelectOptions::Grouped(groups) => {
                groups.iter().flat_map(|group| &group.options).collect()
            }
            _ => Vec::new(),
        },
        _ => Vec::new(),
    };
    options.into_iter().map(|one| (one.value.0.to_string(), one.name.clone()))
}
