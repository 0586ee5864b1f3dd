//! Mistral Vibe, over the Agent Client Protocol: a program of its own speaks it.

use super::{Facts, Preset, Provider, State};

pub(super) const FACTS: Facts = Facts { presets: &[OVER_ACP], screens: None };

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
