//! Inputs held against the schemas of tools (JSON Schema, draft 7): the part of it that [`input_schema`] writes.
//!
//! A keyword that is not known here fails the check of every input, so that nothing passes unseen; a test walks the
//! schemas of all tools and finds such a keyword before that.
//!
//! [`input_schema`]: super::schema::input_schema

use serde_json::{Map, Value};
use uuid::Uuid;

/// Keywords that say something to people only.
const ANNOTATIONS: &[&str] = &["$schema", "default", "description", "examples", "title"];

/// What is wrong with an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Where, such as `names[2]`; empty for the input as a whole.
    pub(crate) field: String,
    /// What, such as `must be a string`.
    pub(crate) message: String,
}

/// Holds `input` against `schema`.
pub(crate) fn check(schema: &Value, input: &Value) -> Result<(), Fault> {
    check_at("", schema, input)
}

fn check_at(path: &str, schema: &Value, value: &Value) -> Result<(), Fault> {
    let fault = |message: String| Fault { field: path.to_owned(), message };
    let keywords = match schema {
        Value::Bool(true) => return Ok(()),
        Value::Bool(false) => return Err(fault("is not taken".to_owned())),
        Value::Object(keywords) => keywords,
        _ => return Err(fault("cannot be checked: its schema is none".to_owned())),
    };
    for (keyword, says) in keywords {
        match keyword.as_str() {
            "type" => of_type(says, value).map_err(fault)?,
            "const" if value != says => return Err(fault(format!("must be {says}"))),
            "const" => {}
            "enum" => one_of(says, value).map_err(fault)?,
            "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => {
                in_range(keyword, says, value).map_err(fault)?;
            }
            "minLength" | "maxLength" | "minItems" | "maxItems" => has_length(keyword, says, value).map_err(fault)?,
            "format" => in_format(says, value).map_err(fault)?,
            "required" => has_all(path, says, value)?,
            "properties" => check_properties(path, says, value)?,
            "additionalProperties" => check_others(path, keywords, says, value)?,
            "items" => check_items(path, says, value)?,
            "anyOf" => any_of(path, says, value)?,
            "oneOf" => exactly_one_of(path, says, value)?,
            "allOf" => parts(says).iter().try_for_each(|part| check_at(path, part, value))?,
            word if ANNOTATIONS.contains(&word) => {}
            word => return Err(fault(format!("cannot be checked: its schema says {word:?}"))),
        }
    }
    Ok(())
}

/// Several schemas.
fn parts(says: &Value) -> &[Value] {
    says.as_array().map_or(&[], Vec::as_slice)
}

fn of_type(says: &Value, value: &Value) -> Result<(), String> {
    let names: Vec<&str> = match says {
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        name => name.as_str().into_iter().collect(),
    };
    if names.iter().any(|name| is_a(name, value)) {
        return Ok(());
    }
    let wanted = names.iter().filter(|name| **name != "null").map(|name| named(name));
    Err(format!("must be {}", wanted.collect::<Vec<_>>().join(" or ")))
}

fn is_a(name: &str, value: &Value) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        _ => false,
    }
}

fn named(name: &str) -> &'static str {
    match name {
        "null" => "null",
        "boolean" => "true or false",
        "string" => "a string",
        "array" => "a list",
        "object" => "an object",
        "number" => "a number",
        "integer" => "a whole number",
        _ => "of a type that is not known",
    }
}

fn one_of(says: &Value, value: &Value) -> Result<(), String> {
    if parts(says).contains(value) {
        return Ok(());
    }
    let words: Vec<String> = parts(says).iter().map(ToString::to_string).collect();
    Err(format!("must be one of {}", words.join(", ")))
}

fn in_range(keyword: &str, says: &Value, value: &Value) -> Result<(), String> {
    let (Some(bound), Some(number)) = (says.as_f64(), value.as_f64()) else { return Ok(()) };
    let (is_in, words) = match keyword {
        "minimum" => (number >= bound, "at least"),
        "maximum" => (number <= bound, "at most"),
        "exclusiveMinimum" => (number > bound, "more than"),
        _ => (number < bound, "less than"),
    };
    if is_in { Ok(()) } else { Err(format!("must be {words} {says}")) }
}

fn has_length(keyword: &str, says: &Value, value: &Value) -> Result<(), String> {
    let (length, things) = match (value, keyword) {
        (Value::String(text), "minLength" | "maxLength") => (text.chars().count() as u64, "characters"),
        (Value::Array(items), "minItems" | "maxItems") => (items.len() as u64, "items"),
        _ => return Ok(()),
    };
    let Some(bound) = says.as_u64() else { return Ok(()) };
    match keyword.starts_with("min") {
        true if length < bound => Err(format!("must have at least {bound} {things}")),
        false if length > bound => Err(format!("must have at most {bound} {things}")),
        _ => Ok(()),
    }
}

/// The formats that Rust's types get: of numbers their range, and UUIDs.
fn in_format(says: &Value, value: &Value) -> Result<(), String> {
    let range = match says.as_str() {
        Some("uuid") => {
            return match value.as_str() {
                Some(text) if Uuid::try_parse(text).is_err() => Err("must be a UUID".to_owned()),
                _ => Ok(()),
            };
        }
        Some("float" | "double") => return Ok(()),
        Some("uint8") => (0, u64::from(u8::MAX)),
        Some("uint16") => (0, u64::from(u16::MAX)),
        Some("uint32") => (0, u64::from(u32::MAX)),
        Some("uint64" | "uint") => (0, u64::MAX),
        Some("int32") => (i64::from(i32::MIN), i32::MAX as u64),
        Some("int64" | "int") => (i64::MIN, i64::MAX as u64),
        _ => return Err(format!("cannot be checked: its schema says the format {says}")),
    };
    let (least, most) = range;
    let is_in = value.as_i64().map(|n| n >= least && (n < 0 || n as u64 <= most));
    let is_in = is_in.or_else(|| value.as_u64().map(|n| n <= most));
    if is_in == Some(false) { Err(format!("must be {least} to {most}")) } else { Ok(()) }
}

fn has_all(path: &str, says: &Value, value: &Value) -> Result<(), Fault> {
    let Some(object) = value.as_object() else { return Ok(()) };
    let names = parts(says).iter().filter_map(Value::as_str);
    match { names }.find(|name| !object.contains_key(*name)) {
        Some(name) => Err(Fault { field: below(path, name), message: "is required".to_owned() }),
        None => Ok(()),
    }
}

fn check_properties(path: &str, says: &Value, value: &Value) -> Result<(), Fault> {
    let (Some(schemas), Some(object)) = (says.as_object(), value.as_object()) else { return Ok(()) };
    for (name, schema) in schemas {
        if let Some(value) = object.get(name) {
            check_at(&below(path, name), schema, value)?;
        }
    }
    Ok(())
}

/// The properties that `properties` does not name.
fn check_others(path: &str, keywords: &Map<String, Value>, says: &Value, value: &Value) -> Result<(), Fault> {
    let Some(object) = value.as_object() else { return Ok(()) };
    let known = keywords.get("properties").and_then(Value::as_object);
    for (name, value) in object.iter().filter(|(name, _)| !known.is_some_and(|known| known.contains_key(*name))) {
        if says == &Value::Bool(false) {
            return Err(Fault { field: below(path, name), message: "is not a field of this tool".to_owned() });
        }
        check_at(&below(path, name), says, value)?;
    }
    Ok(())
}

fn check_items(path: &str, says: &Value, value: &Value) -> Result<(), Fault> {
    let items = value.as_array().into_iter().flatten().enumerate();
    { items }.try_for_each(|(at, item)| check_at(&format!("{path}[{at}]"), says, item))
}

/// The first fault stands for all: alternatives are a value or null.
fn any_of(path: &str, says: &Value, value: &Value) -> Result<(), Fault> {
    let mut first = None;
    for part in parts(says) {
        match check_at(path, part, value) {
            Ok(()) => return Ok(()),
            Err(fault) => drop(first.get_or_insert(fault)),
        }
    }
    Err(first.unwrap_or_else(|| Fault { field: path.to_owned(), message: "is not taken".to_owned() }))
}

fn exactly_one_of(path: &str, says: &Value, value: &Value) -> Result<(), Fault> {
    let fit = parts(says).iter().filter(|part| check_at(path, part, value).is_ok()).count();
    if fit == 1 {
        return Ok(());
    }
    let words: Vec<String> = parts(says).iter().filter_map(|part| part.get("const")).map(Value::to_string).collect();
    let message = if words.is_empty() { "has none of the shapes it may have".into() } else { words.join(", ") };
    let message = if words.is_empty() { message } else { format!("must be one of {message}") };
    Err(Fault { field: path.to_owned(), message })
}

/// The field `name` of what stands at `path`.
fn below(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::TOOLS;
    use super::{check, check_at};

    fn fault(schema: &Value, input: &Value) -> String {
        check(schema, input).map_or_else(|fault| format!("{} {}", fault.field, fault.message), |()| String::new())
    }

    /// Every schema within a schema, itself included.
    fn within(schema: &Value) -> Vec<&Value> {
        let mut found = vec![schema];
        let Some(keywords) = schema.as_object() else { return found };
        for (keyword, says) in keywords {
            match keyword.as_str() {
                "properties" => found.extend(says.as_object().unwrap().values().flat_map(within)),
                "items" | "additionalProperties" => found.extend(within(says)),
                "anyOf" | "oneOf" | "allOf" => found.extend(says.as_array().unwrap().iter().flat_map(within)),
                _ => {}
            }
        }
        found
    }

    #[test]
    fn every_keyword_of_every_tool_is_understood() {
        let mut seen = 0;
        for tool in TOOLS {
            let whole = (tool.schema)();
            for schema in within(&whole) {
                // A value of each type, so that no keyword is passed over because it is about another type.
                let values =
                    [json!(null), json!(true), json!(1), json!(1.5), json!("x"), json!([1]), json!({ "x": 1 })];
                for value in values {
                    let message = check_at("", schema, &value).err().map(|fault| fault.message).unwrap_or_default();
                    assert!(!message.contains("cannot be checked"), "{}: {message} in {schema}", tool.name);
                    seen += 1;
                }
            }
        }
        assert!(seen > 500, "{seen}");
    }

    #[test]
    fn faults_name_the_field() {
        let schema = json!({
            "type": "object",
            "additionalProperties": false,
            "required": ["path"],
            "properties": {
                "path": { "type": "string", "minLength": 1, "maxLength": 3, "description": "x" },
                "limit": { "type": ["integer", "null"], "format": "uint", "minimum": 0, "maximum": 9 },
                "ids": { "type": "array", "maxItems": 2, "items": { "type": "string", "format": "uuid" } },
                "mode": { "anyOf": [{ "type": "string", "enum": ["a", "b"] }, { "type": "null" }] },
                "kind": { "oneOf": [{ "type": "string", "const": "x" }, { "type": "string", "const": "y" }] },
                "free": true,
                "words": { "type": "object", "additionalProperties": { "type": "number" } },
            },
        });
        let uuid = "018f0000-0000-7000-8000-000000000001";
        for good in [
            json!({ "path": "a" }),
            json!({ "path": "äöü", "limit": null, "ids": [uuid], "mode": null, "kind": "y", "free": [1] }),
            json!({ "path": "a", "limit": 9, "mode": "b", "words": { "x": 1.5, "y": 2 } }),
        ] {
            assert_eq!(fault(&schema, &good), "");
        }
        for (bad, expected) in [
            (json!({}), "path is required"),
            (json!([]), " must be an object"),
            (json!({ "path": 3 }), "path must be a string"),
            (json!({ "path": "" }), "path must have at least 1 characters"),
            (json!({ "path": "abcd" }), "path must have at most 3 characters"),
            (json!({ "path": "a", "limit": -1 }), "limit must be 0 to 18446744073709551615"),
            (json!({ "path": "a", "limit": 10 }), "limit must be at most 9"),
            (json!({ "path": "a", "limit": 1.5 }), "limit must be a whole number"),
            (json!({ "path": "a", "limit": "1" }), "limit must be a whole number"),
            (json!({ "path": "a", "ids": [uuid, "x"] }), "ids[1] must be a UUID"),
            (json!({ "path": "a", "ids": [uuid, uuid, uuid] }), "ids must have at most 2 items"),
            (json!({ "path": "a", "mode": "c" }), "mode must be one of \"a\", \"b\""),
            (json!({ "path": "a", "kind": "z" }), "kind must be one of \"x\", \"y\""),
            (json!({ "path": "a", "words": { "x": "1" } }), "words.x must be a number"),
            (json!({ "path": "a", "odd": 1 }), "odd is not a field of this tool"),
        ] {
            assert_eq!(fault(&schema, &bad), expected, "{bad}");
        }
    }

    #[test]
    fn an_unknown_keyword_or_format_passes_nothing() {
        assert!(fault(&json!({ "pattern": "^a" }), &json!("a")).contains("cannot be checked"));
        assert!(fault(&json!({ "format": "email" }), &json!("a")).contains("cannot be checked"));
        assert_ne!(fault(&json!(3), &json!("a")), "");
        assert_ne!(fault(&json!(false), &json!("a")), "");
    }

    #[test]
    fn inputs_of_real_tools_are_judged() {
        let check = |name: &str, input: Value| fault(&(super::super::find(name).unwrap().schema)(), &input);
        assert_eq!(check("file_read", json!({ "path": "a", "offset": 3 })), "");
        assert_eq!(check("file_read", json!({ "offset": 3 })), "path is required");
        assert_eq!(check("file_read", json!({ "path": "a", "ofset": 3 })), "ofset is not a field of this tool");
        assert_eq!(check("tool_load", json!({ "names": ["a", 2] })), "names[1] must be a string");
        assert_eq!(check("task_claim", json!({ "task_id": "x" })), "task_id must be a UUID");
        assert_eq!(check("system_time", json!({})), "");
        assert_eq!(check("event_publish", json!({ "event_type": "a.b", "payload": [1, { "x": null }] })), "");
        assert_ne!(check("goal_update", json!({ "status": "done" })), "");
    }
}
