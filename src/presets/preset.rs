//! What ralph knows about one kind of agent.

use std::fmt;
use std::sync::Arc;

use regex::bytes::Regex;

use super::option::{CliOption, ReadOnly};
use super::provider::Provider;
use super::setup::Setup;
use super::state::State;
use crate::reply::decode::{Filters, Shortcut, Slot, ToolResults};
use crate::reply::filter::{CompileError, JqProgram};
use crate::reply::verdict::Asides;
use crate::text::digest;

/// One kind of agent. Everything in it can be overridden by a setting, one by one.
#[derive(Debug)]
pub struct Preset {
    /// The name in `AGENT_TYPE`.
    pub name: &'static str,
    /// Its product name, for the README. Empty: it is no agent under its own name, but another way to one, or none of its own.
    pub title: &'static str,
    /// The program, looked up on PATH. Empty: for `script` our own executable, for `custom` unknown.
    pub cli: &'static str,
    /// Its arguments, before [`Prompt::StdinAndArgument`]'s.
    pub args: &'static [&'static str],
    /// Options to run without a person, for the guide.
    pub needs: &'static str,
    /// Variables with which it logs in, by an account that several machines may share.
    pub keys: &'static [&'static str],
    /// Its protocol.
    pub protocol: Protocol,
    /// How the prompt reaches it.
    pub prompt: Prompt,
    /// The longest prompt that it takes whole; `None`: no limit was found.
    pub longest_prompt: Option<PromptLimit>,
    /// jq: the assistant's own text, in pieces that are joined without anything between them. Empty: none.
    pub response: &'static str,
    /// jq: objects for the live display, see the contract in [`crate::reply::show`]. Empty: none.
    pub display: &'static str,
    /// jq: notes, see the contract in [`crate::reply::usage`]. Empty: none.
    pub result: &'static str,
    /// The values of the top-level `type` that these filters use.
    pub types: &'static [&'static str],
    /// A faster reader than the filters for the most frequent lines, those of this `type`.
    pub shortcut: Option<(&'static str, Shortcut)>,
    /// Lines of this `type` report the end of a tool call; the pattern finds its id in the raw line. For agents whose tool
    /// output comes in lines of its own: these are too many and too long to be parsed for an id.
    pub tool_results: Option<(&'static str, &'static str)>,
    /// How the stream reports tool calls.
    pub tool_calls: ToolCalls,
    /// Whether the agent ends a run with a final event, without which the attempt has failed.
    pub has_final: bool,
    /// The meaning of its exit codes and its stderr.
    pub asides: Asides,
    /// Whether the agent reports the cost of a run.
    pub reports_cost: bool,
    /// Shell command that prints the account's balance. Empty: none.
    pub usage_cmd: &'static str,
    /// Shell pipeline that finds the number of dollars in the output of `usage_cmd`. Empty: none.
    pub usage_parser: &'static str,
    /// How a user's command line is made to print the format of these filters.
    pub structured: Structured,
    /// The option for the model; `None`: there is none.
    pub model: Option<CliOption>,
    /// The option for how hard the model thinks; `None`: there is none.
    pub effort: Option<CliOption>,
    /// Models to choose from for tasks, the smallest first; empty if that depends on the user.
    pub ladder: &'static [&'static str],
    /// The command that lists its models. Empty: none is known.
    pub list_models: &'static str,
    /// How it is kept from editing files while it runs commands; `None`: that is not possible.
    pub read_only: Option<ReadOnly>,
    /// Whether we do not offer to read files for it over the Agent Client Protocol: it takes every error about a missing file
    /// for a failure, and could not create files, or plan.
    pub reads_itself: bool,
    /// Variables that it gets unless its environment has them.
    pub env: &'static [(&'static str, &'static str)],
    /// Whether its tools see git's configuration.
    pub git_config: GitConfig,
    /// Where it keeps what it knows from one start to the next.
    pub state: State,
    /// Whom it has to reach.
    pub provider: Provider,
    /// What it needs before it can work.
    pub setup: Setup,
    /// How to log in, as the second half of a message. Empty: not needed.
    pub login: &'static str,
    /// How to install it, as the second half of a message. Empty: not needed.
    pub install: &'static str,
}

/// The protocol of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// The prompt goes to its stdin, and it prints lines.
    Lines,
    /// The Agent Client Protocol: a session, one prompt, and answers to its requests.
    Acp,
}

/// How the stream of an agent reports tool calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolCalls {
    /// It reports their beginning and their end.
    Told,
    /// It reports their end only.
    ToldWhenOver,
}

/// The part of git's configuration that an agent's tools see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GitConfig {
    /// All of it.
    Seen,
    /// All but the user's, so that commits would have no author.
    Hidden,
}

/// How long a prompt may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PromptLimit {
    /// This many characters.
    Characters(usize),
    /// This many bytes.
    Bytes(usize),
}

/// How the prompt reaches an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prompt {
    /// On stdin, which is closed after it.
    Stdin,
    /// On stdin, and this as the last argument: the agent insists on one.
    StdinAndArgument {
        /// The argument.
        argument: &'static str,
        /// Options whose value is the next word, which is then not that argument.
        valued: &'static [&'static str],
    },
}

/// How a user's command line is made to print an agent's structured format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Structured {
    /// The subcommand that prints it; without it the program does something else. Empty: none is needed.
    pub subcommand: &'static str,
    /// The option that chooses the format, in all its spellings.
    pub option: &'static [&'static str],
    /// The option's value. Empty: it is a switch.
    pub value: &'static str,
    /// Switches that are needed as well.
    pub also: &'static [&'static str],
}

/// A preset's filters, compiled. Compile once per loop, then make [`Filters`] for every attempt.
#[derive(Clone, Debug)]
pub struct Compiled {
    response: Option<Arc<JqProgram>>,
    display: Option<Arc<JqProgram>>,
    result: Option<Arc<JqProgram>>,
    types: &'static [&'static str],
    pub(super) shortcut: Option<(&'static str, Shortcut)>,
    tool_results: Option<ToolResults>,
}

impl fmt::Display for PromptLimit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Characters(limit) => write!(out, "{limit} characters"),
            Self::Bytes(limit) => write!(out, "{limit} bytes"),
        }
    }
}

impl PromptLimit {
    /// The message for a prompt that is too long, in words that follow the agent's name.
    #[must_use]
    pub fn refuses(self, prompt: &str) -> Option<String> {
        let (length, limit) = match self {
            // A prompt that fits by its bytes need not be counted.
            Self::Characters(limit) if prompt.len() <= limit => return None,
            Self::Characters(limit) => (prompt.chars().count(), limit),
            Self::Bytes(limit) => (prompt.len(), limit),
        };
        (length > limit).then(|| {
            format!(
                "takes at most {self} in a prompt, and this one has {length}: shorten it, or have the agent \
                 read files"
            )
        })
    }
}

impl Preset {
    /// Whether it is an agent under its own name.
    pub(super) const fn is_named(&self) -> bool {
        !self.title.is_empty()
    }

    /// Whether the assistant's text can be read.
    #[must_use]
    pub fn is_read(&self) -> bool {
        !self.response.is_empty() || self.protocol == Protocol::Acp
    }

    /// Which models it has, in words that follow a verb.
    #[must_use]
    pub fn models_in_words(&self) -> String {
        match (self.ladder, self.list_models) {
            ([], "") => "a model that it has".to_owned(),
            ([], command) => format!("one of those that '{command}' lists"),
            (ladder, _) => format!("a model that it has, such as {}", ladder.join(", ")),
        }
    }

    /// Whether tool calls can be shown.
    #[must_use]
    pub fn is_displayed(&self) -> bool {
        !self.display.is_empty() || self.protocol == Protocol::Acp
    }

    /// Whether it has an option for the model.
    #[must_use]
    pub fn takes_model(&self) -> bool {
        self.model.is_some() || self.protocol == Protocol::Acp
    }

    /// Compiles the filters.
    pub fn compile(&self) -> Result<Compiled, CompileError> {
        let program =
            |source: &str| (!source.is_empty()).then(|| JqProgram::compile(source).map(Arc::new)).transpose();
        Ok(Compiled {
            response: program(self.response)?,
            display: program(self.display)?,
            result: program(self.result)?,
            types: self.types,
            shortcut: self.shortcut,
            // If our pattern does not compile, a test fails; here only a sign of life would be lost.
            tool_results: self
                .tool_results
                .and_then(|(kind, id)| Some(ToolResults { kind, id: Regex::new(id).ok()? })),
        })
    }

    /// What tells this login from others, without any key: those who share it share its usage limits. Without a key that is the user, and
    /// the folder of the agent's state if that is not the usual one.
    #[must_use]
    pub fn login_of(&self, user: &str, variable: impl Fn(&str) -> Option<String>) -> String {
        let keys = self.keys.iter().filter_map(|key| variable(key).filter(|key| !key.is_empty()));
        let digest = |text: String| digest::sha256(text.as_bytes())[..16].to_owned();
        let folder = self.state.variable.and_then(&variable).filter(|folder| !folder.is_empty());
        let place = folder.map(|folder| format!("/{}", digest(folder))).unwrap_or_default();
        let who = keys.map(digest).next();
        format!("{}/{}", self.name, who.unwrap_or_else(|| format!("{user}{place}")))
    }

    /// The defaults of presets; also `custom`, about which nothing is known.
    pub(super) const BLANK: Self = Self {
        name: "custom",
        title: "",
        cli: "",
        args: &[],
        needs: "an `AGENT_FORMAT` or an `AGENT_RESPONSE_FILTER`, if it is ever to say COMPLETE",
        keys: &[],
        protocol: Protocol::Lines,
        prompt: Prompt::Stdin,
        longest_prompt: None,
        response: "",
        display: "",
        result: "",
        types: &[],
        shortcut: None,
        tool_results: None,
        tool_calls: ToolCalls::Told,
        has_final: false,
        asides: Asides::NONE,
        reports_cost: false,
        usage_cmd: "",
        usage_parser: "",
        structured: Structured::NONE,
        model: None,
        effort: None,
        ladder: &[],
        list_models: "",
        read_only: None,
        reads_itself: false,
        env: &[],
        git_config: GitConfig::Seen,
        state: State::NONE,
        provider: Provider::NONE,
        setup: Setup::NONE,
        login: "",
        install: "",
    };

    /// The defaults of agents over the protocol; also `acp`, which is any of them.
    pub(super) const ACP: Self = Self {
        name: "acp",
        needs: "to speak the Agent Client Protocol",
        protocol: Protocol::Acp,
        has_final: true,
        read_only: Some(ReadOnly::ASKED_FOR),
        ..Self::BLANK
    };
}

impl Compiled {
    /// The filters for one attempt. Each one can be replaced by the user's filter.
    #[must_use]
    pub fn filters(&self) -> Filters {
        let slot = |program: &Option<Arc<JqProgram>>| program.clone().map_or(Slot::Off, Slot::Here);
        Filters {
            response: slot(&self.response),
            display: slot(&self.display),
            result: slot(&self.result),
            types: self.types,
            shortcut: self.shortcut,
            tool_results: self.tool_results.clone(),
        }
    }
}

impl Structured {
    pub(super) const NONE: Self = Self { subcommand: "", option: &[], value: "", also: &[] };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presets::{all, preset};

    #[test]
    fn who_has_the_same_key_has_the_same_login_and_else_who_has_the_same_name() {
        let claude = preset("claude").unwrap();
        let with = |value: &'static str| {
            claude.login_of("ann", move |name| (name == "ANTHROPIC_API_KEY").then(|| value.to_owned()))
        };
        assert_eq!(claude.login_of("ann", |_| None), "claude/ann");
        assert_eq!(with(""), "claude/ann");
        assert_ne!(with("one"), with("other"));
        let at = |folder: &'static str| {
            claude.login_of("ann", move |name| (name == "CLAUDE_CONFIG_DIR").then(|| folder.to_owned()))
        };
        assert!(at("/a").starts_with("claude/ann/") && at("/a") != at("/b"));
        assert!(!with("one").contains("one") && with("one").len() == "claude/".len() + 16);
    }

    #[test]
    fn every_filter_and_pattern_compiles() {
        for preset in all() {
            let compiled = preset.compile().unwrap_or_else(|error| panic!("{}: {error}", preset.name));
            assert_eq!(compiled.tool_results.is_some(), preset.tool_results.is_some(), "{}", preset.name);
        }
    }

    #[test]
    fn a_prompt_is_refused_from_the_first_character_too_many() {
        let characters = PromptLimit::Characters(3);
        assert_eq!((characters.refuses("äöü"), characters.refuses("")), (None, None));
        let said = characters.refuses("äöüa").unwrap();
        assert!(said.starts_with("takes at most 3 characters in a prompt, and this one has 4: "), "{said}");
        let bytes = PromptLimit::Bytes(3);
        assert!(bytes.refuses("abc").is_none() && bytes.refuses("äö").unwrap().contains("has 4:"));
    }
}
