//! All that ralph knows about the agents it can run, as data: a file for each agent. Lists of agents, in messages, help, settings
//! and the guide, are made from them.
//!
//! The formats behind the filters are those of the recordings under `tests/recordings/`, one test per recording.

#[macro_use]
mod jq;

mod aider;
mod amp;
mod claude;
mod cline;
mod codex;
mod copilot;
mod droid;
pub mod fault;
mod gemini;
mod how;
mod kimi;
mod listing;
mod opencode;
mod option;
mod pi;
mod preset;
mod provider;
mod qwen;
pub mod screens;
mod script;
pub mod setup;
#[cfg(test)]
mod shortcuts;
mod state;
mod vibe;

use crate::reply::decode::{Decoder, Item};
use crate::text::nearest;

pub use how::{Unable, Wishes};
pub(crate) use listing::Listing;
pub use option::{CliOption, ReadOnly};
pub use preset::{Compiled, GitConfig, Preset, Prompt, PromptLimit, Protocol, Structured, ToolCalls};
pub use provider::Provider;
use screens::Program;
pub use state::State;

/// All agents, in the order in which `ralph init` looks for them and messages name them.
static AGENTS: &[Facts] = &[
    claude::FACTS,
    codex::FACTS,
    gemini::FACTS,
    opencode::FACTS,
    cline::FACTS,
    amp::FACTS,
    pi::FACTS,
    qwen::FACTS,
    copilot::FACTS,
    kimi::FACTS,
    vibe::FACTS,
    droid::FACTS,
    aider::FACTS,
    script::FACTS,
    Facts { presets: &[Preset::BLANK], screens: None },
    Facts { presets: &[Preset::ACP], screens: None },
];

/// The data about one agent.
struct Facts {
    /// Its presets: the one under its own name first, then another over the Agent Client Protocol.
    presets: &'static [Preset],
    /// Its screens in a terminal.
    screens: Option<Program>,
}

/// All presets.
pub fn all() -> impl Iterator<Item = &'static Preset> {
    AGENTS.iter().flat_map(|agent| agent.presets)
}

/// The interactive programs that are agents.
pub(crate) fn programs() -> impl Iterator<Item = &'static Program> {
    AGENTS.iter().filter_map(|agent| agent.screens.as_ref())
}

/// The agents under their own names, in the order of preference of `ralph init`.
pub(crate) fn named() -> impl Iterator<Item = &'static Preset> {
    all().filter(|preset| preset.is_named())
}

/// The agents whose output is read by filters.
pub(crate) fn with_filters() -> impl Iterator<Item = &'static Preset> {
    all().filter(|preset| !preset.response.is_empty())
}

/// The agent whose filters find most texts in what an unknown program has printed; `None` if none finds any.
pub(crate) fn that_prints(output: &[u8]) -> Option<&'static Preset> {
    // All filters read objects of JSON. To compile them all takes longer than anything else at the end of a short attempt.
    if !output.split(|byte| *byte == b'\n').any(|line| line.trim_ascii_start().starts_with(b"{")) {
        return None;
    }
    let texts = |preset: &Preset| {
        let mut texts = 0;
        let mut decoder = Decoder::new(preset.compile().ok()?.filters());
        let mut count = |item| texts += usize::from(matches!(item, Item::Text(_)));
        decoder.push(output, &mut count);
        decoder.finish(&mut count);
        (texts > 0).then_some(texts)
    };
    let found = with_filters().filter_map(|preset| Some((preset, texts(preset)?)));
    // The first of those that find as many: others have taken their format from it.
    found.reduce(|most, other| if other.1 > most.1 { other } else { most }).map(|(preset, _)| preset)
}

/// The preset of this name.
#[must_use]
pub fn preset(name: &str) -> Option<&'static Preset> {
    all().find(|preset| preset.name == name)
}

/// The preset of a loop's agent by its name, which may have an account and a model behind it: `claude@work:opus`.
#[must_use]
pub fn preset_of(agent: &str) -> Option<&'static Preset> {
    preset(agent.split(['@', ':']).next().unwrap_or(agent))
}

/// The command with which a user logs in to this agent; `None` for one that needs no login, or is not known.
#[must_use]
pub fn login_command(agent: &str) -> Option<&'static str> {
    // Another login of it needs its variables besides.
    let (_, from) = preset_of(agent).filter(|_| !agent.contains('@'))?.login.split_once("run '")?;
    from.split_once('\'').map(|(command, _)| command)
}

/// The names of all presets, in alphabetical order.
#[must_use]
pub fn names() -> Vec<&'static str> {
    sorted(all())
}

/// For a message about an unknown agent: the one that was probably meant, as the beginning of a sentence; else nothing.
pub(crate) fn meant(name: &str) -> String {
    nearest::meant(name, all().map(|preset| preset.name))
}

/// The names of these presets, in alphabetical order.
pub(crate) fn sorted(presets: impl Iterator<Item = &'static Preset>) -> Vec<&'static str> {
    let mut names: Vec<_> = presets.map(|preset| preset.name).collect();
    names.sort_unstable();
    names
}

/// The preset that reads the output of this program, given by its file name.
#[must_use]
pub fn for_command(program: &str) -> Option<&'static Preset> {
    all().find(|preset| !preset.cli.is_empty() && preset.cli == program)
}

/// The preset of a program that speaks the Agent Client Protocol, given by its file name.
#[must_use]
pub fn speaking_acp(program: &str) -> &'static Preset {
    static ANY: Preset = Preset::ACP;
    all().find(|preset| preset.protocol == Protocol::Acp && preset.cli == program).unwrap_or(&ANY)
}

/// The preset of a program whose output cannot be read.
#[must_use]
pub fn unknown() -> &'static Preset {
    static UNKNOWN: Preset = Preset::BLANK;
    &UNKNOWN
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn what_agents_print_is_recognised() {
        let recordings = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings");
        for agent in ["claude", "codex", "gemini", "opencode", "cline", "pi", "droid"] {
            let printed = std::fs::read(recordings.join(agent).join("complete.ndjson")).unwrap();
            assert_eq!(that_prints(&printed).map(|preset| preset.name), Some(agent));
        }
        for other in
            ["", "words\n", "{\"type\":\"result\"}\n", "{\"role\":\"assistant\",\"content\":\"x\"}\n"]
        {
            assert!(that_prints(other.as_bytes()).is_none(), "{other}");
        }
    }

    #[test]
    fn presets_are_found_by_name_and_by_command() {
        let names = names();
        assert!(named().all(|preset| !preset.cli.is_empty() && !preset.name.ends_with("-acp")));
        let reads_stdin = |preset: &&Preset| preset.protocol == Protocol::Lines && !preset.cli.is_empty();
        assert!(all().filter(reads_stdin).all(Preset::is_named));
        assert!(names.is_sorted_by(|name, next| name < next), "{names:?}");
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
