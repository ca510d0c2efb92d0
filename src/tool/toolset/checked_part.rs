//! The part of a stranger's schema, of a skill or a plugin, that values are held against.

use serde_json::{Map, Value};

/// Keywords that cost no more than the value is long.
const CHEAP: &[&str] = &[
    "type",
    "required",
    "const",
    "format",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
];
/// Values of an `enum`; a longer one is not checked, as each item of a list may be held against all of them.
const ENUM_VALUES_MAX: usize = 256;
/// Schemas within each other; what is deeper is not checked.
const DEPTH_MAX: usize = 8;

/// What is checked of a stranger's schema: types, bounds and lists of values. Regular expressions take up to a mebibyte each once
/// they are read, and combined schemas can take exponential time; models see both all the same.
pub(super) fn checked_part(schema: &Value) -> Value {
    part(schema, 0)
}

fn part(schema: &Value, depth: usize) -> Value {
    let Some(keywords) = schema.as_object().filter(|_| depth < DEPTH_MAX) else { return Value::Bool(true) };
    let kept = keywords.iter().filter_map(|(key, value)| Some((key.clone(), keyword(keywords, key, value, depth)?)));
    Value::Object(kept.collect())
}

/// What is kept of one keyword of a schema.
fn keyword(keywords: &Map<String, Value>, key: &str, value: &Value, depth: usize) -> Option<Value> {
    match (key, value) {
        ("properties", Value::Object(named)) => {
            Some(named.iter().map(|(name, schema)| (name.clone(), part(schema, depth + 1))).collect())
        }
        ("items", Value::Object(_)) => Some(part(value, depth + 1)),
        // Where patterns allow more names, those would be refused.
        ("additionalProperties", Value::Bool(_)) if !keywords.contains_key("patternProperties") => Some(value.clone()),
        ("enum", Value::Array(values)) if values.len() > ENUM_VALUES_MAX => None,
        ("enum", value) => Some(value.clone()),
        (key, value) => CHEAP.contains(&key).then(|| value.clone()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use serde_json::json;

    use super::*;
    use crate::tool::toolset::InputSchema;

    fn check(schema: &Value, input: &Value) -> bool {
        InputSchema::of_stranger(schema).unwrap().check(input).is_ok()
    }

    #[test]
    fn a_long_list_of_values_is_not_checked() {
        let values: Vec<usize> = (0..=ENUM_VALUES_MAX).collect();
        assert!(check(&json!({ "items": { "enum": values } }), &json!(["x"])));
        assert!(!check(&json!({ "items": { "enum": values[1..] } }), &json!(["x"])));
    }

    #[test]
    fn types_bounds_and_values_are_checked_and_patterns_are_not() {
        let schema = json!({
            "type": "object", "additionalProperties": false,
            "properties": {
                "pattern": { "type": "string", "pattern": "a{9}", "maxLength": 3 },
                "list": { "items": { "anyOf": [{ "pattern": "b" }], "enum": ["x"] } },
            },
            "required": ["pattern"],
        });
        assert!(check(&schema, &json!({ "pattern": "b", "list": ["x"] })));
        for wrong in [
            json!({}),
            json!({ "pattern": 1 }),
            json!({ "pattern": "long" }),
            json!({ "pattern": "b", "list": ["y"] }),
            json!({ "pattern": "b", "more": 1 }),
        ] {
            assert!(!check(&schema, &wrong), "{wrong}");
        }
        let open = json!({ "patternProperties": { "^x": {} }, "additionalProperties": false });
        assert!(check(&open, &json!({ "x1": 1 })));
    }

    #[test]
    fn schemas_that_cost_much_are_cheap() {
        let began = Instant::now();
        let names = (0..1_600).map(|n| (format!("p{n}"), json!({ "pattern": format!("(?i){n}[a-z]{{3000}}") })));
        let patterns = json!({ "type": "object", "properties": Value::Object(names.collect()) });
        assert!(check(&patterns, &json!({ "p1": "anything" })));
        let mut nested = json!({ "type": "object" });
        for _ in 0..35 {
            nested = json!({ "anyOf": [nested], "unevaluatedProperties": { "type": "integer" } });
        }
        assert!(check(&nested, &json!({ "o": { "a": 1 } })));
        let mut deep = json!({ "type": "integer" });
        for _ in 0..60 {
            deep = json!({ "properties": { "x": deep } });
        }
        assert!(check(&deep, &json!({ "x": { "x": "y" } })));
        assert!(began.elapsed().as_secs() < 10);
    }
}
