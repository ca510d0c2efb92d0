//! Schema and reader say the same of every key.

use std::path::Path;

use serde_json::{Value, json};

use crate::config::{Config, Document, Error};
use crate::kernel::config::{Table, tree};

/// What `schema` says against `value`, by the keywords that it uses; empty when it takes it.
fn complaints(schema: &Value, value: &Value) -> Vec<String> {
    const KNOWN: &[&str] = &[
        "$schema",
        "title",
        "description",
        "type",
        "properties",
        "additionalProperties",
        "items",
        "enum",
        "minimum",
        "maximum",
        "pattern",
        "format",
        "writeOnly",
        "default",
        "examples",
        "x-takes-effect",
        "x-writable",
    ];
    let rules = schema.as_object().expect("a schema is an object");
    let unknown = rules.keys().filter(|word| !KNOWN.contains(&word.as_str()));
    let mut found: Vec<String> = unknown.map(|word| format!("unknown keyword {word}")).collect();
    let is = |kind: &str| match kind {
        "string" => value.is_string(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("no such type: {other}"),
    };
    let kinds = match &rules["type"] {
        Value::String(kind) => vec![kind.as_str()],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        other => panic!("no type: {other}"),
    };
    if !kinds.into_iter().any(is) {
        found.push(format!("{value} is no {}", rules["type"]));
        return found;
    }
    if rules.get("enum").and_then(Value::as_array).is_some_and(|words| !words.contains(value)) {
        found.push(format!("{value} is none of the words"));
    }
    let number = value.as_f64().unwrap_or_default();
    if rules.get("minimum").and_then(Value::as_f64).is_some_and(|min| value.is_number() && number < min)
        || rules.get("maximum").and_then(Value::as_f64).is_some_and(|max| value.is_number() && number > max)
    {
        found.push(format!("{value} is out of range"));
    }
    for item in value.as_array().into_iter().flatten() {
        found.extend(rules.get("items").into_iter().flat_map(|items| complaints(items, item)));
    }
    for (name, value) in value.as_object().into_iter().flatten() {
        match (rules.get("properties").and_then(|known| known.get(name)), rules.get("additionalProperties")) {
            (Some(rule), _) => found.extend(complaints(rule, value)),
            (None, Some(Value::Bool(false))) => found.push(format!("{name} is unknown")),
            (None, Some(rule)) if rule.is_object() => found.extend(complaints(rule, value)),
            (None, _) => {}
        }
    }
    found
}

/// What the reader says against `text`; empty when it takes it.
fn problems(text: &str) -> Vec<String> {
    match Config::parse(text, Path::new("c")) {
        Ok(_) => Vec::new(),
        Err(Error::Invalid(problems)) => problems.list.into_iter().map(|problem| problem.message).collect(),
        Err(other) => panic!("{other}"),
    }
}

fn json_of(text: &str) -> Value {
    let table: toml::Table = text.parse().expect("TOML");
    serde_json::to_value(table).expect("JSON")
}

/// A message about what a schema knows: types, ranges, words and unknown keys.
fn is_of_a_schema(message: &str) -> bool {
    let starts =
        ["must be a string,", "must be an integer", "must be a number,", "must be true or false", "must be one of"];
    let ranges = message.strip_prefix("must be ").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    ranges
        || starts.iter().any(|start| message.starts_with(start))
        || message.starts_with("must be a list of strings, not")
        || message.starts_with("must be a list of tables")
        || message.starts_with("must be a table, not")
        || message.starts_with("unknown key")
}

#[test]
fn both_agree_on_every_key_and_every_kind_of_value() {
    let schema = Config::schema();
    let values = [
        "\"text\"",
        "\"\"",
        "0",
        "1",
        "-1",
        "7",
        "99999999999999999",
        "9223372036854775807",
        "0.5",
        "-0.5",
        "1e300",
        "true",
        "[]",
        "[\"text\"]",
        "[7]",
        "{}",
        "{ text = 7 }",
        "{ text = \"x\" }",
        "\"info\"",
        "\"none\"",
        "\"json\"",
    ];
    let mut compared = 0;
    for (path, key) in tree::leaves(Config::KEYS) {
        let named = if path.starts_with("prices") { "\"a/b\"" } else { "openai" };
        for value in values.into_iter().chain([&*key.value()]) {
            let text = format!("{} = {value}\n", path.replace("<name>", named));
            let (said, read) = (complaints(&schema, &json_of(&text)), problems(&text));
            let of_schema = read.iter().any(|message| is_of_a_schema(message));
            assert_eq!(!said.is_empty(), of_schema, "{text}schema: {said:?}\nreader: {read:?}");
            compared += 1;
        }
    }
    assert!(compared > 1_000, "{compared}");
}

#[test]
fn both_agree_on_whole_files() {
    let schema = Config::schema();
    for (text, is_valid) in [
        ("", true),
        ("api_key = \"k\"\n[world]\ntick_hz = 30\n[[compaction]]\nname = \"a\"\n", true),
        ("[providers.mine]\nbase_url = \"http://h/v1\"\ncontext_tokens = 1000\n", true),
        ("[prices.\"a/b\"]\ninput_per_m = 1\n[queue.concurrency.providers]\nopenai = 3\n", true),
        ("wrld = 1\n", false),
        ("compaction = 1\n", false),
        ("sidecar_channels = [1]\n", false),
        ("[world]\ntick_hz = 1001\n", false),
        ("[world.inner]\nx = 1\n", false),
        ("world = 1\n", false),
        ("providers = 1\n", false),
        ("[providers]\nmine = 1\n", false),
        ("[providers.openai]\nbase = 1\n", false),
        ("[queue.concurrency.providers]\nopenai = \"x\"\n", false),
    ] {
        assert_eq!(complaints(&schema, &json_of(text)).is_empty(), is_valid, "schema: {text}");
        assert_eq!(problems(text).is_empty(), is_valid, "reader: {text}");
    }
}

#[test]
fn every_property_is_described_and_its_default_is_the_real_one() {
    let shown = serde_json::to_value(Config::default()).unwrap();
    for (path, key) in tree::leaves(Config::KEYS) {
        assert!(!key.about.is_empty(), "{path} has no text");
        let value = key.json().unwrap_or_else(|| panic!("{path}: {} is not TOML", key.value()));
        let real = path.split('.').try_fold(&shown, |value, name| value.get(name)).cloned();
        let real = real.filter(|real| !real.is_null());
        match path.as_str() {
            // The key is masked; what a word means to an absent one is said elsewhere.
            "api_key" | "network.shared_secret" | "web.search.provider" => {}
            _ if key.is_example() => assert_ne!(Some(value), real, "{path}: no example, its default"),
            _ => assert_eq!(Some(value), real, "{path}: its default is another"),
        }
    }
    let schema = Config::schema();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert_eq!(schema["additionalProperties"], json!(false));
    let tick = &schema["properties"]["world"]["properties"]["tick_hz"];
    assert_eq!((&tick["minimum"], &tick["maximum"], &tick["default"]), (&json!(1), &json!(1000), &json!(20)));
    assert_eq!((&tick["x-takes-effect"], &tick["x-writable"]), (&json!("restart"), &json!(true)));
    let secret = &schema["properties"]["api_key"];
    assert_eq!((&secret["writeOnly"], &secret["x-writable"]), (&json!(true), &json!(false)));
    assert_eq!(schema["properties"]["exec_policy"]["properties"]["mode"]["enum"], json!(["deny", "allowlist", "full"]));
}
