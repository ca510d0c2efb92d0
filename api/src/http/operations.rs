//! The routes as a command line offers them: what each takes, and with which types.

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::Value;

use crate::http::domain::Domains;
use crate::http::route::{Route, SchemaOf, Verb};

/// What a parameter of the query or a key of the body takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// Text as it is typed.
    Text,
    /// True or false.
    Switch,
    /// A whole number or a decimal one.
    Number,
    /// Several texts: a list.
    Texts,
    /// Any JSON.
    Json,
}

/// One parameter of the query, or one key of the body.
#[derive(Clone, Debug)]
pub struct Input {
    /// Its name on the wire.
    pub name: String,
    /// What it means, in one line; may be empty.
    pub about: String,
    /// What it takes.
    pub takes: Takes,
    /// The words that it may be; empty if it may be others.
    pub words: Vec<String>,
}

/// One route that answers at once.
#[derive(Clone, Debug)]
pub struct Operation {
    /// The method.
    pub verb: Verb,
    /// The pattern, such as `/api/goals/{id}`.
    pub path: &'static str,
    /// What it does, in one phrase.
    pub summary: &'static str,
    /// The parameters of its query.
    pub query: Vec<Input>,
    /// The keys of its JSON body; `None` if it takes none.
    pub body: Option<Vec<Input>>,
}

impl Domains {
    /// The routes at and under the path `prefix` that take and give plain bodies: no streams, no files and no sockets.
    #[must_use]
    pub fn operations(&self, prefix: &str) -> Vec<Operation> {
        let is_under =
            |path: &str| path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
        let mut generator = settings.into_generator();
        let routes = self.list().iter().flat_map(|domain| domain.routes).copied().flatten();
        let operation = |route: &Route| Operation {
            verb: route.verb,
            path: route.path,
            summary: route.summary,
            query: route.query.map(|query| inputs(query, &mut generator)).unwrap_or_default(),
            body: route.request.map(|body| inputs(body, &mut generator)),
        };
        routes.filter(|route| is_under(route.path) && is_plain(route)).map(operation).collect()
    }
}

fn is_plain(route: &Route) -> bool {
    let is_stream = |content_type: &str| {
        ["text/event-stream", "application/octet-stream", "application/gzip"].contains(&content_type)
    };
    route.streamed.is_none() && !route.replies.iter().any(|reply| reply.status == 101 || is_stream(reply.content_type))
}

fn inputs(schema: SchemaOf, generator: &mut SchemaGenerator) -> Vec<Input> {
    let schema = schema(generator).to_value();
    let Some(properties) = schema["properties"].as_object() else { return Vec::new() };
    let input = |(name, schema): (&String, &Value)| Input {
        name: name.clone(),
        about: about(&schema["description"]),
        takes: takes(schema),
        words: words(schema).unwrap_or_default(),
    };
    properties.iter().map(input).collect()
}

/// The first paragraph of a description, in one line.
fn about(description: &Value) -> String {
    let text = description.as_str().unwrap_or_default();
    text.split("\n\n").next().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
}

fn takes(schema: &Value) -> Takes {
    let is_null = |one: &&Value| one["type"] == "null";
    // One of some words, or none.
    if let Some(either) = schema["anyOf"].as_array().or_else(|| schema["oneOf"].as_array()) {
        let mut takes = either.iter().filter(|one| !is_null(one)).map(takes);
        let first = takes.next().unwrap_or(Takes::Json);
        return if takes.all(|other| other == first) { first } else { Takes::Json };
    }
    let types: Vec<&str> = match &schema["type"] {
        Value::String(of) => vec![of.as_str()],
        Value::Array(of) => of.iter().filter_map(Value::as_str).filter(|of| *of != "null").collect(),
        _ => Vec::new(),
    };
    match types.as_slice() {
        ["string"] => Takes::Text,
        ["boolean"] => Takes::Switch,
        ["integer" | "number"] => Takes::Number,
        ["array"] if schema["items"]["type"] == "string" => Takes::Texts,
        _ => Takes::Json,
    }
}

/// The words of which a value is one; `None` if it may be something else.
fn words(schema: &Value) -> Option<Vec<String>> {
    let text = |word: &Value| word.as_str().map(str::to_owned);
    if let Some(word) = schema.get("const") {
        return Some(vec![text(word)?]);
    }
    if let Some(list) = schema["enum"].as_array() {
        return list.iter().filter(|word| !word.is_null()).map(text).collect();
    }
    let either = schema["anyOf"].as_array().or_else(|| schema["oneOf"].as_array())?;
    let lists = either.iter().filter(|one| one["type"] != "null").map(words).collect::<Option<Vec<_>>>()?;
    Some(lists.concat())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn words_are_those_of_enums() {
        let of = |schema: Value| words(&schema).unwrap_or_default().join(" ");
        assert_eq!(of(json!({ "type": "string", "enum": ["a", "b"] })), "a b");
        assert_eq!(of(json!({ "enum": ["a", null] })), "a");
        let described =
            json!({ "oneOf": [{ "const": "a", "description": "A." }, { "type": "string", "enum": ["b"] }] });
        assert_eq!(of(json!({ "anyOf": [described, { "type": "null" }] })), "a b");
        assert_eq!(of(json!({ "anyOf": [{ "const": "a" }, { "type": "string" }] })), "", "it may be any text");
        assert_eq!((of(json!({ "type": "string" })), of(json!({ "const": 3 }))), (String::new(), String::new()));
    }
}
