//! What the client says on an agent's WebSocket (spec 1, Events, WebSocket, client to server).

use agentsvc_components::SessionId;
use agentsvc_components::kernel::limit;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::http::response_headers;
use crate::http::trace::TraceContext;
use crate::upload::attachments::Attachment;

/// One message of the client whose form is right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ClientMessage {
    /// Something said to the agent, or a command.
    Message(Message),
    /// Is the connection alive?
    Ping,
}

/// Something said to the agent, or a command when it begins with `/`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Message {
    /// What is said; empty only when something is attached.
    pub(crate) content: String,
    /// The session it goes to; the current one when `None`.
    pub(crate) session: Option<SessionId>,
    /// Uploads of the agent that belong to it.
    pub(crate) attachments: Vec<Attachment>,
    /// The trace that it belongs to; that of the handshake when `None`.
    pub(crate) trace: Option<TraceContext>,
}

/// Reads one text message: a JSON object by its `type`; what is no JSON is said to the agent as it is.
///
/// # Errors
/// A sentence for the client: JSON that is no such object, naming the field at fault, or an empty message.
pub(crate) fn read(text: &str) -> Result<ClientMessage, String> {
    let object = match serde_json::from_str(text) {
        Ok(Value::Object(object)) => object,
        Ok(other) => {
            let kind = kind_of(&other);
            return Err(format!("a message must be plain text or a JSON object with `type`, not a JSON {kind}"));
        }
        Err(_) => return said(Message { content: text.to_owned(), ..Message::default() }),
    };
    match object.get("type") {
        Some(Value::String(kind)) if kind == "message" => read_message(&object),
        Some(Value::String(kind)) if kind == "ping" => Ok(ClientMessage::Ping),
        Some(Value::String(kind)) => {
            let shown: String = kind.chars().take(64).collect();
            Err(format!("type: unknown type {shown:?}; expected \"message\" or \"ping\""))
        }
        Some(other) => Err(format!("type: must be a string, not a {}", kind_of(other))),
        None => Err("type: missing; expected \"message\" or \"ping\"".to_owned()),
    }
}

fn read_message(object: &Map<String, Value>) -> Result<ClientMessage, String> {
    let attachments = match object.get("attachments") {
        None | Some(Value::Null) => Vec::new(),
        Some(files @ Value::Array(_)) => match Vec::deserialize(files) {
            Ok(attachments) => attachments,
            Err(error) => return Err(format!("attachments: must be objects with `file_id`: {error}")),
        },
        Some(other) => return Err(format!("attachments: must be an array, not a {}", kind_of(other))),
    };
    let content = match object.get("content") {
        Some(Value::String(content)) => content.clone(),
        Some(other) => return Err(format!("content: must be a string, not a {}", kind_of(other))),
        None if attachments.is_empty() => return Err("content: missing".to_owned()),
        None => String::new(),
    };
    let session = match object.get("session_id") {
        None | Some(Value::Null) => None,
        Some(Value::String(id)) => match id.parse() {
            Ok(id) => Some(id),
            Err(_) => return Err("session_id: is not a valid UUID".to_owned()),
        },
        Some(other) => return Err(format!("session_id: must be a string, not a {}", kind_of(other))),
    };
    // As in a header: what is no trace is as if it were not there.
    let trace = object.get("traceparent").and_then(Value::as_str);
    let trace = trace.and_then(|text| TraceContext::read(text, || response_headers::new_id().as_u64_pair().1));
    said(Message { content, session, attachments, trace })
}

fn said(message: Message) -> Result<ClientMessage, String> {
    if message.content.trim().is_empty() && message.attachments.is_empty() {
        return Err("content: a message must not be empty".to_owned());
    }
    if message.content.len() > limit::MESSAGE_BYTES_MAX {
        return Err(format!("content: a message can be at most {} bytes long", limit::MESSAGE_BYTES_MAX));
    }
    Ok(ClientMessage::Message(message))
}

const fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;
    use uuid::Uuid;

    use super::*;

    fn message(content: &str, session: Option<SessionId>) -> Result<ClientMessage, String> {
        Ok(ClientMessage::Message(Message { content: content.to_owned(), session, ..Message::default() }))
    }

    #[test]
    fn objects_are_read_by_their_type() {
        assert_eq!(read(r#"{"type":"ping","x":1}"#), Ok(ClientMessage::Ping));
        assert_eq!(read(r#" {"type":"message","content":"hi"} "#), message("hi", None));
        let id = Uuid::from_u128(5);
        let full = json!({"type": "message", "content": "/new", "session_id": id, "attachments": []}).to_string();
        assert_eq!(read(&full), message("/new", Some(SessionId(id))));
        let nulls = r#"{"type":"message","content":"a","session_id":null,"attachments":null}"#;
        assert_eq!(read(nulls), message("a", None));
    }

    #[test]
    fn an_attachment_may_stand_alone() {
        let file = Uuid::from_u128(9);
        let text = json!({"type": "message", "attachments": [{"file_id": file}]}).to_string();
        let Ok(ClientMessage::Message(said)) = read(&text) else { panic!("a message") };
        assert_eq!((said.content.as_str(), said.attachments.len()), ("", 1));
    }

    #[test]
    fn what_is_no_json_is_said_as_it_is() {
        for text in ["hello", " hello ", "{oops", "/model x", "\"half", "nul"] {
            assert_eq!(read(text), message(text, None));
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, word) in [
            ("42", "number"),
            ("[]", "array"),
            ("null", "null"),
            ("\"hi\"", "string"),
            ("{}", "type: missing"),
            (r#"{"type":7}"#, "type: must be"),
            (r#"{"type":"nonsense"}"#, "nonsense"),
            (r#"{"type":"message"}"#, "content: missing"),
            (r#"{"type":"message","content":7}"#, "content: must be"),
            (r#"{"type":"message","content":" "}"#, "content: "),
            (r#"{"type":"message","content":"a","session_id":"x"}"#, "session_id: "),
            (r#"{"type":"message","content":"a","session_id":7}"#, "session_id: must"),
            (r#"{"type":"message","content":"a","attachments":7}"#, "attachments: must"),
            (r#"{"type":"message","content":"a","attachments":[{"file_id":7}]}"#, "attachments: must"),
            (r#"{"type":"message","attachments":[]}"#, "content: missing"),
            ("", "empty"),
            (" \n", "empty"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(word), "{text}: {error}");
        }
    }

    /// Any JSON of a few levels, keys of the protocol among them.
    fn any_json() -> impl Strategy<Value = Value> {
        let keys = prop::sample::select(vec!["type", "content", "session_id", "attachments", "x"]);
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            prop::sample::select(vec!["message", "ping", "", "/help"]).prop_map(Value::from),
            ".{0,16}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 5, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((keys.clone(), inner), 0..5)
                    .prop_map(|pairs| pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(10_000) })]

        #[test]
        fn any_text_is_a_message_or_an_error(text in "\\PC{0,64}") {
            match read(&text) {
                Ok(ClientMessage::Message(said)) => {
                    prop_assert!(!said.content.trim().is_empty() || !said.attachments.is_empty());
                }
                Ok(ClientMessage::Ping) => prop_assert!(text.contains("ping")),
                Err(error) => prop_assert!(!error.is_empty()),
            }
        }

        #[test]
        fn any_json_is_read_by_its_type_or_refused(value in any_json()) {
            match (read(&value.to_string()), &value["type"]) {
                (Ok(ClientMessage::Ping), kind) => prop_assert_eq!(kind, "ping"),
                (Ok(ClientMessage::Message(said)), kind) => {
                    prop_assert_eq!(kind, "message");
                    prop_assert_eq!(&value["content"], &said.content);
                }
                (Err(error), kind) => {
                    prop_assert!(!error.is_empty());
                    prop_assert!(kind != "ping");
                }
            }
        }
    }
}
