//! GitHub Copilot CLI, over the Agent Client Protocol: its pipe takes a prompt as an argument only.

use super::setup::{LoginCheck, Setup};
use super::{Facts, Preset, Provider, State, Structured};

pub(super) const FACTS: Facts = Facts { presets: &[OVER_ACP], screens: None };

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
