//! JSON bodies: strict about syntax and types, naming the key at fault; tolerant of unknown keys unless the route
//! closes the set.

use std::sync::OnceLock;

use hyper::header::CONTENT_TYPE;
use hyper::{HeaderMap, StatusCode};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::http::error::Error;

/// Unknown keys that a warning or a 422 names; the rest is only counted.
const UNKNOWN_NAMED_MAX: usize = 8;

/// Bytes of an unknown key that are shown.
const UNKNOWN_BYTES_MAX: usize = 64;

/// 415 when a content type is given and is not JSON. A body without one counts as JSON.
pub(crate) fn check_content_type(headers: &HeaderMap) -> Result<(), Error> {
    let Some(value) = headers.get(CONTENT_TYPE) else { return Ok(()) };
    let essence = value.to_str().unwrap_or("").split(';').next().unwrap_or("").trim();
    let (_, subtype) = essence.split_once('/').unwrap_or(("", ""));
    let is_json = essence.eq_ignore_ascii_case("application/json")
        || subtype.len() > 5 && subtype[subtype.len() - 5..].eq_ignore_ascii_case("+json");
    if is_json {
        return Ok(());
    }
    Err(Error::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported content type; send application/json"))
}

/// Arrays and objects that may stand in each other; the bound that serde_json keeps for what it reads itself.
const DEPTH_MAX: usize = 128;

/// Reads `body`, an object, as `T`; otherwise as [`read`]. Without this an array of the values in the order of the
/// keys would do as well.
///
/// # Errors
/// As [`read`].
pub(crate) fn read_object<T: DeserializeOwned>(
    body: &[u8],
    closed: bool,
    warning: Option<&OnceLock<String>>,
) -> Result<T, Error> {
    if body.trim_ascii_start().starts_with(b"[") {
        return Err(Error::bad_request("invalid body: expected a JSON object, found an array"));
    }
    read(body, closed, warning)
}

/// Reads `body` as `T`. Unknown keys fill `warning`, or are a 422 when the set is `closed`.
///
/// # Errors
/// 400 naming the key; 422 as above.
pub(crate) fn read<T: DeserializeOwned>(
    body: &[u8],
    closed: bool,
    warning: Option<&OnceLock<String>>,
) -> Result<T, Error> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Err(Error::bad_request("a JSON body is required"));
    }
    let mut value = None;
    let take: &mut Take<'_> = &mut |from| {
        value = Some(erased_serde::deserialize(from)?);
        Ok(())
    };
    read_with(body, closed, warning, take)?;
    Ok(value.expect("what was taken without an error is there"))
}

/// Takes a value from a deserializer of any format.
type Take<'a> = dyn FnMut(&mut dyn erased_serde::Deserializer<'_>) -> Result<(), erased_serde::Error> + 'a;

/// The part of [`read`] that is compiled once for all types.
fn read_with(body: &[u8], closed: bool, warning: Option<&OnceLock<String>>, take: &mut Take<'_>) -> Result<(), Error> {
    // As a whole and first: the texts of keys that are skipped are not looked at later.
    let text = std::str::from_utf8(body).map_err(|_| Error::bad_request("malformed JSON: the body is not UTF-8"))?;
    let mut json = serde_json::Deserializer::from_str(text);
    let mut track = serde_path_to_error::Track::new();
    let mut unknown = Unknown::default();
    let taken = {
        let mut note = |path: serde_ignored::Path<'_>| unknown.note(&path);
        let tracked = serde_path_to_error::Deserializer::new(&mut json, &mut track);
        let noted = serde_ignored::Deserializer::new(tracked, &mut note);
        take(&mut <dyn erased_serde::Deserializer<'_>>::erase(noted))
    };
    taken.map_err(|error| explain(&error.to_string(), &track.path().to_string()))?;
    json.end().map_err(|error| explain(&error.to_string(), "."))?;
    if unknown.count == 0 {
        return Ok(());
    }
    // What is read as a type is bounded by serde_json; what is skipped is not.
    if depth(body) > DEPTH_MAX {
        return Err(Error::bad_request(format!("malformed JSON: nested deeper than {DEPTH_MAX}")));
    }
    if closed {
        return Err(Error::new(StatusCode::UNPROCESSABLE_ENTITY, unknown.sentence())
            .with("field", unknown.names.first().cloned().unwrap_or_default()));
    }
    if let Some(warning) = warning {
        // A route reads its body once; were it read twice, the first warning stands.
        let _ = warning.set(format!("299 agentsvc \"{}\"", unknown.sentence()));
    }
    Ok(())
}

/// How deep the arrays and objects of a well-formed `json` stand in each other.
fn depth(json: &[u8]) -> usize {
    let (mut now, mut deepest) = (0_usize, 0);
    structure(json, |byte| {
        match byte {
            b'[' | b'{' => now += 1,
            b']' | b'}' => now = now.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(now);
    });
    deepest
}

/// Bytes of memory that `json` takes when it is read as a tree of values, about: its own, and those of the values. An object
/// of serde_json has room for eleven members from its first one on, so that five bytes can become six hundred.
#[must_use]
pub fn memory_bytes(json: &[u8]) -> usize {
    const OBJECT_BYTES: usize = 11 * (size_of::<String>() + size_of::<Value>()) + 32;
    const ARRAY_BYTES: usize = 4 * size_of::<Value>();
    // A list doubles as it grows; a full node of an object is split in two, and each name is text of its own.
    const ITEM_BYTES: usize = 2 * size_of::<Value>();
    const NAME_BYTES: usize = 80;
    let mut bytes = json.len();
    structure(json, |byte| {
        bytes += match byte {
            b'{' => OBJECT_BYTES,
            b'[' => ARRAY_BYTES,
            b',' => ITEM_BYTES,
            b':' => NAME_BYTES,
            _ => 0,
        }
    });
    bytes
}

/// Shows the bytes of `json` that are in no text.
fn structure(json: &[u8], mut see: impl FnMut(u8)) {
    let (mut in_text, mut escaped) = (false, false);
    for byte in json {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            _ if !in_text => see(*byte),
            _ => {}
        }
    }
}

/// The keys that the target did not take.
#[derive(Default)]
struct Unknown {
    names: Vec<String>,
    count: usize,
}

impl Unknown {
    fn note(&mut self, path: &serde_ignored::Path<'_>) {
        self.count += 1;
        if self.names.len() < UNKNOWN_NAMED_MAX {
            // `?` stands for the inside of an option; a client knows nothing of it.
            self.names.push(path.to_string().replace("?.", "").chars().take(UNKNOWN_BYTES_MAX).collect());
        }
    }

    /// What goes into a header and an error: visible ASCII only, no quotes.
    fn sentence(&self) -> String {
        let plural = if self.count == 1 { "" } else { "s" };
        let more = self.count - self.names.len();
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        let visible = |c: char| if c.is_ascii_graphic() && c != '"' && c != '\\' { c } else { '?' };
        let names = self.names.iter().map(|name| name.chars().map(visible).collect::<String>());
        format!("unknown field{plural}: {}{more}", names.collect::<Vec<_>>().join(", "))
    }
}

/// What serde_json's messages about text that is not JSON begin with.
const MALFORMED: [&str; 14] = [
    "EOF while parsing",
    "control character",
    "expected `",
    "expected ident",
    "expected value",
    "invalid escape",
    "invalid number",
    "invalid unicode",
    "key must be a string",
    "lone leading surrogate",
    "number out of range",
    "recursion limit exceeded",
    "trailing c",
    "unexpected end of hex escape",
];

/// The error of a body that is not JSON of the wanted shape.
fn explain(message: &str, path: &str) -> Error {
    if MALFORMED.iter().any(|beginning| message.starts_with(beginning)) {
        return Error::bad_request(format!("malformed JSON: {message}"));
    }
    let parent = path.replace("?.", "").trim_matches(|c| c == '?' || c == '.').to_owned();
    let field = match missing_field(message) {
        Some(name) if parent.is_empty() => name.to_owned(),
        Some(name) => format!("{parent}.{name}"),
        None => parent,
    };
    if field.is_empty() {
        Error::bad_request(format!("invalid body: {message}"))
    } else if missing_field(message).is_some() {
        Error::bad_field(&field, format!("{field}: missing"))
    } else {
        Error::bad_field(&field, format!("{field}: {}", without_place(message)))
    }
}

/// A message of serde_json without the line and column at its end: the name of the field says where it is.
fn without_place(message: &str) -> &str {
    message.rsplit_once(" at line ").map_or(message, |(message, _)| message)
}

/// The name in serde's "missing field `x`".
pub(crate) fn missing_field(message: &str) -> Option<&str> {
    message.strip_prefix("missing field `")?.split('`').next()
}

/// Tells null, which clears, from a key that is not there.
pub(crate) fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(from).map(Some)
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;
    use serde::Deserialize;

    use super::*;

    #[test]
    fn what_stands_in_texts_takes_no_memory_of_its_own() {
        let text = br#"{"a{[":"}\\\"{{[[,,::","b":["\\",{}]}"#;
        let bare = br#"{"a":"","b":["",{}]}"#;
        assert_eq!(memory_bytes(text) - text.len(), memory_bytes(bare) - bare.len());
        assert_eq!((depth(text), depth(bare)), (3, 3));
    }

    /// The bytes that serde_json's tree has reserved, without what the allocator adds.
    fn reserved(value: &Value) -> usize {
        match value {
            Value::Array(items) => items.capacity() * size_of::<Value>() + items.iter().map(reserved).sum::<usize>(),
            Value::Object(members) => {
                // Nodes have eleven places, and at least five of them are filled where there are several.
                let nodes = if members.is_empty() { 0 } else { members.len().div_ceil(6) };
                let texts: usize = members.iter().map(|(name, value)| name.capacity() + reserved(value)).sum();
                nodes * (11 * 56 + 16) + texts
            }
            Value::String(text) => text.capacity(),
            _ => 0,
        }
    }

    #[test]
    fn a_tree_takes_no_more_than_is_counted() {
        let deep = format!("{}0{}", r#"{"":"#.repeat(100), "}".repeat(100));
        let members: Vec<String> = (0..1_000).map(|n| format!(r#""{n}":{n}"#)).collect();
        let lists = format!("[{}]", ["[0]"; 1_000].join(","));
        let numbers = format!("[{}]", ["0"; 1_025].join(","));
        let nested = format!("[{}]", ["[[[[{}]]]]"; 100].join(","));
        for json in [deep, format!("{{{}}}", members.join(",")), lists, numbers, nested] {
            let (counted, taken) = (memory_bytes(json.as_bytes()), reserved(&serde_json::from_str(&json).unwrap()));
            assert!(counted >= taken, "{counted} of {taken}: {}", &json[..40]);
        }
    }

    #[derive(Debug, Deserialize)]
    struct Inner {
        #[allow(dead_code)]
        size: u32,
    }

    #[derive(Debug, Deserialize)]
    struct Outer {
        name: String,
        #[allow(dead_code)]
        inner: Option<Inner>,
        #[serde(default)]
        #[allow(dead_code)]
        tags: Vec<String>,
    }

    async fn refused(body: &[u8]) -> serde_json::Value {
        let error = read::<Outer>(body, false, None).unwrap_err();
        assert_eq!(error.status(), StatusCode::BAD_REQUEST, "{}", String::from_utf8_lossy(&body[..body.len().min(60)]));
        crate::http::reply::collect(error.into_response()).await
    }

    #[tokio::test]
    async fn errors_name_the_key() {
        for (body, field) in [
            ("{}", "name"),
            (r#"{"name": 5}"#, "name"),
            (r#"{"name": null}"#, "name"),
            (r#"{"name": "a", "tags": ["b", 7]}"#, "tags[1]"),
            (r#"{"name": "a", "inner": {"size": "big"}}"#, "inner.size"),
            (r#"{"name": "a", "inner": {}}"#, "inner.size"),
            (r#"{"name": "a", "inner": {"size": -1}}"#, "inner.size"),
        ] {
            let refused = refused(body.as_bytes()).await;
            assert_eq!(refused["field"], field, "{body}");
            let error = refused["error"].as_str().unwrap();
            assert!(error.starts_with(&format!("{field}: ")) && !error.contains("column"), "{error}");
        }
    }

    #[tokio::test]
    async fn a_missing_key_is_named_in_two_words() {
        assert_eq!(refused(b"{}").await["error"], "name: missing");
        assert_eq!(refused(br#"{"name": "a", "inner": {}}"#).await["error"], "inner.size: missing");
    }

    #[tokio::test]
    async fn what_is_not_json_is_malformed() {
        for body in [&b"{"[..], b"", b"  ", b"nonsense", b"{\"name\": \"\xff\xfe\"}", b"{\"name\": \"a\"} {}", b"\xff"]
        {
            assert!(refused(body).await["error"].as_str().unwrap().contains("JSON"));
        }
        for open in ["[", "{\"name\":"] {
            refused(open.repeat(100_000).as_bytes()).await;
        }
        let deep = format!("{{\"name\": {}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
        refused(deep.as_bytes()).await;
        let skipped = format!("{{\"name\": \"a\", \"unknown\": {}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
        refused(skipped.as_bytes()).await;
    }

    #[test]
    fn errors_are_told_apart_as_serde_json_does() {
        let read_directly = |body: &str| serde_json::from_str::<Outer>(body).unwrap_err();
        let deep = format!("{{\"name\": \"a\", \"inner\": {}", "{\"inner\": [".repeat(200));
        let nested = "[".repeat(200);
        for body in [
            "{",
            "{\"name",
            "{\"name\"",
            "{\"name\":",
            "{\"name\" 1}",
            "{\"name\": \"a\"",
            "{\"name\": \"a\",}",
            "{\"name\": \"a\" 1}",
            "{\"name\": \"a\\q\"}",
            "{\"name\": \"a\n\"}",
            "{\"name\": \"\\ud800\"}",
            "{\"name\": \"\\ud800\\u0041\"}",
            "{\"name\": \"\\u00\"}",
            "{\"name\": nul}",
            "{\"name\": x}",
            "{\"name\": -}",
            "{\"name\": 1e999}",
            "{1: 2}",
            "{\"tags\": [\"a\" \"b\"]}",
            "{\"tags\": [\"a\",]}",
            "{\"name\": \"a\"} x",
            "{\"inner\": {\"size\": 01}}",
            "{\"inner\": {\"size\": 1.}}",
            "{}",
            "{\"name\": 5}",
            "{\"name\": \"a\", \"tags\": {}}",
            "{\"inner\": {\"size\": -1}}",
            "{\"inner\": 7}",
            "[]",
            "7",
            &deep,
            &nested,
        ] {
            let direct = read_directly(body);
            let message = direct.to_string();
            let is_malformed = MALFORMED.iter().any(|beginning| message.starts_with(beginning));
            assert_eq!(is_malformed, !direct.is_data(), "{body}: {message}");
            let ours = read::<Outer>(body.as_bytes(), false, None).unwrap_err().to_string();
            let said = if missing_field(&message).is_some() { "missing" } else { &*message };
            assert!(ours.ends_with(said) || ours.ends_with(without_place(said)), "{body}: {ours:?} and {message:?}");
        }
    }

    #[test]
    fn an_array_is_no_object() {
        assert!(read_object::<Outer>(b" [\"a\", null, []]", false, None).is_err());
        assert!(read_object::<Outer>(br#"{"name": "a"}"#, false, None).is_ok());
        assert_eq!(depth(br#"{"a": ["[[[", "\"[", {"b": []}]}"#), 4);
    }

    #[test]
    fn unknown_keys_warn_or_are_refused() {
        let body = br#"{"name": "a", "nam\"\u00e9": 1, "inner": {"size": 1, "colour": 2}}"#;
        let warning = OnceLock::new();
        assert_eq!(read::<Outer>(body, false, Some(&warning)).unwrap().name, "a");
        let text = warning.get().unwrap();
        assert_eq!(text, "299 agentsvc \"unknown fields: nam??, inner.colour\"");
        assert!(HeaderValue::from_str(text).is_ok());

        let error = read::<Outer>(body, true, None).unwrap_err();
        assert_eq!(error.status(), StatusCode::UNPROCESSABLE_ENTITY);
    }

    #[test]
    fn content_type_is_json_or_absent() {
        let check = |value: &'static str| {
            let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(value))]);
            check_content_type(&headers).is_ok()
        };
        assert!(check_content_type(&HeaderMap::new()).is_ok());
        assert!(check("application/json") && check("Application/JSON; charset=utf-8") && check("application/a+json"));
        assert!(!check("text/plain") && !check("multipart/form-data; boundary=x") && !check(""));
    }
}
