//! The presets' jq programs. What they emit is defined in [`crate::reply::show`] and [`crate::reply::usage`].

/// A definition: whether the words of an error say that somebody has to pay. What is said to pass does not.
macro_rules! billing {
    () => {
        r#"def billing: (. // "" | tostring)
  | test("(check|see) your plan and billing|credit balance|insufficient.(quota|credits?|funds|balance)|out of credits?|payment required|billing.(error|hard.limit)|status:? 402|\"code\": ?402"; "i")
    and (test("(retry|try again) (in|at|after)|retryDelay|reset"; "i") | not);
"#
    };
}

/// A definition: the words in an error that is told as the JSON of its provider.
macro_rules! plain {
    () => {
        r#"def plain: . as $text | (capture("^\\[API Error: (?<json>\\{.*\\})\\]$"; "s").json // $text)
  | first((try (fromjson | .error.message? // .message? // $text) catch $text), $text);
"#
    };
}

/// Puts the definition of [`plain`] before a program.
macro_rules! with_plain {
    ($program:literal) => {
        concat!(plain!(), $program)
    };
}

/// Definitions: the kind of an error by the HTTP status of its provider, and by the name that agents and providers give it.
macro_rules! by_code {
    () => {
        r#"def by_status:
  if type != "number" then null
  elif . == 429 then "limit"
  elif . == 401 or . == 403 then "auth"
  elif . == 402 then "billing"
  elif . >= 500 then "overload"
  else null end;
def by_name:
  {rate_limit: "limit", rate_limit_error: "limit",
   authentication_failed: "auth", authentication_error: "auth", permission_error: "auth",
   oauth_org_not_allowed: "auth", cloud_credential_error: "auth",
   account_on_hold: "permission", verification_required: "permission",
   billing_error: "billing",
   overloaded: "overload", overloaded_error: "overload", server_error: "overload"}[tostring];
"#
    };
}

/// Puts a definition before a program: `class`, the kind of an error whose message, from an event that says it is
/// an error, is all there is.
macro_rules! with_class {
    ($program:literal) => {
        concat!(
            billing!(),
            plain!(),
            r#"def class: (. // "" | tostring) as $m
  | def says($words): $m | test($words; "i");
  def status($codes): $m | test("status:? (\($codes))\\b|\"code\": ?(\($codes))\\b"; "i");
  if $m | billing then "billing"
  elif says("context.(window|length)|context exceeds|maximum context|prompt is too long|maximum number of tokens|request too large \\(max") then "context"
  # A status says more than words.
  elif status("401|403") or says("PERMISSION_DENIED|UNAUTHENTICATED|unauthori[sz]ed|API.key.(not|invalid)|(invalid|incorrect).API.key|not logged in|authentication required|please run /login|disabled organization")
  then "auth"
  elif status("429") then "limit"
  elif status("5[0-9][0-9]") then "overload"
  elif status("400|404|405|413|422") or says("invalid_request_error|INVALID_ARGUMENT") then "other"
  # What was refused or cut short is no trouble on the way, although codex calls it a stream that was disconnected.
  elif says("incomplete response returned, reason:|content.?filter|content management policy|PROHIBITED_CONTENT") then "other"
  elif says("too many requests|rate.?limit|usage.?limit|hit your .{0,20}limit|quota|RESOURCE_EXHAUSTED")
       and (says("disk quota|os error") | not) then "limit"
  elif says("overloaded|(service|server|temporarily|currently)( is)?( currently| temporarily)? unavailable|\"UNAVAILABLE\"|status: UNAVAILABLE|internal.server.error|bad gateway|gateway time-?out|server_error|high demand|at capacity|(cannot|unable to|could not|failed to) connect|fetch failed|^(\\[API Error: )?terminated\\b|error sending request|stream disconnected|socket hang up|network (error|is unreachable)|connection.{0,10}(refused|reset|closed|timed out|failed|error)|E(CONNREFUSED|CONNRESET|CONNABORTED|NOTFOUND|TIMEDOUT|NETUNREACH|HOSTUNREACH|PIPE)\\b|EAI_AGAIN")
  then "overload"
  else "other" end;
"#,
            $program
        )
    };
}

/// Puts a definition before a program of claude's: `words`, what a `result` says about its error. Diagnostics of claude's own
/// are for its makers.
macro_rules! with_words {
    ($program:literal) => {
        concat!(
            billing!(),
            by_code!(),
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

/// An error that comes in no line of a stream: `{status, name, message}` becomes `{class, message}`. What the words say about money
/// and context counts most, then what has been given a name or a number.
pub(super) const FAULT: &str = concat!(
    by_code!(),
    with_class!(
        r#"
(.message | class) as $said
| {message: (.message | plain),
   class: (if $said == "billing" or $said == "context" then $said
           else (.name | by_name) // (.status | by_status) // $said end)}
"#
    )
);

pub(super) const CLAUDE_TOOL_RESULTS: Option<(&str, &str)> =
    Some(("user", r#""tool_use_id"\s*:\s*"([^"\\]+)""#));

// Sub-agents, error texts (model "<synthetic>") and aborted messages are not the assistant's own words.
pub(super) const CLAUDE_RESPONSE: &str = r#"
select(.type == "assistant")
| . as $event
| .message.content[]?
| select(.type == "text")
| select($event | .parent_tool_use_id == null and .message.model != "<synthetic>" and (.aborted | not))
| .text
"#;

pub(super) const CLAUDE_DISPLAY: &str = with_words!(
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
  (select(.is_error) | {error: words}),
  (.permission_denials // [] | select(length > 0) | {notice: "\(length) tool calls were refused permission"})
else empty end
"#
);

// The `usage` of a result that is an error may be all zero; `modelUsage` is not. `subtype` says "success" for
// errors of the API too.
pub(super) const CLAUDE_RESULT: &str = with_words!(
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
     {error: ([.message.content[]?.text? // empty] | join(" ")), class: ((.error | by_name) // (.api_error_status | by_status))}
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
      {error: words,
       class: (if .terminal_reason == "prompt_too_long"
                  or (words | test("prompt is too long|request too large \\(max"; "i")) then "context"
               elif words | test("disabled organization"; "i") then "auth"
               elif words | billing then "billing"
               else .api_error_status | by_status end)}
     else {} end),
  tokens,
  (.modelUsage // {} | to_entries[] | {window_of: .key, context_window: .value.contextWindow})
else empty end
"#
);

pub(super) const AMP_RESPONSE: &str = r#"
select(.type == "assistant" and .parent_tool_use_id == null)
| .message.content[]? | select(.type == "text") | .text
"#;

pub(super) const AMP_DISPLAY: &str = r#"
if .type == "assistant" then
  . as $event
  | .message.content[]?
  | if .type == "tool_use" then {tool: .name, input}
    elif .type == "text" then select($event.parent_tool_use_id == null) | {text}
    else empty end
elif .type == "result" and .is_error then {error: (.error // .result // .subtype)}
else empty end
"#;

pub(super) const AMP_RESULT: &str = with_class!(
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

pub(super) const CLINE_RESPONSE: &str = r#"
select(.type == "agent_event") | .event | select(.type == "content_end" and .contentType == "text") | .text
"#;

pub(super) const CLINE_DISPLAY: &str = r#"
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
pub(super) const CLINE_RESULT: &str = with_class!(
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

pub(super) const CODEX_RESPONSE: &str =
    r#"select(.type == "item.completed" and .item.type == "agent_message") | .item.text"#;

pub(super) const CODEX_DISPLAY: &str = with_plain!(
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

// "Reconnecting... 1/5" is not the end; what is comes in an `error` of its own and again in `turn.failed`.
// Some calls are told only when they are over. The list of things to do is completed when the turn is.
pub(super) const CODEX_RESULT: &str = with_class!(
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
  if .message // "" | startswith("Reconnecting") then {message: ""}
  else {error: (.message // "" | plain), class: (.message | class)} end
elif .type == "turn.completed" then {final: true, input_tokens: .usage.input_tokens, output_tokens: .usage.output_tokens}
elif .type == "turn.failed" then {final: true, error: (.error.message // "" | plain), class: (.error.message | class)}
else empty end
"#
);

// The prompt is echoed with role "user". "auto" is no model; which were used is told at the end.
pub(super) const GEMINI_RESPONSE: &str = r#"select(.type == "message" and .role == "assistant") | .content"#;

pub(super) const GEMINI_DISPLAY: &str = with_plain!(
    r#"
if .type == "message" then select(.role == "assistant") | if .delta then {delta: .content} else {text: .content} end
elif .type == "tool_use" then {tool: .tool_name, input: .parameters}
elif .type == "error" then if .severity == "error" then {error: (.message // "" | plain)} else {notice: .message} end
elif .type == "result" and .error then {error: (.error.message // "" | plain)}
else empty end
"#
);

pub(super) const GEMINI_RESULT: &str = with_class!(
    r#"
if .type == "init" then {session_id} + if .model == "auto" then {} else {model} end
elif .type == "tool_use" then {tool_started: .tool_id}
elif .type == "error" then select(.severity == "error") | {error: (.message // "" | plain), class: (.message | class)}
elif .type == "result" then
  {final: true, input_tokens: .stats.input_tokens, output_tokens: .stats.output_tokens}
  + (.stats.models // {} | keys | if . == [] then {} else {model: join(", ")} end)
  + if .status == "success" then {}
    elif .error then {error: (.error.message // "" | plain), class: (.error.message | class)}
    else {error: ""} end
else empty end
"#
);

// What opencode says to its model by itself is not the assistant's.
pub(super) const OPENCODE_RESPONSE: &str =
    r#"select(.type == "text" and (.part.synthetic | not)) | .part.text"#;

pub(super) const OPENCODE_DISPLAY: &str = r#"
if .type == "text" then select(.part.synthetic | not) | {text: .part.text}
elif .type == "tool_use" then {tool: .part.tool, input: .part.state.input}
elif .type == "error" then {error: (.error.data.message // .error.name // "unknown error")}
else empty end
"#;

// `tokens.input` leaves out the cache and `tokens.output` the reasoning; the other agents count them in.
pub(super) const OPENCODE_RESULT: &str = with_class!(
    r#"
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
  | {session_id: $session, error: $e, class: (
      if $e | class == "billing" then "billing"
      elif $e | class == "context" then "context"
      elif .data.statusCode == 429 then "limit"
      elif .data.statusCode == 401 or .data.statusCode == 403 or .name == "ProviderAuthError" then "auth"
      elif .name // "" | test("ContextOverflow") then "context"
      elif (.data.statusCode | type) == "number" then
        if .data.statusCode >= 500 then "overload" elif .data.statusCode >= 400 then "other" else ($e | class) end
      else ($e | class) end)}
    + ((.data.responseHeaders["retry-after"]? // "" | tonumber? | {reset_at: (now + .)}) // {})
else empty end
"#
);

pub(super) const SCRIPT_RESPONSE: &str = r#"select(.type == "text") | .text"#;

pub(super) const SCRIPT_DISPLAY: &str = r#"
if .type == "text" then {text}
elif .type == "tool" then {tool: .name, input}
elif .type == "result" and .status != "ok" then {error: (.message // "the script failed")}
else empty end
"#;

pub(super) const SCRIPT_RESULT: &str = r#"
if .type == "start" then {model, session_id: .session}
elif .type == "text" then {message: "text"}
elif .type == "tool" then {tool_started: .name}, {tool_finished: .name}
elif .type == "background" then {background: [range(.tasks) | "a task"]}
elif .type == "result" then
  {final: true, cost_usd, input_tokens, output_tokens}
  + if .status == "ok" then {} else {error: (.message // "the script failed"), class, reset_at} end
else empty end
"#;
