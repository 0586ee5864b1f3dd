//! pi.

use super::option::{CliOption, ReadOnly};
use super::screens::Means::Attention;
use super::screens::Sight::{Line, Text};
use super::screens::{LOGIN, LONG, Program, known};
use super::setup::{LoginCheck, Setup};
use super::{Facts, Preset, Provider, State, Structured};

pub(super) const FACTS: Facts = Facts { presets: &[LINES], screens: Some(SCREENS) };

const KEYS: &[&str] =
    &["ANTHROPIC_API_KEY", "ANTHROPIC_OAUTH_TOKEN", "OPENAI_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY"];

const LINES: Preset = Preset {
    name: "pi",
    title: "pi",
    cli: "pi",
    // Its tools run without asking.
    args: &["-p", "--mode", "json"],
    needs: "`/login` in `pi`, or the key of a provider",
    keys: KEYS,
    response: RESPONSE,
    display: DISPLAY,
    result: RESULT,
    // Each update of a message repeats the whole of it.
    types: &[
        "session",
        "turn_start",
        "message_end",
        "tool_execution_start",
        "tool_execution_end",
        "agent_end",
        "auto_retry_start",
    ],
    has_final: true,
    reports_cost: true,
    setup: Setup {
        login: LoginCheck::Traces {
            variables: KEYS,
            files: &[("~/.pi/agent/auth.json", ""), ("~/.pi/agent/models.json", "")],
            keys: &[],
        },
        ..Setup::NONE
    },
    login: "run 'pi' and type /login there, or set the key of your provider",
    install: "npm install -g @mariozechner/pi-coding-agent",
    structured: Structured { option: &["--mode"], value: "json", also: &["-p"], ..Structured::NONE },
    model: Some(CliOption::with_value(&["--model"])),
    effort: Some(CliOption::with_value(&["--thinking"])),
    list_models: "pi --list-models",
    read_only: Some(ReadOnly {
        without: &[CliOption::with_value(&["--tools", "-t"])],
        args: &["--tools", "read,bash,grep,find,ls"],
        env: &[],
    }),
    state: State { folders: &[".pi"], beside: &[], variable: Some("PI_CODING_AGENT_DIR") },
    provider: Provider {
        hosts: &[
            "api.anthropic.com",
            "console.anthropic.com",
            "api.openai.com",
            "auth.openai.com",
            "chatgpt.com",
            "generativelanguage.googleapis.com",
            "openrouter.ai",
        ],
        variables: &[],
    },
    ..Preset::BLANK
};

const RESPONSE: &str = r#"
select(.type == "message_end") | .message | select(.role == "assistant")
| .content[]? | select(.type == "text") | .text
"#;

const DISPLAY: &str = r#"
if .type == "message_end" and .message.role == "assistant" then
  .message.content[]? | select(.type == "text") | {text}
elif .type == "tool_execution_start" then {tool: .toolName, input: .args}
elif .type == "auto_retry_start" then
  # One line for all of them.
  select(.attempt == 1) | {notice: "the agent tries again, up to \(.maxAttempts) times: \(.errorMessage // "")"}
elif .type == "agent_end" then
  .messages[-1]? | select(.stopReason == "error") | {error: (.errorMessage // "unknown error")}
else empty end
"#;

// An answer that its provider has cut off or refused is an error, also where the program exits with 0.
const RESULT: &str = with_class!(
    r#"
def status: capture("^(?<code>[45][0-9]{2})\\b").code | tonumber;
def failure:
  if .stopReason == "length" then {error: "the answer was cut off at the limit of its length"}
  elif .stopReason == "error" or .stopReason == "aborted" then
    (.errorMessage // .stopReason) as $e | {error: $e, class: ($e | class_of(null; (status? // null)))}
  else {} end;
if .type == "session" then {session_id: .id}
elif .type == "turn_start" or .type == "auto_retry_start" then {turn_started: true}
elif .type == "message_end" and .message.role == "assistant" then
  .message
  | {message: (.responseId // ""), model},
    (.usage // {} | select((.totalTokens // 0) > 0) | ((.input // 0) + (.cacheRead // 0) + (.cacheWrite // 0)) as $read
      | {add: true, cost_usd: (.cost.total? // 0), input_tokens: $read, output_tokens: (.output // 0), context_tokens: $read})
elif .type == "tool_execution_start" then {tool_started: .toolCallId}
elif .type == "tool_execution_end" then {tool_finished: .toolCallId}
elif .type == "agent_end" then {final: true} + (.messages[-1]? // {} | failure)
else empty end
"#
);

const SCREENS: Program = Program {
    name: "pi",
    names: &["pi", "pi-coding-agent"],
    not_ready: &[known(Text("No models available. Use /login"), Attention(LOGIN))],
    // The line below the input, which has no mark.
    ready: &[(Line(r"\d%/[\d.]+[kM]? \(auto\)"), LONG)],
    error: "^ (?:Error|Context overflow recovery failed): ",
    // Its messages have no mark either, so each block of lines is one.
    message: r"^ \S.*(?:\n \S.*)*",
    placeholder: r"\[paste #\d+ [^\]]*\]",
    ..Program::BLANK
};
