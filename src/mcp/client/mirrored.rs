//! Arguments of tools that stand in headers, too: in version `2026-07-28` over HTTP, a property with `x-mcp-header` is mirrored
//! in `Mcp-Param-<name>`, so that proxies need not read the body.

use serde_json::{Map, Value};

/// What marks a property.
const MARK: &str = "x-mcp-header";
/// What names of headers begin with.
const PREFIX: &str = "mcp-param-";
/// Properties of a tool that are mirrored.
const MIRRORED_MAX: usize = 32;
/// Bytes of the name of a header.
const NAME_BYTES_MAX: usize = 64;
/// Bytes of a value that can be sent in a header.
const VALUE_BYTES_MAX: usize = 4 << 10;
/// Levels of a schema.
const DEPTH_MAX: usize = 32;

/// A property that is mirrored: its place in the input, and its header.
pub(super) type Mirrored = (Vec<String>, String);

/// The properties that a schema has mirrored; none where one of its marks is not valid. Then the tool cannot be called as the
/// protocol wants it.
pub(super) fn declared(schema: &Value) -> Option<Vec<Mirrored>> {
    let mut found = Vec::new();
    walk(schema, &mut Vec::new(), &mut found)?;
    (found.len() <= MIRRORED_MAX).then_some(found)
}

/// Walks the properties of a schema. `None`: a mark is not valid, or stands where no property of the input is.
fn walk(schema: &Value, path: &mut Vec<String>, found: &mut Vec<Mirrored>) -> Option<()> {
    let Some(schema) = schema.as_object() else { return Some(()) };
    if path.len() > DEPTH_MAX {
        return None;
    }
    if let Some(mark) = schema.get(MARK) {
        let name = mark.as_str().filter(|name| !path.is_empty() && is_token(name))?;
        let is_plain = matches!(schema.get("type")?.as_str()?, "string" | "integer" | "boolean");
        let header = format!("{PREFIX}{}", name.to_ascii_lowercase());
        if !is_plain || found.iter().any(|(_, other)| *other == header) {
            return None;
        }
        found.push((path.clone(), header));
    }
    for (key, below) in schema {
        match (key.as_str(), below) {
            ("properties", Value::Object(properties)) => {
                for (name, property) in properties {
                    path.push(name.clone());
                    walk(property, path, found)?;
                    path.pop();
                }
            }
            // Values, and no schemas.
            ("default" | "examples" | "const" | "enum", _) => {}
            (_, below) if is_marked(below, path.len()) => return None,
            _ => {}
        }
    }
    Some(())
}

/// Is there a mark anywhere below?
fn is_marked(value: &Value, depth: usize) -> bool {
    match value {
        Value::Object(members) => {
            depth > DEPTH_MAX || members.contains_key(MARK) || members.values().any(|below| is_marked(below, depth + 1))
        }
        Value::Array(values) => depth > DEPTH_MAX || values.iter().any(|below| is_marked(below, depth + 1)),
        _ => false,
    }
}

/// May it be the name of a header (RFC 9110, a token)?
fn is_token(name: &str) -> bool {
    let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_valid)
}

/// The headers of a call with these arguments: names, and values that are still to be encoded.
///
/// # Errors
/// A value is too long for a header.
pub(super) fn headers(mirrored: &[Mirrored], arguments: &Map<String, Value>) -> Result<Vec<(String, String)>, String> {
    let mut headers = Vec::new();
    for (path, header) in mirrored {
        let (first, rest) = path.split_first().map_or(("", [].as_slice()), |(first, rest)| (first, rest));
        let value = rest.iter().try_fold(arguments.get(first), |value, key| Some(value?.get(key)));
        let text = match value.flatten() {
            Some(Value::String(text)) => text.clone(),
            Some(value @ (Value::Bool(_) | Value::Number(_))) => value.to_string(),
            _ => continue,
        };
        if text.len() > VALUE_BYTES_MAX {
            let name = path.join(".");
            return Err(format!(
                "the argument {name} is longer than {VALUE_BYTES_MAX} bytes, and it has to be in a header"
            ));
        }
        headers.push((header.clone(), text));
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema(property: Value) -> Value {
        json!({ "type": "object", "properties": { "a": property, "b": { "type": "string" } } })
    }

    #[test]
    fn marked_arguments_are_mirrored() {
        let schema = json!({ "type": "object", "properties": {
            "region": { "type": "string", "x-mcp-header": "Region" },
            "deep": { "type": "object", "properties": { "n": { "type": "integer", "x-mcp-header": "N" } } },
            "sure": { "type": "boolean", "x-mcp-header": "Sure" },
            "none": { "type": "string", "x-mcp-header": "None" },
            "plain": { "type": "string", "default": { "x-mcp-header": "no mark" } },
        } });
        let mirrored = declared(&schema).unwrap();
        let arguments = json!({ "region": "eu", "deep": { "n": 7 }, "sure": true, "none": null, "plain": "x" });
        let mut headers = headers(&mirrored, arguments.as_object().unwrap()).unwrap();
        headers.sort();
        let expected = [("mcp-param-n", "7"), ("mcp-param-region", "eu"), ("mcp-param-sure", "true")];
        assert_eq!(headers, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
        let long = json!({ "region": "x".repeat(VALUE_BYTES_MAX + 1) });
        assert!(super::headers(&mirrored, long.as_object().unwrap()).is_err());
        assert_eq!(declared(&self::schema(json!({ "type": "string" }))), Some(Vec::new()));
    }

    #[test]
    fn marks_that_are_not_valid_are_found() {
        let mark = |name: Value, kind: &str| json!({ "type": kind, "x-mcp-header": name });
        for property in [
            mark(json!(""), "string"),
            mark(json!("a b"), "string"),
            mark(json!("a\r\nEvil: b"), "string"),
            mark(json!("x".repeat(NAME_BYTES_MAX + 1)), "string"),
            mark(json!(7), "string"),
            mark(json!("A"), "number"),
            mark(json!("A"), "object"),
            json!({ "x-mcp-header": "A" }),
            json!({ "type": "array", "items": mark(json!("A"), "string") }),
            json!({ "anyOf": [mark(json!("A"), "string")] }),
            json!({ "type": "object", "properties": { "x": mark(json!("A"), "string"), "y": mark(json!("a"), "string") } }),
        ] {
            assert_eq!(declared(&schema(property.clone())), None, "{property}");
        }
        assert_eq!(declared(&json!({ "type": "object", "x-mcp-header": "A" })), None);
        let mut deep = mark(json!("A"), "string");
        for _ in 0..50 {
            deep = json!({ "type": "object", "properties": { "p": deep } });
        }
        assert_eq!(declared(&deep), None);
    }
}
