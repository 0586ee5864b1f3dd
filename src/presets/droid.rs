//! Factory Droid. It has no screens here: its own stops at the login of an account, also with a key that its pipe takes.

use super::option::{CliOption, ReadOnly};
use super::setup::{LoginCheck, Setup};
use super::{Facts, Preset, Provider, State, Structured};
use crate::reply::verdict::Asides;

pub(super) const FACTS: Facts = Facts { presets: &[LINES], screens: None };

const KEYS: &[&str] = &["FACTORY_API_KEY"];

const LINES: Preset = Preset {
    name: "droid",
    title: "Factory Droid",
    cli: "droid",
    args: &["exec", "--auto", "high", "--output-format", "stream-json"],
    needs: "a login made once in `droid`, or `FACTORY_API_KEY`",
    keys: KEYS,
    response: RESPONSE,
    display: DISPLAY,
    result: RESULT,
    types: &["system", "reasoning", "message", "tool_call", "error", "completion"],
    tool_results: Some(("tool_result", r#""id"\s*:\s*"([^"\\]+)""#)),
    has_final: true,
    // A model that it does not know is followed by a list of those that it knows.
    asides: Asides { chatter: &["Available ", "Note: Custom models are loaded"], ..Asides::NONE },
    setup: Setup {
        login: LoginCheck::Traces {
            variables: KEYS,
            files: &[("~/.factory/auth.v2.file", ""), ("~/.factory/auth.v2.keyring", "")],
            keys: &[],
        },
        ..Setup::NONE
    },
    login: "run 'droid' and log in there, or set FACTORY_API_KEY",
    install: "curl -fsSL https://app.factory.ai/cli | sh",
    structured: Structured {
        subcommand: "exec",
        option: &["--output-format", "-o"],
        value: "stream-json",
        ..Structured::NONE
    },
    model: Some(CliOption::with_value(&["-m", "--model"])),
    effort: Some(CliOption::with_value(&["-r", "--reasoning-effort"])),
    list_models: "droid exec --help",
    read_only: Some(ReadOnly {
        without: &[
            CliOption::with_value(&["--only-tools"]),
            CliOption::with_value(&["--add-tools"]),
            CliOption::with_value(&["--remove-tools"]),
        ],
        args: &["--only-tools", "Read,LS,Grep,Glob,Execute"],
        env: &[],
    }),
    // The folder is below what the variable names.
    state: State { folders: &[".factory"], beside: &[], variable: Some("FACTORY_HOME_OVERRIDE") },
    provider: Provider {
        hosts: &["api.factory.ai", "app.factory.ai", "api.workos.com"],
        variables: &["FACTORY_API_BASE_URL"],
    },
    ..Preset::BLANK
};

// The prompt is echoed with role "user".
const RESPONSE: &str = r#"select(.type == "message" and .role == "assistant") | .text"#;

// What ends a run is reported again by its command line, as "Exec failed".
const DISPLAY: &str = with_plain!(
    r#"
if .type == "message" then select(.role == "assistant") | {text}
elif .type == "reasoning" then {thought: .text}
elif .type == "tool_call" then {tool: .toolName, input: .parameters}
elif .type == "error" then select(.message != "Exec failed") | {error: (.message // "unknown error" | plain)}
else empty end
"#
);

const RESULT: &str = with_class!(
    r#"
def status: capture("^(?<code>[45][0-9]{2})\\b").code | tonumber;
if .type == "system" then select(.subtype == "init") | {model, session_id, turn_started: true}
elif .type == "message" then select(.role == "assistant") | {message: (.id // "")}
elif .type == "tool_call" then {tool_started: .id}
elif .type == "error" then
  select(.message != "Exec failed")
  | (.message // "unknown error") as $e | {error: ($e | plain), class: ($e | class_of(null; (status? // null)))}
elif .type == "completion" then
  {final: true}
  + (.usage // {} | {
      input_tokens: ((.input_tokens // 0) + (.cache_read_input_tokens // 0) + (.cache_creation_input_tokens // 0)),
      output_tokens: (.output_tokens // 0)
    })
else empty end
"#
);
