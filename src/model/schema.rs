//! JSON schemas as Claude takes them, from Anthropic and on Bedrock.

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};
use std::borrow::Cow;

/// Bounds that are refused in the schema of an answer. The models do without.
const BOUNDS: [&str; 8] =
    ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "maxItems"];

/// The schema of a tool's input, which must say that it is an object.
pub(crate) fn of_input(schema: &RawValue) -> Cow<'_, RawValue> {
    let mut map: Map<String, Value> = serde_json::from_str(schema.get()).unwrap_or_default();
    if map.get("type").and_then(Value::as_str) == Some("object") {
        return Cow::Borrowed(schema);
    }
    map.insert("type".to_owned(), "object".into());
    to_raw_value(&map).map_or(Cow::Borrowed(schema), Cow::Owned)
}

/// The schema of an answer: every object in it is closed, and no bound stands in it.
pub(crate) fn closed(mut schema: Value) -> Value {
    close(&mut schema);
    schema
}

fn close(schema: &mut Value) {
    let Value::Object(map) = schema else { return };
    BOUNDS.iter().for_each(|bound| drop(map.remove(*bound)));
    if map.contains_key("properties") || map.get("type").and_then(Value::as_str) == Some("object") {
        map.insert("additionalProperties".to_owned(), false.into());
    }
    for (key, below) in map {
        match (key.as_str(), below) {
            ("properties" | "$defs" | "definitions", Value::Object(named)) => named.values_mut().for_each(close),
            ("anyOf" | "allOf" | "oneOf" | "prefixItems", Value::Array(list)) => list.iter_mut().for_each(close),
            ("items", items) => close(items),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn answers_are_closed_without_bounds() {
        let schema = json!({"type": "object", "additionalProperties": true, "properties": {
            "minimum": {"type": "integer", "minimum": 1},
            "list": {"type": "array", "maxItems": 3, "items": {"properties": {}}},
            "one": {"anyOf": [{"type": "string", "maxLength": 4}, {"$ref": "#/$defs/d"}]}},
            "$defs": {"d": {"type": "object"}}});
        let expected = json!({"type": "object", "additionalProperties": false, "properties": {
            "minimum": {"type": "integer"},
            "list": {"type": "array", "items": {"properties": {}, "additionalProperties": false}},
            "one": {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/d"}]}},
            "$defs": {"d": {"type": "object", "additionalProperties": false}}});
        assert_eq!(closed(schema), expected);
    }

    #[test]
    fn inputs_are_objects() {
        let of = |text: &str| of_input(&RawValue::from_string(text.to_owned()).unwrap()).get().to_owned();
        assert_eq!(of("{ \"type\": \"object\" }"), "{ \"type\": \"object\" }");
        assert_eq!((of("{}").as_str(), of("true").as_str()), ("{\"type\":\"object\"}", "{\"type\":\"object\"}"));
    }
}
