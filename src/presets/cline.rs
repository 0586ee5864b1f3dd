//! Cline.

use super::option::CliOption;
use super::screens::Means::{Attention, Press};
use super::screens::Sight::{Line, Text};
use super::screens::{BROWSER, LOGIN, LONGER, Program, QUESTION, SETTLED, known};
use super::setup::{LoginCheck, Setup};
use super::{Facts, Preset, Prompt, Provider, State, Structured};

pub(super) const FACTS: Facts = Facts { presets: &[LINES], screens: Some(SCREENS) };

const PROVIDER: Provider =
    Provider { hosts: &["cline.bot", "*.cline.bot"], variables: &["OPENAI_BASE_URL", "ANTHROPIC_BASE_URL"] };

const STATE: State = State { folders: &[".cline"], ..State::NONE };

const LINES: Preset = Preset {
    name: "cline",
    title: "Cline",
    cli: "cline",
    args: &["--json"],
    needs: "`cline auth`",
    prompt: Prompt::StdinAndArgument {
        argument: "Follow the instructions given on standard input.",
        valued: &[
            "--auto-approve",
            "-c",
            "--cwd",
            "--thinking",
            "--compaction",
            "--id",
            "-P",
            "--provider",
            "-k",
            "--key",
            "-m",
            "--model",
            "-s",
            "--system",
            "--retries",
            "-t",
            "--timeout",
            "--config",
            "--data-dir",
            "--hooks-dir",
        ],
    },
    response: RESPONSE,
    display: DISPLAY,
    result: RESULT,
    types: &["hook_event", "agent_event", "error", "run_result", "run_aborted"],
    has_final: true,
    reports_cost: true,
    setup: Setup {
        login: LoginCheck::Traces {
            variables: &[],
            files: &[("~/.cline/data/settings/providers.json", "/lastUsedProvider")],
            keys: &[],
        },
        ..Setup::NONE
    },
    login: "run 'cline auth'",
    install: "npm install -g cline",
    structured: Structured { option: &["--json"], ..Structured::NONE },
    model: Some(CliOption::with_value(&["-m", "--model"])),
    effort: Some(CliOption::with_value(&["--thinking"])),
    // Without it a daemon that an earlier run has left runs the commands: with the environment of that run, outside of our
    // supervisor (measured with 3.0.65).
    env: &[("CLINE_SESSION_BACKEND_MODE", "local")],
    state: STATE,
    provider: PROVIDER,
    ..Preset::BLANK
};

const RESPONSE: &str = r#"
select(.type == "agent_event") | .event | select(.type == "content_end" and .contentType == "text") | .text
"#;

const DISPLAY: &str = r#"
def show:
  if .type == "content_end" and .contentType == "text" then {text}
  elif .type == "content_start" and .contentType == "tool" then
    {tool: .toolName, input: .input}
  elif .type == "error" then
    (.error | if type == "object" then .message else . end) as $e
    | if .recoverable then {notice: $e} else {error: $e} end
  else empty end;
if .type == "agent_event" then .event | show
elif .type == "error" then {error: .message}
elif .type == "run_aborted" then {error: "aborted: \(.reason // "no reason given")"}
else empty end
"#;

// On errors `run_result.text` holds the error's message.
const RESULT: &str = with_class!(
    r#"
def fault: (.error | if type == "object" then .message else . end) as $e | {error: $e, class: (
  (.errorClass // "") as $c
  | if $e | class == "billing" then "billing"
    elif $c | test("auth"; "i") then "auth"
    elif $c | test("context"; "i") then "context"
    elif $c | test("rate|quota|limit"; "i") then "limit"
    else ($e | class) end)};
def event:
  if .type == "iteration_start" then {message: ""}
  elif .type == "content_end" and .contentType == "text" then {message: "text"}
  elif .type == "content_start" and .contentType == "tool" then {tool_started: .toolCallId}
  elif .type == "content_end" and .contentType == "tool" then {tool_finished: .toolCallId}
  elif .type == "error" then select(.recoverable | not) | fault
  else empty end;
if .type == "agent_event" then .event | event
elif .type == "hook_event" then select(.hookEventName == "agent_start" and .parentAgentId == null) | {session_id: .taskId}
elif .type == "error" then {error: .message, class: (.message | class)}
elif .type == "run_result" then
  {final: true, model: .model.id, cost_usd: .usage.totalCost, input_tokens: .usage.inputTokens, output_tokens: .usage.outputTokens}
  + if .finishReason == "completed" then {}
    elif .finishReason == "error" then {error: (.text // ""), class: (.text | class)}
    else {error: "stopped: \(.finishReason // "no reason given" | gsub("_"; " "))"} end
elif .type == "run_aborted" then {final: true, error: "aborted: \(.reason // "no reason given")"}
else empty end
"#
);

const SCREENS: Program = Program {
    name: "cline",
    names: &["cline"],
    not_ready: &[
        known(Text("any other key to close"), Press(&["Escape"], "an offer to subscribe, closed")),
        known(Text("Signing in with|Waiting for (sign-in|authentication|browser)"), Attention(BROWSER)),
        known(
            Text("Connect a model provider to get started|Sign in with Cline|Bring your own provider"),
            Attention(LOGIN),
        ),
        known(Text("Enter to select"), Attention(QUESTION)),
    ],
    ready: &[
        (Line(r"^\s*❯ (What can I do for you|Ask anything)"), SETTLED),
        (Text(r"Auto-approve .*\(Shift\+Tab\)"), LONGER),
    ],
    input: r"^\s*❯(\s|$)",
    placeholder: r"\.\.\. Pasted \+\d+ lines\]",
    ..Program::BLANK
};
