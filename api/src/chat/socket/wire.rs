//! What the server says on an agent's WebSocket (spec 1, Events, WebSocket, server to client).

use agentsvc_components::turn::stream::StreamEvent;
use serde::Serialize;
use tokio_tungstenite::tungstenite::Utf8Bytes;
use uuid::Uuid;

/// One message to the client.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum ServerMessage<'a> {
    /// The first message of every connection.
    Connected {
        /// Whom the client talks to.
        agent_id: Uuid,
    },
    /// The agent begins with the client's next message.
    Thinking,
    /// A piece of the answer.
    TextDelta {
        /// The piece.
        content: &'a str,
    },
    /// The agent calls a tool.
    ToolStart {
        /// Its name.
        tool: &'a str,
    },
    /// A private note to the owner; right before the response.
    OwnerNotice {
        /// The note.
        content: &'a str,
    },
    /// The whole answer to a message, or to a command.
    Response {
        /// The text.
        content: &'a str,
        /// Prompt tokens of the whole turn.
        input_tokens: u64,
        /// Answer tokens of the whole turn.
        output_tokens: u64,
        /// Model calls.
        iterations: u32,
        /// Cost; 0 if the price is unknown.
        cost_usd: f64,
    },
    /// A message, a command or a turn failed.
    Error {
        /// One sentence.
        content: &'a str,
    },
    /// The answer to `ping`.
    Pong,
}

impl ServerMessage<'_> {
    /// The message as it is sent.
    pub(crate) fn text(&self) -> Utf8Bytes {
        // Only a map with keys that are not text can fail, and there is none.
        serde_json::to_string(self).unwrap_or_default().into()
    }
}

/// The answer to a command: no model was asked.
pub(crate) fn command_response(content: &str) -> Utf8Bytes {
    ServerMessage::Response { content, input_tokens: 0, output_tokens: 0, iterations: 0, cost_usd: 0.0 }.text()
}

/// What `event` of a turn is on a WebSocket; `None` where it is nothing.
pub(crate) fn of_event(event: &StreamEvent) -> Option<Utf8Bytes> {
    let message = match event {
        StreamEvent::Chunk { content } => ServerMessage::TextDelta { content },
        StreamEvent::ToolUse { tool } => ServerMessage::ToolStart { tool },
        StreamEvent::ToolResult { .. } => return None,
        StreamEvent::OwnerNotice { text } => ServerMessage::OwnerNotice { content: text },
        StreamEvent::Done { usage, iterations, response, .. } => ServerMessage::Response {
            content: response.as_deref().unwrap_or_default(),
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            iterations: *iterations,
            cost_usd: usage.cost.usd(),
        },
        StreamEvent::Error { error, .. } => ServerMessage::Error { content: error },
    };
    Some(message.text())
}

#[cfg(test)]
mod tests {
    use agentsvc_components::session::message::Usage;
    use agentsvc_components::turn::outcome::StopReason;

    use super::*;

    #[test]
    fn messages_have_the_fields_of_the_specification() {
        let said = |message: ServerMessage<'_>| message.text().to_string();
        let nil = Uuid::nil();
        assert_eq!(
            said(ServerMessage::Connected { agent_id: nil }),
            format!("{{\"type\":\"connected\",\"agent_id\":\"{nil}\"}}")
        );
        assert_eq!(said(ServerMessage::Thinking), r#"{"type":"thinking"}"#);
        assert_eq!(said(ServerMessage::Pong), r#"{"type":"pong"}"#);
        assert_eq!(
            command_response("ok"),
            r#"{"type":"response","content":"ok","input_tokens":0,"output_tokens":0,"iterations":0,"cost_usd":0.0}"#
        );
    }

    #[test]
    fn events_of_a_turn_become_messages() {
        let text = |event| of_event(&event).map(|text| text.to_string());
        let chunk = StreamEvent::Chunk { content: "a\"b".into() };
        assert_eq!(text(chunk).unwrap(), r#"{"type":"text_delta","content":"a\"b"}"#);
        let tool = || "web".to_owned();
        assert_eq!(text(StreamEvent::ToolUse { tool: tool() }).unwrap(), r#"{"type":"tool_start","tool":"web"}"#);
        assert_eq!(text(StreamEvent::ToolResult { tool: tool(), input: "{}".into() }), None);
        let notice = StreamEvent::OwnerNotice { text: "psst".into() };
        assert_eq!(text(notice).unwrap(), r#"{"type":"owner_notice","content":"psst"}"#);
        let failed = StreamEvent::Error { error: "no".into(), code: agentsvc_components::turn::error_codes::INTERNAL };
        assert_eq!(text(failed).unwrap(), r#"{"type":"error","content":"no"}"#);
        let usage = Usage::of(3, 4);
        let (stop, response, tool_calls) = (StopReason::End, Some("hi".into()), Vec::new());
        let done = StreamEvent::Done { usage, stopped: false, iterations: 2, stop, response, tool_calls };
        assert_eq!(
            text(done).unwrap(),
            r#"{"type":"response","content":"hi","input_tokens":3,"output_tokens":4,"iterations":2,"cost_usd":0.0}"#
        );
    }
}
