//! A reader of server-sent events.

use std::io::{BufRead, BufReader};

use serde_json::Value;

use super::http::{Body, Client, Reply};

/// One event: its name (`message` when it has none) and its data as JSON (a string when it is not JSON).
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Event {
    pub(crate) name: String,
    pub(crate) data: Value,
}

/// An open stream. It ends when the server closes it cleanly; any other end panics.
pub(crate) struct Events {
    pub(crate) head: Reply,
    lines: BufReader<Body>,
}

impl Events {
    /// Opens a stream; panics unless it is one.
    #[track_caller]
    pub(crate) fn open(client: &Client, method: &str, path: &str, body: Option<&Value>) -> Self {
        Self::open_with(client, method, path, &[], body)
    }

    /// Opens a stream with these headers; panics unless it is one.
    #[track_caller]
    pub(crate) fn open_with(
        client: &Client,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Self {
        let text = body.map(Value::to_string);
        let headers = [&[("accept", "text/event-stream")], headers].concat();
        let opened = client.open(method, path, &headers, text.as_ref().map(|t| t.as_bytes()));
        let (head, body) = opened.unwrap_or_else(|error| panic!("{method} {path}: {error}"));
        let mut events = Self { head, lines: BufReader::new(body) };
        if events.head.status != 200 {
            let mut text = String::new();
            std::io::Read::read_to_string(&mut events.lines, &mut text).ok();
            panic!("{method} {path}: {} {text}", events.head.status);
        }
        let kind = events.head.header("content-type").unwrap_or_default();
        assert!(kind.starts_with("text/event-stream"), "content-type is {kind}");
        events
    }

    /// Streams the answer to `message`.
    #[track_caller]
    pub(crate) fn message(client: &Client, agent: &str, body: &Value) -> Self {
        Self::open(client, "POST", &format!("/api/agents/{agent}/message/stream"), Some(body))
    }

    /// Subscribes to the agent's current session.
    #[track_caller]
    pub(crate) fn attach(client: &Client, agent: &str) -> Self {
        Self::open(client, "GET", &format!("/api/agents/{agent}/attach"), None)
    }

    /// Everything up to the clean end.
    pub(crate) fn all(self) -> Vec<Event> {
        self.collect()
    }
}

impl Iterator for Events {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        let (mut name, mut data) = ("message".to_owned(), Vec::new());
        loop {
            let mut line = String::new();
            if self.lines.read_line(&mut line).expect("the stream ends cleanly") == 0 {
                return None;
            }
            let line = line.trim_end_matches(['\n', '\r']);
            if line.is_empty() && data.is_empty() {
                // A comment that keeps the connection alive, or an event without data: neither is dispatched.
                name = "message".to_owned();
            } else if line.is_empty() {
                let text = data.join("\n");
                let data = serde_json::from_str(&text).unwrap_or(Value::String(text));
                return Some(Event { name, data });
            } else if let Some(value) = line.strip_prefix("event:") {
                name = value.trim_start().to_owned();
            } else if let Some(value) = line.strip_prefix("data:") {
                data.push(value.strip_prefix(' ').unwrap_or(value).to_owned());
            }
        }
    }
}

/// The text of all chunks.
pub(crate) fn text_of(events: &[Event]) -> String {
    events.iter().filter(|e| e.name == "chunk").filter_map(|e| e.data["content"].as_str()).collect()
}
