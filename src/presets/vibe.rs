//! Mistral Vibe, over the Agent Client Protocol: a program of its own speaks it.

use super::screens::Means::Attention;
use super::screens::Sight::Text;
use super::screens::{LOGIN, LONG, PERMISSION, Program, QUESTION, known};
use super::{Facts, Preset, Provider, State};

pub(super) const FACTS: Facts = Facts { presets: &[OVER_ACP], screens: Some(SCREENS) };

const OVER_ACP: Preset = Preset {
    name: "vibe",
    title: "Mistral Vibe",
    cli: "vibe-acp",
    needs: "`vibe --setup` or `MISTRAL_API_KEY`",
    keys: &["MISTRAL_API_KEY"],
    login: "run 'vibe --setup', or set MISTRAL_API_KEY",
    install: "uv tool install mistral-vibe",
    state: State { folders: &[".vibe"], beside: &[], variable: Some("VIBE_HOME") },
    provider: Provider {
        hosts: &["api.mistral.ai", "console.mistral.ai", "chat.mistral.ai"],
        variables: &[],
    },
    ..Preset::ACP
};

const SCREENS: Program = Program {
    name: "vibe",
    names: &["vibe", "mistral-vibe"],
    // Every start shows that welcome, until its server has started.
    not_ready: &[known(
        Text("Welcome to Mistral Vibe - Let's get you started! Enter continue"),
        Attention(LOGIN),
    )],
    ready: &[(Text(r"tokens \(\d+%\)$"), LONG)],
    asks: &[
        (Text(r"Permission for the .* tool .* Enter select Esc reject( .*)?$"), PERMISSION),
        (Text("Enter select Esc cancel( .*)?$"), QUESTION),
    ],
    error: "^  [⎢⎣] Error: ",
    message: r"^(?:  [^\s⎢⎣]|[■⏵] )",
    input: r"^>(\s|$)",
    placeholder: r"\[Pasted \d+ characters\]",
    ..Program::BLANK
};
