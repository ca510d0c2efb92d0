//! Fields and examples of the JSON Schemas in the OpenAPI document.

use std::fmt::Write;

use serde_json::{Map, Value, json};

/// How deep fields within fields are written out.
const DEPTH_MAX: usize = 4;

/// One field of a body.
pub(crate) struct Field {
    name: String,
    kind: String,
    is_required: bool,
    about: String,
}

/// The document, in which references are looked up.
#[derive(Clone, Copy)]
pub(crate) struct Schemas<'d>(pub(crate) &'d Value);

impl<'d> Schemas<'d> {
    /// What a reference, or an `allOf` or `anyOf` of one schema, stands for.
    fn resolve(self, schema: &'d Value) -> &'d Value {
        if let Some(name) = schema["$ref"].as_str().and_then(|name| name.rsplit('/').next()) {
            return self.resolve(&self.0["components"]["schemas"][name]);
        }
        if let Some([only]) = schema["allOf"].as_array().map(Vec::as_slice) {
            return self.resolve(only);
        }
        let is_some = |one: &&Value| one["enum"] != json!([null]) && one["type"] != "null";
        match schema["anyOf"].as_array().map(|any| any.iter().filter(is_some).collect::<Vec<_>>()) {
            Some(any) if any.len() == 1 => self.resolve(any[0]),
            _ => schema,
        }
    }

    pub(crate) fn kind(self, schema: &'d Value) -> String {
        let real = self.resolve(schema);
        let is_nullable = schema["nullable"] == true || real["nullable"] == true || schema["anyOf"].is_array();
        let alternatives = ["anyOf", "oneOf"].iter().find_map(|key| real[*key].as_array());
        let words = |one: &Value| one["enum"].as_array().cloned().unwrap_or_default();
        let all: Vec<Value> = match alternatives {
            Some(all) => all.iter().flat_map(words).collect(),
            None => words(real),
        };
        let kind = match (real["type"].as_str(), alternatives) {
            _ if !all.is_empty() => {
                let text =
                    |word: &Value| format!("`{}`", word.as_str().map_or_else(|| word.to_string(), str::to_owned));
                all.iter().filter(|word| !word.is_null()).map(text).collect::<Vec<_>>().join(", ")
            }
            (Some("array"), _) => format!("array of {}", self.kind(&real["items"])),
            (Some("object"), _) if real["additionalProperties"].is_object() => {
                format!("map of {}", self.kind(&real["additionalProperties"]))
            }
            (Some("string"), _) => match real["format"].as_str() {
                Some("uuid") => "UUID".to_owned(),
                Some("date-time") => "timestamp".to_owned(),
                Some("binary") => "bytes".to_owned(),
                _ => "string".to_owned(),
            },
            (Some(kind), _) => kind.to_owned(),
            (None, Some(all)) => all.iter().map(|one| self.kind(one)).collect::<Vec<_>>().join(" or "),
            (None, None) => "any JSON".to_owned(),
        };
        if is_nullable && !kind.ends_with("or null") { format!("{kind} or null") } else { kind }
    }

    /// Every field of a schema, those within it as `outer.inner` and `list[].inner`.
    pub(crate) fn fields(self, schema: &'d Value) -> Vec<Field> {
        let mut fields = Vec::new();
        self.collect(schema, "", 0, &mut fields);
        fields
    }

    fn collect(self, schema: &'d Value, prefix: &str, depth: usize, into: &mut Vec<Field>) {
        let schema = self.resolve(schema);
        if depth > DEPTH_MAX {
            return;
        }
        if schema["items"].is_object() {
            return self.collect(&schema["items"], &format!("{prefix}[]"), depth, into);
        }
        if schema["additionalProperties"].is_object() {
            return self.collect(&schema["additionalProperties"], &format!("{prefix}.<name>"), depth + 1, into);
        }
        for one in ["anyOf", "oneOf", "allOf"].iter().filter_map(|key| schema[*key].as_array()).flatten() {
            self.collect(one, prefix, depth + 1, into);
        }
        let required = |name: &str| schema["required"].as_array().is_some_and(|all| all.iter().any(|one| one == name));
        for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
            let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
            let about = inner["description"].as_str().or(self.resolve(inner)["description"].as_str()).unwrap_or("");
            into.push(Field {
                name: path.clone(),
                kind: self.kind(inner),
                is_required: required(name),
                about: one_line(about),
            });
            self.collect(inner, &path, depth + 1, into);
        }
    }

    /// An example of a value; `is_whole`: with the fields that may be left out.
    pub(crate) fn example(self, name: &str, schema: &'d Value, is_whole: bool, depth: usize) -> Value {
        let real = self.resolve(schema);
        if depth > 3 {
            return Value::Null;
        }
        let word = |one: &Value| one["enum"].as_array().and_then(|words| words.first()).cloned();
        if let Some(word) = word(real) {
            return word;
        }
        if let Some(all) = ["oneOf", "anyOf"].iter().find_map(|key| real[*key].as_array()) {
            let first = all.first().unwrap_or(&Value::Null);
            return word(first).unwrap_or_else(|| self.example(name, first, is_whole, depth));
        }
        match real["type"].as_str() {
            Some("string") => text_example(name, real["format"].as_str().unwrap_or("")),
            Some("integer") => real["minimum"].as_u64().filter(|least| *least > 0).unwrap_or(1).into(),
            Some("number") => json!(0.25),
            Some("boolean") => json!(true),
            Some("array") => Value::Array(vec![self.example(name, &real["items"], is_whole, depth + 1)]),
            Some("object") => {
                let required = real["required"].as_array().cloned().unwrap_or_default();
                let is_shown = |key: &str| is_whole || required.iter().any(|one| one == key);
                let fields = real["properties"].as_object().into_iter().flatten();
                let fields = fields.filter(|(key, _)| is_shown(key));
                let example =
                    |(key, inner): (&String, &'d Value)| (key.clone(), self.example(key, inner, is_whole, depth + 1));
                Value::Object(fields.map(example).collect::<Map<_, _>>())
            }
            _ => json!({}),
        }
    }
}

/// A text that could stand in the field `name`.
fn text_example(name: &str, format: &str) -> Value {
    let text = match (name, format) {
        (_, "uuid") => "019aa5c8-0f10-7c3a-9d2e-5b1c6f7a8e01",
        (_, "date-time") => "2026-11-21T10:55:00.000Z",
        (name, _) if name.ends_with("_at") => "2026-11-21T10:55:00.000Z",
        (name, _) if name == "id" || name.ends_with("_id") => "019aa5c8-0f10-7c3a-9d2e-5b1c6f7a8e01",
        ("cron" | "schedule", _) => "0 9 * * 1-5",
        ("timezone", _) => "Europe/Berlin",
        ("provider", _) => "openai",
        ("model", _) => "gpt-4.1",
        ("message" | "prompt" | "input", _) => "Summarize the open issues.",
        ("agent_name", _) => "scout",
        ("manifest_toml", _) => "name = \"scout\"\n",
        ("url" | "base_url", _) => "http://127.0.0.1:8080/v1",
        ("path", _) => "notes/today.md",
        ("filename", _) => "report.pdf",
        _ => "text",
    };
    text.into()
}

/// A description as it stands in a cell of a table.
pub(crate) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

/// A table of fields; `says_required`: of a request.
pub(crate) fn table(fields: &[Field], says_required: bool) -> String {
    let mut text = String::from(if says_required {
        "| field | type | required | meaning |\n| --- | --- | --- | --- |\n"
    } else {
        "| field | type | meaning |\n| --- | --- | --- |\n"
    });
    for Field { name, kind, is_required, about } in fields {
        let required = if *is_required { " yes |" } else { " |" };
        let required = if says_required { required } else { "" };
        let _ = writeln!(text, "| `{name}` | {kind} |{required} {about} |");
    }
    text
}
