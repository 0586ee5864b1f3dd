//! In which mode a session works.

use super::*;

#[test]
fn the_most_permissive_mode_is_chosen_or_the_one_in_which_nothing_is_changed() {
    for (name, open, quiet) in [
        ("claude-agent-acp.tool", "bypassPermissions", "plan"),
        ("codex-acp.tool", "agent-full-access", "read-only"),
        ("gemini.tool", "yolo", "plan"),
        ("opencode.tool", "", "plan"),
        ("kimi.tool", "yolo", "plan"),
        ("vibe.tool", "auto-approve", "ask"),
        ("copilot.tool", "", "https://agentclientprotocol.com/protocol/session-modes#plan"),
        // As root it does not offer what may do everything; by its settings it begins where a classifier decides.
        ("claude-agent-acp.root", "acceptEdits", "plan"),
        ("claude-agent-acp.auto", "acceptEdits", "plan"),
    ] {
        let path = transcript(name);
        for (read_only, mode) in [(false, open), (true, quiet)] {
            let talk = play(&path, Wanted { read_only, ..Wanted::default() });
            let chosen =
                talk.said.iter().filter(|said| said["method"].as_str().unwrap_or_default().contains("set_"));
            let chosen: Vec<&str> = chosen
                .filter_map(|said| said["params"]["modeId"].as_str().or(said["params"]["value"].as_str()))
                .collect();
            assert_eq!(chosen.concat(), mode, "{name}, read only: {read_only}");
            let can_write = &talk.said[0]["params"]["clientCapabilities"]["fs"]["writeTextFile"];
            assert_eq!(can_write, &Value::Bool(!read_only));
        }
    }
}

/// A session that offers these modes, and is in the first of them.
fn offered(modes: &[&str], read_only: bool) -> Talk {
    let mut talk = Talk::new(Wanted { read_only, ..Wanted::default() });
    let all: Vec<Value> = modes.iter().map(|mode| json!({ "id": mode, "name": mode })).collect();
    talk.answer(json!({ "result": { "protocolVersion": 1 } }));
    let modes = json!({ "currentModeId": modes[0], "availableModes": all });
    talk.answer(json!({ "result": { "sessionId": "s", "modes": modes } }));
    talk
}

fn asked_for(talk: &Talk) -> String {
    let (method, id) = talk.asked();
    let params = &talk.said.iter().rev().find(|said| said["id"] == id).unwrap()["params"];
    params["modeId"].as_str().map_or(method, str::to_owned)
}

#[test]
fn a_mode_in_which_the_agent_decides_by_itself_is_left() {
    assert_eq!(asked_for(&offered(&["auto", "plan", "default", "acceptEdits"], false)), "acceptEdits");
    assert_eq!(asked_for(&offered(&["auto", "plan", "default"], false)), "default");
    assert_eq!(asked_for(&offered(&["auto"], false)), "session/prompt");
}

#[test]
fn a_refused_mode_is_followed_by_the_next_one() {
    let refused = || json!({ "error": { "code": -32603, "message": "switched off by your administrator" } });
    let mut talk = offered(&["plan", "default", "autoEdit", "yolo"], false);
    for mode in ["yolo", "autoEdit", "default"] {
        assert_eq!(asked_for(&talk), mode);
        talk.answer(refused());
    }
    // There is no other one.
    let fault = talk.reply.usage.fault.unwrap();
    assert_eq!(fault.message, "mode 'default': switched off by your administrator");

    // The one that it is in needs no leave.
    let mut talk = offered(&["default", "autoEdit", "yolo"], false);
    for mode in ["yolo", "autoEdit", "session/prompt"] {
        assert_eq!(asked_for(&talk), mode);
        if mode != "session/prompt" {
            talk.answer(refused());
        }
    }
    assert_eq!(talk.shown.iter().filter(|shown| shown.contains("switched off")).count(), 2);

    // What was chosen in its place is what counts.
    let mut talk = offered(&["default", "read-only", "plan"], true);
    talk.answer(refused());
    assert_eq!(asked_for(&talk), "plan");
    talk.answer(json!({ "result": {} }));
    assert_eq!(asked_for(&talk), "session/prompt");
    talk.update(&json!({ "sessionUpdate": "current_mode_update", "currentModeId": "plan" }));
    assert_eq!(talk.reply.usage.fault, None);
    talk.update(&json!({ "sessionUpdate": "current_mode_update", "currentModeId": "read-only" }));
    assert_eq!(talk.reply.usage.fault.unwrap().class, Class::Permission);

    // Who may only look does not work in another mode.
    let mut talk = offered(&["default", "plan"], true);
    talk.answer(refused());
    assert!(talk.reply.usage.fault.is_some() && talk.is_over);
}
