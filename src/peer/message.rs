//! The messages of OFP/1.

use agentsvc_systems::peer::limits::{PEER_AGENTS_MAX, PEER_FRAME_VALUES_MAX, PEER_NAME_BYTES_MAX};
use serde::{Deserialize, Serialize};

/// The version of the protocol.
pub(crate) const VERSION: u32 = 1;

/// One message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Message {
    /// The sender's name for it; a response has that of its request.
    pub(crate) id: String,
    /// What it is.
    #[serde(flatten)]
    pub(crate) kind: Kind,
}

/// What a message is. One of a later version is tolerated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Kind {
    Request(Request),
    Response(Response),
    Notification(Notification),
    #[serde(other)]
    Unknown,
}

/// What a node asks of another one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "method", rename_all = "snake_case")]
pub(crate) enum Request {
    Handshake(Hello),
    Discover {
        #[serde(default)]
        query: String,
    },
    AgentMessage {
        agent: String,
        message: String,
        #[serde(default)]
        sender: Option<String>,
    },
    Ping,
    #[serde(other)]
    Unknown,
}

/// What it answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "method", rename_all = "snake_case")]
pub(crate) enum Response {
    HandshakeAck(Hello),
    DiscoverResult {
        agents: Vec<RemoteAgent>,
    },
    #[serde(rename = "agent_response")]
    Answer {
        text: String,
    },
    Pong {
        #[serde(default)]
        uptime_secs: u64,
    },
    Error {
        code: i64,
        #[serde(default)]
        message: String,
    },
    #[serde(other)]
    Unknown,
}

/// What it tells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum Notification {
    AgentSpawned {
        agent: RemoteAgent,
    },
    AgentTerminated {
        agent_id: String,
    },
    ShuttingDown,
    #[serde(other)]
    Unknown,
}

/// Who a node is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Hello {
    pub(crate) node_id: String,
    #[serde(default)]
    pub(crate) node_name: String,
    pub(crate) protocol_version: u32,
    #[serde(default)]
    pub(crate) agents: Vec<RemoteAgent>,
    #[serde(default)]
    pub(crate) nonce: String,
    #[serde(default)]
    pub(crate) auth_hmac: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) public_key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) identity_signature: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ephemeral_pubkey: Option<String>,
}

/// An agent of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RemoteAgent {
    pub(crate) id: String,
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) description: String,
    #[serde(default)]
    pub(crate) tags: Vec<String>,
    #[serde(default)]
    pub(crate) tools: Vec<String>,
    #[serde(default)]
    pub(crate) state: String,
}

/// Tags or tools of an agent that are told.
const WORDS_MAX: usize = 16;

/// One line of at most [`PEER_NAME_BYTES_MAX`] bytes.
pub(crate) fn line(text: &str) -> String {
    let cut = &text[..text.floor_char_boundary(PEER_NAME_BYTES_MAX)];
    cut.chars().map(|char| if char.is_control() { ' ' } else { char }).collect()
}

/// The same agents, few and short.
pub(crate) fn bounded(agents: Vec<RemoteAgent>) -> Vec<RemoteAgent> {
    agents.into_iter().take(PEER_AGENTS_MAX).map(RemoteAgent::bounded).collect()
}

impl RemoteAgent {
    /// The same agent, as far as it is kept.
    pub(crate) fn bounded(self) -> Self {
        let lines = |words: Vec<String>| words.iter().take(WORDS_MAX).map(|word| line(word)).collect();
        let Self { id, name, description, tags, tools, state } = self;
        Self {
            id: line(&id),
            name: line(&name),
            description: line(&description),
            tags: lines(tags),
            tools: lines(tools),
            state: line(&state),
        }
    }
}

/// What is no message. It repeats nothing of what the peer sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a frame is not a message of the protocol")]
pub(crate) struct NotAMessage;

/// Does the JSON have more values than a message may? Each takes far more memory than the two bytes that it can have here.
fn has_too_many_values(json: &[u8]) -> bool {
    let (mut values, mut is_text, mut is_escaped) = (0, false, false);
    for byte in json {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_text => is_escaped = true,
            b'"' => is_text = !is_text,
            b',' | b':' | b'[' if !is_text => values += 1,
            _ => {}
        }
    }
    values > PEER_FRAME_VALUES_MAX
}

impl Message {
    /// The message of a frame.
    ///
    /// # Errors
    /// It is none, has too many values, or its id is too long.
    pub(crate) fn read(json: &[u8]) -> Result<Self, NotAMessage> {
        if has_too_many_values(json) {
            return Err(NotAMessage);
        }
        let message: Self = serde_json::from_slice(json).map_err(|_| NotAMessage)?;
        // A connection remembers very many ids.
        if message.id.len() > PEER_NAME_BYTES_MAX { Err(NotAMessage) } else { Ok(message) }
    }

    /// A message.
    pub(crate) fn new(id: impl Into<String>, kind: Kind) -> Self {
        Self { id: id.into(), kind }
    }

    /// An answer that says what went wrong.
    pub(crate) fn error(id: impl Into<String>, code: i64, message: impl Into<String>) -> Self {
        Self::new(id, Kind::Response(Response::Error { code, message: message.into() }))
    }

    /// Its text. All its keys are texts, so that there always is one.
    pub(crate) fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn messages_have_the_form_of_the_wire() {
        let text = |kind: Kind| serde_json::to_value(Message::new("1", kind)).unwrap();
        assert_eq!(text(Kind::Request(Request::Ping)), json!({ "id": "1", "type": "request", "method": "ping" }));
        let sent = Request::AgentMessage { agent: "a".into(), message: "m".into(), sender: Some("s".into()) };
        let expected = json!({
            "id": "1", "type": "request", "method": "agent_message", "agent": "a", "message": "m", "sender": "s",
        });
        assert_eq!(text(Kind::Request(sent)), expected);
        let pong = json!({ "id": "1", "type": "response", "method": "pong", "uptime_secs": 4 });
        assert_eq!(text(Kind::Response(Response::Pong { uptime_secs: 4 })), pong);
        let gone = Notification::AgentTerminated { agent_id: "x".into() };
        let expected = json!({ "id": "1", "type": "notification", "event": "agent_terminated", "agent_id": "x" });
        assert_eq!(text(Kind::Notification(gone)), expected);
    }

    #[test]
    fn a_frame_has_few_values_and_its_error_repeats_none() {
        let request = |more: &str| format!("{{\"id\":\"1\",\"type\":\"request\",\"method\":\"ping\",\"more\":{more}}}");
        let values = |count: usize| request(&format!("[{}0]", "0,".repeat(count)));
        assert!(Message::read(values(PEER_FRAME_VALUES_MAX - 100).as_bytes()).is_ok());
        assert_eq!(Message::read(values(PEER_FRAME_VALUES_MAX).as_bytes()), Err(NotAMessage));
        // A text may have any of them, behind an escaped quote, too.
        let text = format!("\"\\\"{}\"", ",[:".repeat(PEER_FRAME_VALUES_MAX));
        assert!(Message::read(request(&text).as_bytes()).is_ok());
        let with_id = |bytes: usize| request("0").replace("\"1\"", &format!("\"{}\"", "x".repeat(bytes)));
        assert!(Message::read(with_id(PEER_NAME_BYTES_MAX).as_bytes()).is_ok());
        assert_eq!(Message::read(with_id(PEER_NAME_BYTES_MAX + 1).as_bytes()), Err(NotAMessage));
        let wrong = Message::read(br#"{"id":"1","type":"request","method":"agent_message","agent":["obey me"]}"#);
        assert!(!wrong.unwrap_err().to_string().contains("obey"));
    }

    #[test]
    fn what_a_later_version_says_is_tolerated() {
        let read = |value: serde_json::Value| serde_json::from_value::<Message>(value).unwrap().kind;
        let unknown = read(json!({ "id": "1", "type": "request", "method": "dance", "steps": [1] }));
        assert_eq!(unknown, Kind::Request(Request::Unknown));
        assert_eq!(read(json!({ "id": "1", "type": "whisper" })), Kind::Unknown);
        let event = json!({ "id": "1", "type": "notification", "event": "moved", "to": "x" });
        assert_eq!(read(event), Kind::Notification(Notification::Unknown));
        let more = json!({ "id": "1", "type": "request", "method": "ping", "more": true });
        assert_eq!(read(more), Kind::Request(Request::Ping));
    }
}
