use super::*;

/// The text of these events, without colours.
fn shown(events: &[&str]) -> String {
    let mut transcript = Transcript::default();
    let mut flow = Flow::default();
    let mut text = String::new();
    for event in events {
        let line = format!(
            r#"{{"agent":"a","at":"2026-01-02T03:04:05.000+00:00","loop":"l","mode":"build","run":"r","v":1,{event}}}"#
        );
        if let Some(entry) = transcript.entry(&EventLine::read(&line).unwrap()) {
            text += &flow.take(&entry);
        }
    }
    text += flow.end();
    anstream::adapter::strip_str(&text).to_string()
}

const ENDED: &str = r#""event":"attempt_ended","balance":null,"changed":true,"complete":false,"duration_s":65.2,
    "exit_code":1,"head":null,"iteration":1,"replan":false,"retry":0,"signal":null,"skipped_lines":0,"#;

#[test]
fn pieces_are_put_together_and_lines_stand_alone() {
    let text = shown(&[
        r#""event":"text_delta","text":"I look""#,
        r#""event":"text_delta","text":" around""#,
        r#""event":"tool","input":"ls -l","name":"Bash""#,
        r#""event":"thought","text":"hm""#,
        r#""event":"text_delta","text":"so""#,
        r#""event":"text","text":"all of it""#,
        r#""event":"validated","ok":false,"output":"one\ntwo""#,
        r#""event":"agent_started","command":"agent""#,
    ]);
    assert_eq!(
        text,
        "I look around\n▸ Bash ls -l\nhm\nso\nall of it\n✗ the validation failed:\n    one\n    two\n"
    );
}

#[test]
fn nothing_of_an_agent_drives_the_terminal() {
    let text = shown(&[
        r#""event":"tool","input":"\u001b]0;t\u0007x\ny","name":"\u001b[2JBash""#,
        r#""event":"text","text":"\u001b[2Jgone\u202e""#,
        r#""event":"notice","message":"a\u0007b""#,
    ]);
    assert_eq!(text, "▸ Bash x y\n[2Jgone\\u{202e}\n! ab\n");
}

#[test]
fn an_attempt_has_a_line_at_its_start_and_its_end_and_tells_an_error_once() {
    let failure = r#""failure":{"class":"other","kind":"agent","message":"no such model"}"#;
    let ended = format!(r#"{ENDED}{failure},"status":"agent_failure","usage":{{"cost_usd":0.12}}"#);
    let started = r#""event":"attempt_started","head":null,"iteration":1,"retry":0"#;
    let error = r#""event":"agent_error","message":"no such model""#;
    let retried = r#""event":"attempt_started","head":null,"iteration":1,"retry":1"#;
    let text = shown(&[started, error, &ended, retried, &ended]);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("▶ Iteration 1 · 2026-01-0"), "{text}");
    assert_eq!(lines[1..3], ["✗ no such model", "✗ Iteration 1 failed after 1m5s · $0.12"]);
    assert!(lines[3].starts_with("▶ Iteration 1, retry 1, attempt 2 of this run · "), "{text}");
    assert_eq!(lines[4], "✗ Iteration 1 failed after 1m5s · $0.12: no such model");
}
