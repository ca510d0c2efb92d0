//! JSON-RPC 2.0 messages.

use serde::Serialize;
use serde_json::{Map, Value, json};

/// Parameters of a request, by name.
pub(crate) type Params = Map<String, Value>;

/// Bytes of the id of a request.
const ID_BYTES_MAX: usize = 256;
/// Bytes of a client's text that an error repeats.
const SHOWN_BYTES_MAX: usize = 64;

/// A message of a client.
#[derive(Debug, PartialEq)]
pub(crate) enum Message {
    /// Wants an answer.
    Request {
        /// Stands in the answer: text of at most 256 bytes or a whole number.
        id: Value,
        /// What to do.
        method: String,
        /// With what; an error where they are not given by name.
        params: Result<Params, Failure>,
    },
    /// Wants none: a notification, or an answer to a request of ours, which we do not make.
    Notice,
    /// Is no JSON-RPC message.
    Malformed,
}

impl Message {
    /// What `value` is.
    pub(crate) fn of(value: Value) -> Self {
        let Value::Object(mut fields) = value else { return Self::Malformed };
        if fields.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
            return Self::Malformed;
        }
        match (fields.remove("method"), fields.remove("id")) {
            (Some(Value::String(_)), None) => Self::Notice,
            (Some(Value::String(method)), Some(id)) if is_id(&id) => {
                Self::Request { id, method, params: params(fields.remove("params")) }
            }
            (None, Some(_)) if fields.contains_key("result") || fields.contains_key("error") => Self::Notice,
            _ => Self::Malformed,
        }
    }
}

/// Text of a bounded length or a whole number: events of a stream repeat it.
fn is_id(id: &Value) -> bool {
    id.is_i64() || id.is_u64() || id.as_str().is_some_and(|id| id.len() <= ID_BYTES_MAX)
}

fn params(value: Option<Value>) -> Result<Params, Failure> {
    match value {
        None => Ok(Params::new()),
        Some(Value::Object(params)) => Ok(params),
        Some(_) => Err(Failure::params("`params` must be an object")),
    }
}

/// Why a request has no result.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Failure {
    code: i32,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Value>,
}

impl Failure {
    /// Try again later: too many requests.
    pub(crate) const BUSY: i32 = -32_000;
    /// The headers say something else than the message.
    pub(crate) const HEADERS: i32 = -32_020;
    const MALFORMED: i32 = -32_600;
    const METHOD: i32 = -32_601;
    const PARAMS: i32 = -32_602;
    /// The daemon failed.
    pub(crate) const INTERNAL: i32 = -32_603;

    pub(crate) fn new(code: i32, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// No JSON-RPC message.
    pub(crate) fn malformed() -> Self {
        Self::new(Self::MALFORMED, "not a JSON-RPC 2.0 message")
    }

    /// No such method.
    pub(crate) fn method(name: &str) -> Self {
        Self::new(Self::METHOD, format!("unknown method: {}", shown(name)))
    }

    /// Wrong parameters.
    pub(crate) fn params(message: impl Into<String>) -> Self {
        Self::new(Self::PARAMS, message)
    }

    /// The same with more about it, for programs.
    pub(crate) fn with(self, data: Value) -> Self {
        Self { data: Some(data), ..self }
    }
}

/// As much of a client's text as an error repeats.
pub(crate) fn shown(text: &str) -> &str {
    &text[..text.floor_char_boundary(SHOWN_BYTES_MAX)]
}

/// The answer to the request `id`.
pub(crate) fn answer(id: &Value, outcome: Result<Map<String, Value>, Failure>) -> Value {
    match outcome {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Err(error) => json!({ "jsonrpc": "2.0", "id": id, "error": error }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_told_apart() {
        for (value, wants_answer) in [
            (json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }), true),
            (json!({ "jsonrpc": "2.0", "id": "a", "method": "ping", "params": {} }), true),
            (json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }), false),
            (json!({ "jsonrpc": "2.0", "id": 3, "result": {} }), false),
            (json!({ "jsonrpc": "2.0", "id": null, "error": { "code": 1, "message": "x" } }), false),
        ] {
            let message = Message::of(value.clone());
            assert_eq!(matches!(message, Message::Request { .. }), wants_answer, "{value}");
            assert_ne!(message, Message::Malformed, "{value}");
        }
        for value in [
            json!(3),
            json!({}),
            json!({ "jsonrpc": "1.0", "id": 1, "method": "ping" }),
            json!({ "id": 1, "method": "ping" }),
            json!({ "jsonrpc": "2.0", "id": null, "method": "ping" }),
            json!({ "jsonrpc": "2.0", "id": 1.5, "method": "ping" }),
            json!({ "jsonrpc": "2.0", "id": {}, "method": "ping" }),
            json!({ "jsonrpc": "2.0", "id": "x".repeat(ID_BYTES_MAX + 1), "method": "ping" }),
            json!({ "jsonrpc": "2.0", "id": 1, "method": 3 }),
            json!({ "jsonrpc": "2.0", "id": 1 }),
        ] {
            assert_eq!(Message::of(value.clone()), Message::Malformed, "{value}");
        }
    }

    #[test]
    fn parameters_are_given_by_name() {
        let of =
            |params: Value| match Message::of(json!({ "jsonrpc": "2.0", "id": 1, "method": "m", "params": params })) {
                Message::Request { params, .. } => params.is_ok(),
                other => panic!("{other:?}"),
            };
        assert!(of(json!({})) && !of(json!([])) && !of(json!("x")) && !of(Value::Null));
    }

    #[test]
    fn errors_repeat_a_little_of_what_was_sent() {
        let failure = Failure::method(&"é".repeat(100));
        assert_eq!(failure.message, format!("unknown method: {}", "é".repeat(32)));
    }
}
