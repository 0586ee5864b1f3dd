//! Qwen Code, and qwen over the Agent Client Protocol: its stream is claude's, its errors are gemini's.

use std::time::Duration;

use super::claude::TOOL_RESULTS;
use super::option::CliOption;
use super::screens::Means::Attention;
use super::screens::Sight::Text;
use super::screens::{LOGIN, LONG, PERMISSION, Program, QUESTION, known};
use super::setup::{LoginCheck, Setup};
use super::{Facts, Preset, Provider, State, Structured};
use crate::reply::verdict::Asides;

pub(super) const FACTS: Facts = Facts { presets: &[LINES, OVER_ACP], screens: Some(SCREENS) };

const INSTALL: &str = "npm install -g @qwen-code/qwen-code";
const KEYS: &[&str] = &["OPENAI_API_KEY", "DASHSCOPE_API_KEY"];

const PROVIDER: Provider = Provider {
    hosts: &[
        "dashscope.aliyuncs.com",
        "*.dashscope.aliyuncs.com",
        "dashscope-intl.aliyuncs.com",
        "*.qwen.ai",
    ],
    variables: &["OPENAI_BASE_URL"],
};

const STATE: State = State { folders: &[".qwen"], ..State::NONE };

/// A key alone chooses no method.
const SETUP: Setup = Setup {
    login: LoginCheck::Traces {
        variables: &[],
        files: &[
            ("~/.qwen/settings.json", "/security/auth/selectedType"),
            (".qwen/settings.json", "/security/auth/selectedType"),
        ],
        keys: &[("openai", "OPENAI_API_KEY", "~/.qwen/.env")],
    },
    ..Setup::NONE
};

const LINES: Preset = Preset {
    name: "qwen",
    title: "Qwen Code",
    cli: "qwen",
    args: &["--yolo", "--output-format", "stream-json"],
    needs: "a login method chosen once in `qwen`, or `OPENAI_API_KEY` with that method in its settings",
    keys: KEYS,
    response: RESPONSE,
    display: DISPLAY,
    result: RESULT,
    types: &["system", "assistant", "result"],
    tool_results: TOOL_RESULTS,
    has_final: true,
    asides: ASIDES,
    setup: SETUP,
    login: "run 'qwen' and choose how to log in; for a key alone, set OPENAI_API_KEY and security.auth.selectedType to \"openai\" in ~/.qwen/settings.json",
    install: INSTALL,
    structured: Structured { option: &["--output-format", "-o"], value: "stream-json", ..Structured::NONE },
    model: Some(CliOption::with_value(&["-m", "--model"])),
    state: STATE,
    provider: PROVIDER,
    ..Preset::BLANK
};

const OVER_ACP: Preset = Preset {
    name: "qwen-acp",
    cli: "qwen",
    args: &["--acp"],
    needs: "as `qwen`",
    keys: KEYS,
    login: "run 'qwen' and choose how to log in",
    install: INSTALL,
    state: STATE,
    provider: PROVIDER,
    ..Preset::ACP
};

const ASIDES: Asides =
    Asides { chatter: &["Ripgrep not available", "Warning: running headless with --yolo"], ..Asides::NONE };

/// Puts definitions before a jq program for qwen: `said`, the error that a text reports, if it does that.
macro_rules! with_said {
    ($program:literal) => {
        concat!(
            classes!(),
            r#"def said: capture("^\\[API Error: (?<said>.*)\\]$"; "s").said;
"#,
            $program
        )
    };
}

// The text of an error is a message of the assistant as well, and nothing else marks it.
const RESPONSE: &str = with_said!(
    r#"
select(.type == "assistant" and .parent_tool_use_id == null)
| .message.content[]? | select(.type == "text") | .text
| select([said] == [])
"#
);

const DISPLAY: &str = with_said!(
    r#"
if .type == "assistant" then
  . as $event
  | .message.content[]?
  | if .type == "tool_use" then {tool: .name, input}
    elif .type == "text" and $event.parent_tool_use_id == null then
      select([.text | said] == []) | {text}
    else empty end
elif .type == "result" then
  (select(.is_error) | {error: (.error.message // .subtype // "unknown error" | plain)}),
  (.permission_denials // [] | select(length > 0) | {notice: "\(length) tool calls were refused permission"})
else empty end
"#
);

const RESULT: &str = with_said!(
    r#"
def status: capture("^(?<code>[45][0-9]{2})\\b").code | tonumber;
def words: .error.message // .subtype // "unknown error" | tostring
  | (said // .);
if .type == "system" then select(.subtype == "init") | {model, session_id, turn_started: true}
elif .type == "assistant" then
  # Each block has an id of its own, also a call behind text.
  (select(.parent_tool_use_id == null and any(.message.content[]?; .type == "text")) | {message: (.message.id // "")}),
  (.parent_tool_use_id as $parent
   | .message.content[]? | select(.type == "tool_use")
   | {tool_started: .id} + if $parent != null then {sub_agent: true} else {} end),
  (select(.parent_tool_use_id == null) | .message.usage.input_tokens // 0 | select(. > 0) | {context_tokens: .})
elif .type == "result" then
  {final: true, session_id}
  + (if .is_error then
       words as $e | {error: ($e | plain), class: ($e | class_of(null; (status? // null)))}
     else {} end),
  (.usage // {} | {input_tokens: (.input_tokens // 0), output_tokens: (.output_tokens // 0)})
else empty end
"#
);

const SCREENS: Program = Program {
    name: "qwen",
    names: &["qwen", "qwen-code"],
    past: r"^[│┃\s]*[>*!]\s+Type your message",
    not_ready: &[known(Text("Connect a Provider"), Attention(LOGIN))],
    ready: &[(Text("Type your message"), LONG)],
    asks: &[
        (
            Text(
                r"1\. Yes, allow once .* No, suggest changes \(esc\)( \S+ Waiting for user confirmation\.\.\.)?$",
            ),
            PERMISSION,
        ),
        (Text(r"Enter: Select \| Esc: Cancel( \S+ Waiting for user confirmation\.\.\.)?$"), QUESTION),
    ],
    error: "^  ✕ ",
    message: "^  [◆✓?✕]",
    input: r"^[│┃\s]*[>*!](\s|$)",
    placeholder: r"\[Pasted Content \d+ chars\]",
    // As gemini, from which it comes.
    pause: Duration::from_millis(500),
    ..Program::BLANK
};
