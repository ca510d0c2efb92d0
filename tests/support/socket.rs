//! A blocking WebSocket client: the agent's WebSocket as a client of another make sees it.

use std::net::TcpStream;

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::handshake::HandshakeError;
use tokio_tungstenite::tungstenite::http::{HeaderName, HeaderValue};
use tokio_tungstenite::tungstenite::protocol::WebSocket;
use tokio_tungstenite::tungstenite::{Error, Message, client as connect};

use super::http::Client;

/// An open WebSocket.
pub(crate) struct Socket(pub(crate) WebSocket<TcpStream>);

/// Why the server opened none.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
}

impl Socket {
    /// Connects to an agent and takes the greeting.
    #[track_caller]
    pub(crate) fn open(client: &Client, agent: &str) -> Self {
        let mut socket = Self::ask(client, &format!("/api/agents/{agent}/ws"), &[]).expect("the WebSocket opens");
        assert_eq!(socket.next(), json!({ "type": "connected", "agent_id": agent }));
        socket
    }

    /// Connects to `path` with more headers.
    #[track_caller]
    pub(crate) fn ask(client: &Client, path: &str, headers: &[(&str, &str)]) -> Result<Self, Refused> {
        let mut request = format!("ws://{}{path}", client.addr).into_client_request().expect("a valid request");
        let key = client.key.as_ref().map(|key| ("authorization", format!("Bearer {key}")));
        let own = key.iter().map(|(name, value)| (*name, value.as_str()));
        for (name, value) in own.chain(headers.iter().copied()) {
            let name = HeaderName::from_bytes(name.as_bytes()).expect("a header name");
            request.headers_mut().insert(name, HeaderValue::from_str(value).expect("a header value"));
        }
        match connect(request, client.connect().expect("the daemon takes connections")) {
            Ok((socket, _)) => Ok(Self(socket)),
            Err(HandshakeError::Failure(Error::Http(response))) => {
                let text = |value: &HeaderValue| value.to_str().unwrap_or_default().to_owned();
                let headers = response.headers().iter().map(|(name, value)| (name.to_string(), text(value)));
                Err(Refused { status: response.status().as_u16(), headers: headers.collect() })
            }
            Err(error) => panic!("{path}: {error}"),
        }
    }

    /// Sends a text as it is.
    #[track_caller]
    pub(crate) fn send(&mut self, text: impl Into<String>) {
        self.0.send(Message::text(text.into())).expect("the daemon takes it");
    }

    /// Says `content` to the agent.
    #[track_caller]
    pub(crate) fn say(&mut self, content: &str) {
        self.send(json!({ "type": "message", "content": content }).to_string());
    }

    /// The next message of any type.
    #[track_caller]
    pub(crate) fn any(&mut self) -> Value {
        loop {
            match self.0.read().expect("a message") {
                Message::Text(text) => return serde_json::from_str(&text).expect("messages are JSON"),
                Message::Ping(_) | Message::Pong(_) => {}
                other => panic!("{other:?} instead of a text"),
            }
        }
    }

    /// The next message that is not the list of agents.
    #[track_caller]
    pub(crate) fn next(&mut self) -> Value {
        loop {
            let message = self.any();
            if message["type"] != "agents_updated" {
                return message;
            }
        }
    }

    /// The messages up to and including the next of type `kind`.
    #[track_caller]
    pub(crate) fn until(&mut self, kind: &str) -> Vec<Value> {
        let mut messages = Vec::new();
        while messages.last().is_none_or(|last: &Value| last["type"] != kind) {
            messages.push(self.next());
        }
        messages
    }

    /// Says `content` and gives the text of the response.
    #[track_caller]
    pub(crate) fn answer(&mut self, content: &str) -> String {
        self.say(content);
        super::daemon::text(&self.until("response").pop().expect("a response")["content"])
    }

    /// Says what must be refused and gives the sentence.
    #[track_caller]
    pub(crate) fn error(&mut self, text: &str) -> String {
        self.send(text);
        let message = self.next();
        assert_eq!(message["type"], "error", "{message}");
        super::daemon::text(&message["content"])
    }

    /// The code of the close frame with which the server ends.
    #[track_caller]
    pub(crate) fn closed(&mut self) -> u16 {
        loop {
            match self.0.read() {
                Ok(Message::Close(frame)) => return frame.expect("a reason").code.into(),
                Ok(_) => {}
                Err(error) => panic!("no close frame: {error}"),
            }
        }
    }
}
