//! GitHub Copilot CLI, over the Agent Client Protocol: its pipe takes a prompt as an argument only.

use super::screens::Means::{Attention, Trust};
use super::screens::Sight::{Line, Text};
use super::screens::{LOGIN, LONG, PERMISSION, Program, known};
use super::setup::{LoginCheck, Setup};
use super::{Facts, Preset, Provider, State, Structured};

pub(super) const FACTS: Facts = Facts { presets: &[OVER_ACP], screens: Some(SCREENS) };

const OVER_ACP: Preset = Preset {
    name: "copilot",
    title: "GitHub Copilot CLI",
    cli: "copilot",
    args: &["--acp"],
    needs: "`/login` in `copilot`, a token of GitHub, or `COPILOT_PROVIDER_BASE_URL` and `COPILOT_MODEL`",
    keys: &["COPILOT_GITHUB_TOKEN", "COPILOT_PROVIDER_API_KEY"],
    setup: Setup {
        login: LoginCheck::Traces {
            variables: &["COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN", "COPILOT_PROVIDER_BASE_URL"],
            files: &[("~/.copilot/config.json", "/lastLoggedInUser/login")],
            keys: &[],
        },
        ..Setup::NONE
    },
    login: "run 'copilot login', or set COPILOT_GITHUB_TOKEN; for a provider of your own, set COPILOT_PROVIDER_BASE_URL and COPILOT_MODEL",
    install: "npm install -g @github/copilot",
    structured: Structured { subcommand: "--acp", ..Structured::NONE },
    state: State { folders: &[".copilot", ".cache/copilot"], beside: &[], variable: Some("COPILOT_HOME") },
    provider: Provider {
        hosts: &["api.github.com", "github.com", "*.githubcopilot.com"],
        variables: &["COPILOT_PROVIDER_BASE_URL"],
    },
    ..Preset::ACP
};

const SCREENS: Program = Program {
    name: "copilot",
    names: &["copilot"],
    not_ready: &[
        known(Text(r"Do you trust the files in this folder\?"), Trust("^Yes$")),
        known(Text("Please use /login to sign in"), Attention(LOGIN)),
    ],
    ready: &[(Line(r"^❯(\s|$)"), LONG)],
    asks: &[(Text(r"Do you want to .*\? .* enter to select · esc to cancel$"), PERMISSION)],
    error: "^ ✗ ",
    message: "^ [●✗○◐◉] ",
    input: r"^❯(\s|$)",
    placeholder: r"\[Paste #\d+ - \d+ lines\]",
    ..Program::BLANK
};
