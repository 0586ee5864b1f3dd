//! Claude Code, and claude over the Agent Client Protocol.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::option::{CliOption, ReadOnly};
use super::screens::Means::{Attention, Choose, Press, Starting, Trust};
use super::screens::Sight::{Line, Text};
use super::screens::{BROWSER, LOGIN, LONGER, NOTES, PERMISSION, Program, QUESTION, SETTLED, known};
use super::setup::{LoginCheck, Setup};
use super::{Facts, Preset, PromptLimit, Provider, State, Structured};
use crate::reply::decode::Item;
use crate::reply::show::Show;
use crate::reply::usage::UsageNote;
use crate::reply::verdict::{Asides, RootRefusal};

pub(super) const FACTS: Facts = Facts { presets: &[LINES, OVER_ACP], screens: Some(SCREENS) };

const LOG_IN: &str = "run 'claude' and log in, or set ANTHROPIC_API_KEY";
const LADDER: &[&str] = &["haiku", "sonnet", "opus"];
const ASIDES: Asides = Asides {
    root: Some(RootRefusal {
        says: "cannot be used with root/sudo privileges",
        option: "--dangerously-skip-permissions",
        unless: ("IS_SANDBOX", "1"),
    }),
    ..Asides::NONE
};

const PROVIDER: Provider = Provider {
    hosts: &[
        "api.anthropic.com",
        "claude.ai",
        "*.claude.ai",
        "claude.com",
        "*.claude.com",
        "console.anthropic.com",
        "mcp-proxy.anthropic.com",
    ],
    variables: &["ANTHROPIC_BASE_URL"],
};

const STATE: State = State {
    folders: &[".claude"],
    beside: &[".claude.json", ".claude.json.backup"],
    variable: Some("CLAUDE_CONFIG_DIR"),
};

const LINES: Preset = Preset {
    name: "claude",
    title: "Claude Code",
    cli: "claude",
    args: &["--dangerously-skip-permissions", "--output-format", "stream-json", "--verbose", "-p"],
    needs: "a login or `ANTHROPIC_API_KEY`; a user other than root",
    keys: &["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"],
    longest_prompt: Some(PromptLimit::Characters(10 << 20)),
    response: RESPONSE,
    display: DISPLAY,
    result: RESULT,
    types: &["system", "assistant", "rate_limit_event", "result"],
    shortcut: Some(("assistant", shortcut)),
    tool_results: TOOL_RESULTS,
    has_final: true,
    reports_cost: true,
    asides: ASIDES,
    setup: Setup { login: LoginCheck::Json(&["auth", "status"]), ..Setup::NONE },
    login: LOG_IN,
    install: "npm install -g @anthropic-ai/claude-code",
    structured: Structured {
        option: &["--output-format"],
        value: "stream-json",
        also: &["--verbose"],
        ..Structured::NONE
    },
    model: Some(CliOption::with_value(&["--model"])),
    effort: Some(CliOption::with_value(&["--effort"])),
    ladder: LADDER,
    // It can only use tools that are listed.
    read_only: Some(ReadOnly {
        without: &[CliOption::with_value(&["--tools"])],
        args: &["--tools", "Bash,Read,Grep,Glob"],
        env: &[],
    }),
    state: STATE,
    provider: PROVIDER,
    ..Preset::BLANK
};

const OVER_ACP: Preset = Preset {
    name: "claude-acp",
    cli: "claude-agent-acp",
    needs: "as `claude`",
    keys: LINES.keys,
    reports_cost: true,
    asides: ASIDES,
    login: LOG_IN,
    install: "npm install -g @agentclientprotocol/claude-agent-acp",
    ladder: LADDER,
    state: STATE,
    provider: PROVIDER,
    ..Preset::ACP
};

pub(super) const TOOL_RESULTS: Option<(&str, &str)> = Some(("user", r#""tool_use_id"\s*:\s*"([^"\\]+)""#));

/// Puts a definition before a jq program for claude: `words`, the error message in a `result`, without diagnostics for claude's
/// developers.
macro_rules! with_words {
    ($program:literal) => {
        concat!(
            classes!(),
            r#"def said: map(select(type == "string" and . != "" and (startswith("[ede_diagnostic]") | not)));
def words:
  ([.result] | said) as $result | ([.errors? // [] | .[]?] | said) as $errors
  | if $result != [] then $result[0]
    elif $errors != [] then $errors | join("; ")
    else .subtype // "unknown error" | tostring | gsub("_"; " ") end;
"#,
            $program
        )
    };
}

// Sub-agents, error texts (model "<synthetic>") and aborted messages are not the assistant's own words.
const RESPONSE: &str = r#"
select(.type == "assistant")
| . as $event
| .message.content[]?
| select(.type == "text")
| select($event | .parent_tool_use_id == null and .message.model != "<synthetic>" and (.aborted | not))
| .text
"#;

const DISPLAY: &str = with_words!(
    r#"
if .type == "assistant" then
  . as $event
  | .message.content[]?
  | if .type == "tool_use" then {tool: .name, input}
    elif .type == "text" then
      select($event | .parent_tool_use_id == null and .message.model != "<synthetic>" and (.aborted | not)) | {text}
    else empty end
elif .type == "system" and .subtype == "api_retry" then
  # One line for all of them.
  select(.attempt == 1) | {notice: "the agent tries again, up to \(.max_retries) times: \(.error_status // "") \(.error // "")"}
elif .type == "system" and .subtype == "informational" then select(.level != "info") | {notice: .content}
elif .type == "rate_limit_event" and .rate_limit_info.status == "rejected" then
  {notice: "usage limit reached: \(.rate_limit_info.rateLimitType // "unknown")"}
elif .type == "result" then
  (select(.is_error) | {error: (words | plain)}),
  (.permission_denials // [] | select(length > 0) | {notice: "\(length) tool calls were refused permission"})
else empty end
"#
);

// The `usage` of a result that is an error may be all zero; `modelUsage` is not. `subtype` says "success" for
// errors of the API too.
const RESULT: &str = with_words!(
    r#"
def tokens:
  [.modelUsage[]?] as $models
  | if $models == [] then .usage
      | {input_tokens: ((.input_tokens // 0) + (.cache_creation_input_tokens // 0) + (.cache_read_input_tokens // 0)),
         output_tokens: (.output_tokens // 0)}
    else
      {input_tokens: ($models | map((.inputTokens // 0) + (.cacheCreationInputTokens // 0) + (.cacheReadInputTokens // 0)) | add),
       output_tokens: ($models | map(.outputTokens // 0) | add)}
    end;
if .type == "assistant" then
  (if .error and .parent_tool_use_id == null then
     . as $event | ([.message.content[]?.text? // empty] | join(" "))
     | {error: plain, class: class_of($event.error; $event.api_error_status)}
   else empty end),
  (if .parent_tool_use_id == null then .message.id // empty | {message: .} else empty end),
  (.parent_tool_use_id as $parent
   | .message.content[]? | select(.type == "tool_use")
   | {tool_started: .id}
   + if $parent != null then {sub_agent: true}
     elif .name == "ScheduleWakeup" then {wakes_in: .input.delaySeconds}
     else {} end),
  (select(.parent_tool_use_id == null and .message.model != "<synthetic>") | .message.usage // empty
   | {context_tokens: ((.input_tokens // 0) + (.cache_creation_input_tokens // 0) + (.cache_read_input_tokens // 0))})
elif .type == "system" then
  if .subtype == "init" then {model, session_id, turn_started: true}
  elif .subtype == "background_tasks_changed" then {background: [.tasks[]? | .description // .task_id // "a task" | tostring]}
  # A login that can be renewed is renewed after the first refusal.
  elif .subtype == "api_retry" and .error_status == 401 and .attempt >= 2 then
    {error: "401 \(.error // "" | tostring | gsub("_"; " "))", class: "auth", hopeless: true}
  else empty end
elif .type == "rate_limit_event" then
  .rate_limit_info | select(.status == "rejected") | {class: "limit", reset_at: .resetsAt}
elif .type == "result" then
  {final: true, session_id, cost_usd: .total_cost_usd}
  + (if .is_error or (.subtype // "success") != "success" then
      {error: (words | plain),
       class: (if .terminal_reason == "prompt_too_long" then "context"
               elif .stop_reason == "refusal" then "refused"
               else . as $event | words | class_of(null; $event.api_error_status) end)}
     else {} end),
  tokens,
  (.modelUsage // {} | to_entries[] | {window_of: .key, context_window: .value.contextWindow})
else empty end
"#
);

pub(super) const SCREENS: Program = Program {
    name: "claude",
    names: &["claude", "claude-code"],
    options: &["--dangerously-skip-permissions", "--allow-dangerously-skip-permissions"],
    not_ready: &[
        known(
            Text("Choose the text style|looks best with your terminal"),
            Press(&["Enter"], "the choice of a theme, left as it is"),
        ),
        known(Text("Select login method|Select a login method"), Attention(LOGIN)),
        known(
            Text("Browser didn.t open|Paste code here if prompted|Use the url below to sign in"),
            Attention(BROWSER),
        ),
        known(
            Text("Detected a custom API key"),
            Attention("it asks whether to use the API key of the environment"),
        ),
        known(
            Text(
                "Accessing workspace: .*Enter to confirm|trust the files in this folder|[Dd]o you trust this folder",
            ),
            Trust("Yes"),
        ),
        known(
            Text("running in Bypass Permissions mode .*(Enter to confirm|Yes, I accept)"),
            Attention("it asks whether to accept the mode that skips permissions"),
        ),
        // Not recorded: from earlier versions.
        known(
            Text("Use Claude Code.s terminal setup"),
            Choose("(?i)no,|not now|maybe later", "an offer to change the terminal's keys, declined"),
        ),
        known(Text("Security notes: .*Press Enter to continue"), Press(&["Enter"], "security notes")),
        known(Text("(?i)release notes .*press enter to continue"), Press(&["Enter"], NOTES)),
        known(Text("Not logged in · (Please )?[Rr]un /login|Invalid API key · "), Attention(LOGIN)),
        known(Text("Enter to confirm|Esc to (cancel|go back)$"), Attention(QUESTION)),
        known(Text("Press Enter to continue"), Attention("it waits for Enter")),
        known(Text("^Welcome to Claude Code v[0-9.]+( [.█▓▒░▄▀*…]+)*$"), Starting),
    ],
    ready: &[
        (Line(r"^[│┃\s]*[❯>](\s|$)"), SETTLED),
        (Text("bypass permissions|permission mode|shift\\+tab to cycle"), LONGER),
        (Text(r"(^|[^o] |[^o ])Claude Code v\d"), LONGER),
    ],
    asks: &[
        (
            Text("Auto mode can.t check actions .* Esc to cancel$"),
            "its auto mode cannot check what it wants to do",
        ),
        (Text(r"Do you want to [^?]+\? .*1\. .* Esc to cancel( · [\w+/ ]+)*$"), PERMISSION),
        (
            Text(r"Enter to (select|confirm|submit)( · [^·]+)* · Esc to (cancel|go back)( · [\w+/ ]+)*$"),
            QUESTION,
        ),
    ],
    // Output of tools has the same marks, and so has the model's text, also about errors that it has fixed. After "API Error"
    // comes a status, JSON, or one of claude's own sentences. About a model that is not there it has another one.
    error: r"^\s+⎿\s+(Not logged in ·|You.ve hit your |Credit balance |Prompt is too long|Invalid API key|Please run /login)|^(?:[^\S\n]+⎿[^\S\n]+|● )(?:API Error:? \(?(?:[45]\d\d(?:[^\d\w]|$)|\{|Request (?:rejected \(\d|timed out|was aborted)|Connection (?:error|closed|refused|dropped)|Unable to connect|Can.t reach the API server|No internet route|Couldn.t connect through|Claude.s response exceeded|Claude Code is unable|[^\n]{0,40}safeguards flagged))|^● (Please run /login ·|Usage limit reached ·|There.s an issue with the selected model \()",
    message: r"^● |^\S \S+ for \d",
    input: r"^[│┃\s]*[❯>](\s|$)",
    placeholder: r"\[Pasted text #\d+( \+\d+ lines)?\]",
    ..Program::BLANK
};

/// The tokens that a turn has read. Anything else than whole numbers is left to the filter.
#[derive(Deserialize)]
struct ClaudeTokens {
    #[serde(rename = "input_tokens")]
    fresh: Option<u32>,
    #[serde(rename = "cache_creation_input_tokens")]
    cached: Option<u32>,
    #[serde(rename = "cache_read_input_tokens")]
    from_cache: Option<u32>,
}

impl ClaudeTokens {
    fn sum(self) -> u64 {
        [self.fresh, self.cached, self.from_cache].into_iter().flatten().map(u64::from).sum()
    }
}

/// An `assistant` line of claude with one block of the main agent's text, or one tool call.
fn shortcut(line: &[u8]) -> Option<Vec<Item>> {
    #[derive(Deserialize)]
    struct Line {
        message: Message,
        parent_tool_use_id: Option<IgnoredAny>,
        aborted: Option<IgnoredAny>,
        error: Option<IgnoredAny>,
    }
    #[derive(Deserialize)]
    struct Message {
        id: Option<String>,
        model: Option<String>,
        content: [Block; 1],
        usage: Option<ClaudeTokens>,
    }
    #[derive(Deserialize)]
    struct Block {
        r#type: String,
        text: Option<String>,
        id: Option<String>,
        name: Option<String>,
        input: Option<Value>,
    }

    let Line { message, parent_tool_use_id: None, aborted: None, error: None } =
        serde_json::from_slice(line).ok()?
    else {
        return None;
    };
    let is_ours = message.model.as_deref() != Some("<synthetic>");
    let [Block { r#type, text, id, name, input }] = message.content;
    let begun =
        message.id.map(|id| Item::Note(Box::new(UsageNote { message: Some(id), ..UsageNote::default() })));
    let mut items: Vec<Item> = begun.into_iter().collect();
    match r#type.as_str() {
        "text" if is_ours => {
            let text = text?;
            items.extend([Item::Text(text.clone()), Item::Show(Show::Text(text))]);
        }
        "tool_use" => {
            let name = name.filter(|name| name != "ScheduleWakeup")?;
            let started = UsageNote { tool_started: Some(id?), ..UsageNote::default() };
            items.extend([Item::Show(Show::tool(&name, input.as_ref())), Item::Note(Box::new(started))]);
        }
        _ => return None,
    }
    if let Some(usage) = message.usage.filter(|_| is_ours) {
        let context_tokens = Some(usage.sum());
        items.push(Item::Note(Box::new(UsageNote { context_tokens, ..UsageNote::default() })));
    }
    Some(items)
}
