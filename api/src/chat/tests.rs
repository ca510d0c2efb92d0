//! Conversations of the agent WebSocket over a pipe in memory: what a real network hides.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use agentsvc_components::kernel::limit;
use agentsvc_components::turn::effect::ModelCall;
use agentsvc_components::turn::stream::{StreamEvent, StreamItem};
use agentsvc_systems::agent::ListAgents;
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::io::DuplexStream;
use tokio::task::JoinHandle;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::Role;

use crate::chat::socket::{Conversation, Partner};
use crate::http::connection::Activity;
use crate::http::trace::TraceContext;
use crate::testing::daemon::TestDaemon;
use crate::turn::hub::StreamHub;

/// A client and the server's side of its conversation.
struct Client {
    socket: WebSocketStream<DuplexStream>,
    activity: Arc<Activity>,
    server: JoinHandle<()>,
}

impl Client {
    /// A client of the first agent, with so little between it and the server.
    async fn connect(daemon: &TestDaemon, buffer_bytes: usize) -> Self {
        Self::traced(daemon, buffer_bytes, None).await
    }

    /// The same, whose handshake belonged to a trace.
    async fn traced(daemon: &TestDaemon, buffer_bytes: usize, trace: Option<TraceContext>) -> Self {
        let mut page = daemon.api.bridge.ask(ListAgents { limit: 1, ..ListAgents::default() }).await.unwrap();
        let (ours, theirs) = tokio::io::duplex(buffer_bytes);
        let activity = Arc::<Activity>::default();
        let peer = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let (agent, key_changed) = (page.items.remove(0), daemon.api.access.policy().key_changed.clone());
        let partner = Partner {
            agent,
            is_limited: false,
            may_write: true,
            peer,
            trace,
            key_changed,
            activity: Arc::clone(&activity),
            permits: Arc::clone(&daemon.api.permits),
        };
        let server = tokio::spawn(Conversation::hold(Arc::clone(&daemon.api), partner, ours));
        let socket = WebSocketStream::from_raw_socket(theirs, Role::Client, None).await;
        let mut client = Self { socket, activity, server };
        assert_eq!(client.next().await["type"], "connected");
        client
    }

    async fn send(&mut self, value: Value) {
        self.socket.send(Message::text(value.to_string())).await.unwrap();
    }

    /// The next message that is not the list of agents.
    async fn next(&mut self) -> Value {
        loop {
            if let Message::Text(text) = self.socket.next().await.unwrap().unwrap() {
                let value: Value = serde_json::from_str(&text).unwrap();
                if value["type"] != "agents_updated" {
                    return value;
                }
            }
        }
    }
}

#[tokio::test]
async fn a_client_that_does_not_read_loses_pieces_but_no_response() {
    let mut daemon = TestDaemon::new();
    daemon.agent("a").await;
    daemon.hold_model();
    let mut client = Client::connect(&daemon, 4 << 10).await;
    client.send(json!({"type": "message", "content": "hello"})).await;
    let call = daemon.model_call().await;
    let pieces = limit::SOCKET_OUTBOX_BYTES_MAX / 1_000 * 2;
    for _ in 0..pieces {
        let event = StreamEvent::Chunk { content: "x".repeat(1_000) };
        daemon.api.state::<StreamHub>().publish(StreamItem { session: call.session, turn: call.turn(), event });
        tokio::task::yield_now().await;
    }
    daemon.answer(&call, "the whole answer");
    let (mut deltas, mut missed) = (0, 0);
    loop {
        let message = client.next().await;
        match message["type"].as_str().unwrap() {
            "text_delta" => deltas += 1,
            "lagged" => missed += message["missed"].as_u64().unwrap(),
            "response" => break assert_eq!(message["content"], "the whole answer"),
            other => assert_eq!(other, "thinking"),
        }
    }
    assert!(missed > 0, "{deltas} pieces came");
    // The answer is one more piece.
    assert_eq!(deltas + missed, pieces as u64 + 1);
}

#[tokio::test]
async fn a_client_that_asks_and_does_not_read_is_not_read_either() {
    let daemon = TestDaemon::new();
    daemon.agent("a").await;
    let mut client = Client::connect(&daemon, 1 << 10).await;
    let mut sent = 0;
    while tokio::time::timeout(Duration::from_millis(500), client.send(json!({"type": "ping"}))).await.is_ok() {
        sent += 1;
        // The write buffer takes about a thousand before the outbox begins to fill.
        assert!(sent < 4_000, "the server reads on and on");
    }
    assert!(!client.server.is_finished());
}

#[tokio::test(start_paused = true)]
async fn a_silent_client_is_pinged_and_then_left() {
    let daemon = TestDaemon::new();
    daemon.agent("a").await;
    let mut client = Client::connect(&daemon, 64 << 10).await;
    let mut pinged = false;
    // It reads, but its answers to pings stay in its own buffer until it is flushed: it reads past its library.
    let raw = client.socket.get_mut();
    let mut bytes = [0; 1_024];
    while let Ok(Ok(count)) = tokio::time::timeout(Duration::from_secs(600), async {
        use tokio::io::AsyncReadExt;
        raw.read(&mut bytes).await
    })
    .await
    {
        if count == 0 {
            break;
        }
        pinged |= bytes[..count].windows(2).any(|frame| frame == [0x89, 0]);
    }
    assert!(pinged);
    client.server.await.unwrap();
    drop(client.activity);
}

#[tokio::test]
async fn a_message_too_many_is_refused() {
    let mut daemon = TestDaemon::new();
    daemon.agent("a").await;
    daemon.hold_model();
    let mut client = Client::connect(&daemon, 64 << 10).await;
    for _ in 0..limit::SOCKET_TURNS_MAX {
        client.send(json!({"type": "message", "content": "hello"})).await;
    }
    client.send(json!({"type": "message", "content": "one too many"})).await;
    daemon.model_call().await;
    assert_eq!(client.next().await["type"], "thinking");
    let refused = client.next().await;
    assert!(refused["content"].as_str().unwrap().contains("waiting for a response"), "{refused}");
}

#[tokio::test]
async fn a_turn_belongs_to_the_trace_of_its_message_or_else_of_the_handshake() {
    let mut daemon = TestDaemon::new();
    daemon.agent("a").await;
    daemon.hold_model();
    let trace = TraceContext { trace_id: 0xabc, parent_id: 1, span_id: 2, flags: 1 };
    let mut client = Client::traced(&daemon, 64 << 10, Some(trace)).await;
    let trace_of =
        |call: &ModelCall| call.request.as_ref().and_then(|request| request.trace.as_ref().map(ToString::to_string));
    let span_of = |text: &str| text.split('-').nth(2).unwrap().to_owned();
    client.send(json!({"type": "message", "content": "of the handshake"})).await;
    let first = daemon.model_call().await;
    let of_handshake = trace_of(&first).unwrap();
    assert!(of_handshake.starts_with("00-00000000000000000000000000000abc-"), "{of_handshake}");
    // Each message is a span of its own within that of the handshake.
    assert_ne!(span_of(&of_handshake), "0000000000000002");
    daemon.answer(&first, "one");
    while client.next().await["type"] != "response" {}
    let own = "00-00000000000000000000000000000def-00000000000000aa-01";
    client.send(json!({"type": "message", "content": "of its own", "traceparent": own})).await;
    let second = daemon.model_call().await;
    let of_message = trace_of(&second).unwrap();
    assert!(of_message.starts_with("00-00000000000000000000000000000def-"), "{of_message}");
    assert_ne!(span_of(&of_message), "00000000000000aa");
    daemon.answer(&second, "two");
    while client.next().await["type"] != "response" {}
    let mut plain = Client::connect(&daemon, 64 << 10).await;
    plain.send(json!({"type": "message", "content": "of none"})).await;
    assert_eq!(trace_of(&daemon.model_call().await), None);
    // One that is none is as if it were not there, as in a header.
    client.send(json!({"type": "message", "content": "/help", "traceparent": "nonsense"})).await;
    assert_eq!(client.next().await["type"], "response");
}
