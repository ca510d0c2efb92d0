//! The events of a turn as a client reads them (spec 1, SSE on message/stream).

use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::kernel::cli::Error;
use crate::kernel::cli::client::{Client, Event, Events};
use crate::kernel::cli::names::Listed;

/// The body of a message.
pub(crate) fn body(text: &str, session: Option<Uuid>) -> Value {
    let mut body = json!({ "message": text });
    if let Some(session) = session {
        body["session_id"] = json!(session);
    }
    body
}

/// The session of an agent that a person named, if any. A whole id may be that of a new one.
pub(crate) async fn session(client: &Client, agent: &str, typed: Option<&str>) -> Result<Option<Uuid>, Error> {
    let Some(typed) = typed else { return Ok(None) };
    let id = client.id_of(&Listed::sessions_of(agent), typed).await?;
    id.parse().map(Some).map_err(|_| Error::Protocol(format!("the session's id {id} is not a UUID")))
}

/// Sends a message whose answer is streamed.
pub(crate) async fn send(client: &Client, agent: &str, text: &str, session: Option<Uuid>) -> Result<Events, Error> {
    client.events(Method::POST, &format!("/api/agents/{agent}/message/stream"), Some(&body(text, session))).await
}

/// What one event says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// A piece of the answer.
    Chunk(String),
    /// The agent calls a tool.
    Tool(String),
    /// A private note to the owner.
    Notice(String),
    /// The stream was too fast for us; this many events are missing.
    Lagged(u64),
    /// The answer is complete and stored; tokens in and out.
    Done(u64, u64),
    /// The turn ended without an answer.
    Failed(String),
    /// Something else, of no interest here.
    Other,
}

impl Said {
    /// Reads an event.
    pub(crate) fn of(event: &Event) -> Self {
        let data: Value = serde_json::from_str(&event.data).unwrap_or_default();
        let text = |key: &str| data[key].as_str().unwrap_or_default().to_owned();
        let tokens = |key: &str| data["usage"][key].as_u64().unwrap_or_default();
        match event.name.as_str() {
            "chunk" => Self::Chunk(text("content")),
            "tool_use" => Self::Tool(text("tool")),
            "owner_notice" => Self::Notice(text("text")),
            "lagged" => Self::Lagged(data["missed"].as_u64().unwrap_or_default()),
            "done" => Self::Done(tokens("input_tokens"), tokens("output_tokens")),
            "error" => Self::Failed(text("error")),
            _ => Self::Other,
        }
    }
}

/// What to say when a stream ends before its turn.
pub(crate) fn ended_early() -> Error {
    Error::Protocol("the stream ended early; the turn continues in the daemon".to_owned())
}

/// A turn that ended without an answer.
pub(crate) fn failed(error: &str) -> Error {
    Error::Failed(format!("the turn failed: {error}"))
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::{Event, Said, body};

    fn said(name: &str, data: &str) -> Said {
        Said::of(&Event { name: name.to_owned(), data: data.to_owned() })
    }

    #[test]
    fn events_are_read() {
        assert_eq!(said("chunk", r#"{"content":"a","done":false}"#), Said::Chunk("a".to_owned()));
        assert_eq!(said("done", r#"{"done":true,"usage":{"input_tokens":1,"output_tokens":2}}"#), Said::Done(1, 2));
        assert_eq!(said("error", r#"{"error":"e"}"#), Said::Failed("e".to_owned()));
        assert_eq!(said("owner_notice", r#"{"text":"n"}"#), Said::Notice("n".to_owned()));
        assert_eq!(said("tool_use", r#"{"tool":"t"}"#), Said::Tool("t".to_owned()));
        assert_eq!(said("later", "not json"), Said::Other);
        assert_eq!(said("chunk", "not json"), Said::Chunk(String::new()));
    }

    #[test]
    fn the_session_is_sent_only_when_given() {
        assert_eq!(body("hi", None).to_string(), r#"{"message":"hi"}"#);
        assert!(body("hi", Some(Uuid::nil()))["session_id"].is_string());
    }
}
