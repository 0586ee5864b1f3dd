//! Presets: all that ralph knows about the agents it can run, as data.
//!
//! The formats behind the filters are those of the recordings under `tests/recordings/`, one test per recording.

use std::sync::Arc;

use regex::bytes::Regex;

use crate::reply::decode::{Filters, Slot, ToolResults};
use crate::reply::filter::{CompileError, Program};

/// One kind of agent. Everything in it can be overridden by a setting, one by one.
#[derive(Debug)]
pub struct Preset {
    /// The name in `AGENT_TYPE`.
    pub name: &'static str,
    /// The program, looked up on PATH. Empty: for `script` our own executable, for `custom` unknown.
    pub cli: &'static str,
    /// Its arguments, before [`Prompt::StdinAndArgument`]'s.
    pub args: &'static [&'static str],
    /// How the prompt reaches it.
    pub prompt: Prompt,
    /// jq: the assistant's own text, in pieces that follow each other without anything between them. Empty: none.
    pub response: &'static str,
    /// jq: objects for the live display, see the contract in [`crate::reply::show`]. Empty: none.
    pub display: &'static str,
    /// jq: notes, see the contract in [`crate::reply::usage`]. Empty: none.
    pub result: &'static str,
    /// The values of the top-level `type` that these filters look at.
    pub types: &'static [&'static str],
    /// Lines with this `type` tell that a tool call ended; the pattern finds its id in the raw line. For agents
    /// whose tool output comes in lines of its own: these are too many and too long to be parsed for an id.
    pub tool_results: Option<(&'static str, &'static str)>,
    /// The agent ends a run with an event of its own; without it the attempt has failed.
    pub has_final: bool,
    /// The text comes in deltas of a few words rather than in whole blocks.
    pub deltas: bool,
    /// The agent reports what the run cost.
    pub reports_cost: bool,
    /// Shell command that prints the account's balance. Empty: none.
    pub usage_cmd: &'static str,
    /// Shell pipeline that finds the number of dollars in what `usage_cmd` prints. Empty: none.
    pub usage_parser: &'static str,
    /// How to log in, as the second half of a message. Empty: not needed.
    pub login: &'static str,
    /// How to install it, as the second half of a message. Empty: not needed.
    pub install: &'static str,
}

/// How the prompt reaches an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prompt {
    /// On stdin, which is closed after it.
    Stdin,
    /// On stdin, and this as the last argument: the agent insists on one.
    StdinAndArgument(&'static str),
}

/// A preset's filters, compiled. Compile once per loop, then make [`Filters`] for every attempt.
#[derive(Clone, Debug)]
pub struct Compiled {
    response: Option<Arc<Program>>,
    display: Option<Arc<Program>>,
    result: Option<Arc<Program>>,
    types: &'static [&'static str],
    tool_results: Option<ToolResults>,
}

/// The preset of this name.
#[must_use]
pub fn preset(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}

/// The names of all presets, in alphabetical order.
pub fn known() -> impl Iterator<Item = &'static str> {
    PRESETS.iter().map(|preset| preset.name)
}

/// The preset that knows the output format of this program, given by its file name.
#[must_use]
pub fn for_command(program: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| !preset.cli.is_empty() && preset.cli == program)
}

impl Preset {
    /// Compiles the filters.
    pub fn compile(&self) -> Result<Compiled, CompileError> {
        let program =
            |source: &str| (!source.is_empty()).then(|| Program::compile(source).map(Arc::new)).transpose();
        Ok(Compiled {
            response: program(self.response)?,
            display: program(self.display)?,
            result: program(self.result)?,
            types: self.types,
            // A pattern of ours that does not compile is a test failure; here it would only lose a sign of life.
            tool_results: self
                .tool_results
                .and_then(|(kind, id)| Some(ToolResults { kind, id: Regex::new(id).ok()? })),
        })
    }
}

impl Compiled {
    /// The filters for one attempt. A slot may then be replaced by the user's filter.
    #[must_use]
    pub fn filters(&self) -> Filters {
        let slot = |program: &Option<Arc<Program>>| program.clone().map_or(Slot::Off, Slot::Here);
        Filters {
            response: slot(&self.response),
            display: slot(&self.display),
            result: slot(&self.result),
            types: self.types,
            tool_results: self.tool_results.clone(),
        }
    }
}

/// What the presets have in common; also `custom`, which knows nothing.
const BLANK: Preset = Preset {
    name: "custom",
    cli: "",
    args: &[],
    prompt: Prompt::Stdin,
    response: "",
    display: "",
    result: "",
    types: &[],
    tool_results: None,
    has_final: false,
    deltas: false,
    reports_cost: false,
    usage_cmd: "",
    usage_parser: "",
    login: "",
    install: "",
};

static PRESETS: [Preset; 8] = [
    Preset {
        name: "amp",
        cli: "amp",
        args: &["--dangerously-allow-all", "-x", "--stream-json"],
        response: AMP_RESPONSE,
        display: AMP_DISPLAY,
        result: AMP_RESULT,
        types: &["system", "assistant", "result"],
        tool_results: CLAUDE_TOOL_RESULTS,
        has_final: true,
        usage_cmd: "amp usage",
        usage_parser: "grep -o '$[0-9.]*' | head -1 | tr -d '$'",
        login: "run 'amp login', or set AMP_API_KEY",
        install: "npm install -g @ampcode/cli",
        ..BLANK
    },
    Preset {
        name: "claude",
        cli: "claude",
        args: &["--dangerously-skip-permissions", "--output-format", "stream-json", "--verbose", "-p"],
        response: CLAUDE_RESPONSE,
        display: CLAUDE_DISPLAY,
        result: CLAUDE_RESULT,
        types: &["system", "assistant", "rate_limit_event", "result"],
        tool_results: CLAUDE_TOOL_RESULTS,
        has_final: true,
        reports_cost: true,
        login: "run 'claude' and log in, or set ANTHROPIC_API_KEY",
        install: "npm install -g @anthropic-ai/claude-code",
        ..BLANK
    },
    Preset {
        name: "cline",
        cli: "cline",
        args: &["--json"],
        prompt: Prompt::StdinAndArgument("Follow the instructions given on standard input."),
        response: CLINE_RESPONSE,
        display: CLINE_DISPLAY,
        result: CLINE_RESULT,
        types: &["hook_event", "agent_event", "error", "run_result", "run_aborted"],
        has_final: true,
        reports_cost: true,
        login: "run 'cline auth'",
        install: "npm install -g cline",
        ..BLANK
    },
    Preset {
        name: "codex",
        cli: "codex",
        args: &["exec", "--json", "--dangerously-bypass-approvals-and-sandbox", "-"],
        response: CODEX_RESPONSE,
        display: CODEX_DISPLAY,
        result: CODEX_RESULT,
        types: &[
            "thread.started",
            "item.started",
            "item.completed",
            "error",
            "turn.completed",
            "turn.failed",
        ],
        has_final: true,
        login: "run 'codex login'",
        install: "npm install -g @openai/codex",
        ..BLANK
    },
    BLANK,
    Preset {
        name: "gemini",
        cli: "gemini",
        args: &["--output-format", "stream-json", "--yolo"],
        response: GEMINI_RESPONSE,
        display: GEMINI_DISPLAY,
        result: GEMINI_RESULT,
        types: &["init", "message", "tool_use", "error", "result"],
        tool_results: Some(("tool_result", r#""tool_id"\s*:\s*"([^"\\]+)""#)),
        has_final: true,
        deltas: true,
        login: "run 'gemini' and log in, or set GEMINI_API_KEY",
        install: "npm install -g @google/gemini-cli",
        ..BLANK
    },
    Preset {
        name: "opencode",
        cli: "opencode",
        args: &["run", "--format", "json", "--auto"],
        response: OPENCODE_RESPONSE,
        display: OPENCODE_DISPLAY,
        result: OPENCODE_RESULT,
        types: &["text", "tool_use", "step_finish", "error"],
        reports_cost: true,
        login: "run 'opencode auth login'",
        install: "npm install -g opencode-ai",
        ..BLANK
    },
    Preset {
        name: "script",
        args: &["__script"],
        response: SCRIPT_RESPONSE,
        display: SCRIPT_DISPLAY,
        result: SCRIPT_RESULT,
        types: &["start", "text", "tool", "result"],
        has_final: true,
        reports_cost: true,
        ..BLANK
    },
];

/// Puts a definition before a program: `class`, the kind of an error whose message, from an event that says it is
/// an error, is all there is.
macro_rules! with_class {
    ($program:literal) => {
        concat!(
            r#"def class: (. // "" | tostring) as $m
  | if $m | test("status:? 429|\"code\": ?429|too many requests|rate.?limit|usage.?limit|quota|RESOURCE_EXHAUSTED"; "i")
    then "limit"
    elif $m | test("status:? 40[13]|\"code\": ?40[13]|UNAUTHENTICATED|unauthori[sz]ed|API.key.(not|invalid)|(invalid|incorrect).API.key|not logged in"; "i")
    then "auth"
    elif $m | test("context.(window|length)|maximum context|prompt is too long|maximum number of tokens"; "i")
    then "context"
    else "other" end;
"#,
            $program
        )
    };
}

const CLAUDE_TOOL_RESULTS: Option<(&str, &str)> = Some(("user", r#""tool_use_id"\s*:\s*"([^"\\]+)""#));

// Sub-agents, error texts (model "<synthetic>") and aborted messages are not the assistant's own words.
const CLAUDE_RESPONSE: &str = r#"
select(.type == "assistant")
| . as $event
| .message.content[]?
| select(.type == "text")
| select($event | .parent_tool_use_id == null and .message.model != "<synthetic>" and (.aborted | not))
| .text
"#;

const CLAUDE_DISPLAY: &str = r#"
if .type == "assistant" then
  . as $event
  | .message.content[]?
  | if .type == "tool_use" then {tool: .name, input}
    elif .type == "text" then
      select($event | .parent_tool_use_id == null and .message.model != "<synthetic>" and (.aborted | not)) | {text}
    else empty end
elif .type == "system" and .subtype == "api_retry" then
  {notice: "retry \(.attempt)/\(.max_retries) in \((.retry_delay_ms // 0) / 1000 | ceil) s: \(.error_status // "") \(.error // "")"}
elif .type == "rate_limit_event" and .rate_limit_info.status == "rejected" then
  {notice: "usage limit reached: \(.rate_limit_info.rateLimitType // "unknown")"}
elif .type == "result" then
  (select(.is_error) | {error: (.result // (.errors? // [] | join("; ")))}),
  (.permission_denials // [] | select(length > 0) | {notice: "\(length) tool calls were refused permission"})
else empty end
"#;

// The `usage` of a result that is an error may be all zero; `modelUsage` is not. `subtype` says "success" for
// errors of the API too.
const CLAUDE_RESULT: &str = r#"
def status: if . == 429 then "limit" elif . == 401 or . == 403 then "auth" else null end;
def named:
  if . == "rate_limit" then "limit"
  elif . == "authentication_failed" or . == "oauth_org_not_allowed" then "auth"
  else "other" end;
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
     {error: ([.message.content[]?.text? // empty] | join(" ")), class: ((.api_error_status | status) // (.error | named))}
   else empty end),
  (.message.content[]? | select(.type == "tool_use") | {tool_started: .id})
elif .type == "system" then select(.subtype == "init") | {model, session_id}
elif .type == "rate_limit_event" then
  .rate_limit_info | select(.status == "rejected") | {class: "limit", reset_at: .resetsAt}
elif .type == "result" then
  {final: true, session_id, cost_usd: .total_cost_usd}
  + (if .is_error or (.subtype // "success") != "success" then
      {error: ((.result | select(. != "")) // (.errors? // [] | select(length > 0) | join("; "))
               // (.subtype // "unknown error" | gsub("_"; " "))),
       class: ((.api_error_status | status)
               // if .terminal_reason == "prompt_too_long" then "context"
                  elif (.permission_denials // []) != [] then "permission"
                  else "other" end)}
     else {} end),
  tokens
else empty end
"#;

const AMP_RESPONSE: &str = r#"
select(.type == "assistant" and .parent_tool_use_id == null)
| .message.content[]? | select(.type == "text") | .text
"#;

const AMP_DISPLAY: &str = r#"
if .type == "assistant" then
  . as $event
  | .message.content[]?
  | if .type == "tool_use" then {tool: .name, input}
    elif .type == "text" then select($event.parent_tool_use_id == null) | {text}
    else empty end
elif .type == "result" and .is_error then {error: (.error // .result // .subtype)}
else empty end
"#;

const AMP_RESULT: &str = with_class!(
    r#"
if .type == "system" then select(.subtype == "init") | {session_id}
elif .type == "assistant" then
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

const CLINE_RESPONSE: &str = r#"
select(.type == "agent_event") | .event | select(.type == "content_end" and .contentType == "text") | .text
"#;

const CLINE_DISPLAY: &str = r#"
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
const CLINE_RESULT: &str = with_class!(
    r#"
def fault: (.error | if type == "object" then .message else . end) as $e | {error: $e, class: (
  (.errorClass // "") as $c
  | if $c | test("auth"; "i") then "auth"
    elif $c | test("rate|quota|limit"; "i") then "limit"
    elif $c | test("context"; "i") then "context"
    else ($e | class) end)};
def event:
  if .type == "content_start" and .contentType == "tool" then {tool_started: .toolCallId}
  elif .type == "content_end" and .contentType == "tool" then {tool_finished: .toolCallId}
  elif .type == "error" then select(.recoverable | not) | fault
  else empty end;
if .type == "agent_event" then .event | event
elif .type == "hook_event" then select(.hookEventName == "agent_start" and .parentAgentId == null) | {session_id: .taskId}
elif .type == "error" then {error: .message, class: (.message | class)}
elif .type == "run_result" then
  {final: true, model: .model.id, cost_usd: .usage.totalCost, input_tokens: .usage.inputTokens, output_tokens: .usage.outputTokens}
  + if .finishReason == "completed" then {}
    elif .finishReason == "error" then {error: (.text // "")}
    else {error: "stopped: \(.finishReason // "no reason given" | gsub("_"; " "))"} end
elif .type == "run_aborted" then {final: true, error: "aborted: \(.reason // "no reason given")"}
else empty end
"#
);

const CODEX_RESPONSE: &str =
    r#"select(.type == "item.completed" and .item.type == "agent_message") | .item.text"#;

const CODEX_DISPLAY: &str = r#"
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
  if .message // "" | startswith("Reconnecting") then {notice: .message} else {error: .message} end
else empty end
"#;

// "Reconnecting... 1/5" is not the end; what is comes in an `error` of its own and again in `turn.failed`.
const CODEX_RESULT: &str = with_class!(
    r#"
if .type == "thread.started" then {session_id: .thread_id}
elif .type == "item.started" then {tool_started: .item.id}
elif .type == "item.completed" then {tool_finished: .item.id}
elif .type == "error" then select(.message // "" | startswith("Reconnecting") | not) | {error: .message, class: (.message | class)}
elif .type == "turn.completed" then {final: true, input_tokens: .usage.input_tokens, output_tokens: .usage.output_tokens}
elif .type == "turn.failed" then {final: true, error: (.error.message // ""), class: (.error.message | class)}
else empty end
"#
);

// The prompt is echoed with role "user".
const GEMINI_RESPONSE: &str = r#"select(.type == "message" and .role == "assistant") | .content"#;

const GEMINI_DISPLAY: &str = r#"
if .type == "message" then select(.role == "assistant") | if .delta then {delta: .content} else {text: .content} end
elif .type == "tool_use" then {tool: .tool_name, input: .parameters}
elif .type == "error" then if .severity == "error" then {error: .message} else {notice: .message} end
elif .type == "result" and .error then {error: .error.message}
else empty end
"#;

const GEMINI_RESULT: &str = with_class!(
    r#"
if .type == "init" then {model, session_id}
elif .type == "tool_use" then {tool_started: .tool_id}
elif .type == "error" then select(.severity == "error") | {error: .message, class: (.message | class)}
elif .type == "result" then
  {final: true, input_tokens: .stats.input_tokens, output_tokens: .stats.output_tokens}
  + if .status == "success" then {}
    elif .error then {error: .error.message, class: (.error.message | class)}
    else {error: ""} end
else empty end
"#
);

const OPENCODE_RESPONSE: &str = r#"select(.type == "text") | .part.text"#;

const OPENCODE_DISPLAY: &str = r#"
if .type == "text" then {text: .part.text}
elif .type == "tool_use" then {tool: .part.tool, input: .part.state.input}
elif .type == "error" then {error: (.error.data.message // .error.name // "unknown error")}
else empty end
"#;

// `tokens.input` leaves out the cache and `tokens.output` the reasoning; the other agents count them in.
const OPENCODE_RESULT: &str = with_class!(
    r#"
if .type == "step_finish" then
  {session_id: .sessionID} + (.part
  | {add: true, cost_usd: .cost,
     input_tokens: ((.tokens.input // 0) + (.tokens.cache.read // 0) + (.tokens.cache.write // 0)),
     output_tokens: ((.tokens.output // 0) + (.tokens.reasoning // 0))})
elif .type == "error" then
  .sessionID as $session | .error
  | (.data.message // .name // "unknown error") as $e
  | {session_id: $session, error: $e, class: (
      if .data.statusCode == 429 then "limit"
      elif .data.statusCode == 401 or .data.statusCode == 403 or .name == "ProviderAuthError" then "auth"
      elif .name // "" | test("ContextOverflow") then "context"
      else ($e | class) end)}
    + ((.data.responseHeaders["retry-after"]? // "" | tonumber? | {reset_at: (now + .)}) // {})
else empty end
"#
);

const SCRIPT_RESPONSE: &str = r#"select(.type == "text") | .text"#;

const SCRIPT_DISPLAY: &str = r#"
if .type == "text" then {text}
elif .type == "tool" then {tool: .name, input}
elif .type == "result" and .status != "ok" then {error: (.message // "the script failed")}
else empty end
"#;

const SCRIPT_RESULT: &str = r#"
if .type == "start" then {model, session_id: .session}
elif .type == "result" then
  {final: true, cost_usd, input_tokens, output_tokens}
  + if .status == "ok" then {} else {error: (.message // "the script failed")} end
else empty end
"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_filter_and_pattern_compiles() {
        for preset in &PRESETS {
            let compiled = preset.compile().unwrap_or_else(|error| panic!("{}: {error}", preset.name));
            assert_eq!(compiled.tool_results.is_some(), preset.tool_results.is_some(), "{}", preset.name);
        }
    }

    #[test]
    fn presets_are_found_by_name_and_by_command() {
        let names: Vec<_> = known().collect();
        assert_eq!(names, ["amp", "claude", "cline", "codex", "custom", "gemini", "opencode", "script"]);
        assert!(names.iter().all(|name| preset(name).is_some_and(|preset| preset.name == *name)));
        assert_eq!(for_command("claude").map(|preset| preset.name), Some("claude"));
        for other in ["", "ralph", "/usr/bin/claude", "sh"] {
            assert!(for_command(other).is_none(), "{other}");
        }
    }
}
