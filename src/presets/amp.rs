//! Amp. Its formats come from reading its program, not from recordings: it does not start without its own server.

use super::screens::Means::Attention;
use super::screens::Sight::{Line, Text};
use super::screens::{BROWSER, LOGIN, LONGER, Program, known};
use super::setup::{LoginCheck, Setup};
use super::{Facts, Preset, PromptLimit, Provider, State, Structured, claude};

pub(super) const FACTS: Facts = Facts { presets: &[LINES], screens: Some(SCREENS) };

const PROVIDER: Provider = Provider { hosts: &["ampcode.com", "*.ampcode.com"], variables: &["AMP_URL"] };

const STATE: State = State { folders: &[".config/amp", ".local/share/amp"], ..State::NONE };

const LINES: Preset = Preset {
    name: "amp",
    title: "Amp",
    cli: "amp",
    args: &["--dangerously-allow-all", "-x", "--stream-json"],
    needs: "`amp login` or `AMP_API_KEY`",
    keys: &["AMP_API_KEY"],
    longest_prompt: Some(PromptLimit::Bytes(1 << 20)),
    response: RESPONSE,
    display: DISPLAY,
    result: RESULT,
    types: &["system", "assistant", "result"],
    tool_results: claude::TOOL_RESULTS,
    has_final: true,
    usage_cmd: "amp usage",
    usage_parser: "grep -o '$[0-9.]*' | head -1 | tr -d '$'",
    setup: Setup {
        login: LoginCheck::Traces { variables: &["AMP_API_KEY"], files: &[], keys: &[] },
        unlisted: &["--dangerously-allow-all"],
        ..Setup::NONE
    },
    login: "run 'amp login', or set AMP_API_KEY",
    install: "npm install -g @ampcode/cli",
    structured: Structured { option: &["--stream-json"], ..Structured::NONE },
    state: STATE,
    provider: PROVIDER,
    ..Preset::BLANK
};

const RESPONSE: &str = r#"
select(.type == "assistant" and .parent_tool_use_id == null)
| .message.content[]? | select(.type == "text") | .text
"#;

const DISPLAY: &str = r#"
if .type == "assistant" then
  . as $event
  | .message.content[]?
  | if .type == "tool_use" then {tool: .name, input}
    elif .type == "text" then select($event.parent_tool_use_id == null) | {text}
    else empty end
elif .type == "result" and .is_error then {error: (.error // .result // .subtype)}
else empty end
"#;

const RESULT: &str = with_class!(
    r#"
if .type == "system" then select(.subtype == "init") | {session_id}
elif .type == "assistant" then
  {message: ""},
  (.message.usage // empty
   | {add: true,
      input_tokens: ((.input_tokens // 0) + (.cache_creation_input_tokens // 0) + (.cache_read_input_tokens // 0)),
      output_tokens: (.output_tokens // 0)}),
  (.message.content[]? | select(.type == "tool_use") | {tool_started: .id})
elif .type == "result" then
  {final: true, session_id}
  + if .is_error then (.error // .result // .subtype // "unknown error") as $e | {error: $e, class: ($e | class)}
    else {} end
else empty end
"#
);

/// Only its login was recorded.
const SCREENS: Program = Program {
    name: "amp",
    names: &["amp"],
    options: &["--dangerously-allow-all"],
    not_ready: &[
        known(Text(r"log in to Amp\?|Starting login flow"), Attention(LOGIN)),
        known(Text("(?i)paste your code here|open this link|login code"), Attention(BROWSER)),
    ],
    // Not recorded: it does not start without its own server.
    ready: &[(Line(r"^╰─.*[~/].*─╯$"), LONGER), (Text("Welcome to Amp"), LONGER)],
    input: r"^[│┃]\s",
    placeholder: r"\[Pasted text #\d+[^\]]*\]",
    ..Program::BLANK
};
