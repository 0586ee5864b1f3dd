//! Definitions that the jq programs of several agents share. The output of these programs is defined in [`crate::reply::show`] and
//! [`crate::reply::usage`].

/// A definition: whether an error message asks for a payment. An error that passes by itself does not.
macro_rules! billing {
    () => {
        r#"def billing: (. // "" | tostring)
  | test("(check|see) your plan and billing|credit balance|insufficient.(quota|credits?|funds|balance)|out of credits?|payment required|billing.(error|hard.limit)|status:? 402|\"code\": ?402"; "i")
    and (test("(retry|try again) (in|at|after)|retryDelay|reset"; "i") | not);
"#
    };
}

/// A definition: the message in an error that is its provider's JSON.
macro_rules! plain {
    () => {
        r#"def plain: . as $text | (capture("^\\[?API Error: (\\(?[45][0-9]{2}\\)? )?(?<json>\\{.*\\})\\]?$"; "s").json // $text)
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

/// Definitions: the class of an error by the HTTP status of its provider, and by its name among agents and providers.
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
   model_not_found: "model",
   overloaded: "overload", overloaded_error: "overload", server_error: "overload"}[tostring];
"#
    };
}

/// Definitions: `class`, the kind of an error whose message, from an event that says it is an error, is all
/// there is; and `class_of`, the same where the error may have a name or the HTTP status of its provider as well. What the words
/// say of money, the context, the model and a refusal counts most, then the name and the number.
macro_rules! classes {
    () => {
        concat!(
            billing!(),
            plain!(),
            by_code!(),
            r#"def class: (. // "" | tostring) as $m | ($m | plain | tostring) as $plain
  | def says($words): $m | test($words; "i");
  def status($codes): $m | test("status:? (\($codes))\\b|\"code\": ?(\($codes))\\b"; "i");
  if $m | billing then "billing"
  elif says("context.(window|length)|context exceeds|maximum context|prompt is too long|maximum number of tokens|request too large \\(max") then "context"
  elif says("issue with the selected model|model.?not.?found|\\b(unknown|unsupported|no such) model\\b|invalid model( name| id|:)|\\bmodels?[/ :]+[^ ]{1,80} (does not exist|doesn.t exist|((is|was) )?not found|is not (supported|a valid)|has been (deprecated|decommissioned|retired))|\\bmodel is not supported|no access to model") or ($plain | test("^(\\[API Error: )?model: [^ ]+$"))
  then "model"
  # A status says more than words.
  elif status("401|403") or says("PERMISSION_DENIED|UNAUTHENTICATED|unauthori[sz]ed|API.key.(not|invalid)|(invalid|incorrect).API.key|not logged in|authentication required|please (run|log in using) /login|disabled organization")
  then "auth"
  elif status("429") then "limit"
  elif status("5[0-9][0-9]") then "overload"
  # What was refused or cut short is no trouble on the way, although codex calls it a stream that was disconnected.
  elif says("content.?filter|content (management|moderation) policy|PROHIBITED_CONTENT|safeguards flagged|violates? .{0,20}usage policy|unable to respond to this request") then "refused"
  elif status("400|404|405|413|422") or says("invalid_request_error|INVALID_ARGUMENT|incomplete response returned, reason:") then "other"
  elif says("too many requests|rate.?limit|usage.?limit|hit your .{0,20}limit|quota|RESOURCE_EXHAUSTED")
       and (says("disk quota|os error") | not) then "limit"
  elif says("(cannot|unable to|could not|couldn.t|failed to) connect|(cannot|can.t) reach the API server|no internet route|waiting for network|(could not|couldn.t|cannot) resolve host|name resolution|name or service not known|no route to host|fetch failed|^(\\[API Error: )?terminated\\b|error sending request|stream disconnected|socket hang up|unexpected EOF|network (error|is unreachable)|connection.{0,10}(refused|reset|closed|dropped|timed out|failed|error)|request timed out|E(CONNREFUSED|CONNRESET|CONNABORTED|NOTFOUND|TIMEDOUT|NETUNREACH|NETDOWN|HOSTUNREACH|HOSTDOWN|PIPE)\\b|EAI_(AGAIN|NONAME)")
  then "network"
  elif says("overloaded|(service|server|temporarily|currently)( is)?( currently| temporarily)? unavailable|\"UNAVAILABLE\"|status: UNAVAILABLE|internal.server.error|bad gateway|gateway time-?out|server_error|high demand|at capacity")
  then "overload"
  else "other" end;
def class_of($name; $status): class as $said
  | ($name | by_name) as $named | ($status | by_status) as $coded
  | if $said == "billing" or $said == "context" or $said == "model" then $said
    elif ($said == "network" or $said == "refused") and $coded == null and ($named == null or $named == "overload") then $said
    else $named // $coded // $said end;
"#
        )
    };
}

/// Puts the definitions of [`classes`] before a program.
macro_rules! with_class {
    ($program:literal) => {
        concat!(classes!(), $program)
    };
}
