//! JSON keys have the order of our types, not of the alphabet: files are compared, and users read them.

use serde_json::Value;

use crate::scratch::Scratch;

/// The keys of an object in their order, up to the one that is `last`.
fn keys(object: &Value, last: &str) -> Vec<String> {
    let mut keys: Vec<String> = object.as_object().unwrap().keys().cloned().collect();
    let end = keys.iter().position(|key| key == last).unwrap_or_else(|| panic!("{last}: {keys:?}"));
    keys.truncate(end + 1);
    keys
}

fn json(scratch: &Scratch, args: &str) -> Value {
    let run = scratch.run(args);
    serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {run:?}"))
}

#[test]
fn keys_stand_in_the_order_of_the_types() {
    let scratch = Scratch::new();
    assert_eq!(scratch.run("task add Title").code, Some(0));
    assert_eq!(scratch.run("prompt p.md 1 --agent script").code, Some(0));

    let events = scratch.session_logs().pop().unwrap().with_extension("events.jsonl");
    let events = std::fs::read_to_string(events).unwrap();
    for line in events.lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        assert_eq!(keys(&event, "event"), ["agent", "at", "loop", "mode", "run", "v", "event"]);
    }
    let begun: Value = serde_json::from_str(events.lines().next().unwrap()).unwrap();
    assert!(
        keys(&begun, "project").ends_with(&["max_iterations", "max_retries", "project"].map(String::from))
    );

    let status = ["name", "mode", "agent", "agent_command", "run", "status", "pending", "pid"];
    assert_eq!(keys(&json(&scratch, "status --json"), "pid"), status);
    assert_eq!(keys(&json(&scratch, "ls --json")[0], "pid"), status);
    let row = json(&scratch, "config --json");
    assert_eq!(keys(&row[0], "value"), ["key", "shell", "env", "flag", "value"]);
    assert_eq!(
        keys(&json(&scratch, "doctor --json --agent script"), "findings"),
        ["schema", "ok", "findings"]
    );

    let exported = scratch.run("task export").stdout;
    let task: Value = serde_json::from_str(exported.lines().nth(1).unwrap()).unwrap();
    assert_eq!(keys(&task, "status"), ["id", "parent_id", "feature", "title", "description", "status"]);
}
