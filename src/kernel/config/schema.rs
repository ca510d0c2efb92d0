//! The JSON Schema of the file (draft 2020-12), made from the lists of keys.

use serde_json::{Map, Value, json};

use super::key::{Applies, Key, Kind, Writes};

/// The schema of a file with the keys `root`, and with tables of later releases.
pub(super) fn schema(root: &'static [Key], reserved: &[&str]) -> Value {
    let mut schema = object("", root);
    if let Some(properties) = schema["properties"].as_object_mut() {
        for table in reserved {
            properties.insert((*table).to_owned(), later(table));
        }
    }
    schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    schema["title"] = json!("agentsvc config.toml");
    schema["description"] = json!("The configuration of the daemon. All keys are optional.");
    schema
}

/// A table of a later release.
fn later(table: &str) -> Value {
    json!({
        "title": table,
        "description": "Reserved for a later release; has no effect.",
        "type": ["object", "array"],
        "items": { "type": "object" },
        "x-takes-effect": Applies::Never.as_str(),
        "x-writable": false,
    })
}

fn object(path: &str, keys: &'static [Key]) -> Value {
    let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    let properties = keys.iter().map(|key| (key.name.to_owned(), property(&below(key.name), key)));
    json!({ "type": "object", "properties": properties.collect::<Map<_, _>>(), "additionalProperties": false })
}

fn property(path: &str, key: &'static Key) -> Value {
    let mut property = shape(path, key);
    property["title"] = json!(path);
    property["description"] = json!(key.about);
    if key.is_table() {
        return property;
    }
    if let Some(value) = key.json() {
        if key.is_example() {
            property["examples"] = json!([value]);
        } else {
            property["default"] = value;
        }
    }
    property["x-takes-effect"] = json!(key.applies.as_str());
    property["x-writable"] = json!(key.writes == Writes::Api);
    property
}

fn shape(path: &str, key: &'static Key) -> Value {
    let whole = |min: u64, max: u64| json!({ "type": "integer", "minimum": min, "maximum": max });
    match key.kind {
        Kind::Text => json!({ "type": "string" }),
        Kind::Secret => json!({ "type": "string", "writeOnly": true }),
        Kind::Variable => json!({ "type": "string", "pattern": "^([A-Za-z_][A-Za-z0-9_]*)?$" }),
        Kind::Url => json!({ "type": "string", "format": "uri" }),
        Kind::Choice(words) => json!({ "type": "string", "enum": words() }),
        Kind::Integer { min, max } => whole(min, max),
        Kind::Number { min, max } => json!({ "type": "number", "minimum": min, "maximum": max }),
        Kind::Flag => json!({ "type": "boolean" }),
        Kind::List => json!({ "type": "array", "items": { "type": "string" } }),
        Kind::NamedIntegers { min, max } => json!({ "type": "object", "additionalProperties": whole(min, max) }),
        Kind::Table(keys) => object(path, keys),
        Kind::Object => json!({ "type": "object" }),
        Kind::Objects => json!({ "type": "array", "items": { "type": "object" } }),
        Kind::Named(keys, _) => {
            json!({ "type": "object", "additionalProperties": object(&format!("{path}.<name>"), keys) })
        }
    }
}
