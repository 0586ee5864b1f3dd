//! Kimi Code CLI, over the Agent Client Protocol: its pipe takes a prompt as an argument only, and tells no usage.

use super::screens::Means::{Attention, Trust};
use super::screens::Sight::Text;
use super::screens::{LOGIN, LONG, PERMISSION, Program, QUESTION, known};
use super::{Facts, Preset, Provider, State, Structured};

pub(super) const FACTS: Facts = Facts { presets: &[OVER_ACP], screens: Some(SCREENS) };

const OVER_ACP: Preset = Preset {
    name: "kimi",
    title: "Kimi Code CLI",
    cli: "kimi",
    args: &["acp"],
    needs: "`kimi login`, or a provider and a `default_model` in ~/.kimi-code/config.toml",
    // Its mode "plan" looks for a file in its own folder, and ends the turn where it does not get it.
    reads_itself: true,
    keys: &["KIMI_API_KEY", "MOONSHOT_API_KEY"],
    login: "run 'kimi login', or name a provider and a default_model in ~/.kimi-code/config.toml",
    install: "npm install -g @moonshot-ai/kimi-code",
    structured: Structured { subcommand: "acp", ..Structured::NONE },
    state: State { folders: &[".kimi-code"], beside: &[], variable: Some("KIMI_CODE_HOME") },
    provider: Provider {
        hosts: &["api.kimi.com", "api.kimi.ai", "auth.kimi.com", "api.moonshot.ai", "api.moonshot.cn"],
        variables: &["KIMI_CODE_BASE_URL", "KIMI_BASE_URL"],
    },
    ..Preset::ACP
};

const SCREENS: Program = Program {
    name: "kimi",
    names: &["kimi", "kimi-code"],
    not_ready: &[
        known(Text(r"Trust this folder\? "), Trust("^Trust this folder")),
        known(Text("Model: not set, run /login"), Attention(LOGIN)),
    ],
    // The line below the input comes when it has started.
    ready: &[(Text(r"context: \d+% \("), LONG)],
    asks: &[
        (Text(r"1\. Approve once .* ↵ confirm \S.* context: \d+% \([^)]*\)$"), PERMISSION),
        (Text(r"↵ choose .* esc cancel \S.* context: \d+% \([^)]*\)$"), QUESTION),
    ],
    error: "^   Error: ",
    message: "^ [●✗] ",
    input: r"^\s*│ >(\s|$)",
    placeholder: r"\[paste #\d+ [^\]]*\]",
    ..Program::BLANK
};
