//! Holds events against `schemas/events.schema.json`: as much of JSON Schema as that file uses, and nothing unchecked.

use serde_json::{Map, Value};

/// The schema.
pub(crate) fn schema() -> Value {
    serde_json::from_str(include_str!("../../schemas/events.schema.json")).unwrap()
}

/// Checks one event. Beyond the schema itself, which lets later releases add fields, every field has to be described.
pub(crate) fn check_event(schema: &Value, event: &Value) -> Result<(), String> {
    check(schema, schema, event)?;
    let name = event["event"].as_str().unwrap_or_default();
    let own = &schema["$defs"][name]["properties"];
    let fields = event.as_object().into_iter().flat_map(Map::keys);
    match fields.into_iter().find(|key| schema["properties"].get(key).is_none() && own.get(key).is_none()) {
        Some(key) => Err(format!("'{key}' of {name} is not described")),
        None => Ok(()),
    }
}

fn check(root: &Value, schema: &Value, value: &Value) -> Result<(), String> {
    let fail = |why: &str| Err(format!("{value}: {why}"));
    for (keyword, wanted) in schema.as_object().unwrap() {
        match keyword.as_str() {
            "$ref" => {
                let path = wanted.as_str().unwrap().strip_prefix('#').unwrap();
                check(root, root.pointer(path).unwrap(), value)?;
            }
            "const" if value != wanted => return fail(&format!("is not {wanted}")),
            "enum" if !wanted.as_array().unwrap().contains(value) => {
                return fail(&format!("is none of {wanted}"));
            }
            "type" if !types(wanted).any(|name| is_of_type(value, name)) => {
                return fail(&format!("is no {wanted}"));
            }
            "minimum" if value.as_f64().is_some_and(|number| number < wanted.as_f64().unwrap()) => {
                return fail("is too small");
            }
            "required" => {
                let missing =
                    wanted.as_array().unwrap().iter().find(|key| value.get(key.as_str().unwrap()).is_none());
                if let Some(key) = missing {
                    return fail(&format!("lacks {key}"));
                }
            }
            "properties" => {
                for (key, schema) in wanted.as_object().unwrap() {
                    value.get(key).map_or(Ok(()), |value| check(root, schema, value))?;
                }
            }
            "items" => {
                for item in value.as_array().into_iter().flatten() {
                    check(root, wanted, item)?;
                }
            }
            "additionalProperties" => {
                assert_eq!(wanted, &Value::Bool(false));
                let known = &schema["properties"];
                if value.as_object().is_some_and(|object| object.keys().any(|key| known.get(key).is_none())) {
                    return fail("has a field that is not described");
                }
            }
            "oneOf" => {
                let results: Vec<_> =
                    wanted.as_array().unwrap().iter().map(|one| check(root, one, value)).collect();
                if results.iter().filter(|result| result.is_ok()).count() != 1 {
                    return fail(&format!("fits not exactly one: {results:?}"));
                }
            }
            // Words for people, and what was found to hold above.
            "$schema" | "$id" | "$defs" | "title" | "description" | "const" | "enum" | "type" | "minimum" => {
            }
            other => panic!("the schema uses '{other}', which is not checked here"),
        }
    }
    Ok(())
}

fn types(wanted: &Value) -> impl Iterator<Item = &str> {
    let one = wanted.as_str().into_iter();
    one.chain(wanted.as_array().into_iter().flatten().map(|name| name.as_str().unwrap()))
}

fn is_of_type(value: &Value, name: &str) -> bool {
    match name {
        "null" => value.is_null(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "object" => value.is_object(),
        "array" => value.is_array(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        other => panic!("the schema uses the type '{other}', which is not checked here"),
    }
}
