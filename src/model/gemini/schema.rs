//! From JSON Schema to the part of it that Gemini reads (`parametersJsonSchema`, `responseJsonSchema`).
//!
//! | keyword | becomes |
//! |---|---|
//! | type, title, description, enum, items, prefixItems, properties, additionalProperties, required, anyOf, minimum, maximum, minItems, maxItems | itself |
//! | format | itself, when it is `date-time`, `date` or `time` |
//! | const | an enum of one |
//! | oneOf | anyOf |
//! | allOf | its members, joined into one schema |
//! | `$ref` into `$defs` or `definitions` | what it names; a schema that holds itself ends as a plain object |
//! | nullable | `null` among the types |
//! | anything else | nothing |

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// Levels that a schema is followed; deeper ones end as plain objects.
const DEPTH_MAX: usize = 24;
/// Schemas within one schema, references followed; the rest end as plain objects or are left out. References can multiply.
const SCHEMAS_MAX: usize = 4_000;
/// Bytes of the result: so many times those of the schema, and [`BYTES_MORE`].
const BYTES_TIMES: usize = 4;
/// See [`BYTES_TIMES`].
const BYTES_MORE: usize = 4 << 10;
/// Bytes that a schema counts beside its texts.
const SCHEMA_BYTES: usize = 32;

/// Keywords that are taken as they are.
const PLAIN: &[&str] = &["title", "description", "enum", "minimum", "maximum", "minItems", "maxItems"];
/// Formats that are known.
const FORMATS: &[&str] = &["date-time", "date", "time"];

/// `schema` as Gemini reads it.
pub(super) fn accepted(schema: &Value) -> Value {
    let bytes = bytes(schema).saturating_mul(BYTES_TIMES).saturating_add(BYTES_MORE);
    let mut reading = Reading { root: schema, open: Vec::new(), left: SCHEMAS_MAX, bytes };
    reading.schema(schema, 0)
}

/// The JSON text of the tool's schema as it is sent; `None`: as it is. Only references make it longer.
pub(in crate::model) fn sent(schema: &RawValue) -> Option<String> {
    let read = || serde_json::from_str(schema.get()).ok();
    schema.get().contains("$ref").then(read)?.map(|schema| accepted(&schema).to_string())
}

/// About the bytes of a value's JSON text.
fn bytes(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
        Value::String(text) => text.len() + 3,
        Value::Array(values) => 3 + values.iter().map(bytes).sum::<usize>(),
        Value::Object(map) => 3 + map.iter().map(|(name, value)| name.len() + 4 + bytes(value)).sum::<usize>(),
    }
}

/// A schema while it is read.
struct Reading<'a> {
    root: &'a Value,
    /// The references that are being followed.
    open: Vec<&'a str>,
    /// Schemas that may still be read.
    left: usize,
    /// Bytes that may still be written.
    bytes: usize,
}

impl<'a> Reading<'a> {
    fn schema(&mut self, schema: &'a Value, depth: usize) -> Value {
        let Value::Object(keys) = schema else { return json!({}) };
        if depth >= DEPTH_MAX || self.left == 0 || !self.has_room(keys) {
            return json!({"type": "object"});
        }
        self.left -= 1;
        if let Some(name) = keys.get("$ref").and_then(Value::as_str) {
            return self.referred(name, keys, depth);
        }
        let mut out = Map::new();
        for keyword in PLAIN {
            if let Some(value) = keys.get(*keyword) {
                out.insert((*keyword).to_owned(), value.clone());
            }
        }
        if let Some(format) = keys.get("format").filter(|format| format.as_str().is_some_and(|f| FORMATS.contains(&f)))
        {
            out.insert("format".to_owned(), format.clone());
        }
        if let Some(only) = keys.get("const") {
            out.insert("enum".to_owned(), json!([only]));
        }
        if let Some(types) = types(keys) {
            out.insert("type".to_owned(), types);
        }
        self.parts(keys, depth, &mut out);
        for member in keys.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            if self.left == 0 {
                break;
            }
            join(&mut out, self.schema(member, depth + 1));
        }
        require_known(&mut out);
        Value::Object(out)
    }

    /// Is there room for what this schema has beside the schemas in it? Without, no other is read.
    fn has_room(&mut self, keys: &Map<String, Value>) -> bool {
        let own = PLAIN.iter().chain(&["const", "type", "required", "format"]).filter_map(|keyword| keys.get(*keyword));
        let names = keys.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::keys);
        let needed = SCHEMA_BYTES
            + own.map(|value| SCHEMA_BYTES / 2 + bytes(value)).sum::<usize>()
            + names.map(|name| name.len() + 4).sum::<usize>();
        match self.bytes.checked_sub(needed) {
            Some(left) => self.bytes = left,
            None => (self.left, self.bytes) = (0, 0),
        }
        self.left > 0
    }

    /// The schemas within a schema.
    fn parts(&mut self, keys: &'a Map<String, Value>, depth: usize, out: &mut Map<String, Value>) {
        if let Some(Value::Object(properties)) = keys.get("properties") {
            let mut read = Map::new();
            for (name, schema) in properties {
                if self.left == 0 {
                    break;
                }
                read.insert(name.clone(), self.schema(schema, depth + 1));
            }
            out.insert("properties".to_owned(), Value::Object(read));
        }
        for (keyword, as_keyword) in [("anyOf", "anyOf"), ("oneOf", "anyOf"), ("prefixItems", "prefixItems")] {
            if let Some(Value::Array(members)) = keys.get(keyword) {
                let mut read = Vec::new();
                for member in members {
                    // An empty list would allow nothing.
                    if self.left == 0 && !read.is_empty() {
                        break;
                    }
                    read.push(self.schema(member, depth + 1));
                }
                out.insert(as_keyword.to_owned(), Value::Array(read));
            }
        }
        for keyword in ["items", "additionalProperties"] {
            match keys.get(keyword) {
                Some(value @ Value::Bool(_)) if keyword == "additionalProperties" => {
                    out.insert(keyword.to_owned(), value.clone());
                }
                Some(schema @ Value::Object(_)) => {
                    out.insert(keyword.to_owned(), self.schema(schema, depth + 1));
                }
                _ => {}
            }
        }
        if let Some(required) = keys.get("required").filter(|required| required.is_array()) {
            out.insert("required".to_owned(), required.clone());
        }
    }

    /// What a reference names, with what stands beside it.
    fn referred(&mut self, name: &'a str, keys: &'a Map<String, Value>, depth: usize) -> Value {
        let found = name.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer));
        let Some(found) = found.filter(|_| !self.open.contains(&name)) else { return json!({"type": "object"}) };
        self.open.push(name);
        let mut read = self.schema(found, depth + 1);
        self.open.pop();
        if let (Some(read), Some(description)) =
            (read.as_object_mut(), keys.get("description").filter(|_| self.left > 0))
        {
            read.insert("description".to_owned(), description.clone());
        }
        read
    }
}

/// The types of a schema, `null` among them when it is `nullable`.
fn types(keys: &Map<String, Value>) -> Option<Value> {
    let types = keys.get("type").filter(|types| types.is_string() || types.is_array())?;
    if keys.get("nullable") != Some(&Value::Bool(true)) {
        return Some(types.clone());
    }
    let mut all = match types {
        Value::Array(types) => types.clone(),
        one => vec![one.clone()],
    };
    if !all.contains(&json!("null")) {
        all.push(json!("null"));
    }
    Some(Value::Array(all))
}

/// Joins a member of `allOf` into `out`, which wins.
fn join(out: &mut Map<String, Value>, member: Value) {
    let Value::Object(member) = member else { return };
    for (keyword, value) in member {
        match (out.get_mut(&keyword), value) {
            (Some(Value::Object(there)), Value::Object(more)) if keyword == "properties" => {
                for (name, schema) in more {
                    there.entry(name).or_insert(schema);
                }
            }
            (Some(Value::Array(there)), Value::Array(more)) if keyword == "required" => {
                let more: Vec<Value> = more.into_iter().filter(|name| !there.contains(name)).collect();
                there.extend(more);
            }
            (Some(_), _) => {}
            (None, value) => drop(out.insert(keyword, value)),
        }
    }
}

/// Gemini refuses a schema that requires what it does not describe.
fn require_known(out: &mut Map<String, Value>) {
    let properties = out.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    let Some(Value::Array(required)) = out.get_mut("required") else { return };
    required.retain(|name| name.as_str().is_some_and(|name| properties.contains_key(name)));
    if required.is_empty() {
        out.remove("required");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_stays_and_the_rest_goes() {
        let read = accepted(&json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "title": "T",
            "additionalProperties": false,
            "required": ["a", "missing"],
            "properties": {
                "a": {"type": "string", "format": "uri", "pattern": "^x", "minLength": 1, "description": "d"},
                "b": {"type": "integer", "minimum": 1, "exclusiveMaximum": 9, "default": 2},
                "c": {"const": "only"},
                "d": {"oneOf": [{"type": "string", "format": "date-time"}, {"type": "null"}]},
                "e": {"type": "array", "items": {"type": "number"}, "uniqueItems": true},
                "f": {"type": "string", "nullable": true},
                "g": true,
            },
        }));
        let expected = json!({
            "type": "object",
            "title": "T",
            "additionalProperties": false,
            "required": ["a"],
            "properties": {
                "a": {"type": "string", "description": "d"},
                "b": {"type": "integer", "minimum": 1},
                "c": {"enum": ["only"]},
                "d": {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "null"}]},
                "e": {"type": "array", "items": {"type": "number"}},
                "f": {"type": ["string", "null"]},
                "g": {},
            },
        });
        assert_eq!(read, expected);
    }

    #[test]
    fn references_are_followed_and_end() {
        let read = accepted(&json!({
            "type": "object",
            "properties": {"tree": {"$ref": "#/$defs/Tree", "description": "the root"}, "lost": {"$ref": "#/$defs/No"}},
            "$defs": {"Tree": {"type": "object", "properties": {
                "name": {"type": "string"},
                "children": {"type": "array", "items": {"$ref": "#/$defs/Tree"}},
            }}},
        }));
        let children = json!({"type": "array", "items": {"type": "object"}});
        let tree = json!({"type": "object", "description": "the root",
            "properties": {"name": {"type": "string"}, "children": children}});
        assert_eq!(read["properties"], json!({"tree": tree, "lost": {"type": "object"}}));
    }

    #[test]
    fn all_of_is_one() {
        let read = accepted(&json!({
            "allOf": [
                {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
                {"properties": {"b": {"type": "string"}}, "required": ["b"]},
            ],
            "description": "both",
        }));
        let properties = json!({"a": {"type": "string"}, "b": {"type": "string"}});
        let expected =
            json!({"type": "object", "description": "both", "properties": properties, "required": ["a", "b"]});
        assert_eq!(read, expected);
    }

    #[test]
    fn schemas_that_multiply_end_soon() {
        let mut defs = Map::new();
        for level in 0..20 {
            let next = json!({"$ref": format!("#/$defs/L{}", level + 1)});
            let properties = json!({"a": next, "b": next, "c": next});
            defs.insert(format!("L{level}"), json!({"type": "object", "properties": properties}));
        }
        defs.insert("L20".to_owned(), json!({"type": "string"}));
        let read = accepted(&json!({"$ref": "#/$defs/L0", "$defs": defs}));
        assert!(read.to_string().len() < 1 << 20);
        let mut deep = json!({"type": "string"});
        for _ in 0..100 {
            deep = json!({"type": "array", "items": deep});
        }
        assert!(accepted(&deep).to_string().contains("object"));
    }

    #[test]
    fn texts_that_multiply_end_soon() {
        let ten = |name: &str| {
            let to = json!({"$ref": format!("#/$defs/{name}")});
            let all: Map<String, Value> = (0..10).map(|n| (format!("p{n}"), to.clone())).collect();
            json!({"type": "object", "properties": all})
        };
        let text = json!({"type": "string", "description": "x".repeat(55_000)});
        let enumerated = json!({"enum": ["y".repeat(55_000)]});
        for first in [text, enumerated] {
            let mut schema = ten("c");
            schema["$defs"] = json!({"a": first, "b": ten("a"), "c": ten("b")});
            let (read, whole) = (accepted(&schema).to_string(), schema.to_string().len());
            assert!(read.len() <= BYTES_TIMES * whole + BYTES_MORE, "{}", read.len());
            assert!(read.len() > 2 * whole, "what there is room for is there");
            assert_eq!(sent(&serde_json::value::to_raw_value(&schema).unwrap()), Some(read));
        }
        // A reference used here and there, as generators of schemas write them, is whole.
        let size = json!({"type": "string", "enum": ["small", "large"], "description": "how much"});
        let all: Map<String, Value> = (0..12).map(|n| (format!("p{n}"), json!({"$ref": "#/$defs/size"}))).collect();
        let read = accepted(&json!({"type": "object", "properties": all, "$defs": {"size": size}}));
        assert!(read["properties"].as_object().unwrap().values().all(|read| *read == size));
    }

    #[test]
    fn every_tool_of_ours_is_accepted_unharmed() {
        for tool in crate::tool::toolset::built_in().offered_to_all() {
            let schema: Value = serde_json::from_str(tool.input_schema.get()).unwrap();
            let read = accepted(&schema);
            assert_eq!(read["type"], "object", "{}", tool.name);
            let names = |schema: &Value| {
                schema["properties"].as_object().map(|all| all.keys().cloned().collect::<Vec<_>>()).unwrap_or_default()
            };
            assert_eq!(names(&read), names(&schema), "{}", tool.name);
        }
    }
}
