//! opencode, and opencode over the Agent Client Protocol.

use super::option::{CliOption, ReadOnly};
use super::screens::Means::{Attention, Press};
use super::screens::Sight::Text;
use super::screens::{LOGIN, LONGER, PERMISSION, Program, QUESTION, SETTLED, UPDATE, known};
use super::setup::{LoginCheck, Setup};
use super::{Facts, Preset, Provider, State, Structured, ToolCalls};

pub(super) const FACTS: Facts = Facts { presets: &[LINES, OVER_ACP], screens: Some(SCREENS) };

const LOG_IN: &str = "run 'opencode auth login'";
const LIST_MODELS: &str = "opencode models";
const INSTALL: &str = "npm install -g opencode-ai";

const PROVIDER: Provider =
    Provider { hosts: &["opencode.ai", "*.opencode.ai", "models.dev"], variables: &[] };

const STATE: State =
    State { folders: &[".local/share/opencode", ".config/opencode", ".local/state/opencode"], ..State::NONE };

const LINES: Preset = Preset {
    name: "opencode",
    title: "opencode",
    cli: "opencode",
    args: &["run", "--format", "json", "--auto"],
    needs: "`opencode auth login` and a model in its configuration",
    response: RESPONSE,
    display: DISPLAY,
    result: RESULT,
    types: &["step_start", "text", "tool_use", "step_finish", "error"],
    tool_calls: ToolCalls::ToldWhenOver,
    reports_cost: true,
    setup: Setup { login: LoginCheck::Counts(&["auth", "list"]), ..Setup::NONE },
    login: LOG_IN,
    install: INSTALL,
    structured: Structured { subcommand: "run", option: &["--format"], value: "json", ..Structured::NONE },
    model: Some(CliOption::with_value(&["-m", "--model"])),
    effort: Some(CliOption::with_value(&["--variant"])),
    list_models: LIST_MODELS,
    read_only: Some(ReadOnly {
        without: &[],
        args: &[],
        env: &[("OPENCODE_PERMISSION", r#"{"edit":"deny"}"#)],
    }),
    state: STATE,
    provider: PROVIDER,
    ..Preset::BLANK
};

const OVER_ACP: Preset = Preset {
    name: "opencode-acp",
    cli: "opencode",
    args: &["acp"],
    needs: "as `opencode`",
    reports_cost: true,
    list_models: LIST_MODELS,
    login: LOG_IN,
    install: INSTALL,
    state: STATE,
    provider: PROVIDER,
    ..Preset::ACP
};

// Text that opencode itself writes to its model is not the assistant's.
const RESPONSE: &str = r#"select(.type == "text" and (.part.synthetic | not)) | .part.text"#;

const DISPLAY: &str = r#"
if .type == "text" then select(.part.synthetic | not) | {text: .part.text}
elif .type == "tool_use" then {tool: .part.tool, input: .part.state.input}
elif .type == "error" then {error: (.error.data.message // .error.name // "unknown error")}
else empty end
"#;

// `tokens.input` is without the cache and `tokens.output` without the reasoning; other agents include them.
const RESULT: &str = with_class!(
    r#"
# All that it says of a model or a provider that it does not have, and of other faults of its own.
def shown: if startswith("Unexpected server error") then
    "\(rtrimstr(".")); if it does not have the model: 'opencode models' lists those that it has (--model)"
  else . end;
if .type == "text" then .part.messageID // empty | {message: .}
elif .type == "tool_use" then .part.callID // empty | {tool_started: .}, {tool_finished: .}
elif .type == "step_start" then {session_id: .sessionID}
elif .type == "step_finish" then
  (.part
  | {add: true, cost_usd: .cost,
     input_tokens: ((.tokens.input // 0) + (.tokens.cache.read // 0) + (.tokens.cache.write // 0)),
     output_tokens: ((.tokens.output // 0) + (.tokens.reasoning // 0))}),
  # It stops there, and exits with 0.
  (select(.part.reason == "length") | {error: "the answer was cut off at the limit of its length"})
elif .type == "error" then
  .sessionID as $session | .error
  | (.data.message // .name // "unknown error") as $e
  | ($e | class) as $said | .data.statusCode as $status | (.name // "") as $name
  | {session_id: $session, error: ($e | shown), class: (
      if $said == "billing" or $said == "context" or $said == "model" then $said
      elif $name == "ProviderAuthError" then "auth"
      elif $name | test("ContextOverflow") then "context"
      elif $name | test("ModelNotFound") then "model"
      elif ($status | type) == "number" then
        ($status | by_status) // (if $said == "refused" or $status < 400 then $said else "other" end)
      else $said end)}
    + ((.data.responseHeaders["retry-after"]? // "" | tonumber? | {reset_at: (now + .)}) // {})
else empty end
"#
);

const SCREENS: Program = Program {
    name: "opencode",
    names: &["opencode", "opencode-ai"],
    not_ready: &[
        // Not recorded: from its sources.
        known(Text("Update [Aa]vailable .*(Skip|Confirm|esc)"), Press(&["Escape"], UPDATE)),
        known(
            Text("(Connect a provider|Select provider|Add credential|API key) .*(enter|esc)"),
            Attention(LOGIN),
        ),
    ],
    ready: &[(Text(r"ctrl\+p commands|tab (switch agent|agents)"), SETTLED), (Text(r"opencode v\d"), LONGER)],
    asks: &[
        (Text("△ Permission required .* Allow once Allow always Reject( .*)?$"), PERMISSION),
        (Text(r"↑↓ select enter \w+ esc dismiss( .*)?$"), QUESTION),
    ],
    // A block like that of the prompt, before the line that ends a turn.
    error: r"^\s*┃\n\s*┃  (\S.*)(?:\n\s*┃  .*)*\n\s*┃\n\n {5}▣",
    message: r"^ {5}[^\s▣]",
    input: r"^\s*┃",
    placeholder: r"\[Pasted ~\d+ lines\]",
    ..Program::BLANK
};
