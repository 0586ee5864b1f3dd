//! Codex, and codex over the Agent Client Protocol.

use super::option::CliOption;
use super::screens::Means::{Attention, Choose, Starting, Trust};
use super::screens::Sight::{Line, Text};
use super::screens::{BROWSER, LOGIN, LONGEST, PERMISSION, Program, QUESTION, SETTLED, UPDATE, known};
use super::setup::{LoginCheck, Setup};
use super::{Facts, Preset, PromptLimit, Provider, State, Structured};

pub(super) const FACTS: Facts = Facts { presets: &[LINES, OVER_ACP], screens: Some(SCREENS) };

const LOG_IN: &str = "run 'codex login'";

const PROVIDER: Provider = Provider {
    hosts: &["api.openai.com", "auth.openai.com", "chatgpt.com", "*.chatgpt.com"],
    variables: &["OPENAI_BASE_URL"],
};

const STATE: State = State { folders: &[".codex"], variable: Some("CODEX_HOME"), ..State::NONE };

const LINES: Preset = Preset {
    name: "codex",
    title: "Codex",
    cli: "codex",
    args: &["exec", "--json", "--dangerously-bypass-approvals-and-sandbox", "-"],
    needs: "`codex login`",
    keys: &["CODEX_API_KEY", "OPENAI_API_KEY"],
    longest_prompt: Some(PromptLimit::Characters(1 << 20)),
    response: RESPONSE,
    display: DISPLAY,
    result: RESULT,
    types: &["thread.started", "item.started", "item.completed", "error", "turn.completed", "turn.failed"],
    has_final: true,
    setup: Setup { login: LoginCheck::Exit(&["login", "status"]), ..Setup::NONE },
    login: LOG_IN,
    install: "npm install -g @openai/codex",
    structured: Structured { subcommand: "exec", option: &["--json"], ..Structured::NONE },
    model: Some(CliOption::with_value(&["-m", "--model"])),
    effort: Some(CliOption { key: "model_reasoning_effort=", ..CliOption::with_value(&["-c", "--config"]) }),
    state: STATE,
    provider: PROVIDER,
    ..Preset::BLANK
};

const OVER_ACP: Preset = Preset {
    name: "codex-acp",
    cli: "codex-acp",
    needs: "as `codex`",
    keys: LINES.keys,
    login: LOG_IN,
    install: "npm install -g @agentclientprotocol/codex-acp",
    state: STATE,
    provider: PROVIDER,
    ..Preset::ACP
};

const RESPONSE: &str = r#"select(.type == "item.completed" and .item.type == "agent_message") | .item.text"#;

const DISPLAY: &str = with_plain!(
    r#"
def started:
  if .type == "command_execution" then {tool: "shell", input: .command}
  elif .type == "mcp_tool_call" then {tool: "\(.server // "mcp").\(.tool // "tool")", input: .arguments}
  else empty end;
def completed:
  if .type == "agent_message" then {text}
  elif .type == "file_change" then {tool: "edit", input: ([.changes[]?.path?] | join(", "))}
  elif .type == "web_search" then {tool: "web_search", input: (.query // "")}
  elif .type == "error" then {notice: .message}
  else empty end;
if .type == "item.started" then .item | started
elif .type == "item.completed" then .item | completed
elif .type == "error" then
  if .message // "" | startswith("Reconnecting") then
    # One line for all of them.
    .message
    | if startswith("Reconnecting... 1/") then
        sub("^Reconnecting[. ]*1/"; "the agent tries again, up to ") | {notice: sub("up to (?<n>[0-9]+)"; "up to \(.n) times:")}
      elif test("waiting for network") then {notice: sub("^Reconnecting[. ]*"; "the agent is ")}
      else empty end
  else {error: (.message // "" | plain)} end
else empty end
"#
);

// "Reconnecting... 1/5" is not the end; a final error comes in an `error` of its own and again in `turn.failed`. It waits for a
// network without an end, so that only a timeout of ours ends that: then the reason counts.
// Some calls are reported only when they are over. The list of things to do is completed with the turn.
const RESULT: &str = with_class!(
    r#"
def is_call: .type as $type | ["agent_message", "reasoning", "error", "todo_list"] | index($type) | not;
if .type == "thread.started" then {session_id: .thread_id}
elif .type == "item.started" then
  .item
  | select(is_call)
  | if .type == "command_execution" then {session_started: .id} else {tool_started: .id} end
elif .type == "item.completed" then
  .item
  | if .type == "agent_message" then {message: "text"}
    elif is_call then {tool_started: .id}, {tool_finished: .id}
    else empty end
elif .type == "error" then
  if .message // "" | startswith("Reconnecting... waiting for network") then
    {message: "", error: (.message | sub("^Reconnecting[. ]*"; "")), class: "network"}
  elif .message // "" | startswith("Reconnecting") then {message: ""}
  else {error: (.message // "" | plain), class: (.message | class)} end
elif .type == "turn.completed" then {final: true, input_tokens: .usage.input_tokens, output_tokens: .usage.output_tokens}
elif .type == "turn.failed" then {final: true, error: (.error.message // "" | plain), class: (.error.message | class)}
else empty end
"#
);

const SCREENS: Program = Program {
    name: "codex",
    names: &["codex"],
    options: &["--dangerously-bypass-approvals-and-sandbox"],
    not_ready: &[
        known(
            Text("Finish signing in|Opening your browser|press c to copy it:|one-time code below"),
            Attention(BROWSER),
        ),
        known(Text("Sign in with ChatGPT|Paste or type your API key"), Attention(LOGIN)),
        // The second and third are those of earlier versions.
        known(
            Text(
                "Trust this folder\\?|[Dd]o you trust the contents of this directory|allow Codex to work in this folder",
            ),
            Trust("(?i)trust and continue|^yes"),
        ),
        known(
            Text("Try new model.* Use existing model"),
            Choose("(?i)^use existing model", "an offer of another model, declined"),
        ),
        // Not recorded: from earlier versions.
        known(Text("(?i)Update available.* Skip"), Choose("(?i)^skip$|^skip", UPDATE)),
        known(Text("(?i)(press )?enter(/esc)? (to )?(continue|confirm)( ·| or |$)"), Attention(QUESTION)),
        known(Text("Waiting for startup"), Starting),
    ],
    ready: &[
        // The line below the input that names the model comes when it has started; questions about an untrusted folder and a
        // missing login come before that.
        (Line(r"^\s+\S.* · (~|/)\S*|context left|⏎ send"), SETTLED),
        (Line(r"^\s*›(\s|$)"), LONGEST),
    ],
    asks: &[
        (Text("Would you like to .* Press enter to confirm or esc to cancel$"), PERMISSION),
        (Text("(?i)press enter to (confirm|submit|select)[^.]*$"), QUESTION),
    ],
    // Except "Conversation interrupted", which a person has done.
    error: r"^■ (?:[^C]|C(?:[^o]|o(?:[^n]|n[^v])))",
    message: "^[•■] ",
    offline: r"^• Reconnecting\.\.\. waiting for network[^\n]*(?:\n\s*└ ([^\n]+))?",
    input: r"^\s*[›▌](\s|$)",
    placeholder: r"\[Pasted Content \d+ chars\]",
    ..Program::BLANK
};
