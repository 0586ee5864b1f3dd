//! The scripted agent, which is part of ralph.

use super::{Facts, Preset};

pub(super) const FACTS: Facts = Facts { presets: &[LINES], screens: None };

const LINES: Preset = Preset {
    name: "script",
    args: &["__script"],
    needs: "nothing: [a free agent for trying things out](scripted-agent.md)",
    response: RESPONSE,
    display: DISPLAY,
    result: RESULT,
    types: &["start", "text", "tool", "background", "result"],
    has_final: true,
    reports_cost: true,
    ..Preset::BLANK
};

const RESPONSE: &str = r#"select(.type == "text") | .text"#;

const DISPLAY: &str = r#"
if .type == "text" then {text}
elif .type == "tool" then {tool: .name, input}
elif .type == "result" and .status != "ok" then {error: (.message // "the script failed")}
else empty end
"#;

const RESULT: &str = r#"
if .type == "start" then {model, session_id: .session}
elif .type == "text" then {message: "text"}
elif .type == "tool" then {tool_started: .name}, {tool_finished: .name}
elif .type == "background" then {background: [range(.tasks) | "a task"]}
elif .type == "result" then
  {final: true, cost_usd, input_tokens, output_tokens}
  + if .status == "ok" then {} else {error: (.message // "the script failed"), class, reset_at} end
else empty end
"#;
