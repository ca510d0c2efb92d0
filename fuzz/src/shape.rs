//! Values in the shape that the OpenAPI document says, or nearly: every choice is a byte of the input, and each value may
//! as well be something else.

use hyper::Method;
use serde_json::{Map, Value, json};

use super::feed::Feed;
use super::http::Names;

/// How deep a value goes.
const DEPTH_MAX: u32 = 6;

/// Texts that mean something somewhere.
const TEXTS: &[&str] = &[
    "",
    "a",
    "ada",
    "*",
    "every 5m",
    "0 9 * * *",
    "2030-01-01T00:00:00Z",
    "1d",
    "{{input}}",
    "/new",
    "!x {}",
    "name = \"bob\"",
    "UTC",
    "builtin",
    "builtin/builtin",
    "../x",
    "a/b",
    "\u{0}",
    "\u{1f600}\u{202e}",
    "-1",
    "null",
    "%2F",
    "agents where state = \"Running\" sort by name",
    "high",
    "00000000-0000-0000-0000-000000000000",
    "true",
];
/// Numbers at some edge.
const NUMBERS: &[i64] =
    &[0, 1, 2, -1, 10, 100, 1_000, 86_400, 1 << 20, i64::MAX, i64::MIN, 1_700_000_000_000, u32::MAX as i64];

/// One route of the document.
pub struct Operation {
    /// Its method.
    pub method: Method,
    path: String,
    parameters: Vec<(String, Value)>,
    body: Value,
}

/// The routes of a document.
pub struct Doc {
    operations: Vec<Operation>,
    schemas: Value,
}

impl Doc {
    /// Those of `document`.
    pub fn new(document: Value) -> Self {
        let mut operations = Vec::new();
        for (path, methods) in document["paths"].as_object().into_iter().flatten() {
            for (method, said) in methods.as_object().into_iter().flatten() {
                let method = Method::from_bytes(method.to_ascii_uppercase().as_bytes()).expect("a method");
                let parameters = said["parameters"].as_array().into_iter().flatten();
                let in_query = parameters.filter(|parameter| parameter["in"] == "query");
                let parameters = in_query.filter_map(|p| Some((p["name"].as_str()?.to_owned(), p["schema"].clone())));
                let body = said["requestBody"]["content"]["application/json"]["schema"].clone();
                let parameters = parameters.collect();
                operations.push(Operation { method, path: path.clone(), parameters, body });
            }
        }
        let schemas = document["components"]["schemas"].clone();
        let mut doc = Self { operations, schemas };
        doc.resolve();
        doc
    }

    /// Writes out references, so that an operation stands for itself.
    fn resolve(&mut self) {
        for operation in &mut self.operations {
            operation.body = resolved(&operation.body, &self.schemas, 0);
        }
    }

    /// One of all.
    pub fn operation(&self, number: usize) -> &Operation {
        &self.operations[number % self.operations.len()]
    }

    /// The one at `path`, whose parameters are filled by names.
    pub fn find(&self, method: &Method, path: &str) -> Option<&Operation> {
        let same = |operation: &&Operation| {
            let (ours, theirs) = (operation.path.split('/'), path.split('/'));
            let pairs = ours.clone().zip(theirs.clone());
            ours.count() == theirs.count()
                && pairs.into_iter().all(|(ours, theirs)| ours == theirs || ours.starts_with('{'))
        };
        self.operations.iter().filter(|operation| operation.method == *method).find(same)
    }
}

fn resolved(schema: &Value, schemas: &Value, depth: u32) -> Value {
    if depth > 2 * DEPTH_MAX {
        return json!({});
    }
    if let Some(name) = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
        return resolved(&schemas[name], schemas, depth + 1);
    }
    match schema {
        Value::Object(object) => {
            let each = |(key, value): (&String, &Value)| (key.clone(), resolved(value, schemas, depth + 1));
            Value::Object(object.iter().filter(|(key, _)| *key != "description").map(each).collect())
        }
        Value::Array(items) => items.iter().map(|item| resolved(item, schemas, depth + 1)).collect(),
        other => other.clone(),
    }
}

impl Operation {
    /// A path and a query.
    pub fn address(&self, feed: &mut Feed<'_>, names: &Names) -> String {
        let segments = self.path.split('/').map(|segment| match segment.strip_prefix('{') {
            None => segment.to_owned(),
            Some(name) => {
                let name = name.trim_end_matches('}').trim_end_matches("_id");
                // `{id}` is of what the path names before it.
                let noun = self.path.split('/').find(|word| !matches!(*word, "" | "api" | "v1")).unwrap_or_default();
                let name = if name == "id" { noun.trim_end_matches('s') } else { name };
                match feed.byte() {
                    0..=200 => names.get(name).cloned().unwrap_or_else(|| name.to_owned()),
                    201..=230 => names.values().nth(feed.below(names.len())).cloned().unwrap_or_default(),
                    _ => encoded(feed.one::<&str>(TEXTS)),
                }
            }
        });
        let path = segments.collect::<Vec<_>>().join("/");
        let query = self.query(feed, names);
        if query.is_empty() { path } else { format!("{path}?{query}") }
    }

    /// A query.
    pub fn query(&self, feed: &mut Feed<'_>, names: &Names) -> String {
        let mut pairs = Vec::new();
        for (name, schema) in &self.parameters {
            if feed.byte() % 4 == 1 {
                let text = match value(schema, feed, names, 1) {
                    Value::String(text) => text,
                    other => other.to_string(),
                };
                pairs.push(format!("{name}={}", encoded(&text)));
            }
        }
        pairs.join("&")
    }

    /// A body.
    pub fn body(&self, feed: &mut Feed<'_>, names: &Names) -> Value {
        value(&self.body, feed, names, 0)
    }
}

fn encoded(text: &str) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(byte);
    text.bytes().map(|byte| if plain(&byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

/// A value of the shape of `schema`.
fn value(schema: &Value, feed: &mut Feed<'_>, names: &Names, depth: u32) -> Value {
    if feed.byte() % 16 == 15 || depth > DEPTH_MAX {
        return odd(feed);
    }
    for key in ["anyOf", "oneOf", "allOf"] {
        if let Some(choices) = schema[key].as_array().filter(|choices| !choices.is_empty()) {
            return value(feed.one(choices), feed, names, depth + 1);
        }
    }
    if let Some(choices) = schema["enum"].as_array().filter(|choices| !choices.is_empty()) {
        return feed.one(choices).clone();
    }
    match schema["type"].as_str() {
        Some("object") => object(schema, feed, names, depth),
        Some("array") => {
            (0..feed.below(4)).map(|_| value(&schema["items"], feed, names, depth + 1)).collect::<Vec<_>>().into()
        }
        Some("integer") => number(schema, feed),
        Some("number") => json!(number(schema, feed).as_f64().unwrap_or(0.0) / 4.0),
        Some("boolean") => json!(feed.byte() % 2 == 1),
        Some("string") => text(schema, feed, names),
        _ => odd(feed),
    }
}

fn object(schema: &Value, feed: &mut Feed<'_>, names: &Names, depth: u32) -> Value {
    let mut object = Map::new();
    let is_required = |name: &str| schema["required"].as_array().is_some_and(|all| all.iter().any(|n| n == name));
    for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
        // What must be there is left out now and then, what may be there is there now and then.
        let rng = feed.byte() % 16;
        let is_there = if is_required(name) { rng != 15 } else { matches!(rng, 1..=4) };
        if is_there {
            let named = name.strip_suffix("_id").and_then(|name| names.get(name));
            let value = match named {
                Some(id) if feed.byte() % 8 != 7 => json!(id),
                _ => value(schema, feed, names, depth + 1),
            };
            object.insert(name.clone(), value);
        }
    }
    if let Some(schema) = schema.get("additionalProperties").filter(|schema| schema.is_object()) {
        for _ in 0..feed.below(3) {
            object.insert((*feed.one(TEXTS)).to_owned(), value(schema, feed, names, depth + 1));
        }
    }
    Value::Object(object)
}

fn number(schema: &Value, feed: &mut Feed<'_>) -> Value {
    match feed.byte() % 4 {
        0 => json!(feed.byte()),
        1 => schema.get("maximum").cloned().unwrap_or_else(|| json!(feed.one(NUMBERS))),
        2 => schema.get("minimum").cloned().unwrap_or_else(|| json!(feed.one(NUMBERS))),
        _ => json!(feed.one(NUMBERS)),
    }
}

fn text(schema: &Value, feed: &mut Feed<'_>, names: &Names) -> Value {
    match (schema["format"].as_str(), feed.byte() % 8) {
        (Some("uuid"), 0..=6) => json!(names.values().nth(feed.below(names.len()))),
        (_, 0..=5) => json!(feed.one(TEXTS)),
        _ => {
            let length = feed.below(64);
            json!(String::from_utf8_lossy(feed.take(length)))
        }
    }
}

/// Something of no shape.
fn odd(feed: &mut Feed<'_>) -> Value {
    match feed.byte() % 8 {
        0 => Value::Null,
        1 => json!(true),
        2 => json!(feed.one(NUMBERS)),
        3 => json!([]),
        4 => json!({}),
        5 => json!(1e300),
        6 => json!({"": [null]}),
        _ => json!(feed.one(TEXTS)),
    }
}
