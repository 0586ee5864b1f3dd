//! Presets: all that ralph knows about the agents it can run, as data.
//!
//! The formats behind the filters are those of the recordings under `tests/recordings/`, one test per recording.

pub mod fault;
mod filters;
mod how;
pub mod setup;
mod shortcuts;

use std::sync::Arc;

use regex::bytes::Regex;

use crate::reply::decode::{Filters, Shortcut, Slot, ToolResults};
use crate::reply::filter::{CompileError, JqProgram};
use crate::reply::verdict::Asides;

pub use how::{CliOption, ReadOnly, Unable, Wishes};
use setup::Setup;

/// One kind of agent. Everything in it can be overridden by a setting, one by one.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "they are facts about an agent, each by itself")]
pub struct Preset {
    /// The name in `AGENT_TYPE`.
    pub name: &'static str,
    /// The program, looked up on PATH. Empty: for `script` our own executable, for `custom` unknown.
    pub cli: &'static str,
    /// Its arguments, before [`Prompt::StdinAndArgument`]'s.
    pub args: &'static [&'static str],
    /// How it is talked to.
    pub protocol: Protocol,
    /// How the prompt reaches it.
    pub prompt: Prompt,
    /// The longest prompt that it takes whole; `None` where none was found.
    pub longest_prompt: Option<PromptLimit>,
    /// jq: the assistant's own text, in pieces that follow each other without anything between them. Empty: none.
    pub response: &'static str,
    /// jq: objects for the live display, see the contract in [`crate::reply::show`]. Empty: none.
    pub display: &'static str,
    /// jq: notes, see the contract in [`crate::reply::usage`]. Empty: none.
    pub result: &'static str,
    /// The values of the top-level `type` that these filters look at.
    pub types: &'static [&'static str],
    /// What reads the most frequent lines, those of this `type`, faster than the filters.
    pub shortcut: Option<(&'static str, Shortcut)>,
    /// Lines with this `type` tell that a tool call ended; the pattern finds its id in the raw line. For agents
    /// whose tool output comes in lines of its own: these are too many and too long to be parsed for an id.
    pub tool_results: Option<(&'static str, &'static str)>,
    /// How the stream tells of tool calls.
    pub tool_calls: ToolCalls,
    /// The agent ends a run with an event of its own; without it the attempt has failed.
    pub has_final: bool,
    /// What it tells beside its stream.
    pub asides: Asides,
    /// The text comes in deltas of a few words rather than in whole blocks.
    pub deltas: bool,
    /// The agent reports what the run cost.
    pub reports_cost: bool,
    /// Shell command that prints the account's balance. Empty: none.
    pub usage_cmd: &'static str,
    /// Shell pipeline that finds the number of dollars in what `usage_cmd` prints. Empty: none.
    pub usage_parser: &'static str,
    /// How a command line of the user's is made to print what these filters read.
    pub structured: Structured,
    /// The option that chooses the model; `None` when there is none.
    pub model: Option<CliOption>,
    /// The option that says how hard the model thinks; `None` when there is none.
    pub effort: Option<CliOption>,
    /// Models to choose from for tasks, the smallest first; none where nobody can know.
    pub ladder: &'static [&'static str],
    /// How it is kept from editing files while it runs commands; `None` when it cannot be.
    pub read_only: Option<ReadOnly>,
    /// Over the Agent Client Protocol it is not offered to read files through us: it takes every error about a file that is
    /// not there for a fault, and could create none.
    pub reads_itself: bool,
    /// What it gets in its environment where that has no such variable.
    pub env: &'static [(&'static str, &'static str)],
    /// Whether its tools see git's configuration.
    pub git_config: GitConfig,
    /// What has to be in order before it can work.
    pub setup: Setup,
    /// How to log in, as the second half of a message. Empty: not needed.
    pub login: &'static str,
    /// How to install it, as the second half of a message. Empty: not needed.
    pub install: &'static str,
}

/// How an agent is talked to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// The prompt goes to its stdin, and lines come back.
    Lines,
    /// The Agent Client Protocol: a session, one prompt, and answers to what it asks.
    Acp,
}

/// How the stream of an agent tells of its tool calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolCalls {
    /// When they begin and when they end.
    Told,
    /// When they are over.
    ToldWhenOver,
}

/// What an agent's tools see of git's configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GitConfig {
    /// What everybody sees.
    Seen,
    /// Not the user's, so that they would commit as nobody.
    Hidden,
}

/// How long a prompt may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PromptLimit {
    /// So many characters.
    Characters(usize),
    /// So many bytes.
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
        /// Options whose value is the next word, which is no such argument then.
        valued: &'static [&'static str],
    },
}

/// How a command line of the user's is made to print an agent's structured format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Structured {
    /// The subcommand that can; without it the program does something else. Empty: none is needed.
    pub subcommand: &'static str,
    /// The option that chooses the format, in all its spellings.
    pub option: &'static [&'static str],
    /// The option's value. Empty: it is a switch.
    pub value: &'static str,
    /// Switches that have to be there as well.
    pub also: &'static [&'static str],
}

/// A preset's filters, compiled. Compile once per loop, then make [`Filters`] for every attempt.
#[derive(Clone, Debug)]
pub struct Compiled {
    response: Option<Arc<JqProgram>>,
    display: Option<Arc<JqProgram>>,
    result: Option<Arc<JqProgram>>,
    types: &'static [&'static str],
    shortcut: Option<(&'static str, Shortcut)>,
    tool_results: Option<ToolResults>,
}

/// The preset of this name.
#[must_use]
pub fn preset(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}

/// The names of all presets, in alphabetical order.
pub fn known() -> impl Iterator<Item = &'static str> {
    PRESETS.iter().map(|preset| preset.name)
}

/// The preset that knows the output format of this program, given by its file name.
#[must_use]
pub fn for_command(program: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| !preset.cli.is_empty() && preset.cli == program)
}

/// The preset of a program that speaks the Agent Client Protocol, given by its file name.
#[must_use]
pub fn speaking_acp(program: &str) -> &'static Preset {
    static ANY: Preset = ACP;
    PRESETS.iter().find(|preset| preset.protocol == Protocol::Acp && preset.cli == program).unwrap_or(&ANY)
}

/// The preset of a program whose output nobody can read.
#[must_use]
pub fn unknown() -> &'static Preset {
    static UNKNOWN: Preset = BLANK;
    &UNKNOWN
}

impl PromptLimit {
    /// What is wrong with a prompt that is too long, in words that follow the agent's name.
    #[must_use]
    pub fn refuses(self, prompt: &str) -> Option<String> {
        let (length, limit, unit) = match self {
            // What fits as bytes need not be counted.
            Self::Characters(limit) if prompt.len() <= limit => return None,
            Self::Characters(limit) => (prompt.chars().count(), limit, "characters"),
            Self::Bytes(limit) => (prompt.len(), limit, "bytes"),
        };
        (length > limit).then(|| {
            format!(
                "takes at most {limit} {unit} in a prompt, and this one has {length}: shorten it, or have the agent \
                 read files"
            )
        })
    }
}

impl Preset {
    /// Whether what it says can be understood.
    #[must_use]
    pub fn is_read(&self) -> bool {
        !self.response.is_empty() || self.protocol == Protocol::Acp
    }

    /// Whether what it does can be shown.
    #[must_use]
    pub fn is_displayed(&self) -> bool {
        !self.display.is_empty() || self.protocol == Protocol::Acp
    }

    /// Whether it can be told which model to use.
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
            // A pattern of ours that does not compile is a test failure; here it would only lose a sign of life.
            tool_results: self
                .tool_results
                .and_then(|(kind, id)| Some(ToolResults { kind, id: Regex::new(id).ok()? })),
        })
    }
}

impl Compiled {
    /// The filters for one attempt. A slot may then be replaced by the user's filter.
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

const NO_FORMAT: Structured = Structured { subcommand: "", option: &[], value: "", also: &[] };

/// What the presets have in common; also `custom`, which knows nothing.
const BLANK: Preset = Preset {
    name: "custom",
    cli: "",
    args: &[],
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
    deltas: false,
    reports_cost: false,
    usage_cmd: "",
    usage_parser: "",
    structured: NO_FORMAT,
    model: None,
    effort: None,
    ladder: &[],
    read_only: None,
    reads_itself: false,
    env: &[],
    git_config: GitConfig::Seen,
    setup: setup::NONE,
    login: "",
    install: "",
};

/// What the agents behind the protocol have in common; also `acp`, which is any of them.
const ACP: Preset =
    Preset { name: "acp", protocol: Protocol::Acp, has_final: true, read_only: Some(how::ASKS), ..BLANK };

static PRESETS: [Preset; 13] = [
    ACP,
    Preset {
        name: "amp",
        cli: "amp",
        args: &["--dangerously-allow-all", "-x", "--stream-json"],
        longest_prompt: Some(PromptLimit::Bytes(1 << 20)),
        response: filters::AMP_RESPONSE,
        display: filters::AMP_DISPLAY,
        result: filters::AMP_RESULT,
        types: &["system", "assistant", "result"],
        tool_results: filters::CLAUDE_TOOL_RESULTS,
        has_final: true,
        usage_cmd: "amp usage",
        usage_parser: "grep -o '$[0-9.]*' | head -1 | tr -d '$'",
        setup: setup::AMP,
        login: "run 'amp login', or set AMP_API_KEY",
        install: "npm install -g @ampcode/cli",
        structured: Structured { option: &["--stream-json"], ..NO_FORMAT },
        ..BLANK
    },
    Preset {
        name: "claude",
        cli: "claude",
        args: &["--dangerously-skip-permissions", "--output-format", "stream-json", "--verbose", "-p"],
        longest_prompt: Some(PromptLimit::Characters(10 << 20)),
        response: filters::CLAUDE_RESPONSE,
        display: filters::CLAUDE_DISPLAY,
        result: filters::CLAUDE_RESULT,
        types: &["system", "assistant", "rate_limit_event", "result"],
        shortcut: Some(("assistant", shortcuts::claude)),
        tool_results: filters::CLAUDE_TOOL_RESULTS,
        has_final: true,
        reports_cost: true,
        asides: setup::CLAUDE_ASIDES,
        setup: setup::CLAUDE,
        login: "run 'claude' and log in, or set ANTHROPIC_API_KEY",
        install: "npm install -g @anthropic-ai/claude-code",
        structured: Structured {
            option: &["--output-format"],
            value: "stream-json",
            also: &["--verbose"],
            ..NO_FORMAT
        },
        model: Some(how::LONG_MODEL),
        effort: Some(how::CLAUDE_EFFORT),
        ladder: &["haiku", "sonnet", "opus"],
        read_only: Some(how::CLAUDE),
        ..BLANK
    },
    Preset {
        name: "claude-acp",
        cli: "claude-agent-acp",
        reports_cost: true,
        asides: setup::CLAUDE_ASIDES,
        login: "run 'claude' and log in, or set ANTHROPIC_API_KEY",
        install: "npm install -g @agentclientprotocol/claude-agent-acp",
        ladder: &["haiku", "sonnet", "opus"],
        ..ACP
    },
    Preset {
        name: "cline",
        cli: "cline",
        args: &["--json"],
        prompt: how::CLINE_PROMPT,
        response: filters::CLINE_RESPONSE,
        display: filters::CLINE_DISPLAY,
        result: filters::CLINE_RESULT,
        types: &["hook_event", "agent_event", "error", "run_result", "run_aborted"],
        has_final: true,
        reports_cost: true,
        setup: setup::CLINE,
        login: "run 'cline auth'",
        install: "npm install -g cline",
        structured: Structured { option: &["--json"], ..NO_FORMAT },
        model: Some(how::SHORT_MODEL),
        effort: Some(how::CLINE_EFFORT),
        env: how::CLINE_ENV,
        ..BLANK
    },
    Preset {
        name: "codex",
        cli: "codex",
        args: &["exec", "--json", "--dangerously-bypass-approvals-and-sandbox", "-"],
        longest_prompt: Some(PromptLimit::Characters(1 << 20)),
        response: filters::CODEX_RESPONSE,
        display: filters::CODEX_DISPLAY,
        result: filters::CODEX_RESULT,
        types: &[
            "thread.started",
            "item.started",
            "item.completed",
            "error",
            "turn.completed",
            "turn.failed",
        ],
        has_final: true,
        setup: setup::CODEX,
        login: "run 'codex login'",
        install: "npm install -g @openai/codex",
        structured: Structured { subcommand: "exec", option: &["--json"], ..NO_FORMAT },
        model: Some(how::SHORT_MODEL),
        effort: Some(how::CODEX_EFFORT),
        ..BLANK
    },
    Preset {
        name: "codex-acp",
        cli: "codex-acp",
        login: "run 'codex login'",
        install: "npm install -g @agentclientprotocol/codex-acp",
        ..ACP
    },
    BLANK,
    Preset {
        name: "gemini",
        cli: "gemini",
        // Without a person nobody can trust the folder.
        args: &["--output-format", "stream-json", "--yolo", "--skip-trust"],
        // What is longer it cuts off.
        longest_prompt: Some(PromptLimit::Bytes(8 << 20)),
        response: filters::GEMINI_RESPONSE,
        display: filters::GEMINI_DISPLAY,
        result: filters::GEMINI_RESULT,
        types: &["init", "message", "tool_use", "error", "result"],
        shortcut: Some(("message", shortcuts::gemini)),
        tool_results: Some(("tool_result", r#""tool_id"\s*:\s*"([^"\\]+)""#)),
        has_final: true,
        asides: setup::GEMINI_ASIDES,
        deltas: true,
        setup: setup::GEMINI,
        // A key alone chooses no method.
        login: "run 'gemini' and choose how to log in; for a key alone, set GEMINI_API_KEY and security.auth.selectedType to \"gemini-api-key\" in ~/.gemini/settings.json",
        install: "npm install -g @google/gemini-cli",
        structured: Structured { option: &["--output-format", "-o"], value: "stream-json", ..NO_FORMAT },
        model: Some(how::SHORT_MODEL),
        git_config: GitConfig::Hidden,
        ..BLANK
    },
    Preset {
        name: "gemini-acp",
        cli: "gemini",
        args: &["--acp", "--skip-trust"],
        reads_itself: true,
        login: "run 'gemini' and choose how to log in",
        install: "npm install -g @google/gemini-cli",
        git_config: GitConfig::Hidden,
        ..ACP
    },
    Preset {
        name: "opencode",
        cli: "opencode",
        args: &["run", "--format", "json", "--auto"],
        response: filters::OPENCODE_RESPONSE,
        display: filters::OPENCODE_DISPLAY,
        result: filters::OPENCODE_RESULT,
        types: &["text", "tool_use", "step_finish", "error"],
        tool_calls: ToolCalls::ToldWhenOver,
        reports_cost: true,
        setup: setup::OPENCODE,
        login: "run 'opencode auth login'",
        install: "npm install -g opencode-ai",
        structured: Structured { subcommand: "run", option: &["--format"], value: "json", ..NO_FORMAT },
        model: Some(how::SHORT_MODEL),
        effort: Some(how::OPENCODE_EFFORT),
        read_only: Some(how::OPENCODE),
        ..BLANK
    },
    Preset {
        name: "opencode-acp",
        cli: "opencode",
        args: &["acp"],
        reports_cost: true,
        login: "run 'opencode auth login'",
        install: "npm install -g opencode-ai",
        ..ACP
    },
    Preset {
        name: "script",
        args: &["__script"],
        response: filters::SCRIPT_RESPONSE,
        display: filters::SCRIPT_DISPLAY,
        result: filters::SCRIPT_RESULT,
        types: &["start", "text", "tool", "background", "result"],
        has_final: true,
        reports_cost: true,
        ..BLANK
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_filter_and_pattern_compiles() {
        for preset in &PRESETS {
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

    #[test]
    fn presets_are_found_by_name_and_by_command() {
        let names: Vec<_> = known().collect();
        assert_eq!(
            names,
            [
                "acp",
                "amp",
                "claude",
                "claude-acp",
                "cline",
                "codex",
                "codex-acp",
                "custom",
                "gemini",
                "gemini-acp",
                "opencode",
                "opencode-acp",
                "script"
            ]
        );
        assert!(names.iter().all(|name| preset(name).is_some_and(|preset| preset.name == *name)));
        assert_eq!(for_command("claude").map(|preset| preset.name), Some("claude"));
        for (program, name) in
            [("gemini", "gemini-acp"), ("codex-acp", "codex-acp"), ("goose", "acp"), ("", "acp")]
        {
            assert_eq!(speaking_acp(program).name, name);
        }
        for other in ["", "ralph", "/usr/bin/claude", "sh"] {
            assert!(for_command(other).is_none(), "{other}");
        }
    }
}
