use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{env, fs};

use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use super::*;
use crate::engine::fact::{Asked, Word};
use crate::reply::usage::Class;
use crate::reply::verdict::Kind;

fn path(relative: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(relative)
}

/// A line of the first release with these fields besides the common ones.
fn line(own: &str) -> String {
    let common = r#""agent":"a","at":"2026-01-31T23:59:59.120+01:00","loop":"l","mode":"m","run":"r","v":1"#;
    format!("{{{common},{own}}}\n")
}

fn value(line: &str) -> Value {
    serde_json::from_str(line).unwrap()
}

#[test]
fn event_schema_is_what_the_types_say() {
    let path = path("schemas/events.schema.json");
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let schema = generator.into_root_schema_for::<EventLine<'_>>().to_value();
    if env::var_os("UPDATE").is_some() {
        fs::write(&path, serde_json::to_string_pretty(&schema).unwrap() + "\n").unwrap();
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        serde_json::from_str(&committed).is_ok_and(|committed: Value| committed == schema),
        "schemas/events.schema.json is not what the types say; run `UPDATE=1 cargo test --lib event_schema`"
    );
}

#[test]
fn every_fact_is_read_back_as_it_was_written() {
    let schema = value(&fs::read_to_string(path("schemas/events.schema.json")).unwrap());
    let known =
        schema["oneOf"].as_array().unwrap().iter().map(|event| &event["properties"]["event"]["const"]);
    let mut missing: Vec<&Value> = known.collect();
    for line in include_str!("../../../tests/every_fact.jsonl").split_inclusive('\n') {
        assert_eq!(EventLine::read(line).unwrap().write().unwrap(), line);
        missing.retain(|name| **name != value(line)["event"]);
    }
    assert_eq!(missing, [&Value::Null; 0], "in the schema, but not among the lines");
}

#[test]
fn lines_that_real_loops_wrote_lose_nothing() {
    let mut seen = BTreeSet::new();
    for entry in fs::read_dir(path("tests/event_lines")).unwrap() {
        for line in fs::read_to_string(entry.unwrap().path()).unwrap().lines() {
            let read = EventLine::read(line).unwrap_or_else(|error| panic!("{error}: {line}"));
            let (before, after) = (value(line), read.write().unwrap());
            assert_eq!(value(&after), before);
            assert!(!format!("{read:?}").contains("Other(\""), "a word was lost: {line}");
            let event = before["event"].as_str().unwrap().to_owned();
            // Earlier lines of these events had `event` in its alphabetical place.
            if !["attempt_ended", "loop_ended", "build_ended"].contains(&&*event) {
                assert_eq!(after.trim_end(), line);
            }
            seen.insert(event);
        }
    }
    assert_eq!(seen.len(), 20, "all events of the first release: {seen:?}");
}

#[test]
fn the_order_of_the_keys_is_that_of_the_types() {
    for own in [
        r#""event":"paused""#,
        r#""event":"attempt_ended","balance":{"left":1.0,"spent":null},"changed":true,"complete":false,"duration_s":1.5,"exit_code":null,"failure":{"class":"limit","kind":"timed_out","message":"m","reset_at":1},"head":null,"iteration":1,"replan":false,"retry":0,"signal":9,"skipped_lines":0,"status":"usage-limit","usage":{"cost_usd":0.1,"fault":{"class":"auth","message":"m","reset_at":1},"input_tokens":1,"model":"m","output_tokens":2,"session_id":"s"}"#,
        r#""event":"loop_ended","attempts":2,"cost_usd":0.5,"detail":null,"duration_s":1.0,"end":"interrupted","exit_code":130,"exit_reason":"interrupted","failed":0,"failed_iterations":0,"input_tokens":1,"iterations":2,"output_tokens":3,"status":"stopped","succeeded":1"#,
        r#""event":"build_ended","branches":[{"branch":"b","commits":null,"cost_usd":0.0,"detail":"d","duration_s":1.0,"exit_code":4,"exit_reason":"failed","end":"failed","failed":1,"iterations":1,"notes":["n"],"pull_request":null,"result":"not_started","waiting_for":null}],"exit_code":4"#,
    ] {
        let line = line(own);
        assert_eq!(EventLine::read(&line).unwrap().write().unwrap(), line);
    }
}

#[test]
fn additions_of_a_later_release_are_ignored() {
    let text = line(r#""event":"text","text":"t","tone":{"of":["voice"]}"#);
    assert_eq!(EventLine::read(&text).unwrap().fact, Fact::Text { text: "t".into() });
    for own in [r#""event":"danced""#, r#""steps":[1,{"a":null}],"event":"danced","message":"m""#] {
        let line = line(own);
        let read = EventLine::read(&line).unwrap();
        assert_eq!((&*read.name, &read.fact), ("l", &Fact::Unknown));
        assert!(read.write().is_err(), "it would lose what it says");
    }
    let failed =
        include_str!("../../../tests/every_fact.jsonl").lines().find(|line| line.contains("reported"));
    let failed = failed.unwrap().replace("\"limit\"", "\"tired\"").replace("reported", "yawned");
    let Fact::AttemptEnded(ended) = EventLine::read(&failed).unwrap().fact else { panic!("{failed}") };
    let failure = ended.failure.unwrap();
    assert_eq!((failure.class, failure.kind), (Class::Other, Kind::Reported));
    let asked = line(r#""event":"asked","note":null,"stopping":"soon","what":"pause""#);
    let read = EventLine::read(&asked).unwrap();
    let stopping = Word::Other("soon".to_owned());
    assert_eq!(read.fact, Fact::Asked { note: None, stopping, what: Asked::Pause.into() });
    assert_eq!(read.write().unwrap(), asked);
}

#[test]
fn what_is_wrong_is_not_read() {
    let good = value(&line(r#""event":"notice","message":"m""#));
    assert!(EventLine::read(&good.to_string()).is_ok());
    for (key, wrong) in
        [("v", json!(2)), ("message", json!(1)), ("at", json!("today")), ("event", json!(null))]
    {
        let mut bad = good.clone();
        bad[key] = wrong;
        assert!(EventLine::read(&bad.to_string()).is_err(), "{key}");
        bad.as_object_mut().unwrap().remove(key);
        assert!(EventLine::read(&bad.to_string()).is_err(), "{key}");
    }
    for text in ["", "{", "[]", "null", "{}"] {
        assert!(EventLine::read(text).is_err(), "{text}");
    }
}

#[test]
fn only_text_with_escapes_is_copied() {
    for (text, is_copied) in [("plain, 日本", false), (r"a\n\u001b \ud83d\ude00", true)] {
        let line = line(&format!(r#""event":"text","text":"{text}""#));
        let Fact::Text { text } = EventLine::read(&line).unwrap().fact else { panic!("{line}") };
        assert_eq!(matches!(text, Cow::Owned(_)), is_copied, "{text}");
    }
}
