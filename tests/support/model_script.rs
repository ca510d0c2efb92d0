//! What the scripted model server says: replies, gates, and the wire form of answers. Part of `model_server.rs`.

use std::sync::Arc;

use bytes::Bytes;
use hyper::HeaderMap;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

/// One scripted answer.
#[derive(Clone, Debug)]
pub struct Reply {
    pub(super) kind: Kind,
    /// Prompt and answer tokens; `None` leaves the usage out.
    pub(super) usage: Option<(u64, u64)>,
    pub(super) finish_reason: Option<&'static str>,
    /// Streams: the piece after which the connection breaks.
    pub(super) break_after: Option<usize>,
    pub(super) gate: Option<Gate>,
}

/// What kind of answer it is.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    Answer { text: String, calls: Vec<ScriptedCall> },
    Raw { status: u16, headers: Vec<(String, String)>, body: String },
    Hang,
}

/// A tool call in an answer. Streamed, its arguments come in pieces of a few bytes, interleaved with other calls'.
#[derive(Clone, Debug)]
pub struct ScriptedCall {
    /// The call's id.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments; need not be JSON.
    pub arguments: String,
}

impl Reply {
    /// An answer of text; streamed word by word.
    pub fn text(text: impl Into<String>) -> Self {
        Self::of(Kind::Answer { text: text.into(), calls: Vec::new() })
    }

    /// An answer of tool calls `(id, name, arguments)`.
    pub fn calls(calls: &[(&str, &str, &str)]) -> Self {
        let calls = calls.iter().map(|(id, name, arguments)| ScriptedCall {
            id: (*id).to_owned(),
            name: (*name).to_owned(),
            arguments: (*arguments).to_owned(),
        });
        Self::of(Kind::Answer { text: String::new(), calls: calls.collect() })
    }

    /// An error in OpenAI's form.
    pub fn error(status: u16, message: &str) -> Self {
        let body = json!({"error": {"message": message, "type": "scripted", "param": null, "code": null}});
        Self::raw(status, &[("content-type", "application/json")], &body.to_string())
    }

    /// Exactly this response, whatever was asked.
    pub fn raw(status: u16, headers: &[(&str, &str)], body: &str) -> Self {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Self::of(Kind::Raw { status, headers, body: body.to_owned() })
    }

    /// This body as JSON, whatever was asked.
    pub fn json(status: u16, body: &Value) -> Self {
        Self::raw(status, &[("content-type", "application/json")], &body.to_string())
    }

    /// The body of [`Reply::raw`].
    pub fn body(&self) -> Option<&str> {
        match &self.kind {
            Kind::Raw { body, .. } => Some(body),
            _ => None,
        }
    }

    /// No answer, for as long as the client waits.
    pub fn hang() -> Self {
        Self::of(Kind::Hang)
    }

    fn of(kind: Kind) -> Self {
        Self { kind, usage: Some((11, 7)), finish_reason: None, break_after: None, gate: None }
    }

    /// Adds a response header; for [`Reply::error`] and [`Reply::raw`].
    pub fn header(mut self, name: &str, value: &str) -> Self {
        if let Kind::Raw { headers, .. } = &mut self.kind {
            headers.push((name.to_owned(), value.to_owned()));
        }
        self
    }

    /// Adds text before the tool calls of [`Reply::calls`].
    pub fn saying(mut self, said: &str) -> Self {
        if let Kind::Answer { text, .. } = &mut self.kind {
            said.clone_into(text);
        }
        self
    }

    /// Other token counts than 11 and 7; `None` leaves the usage out.
    pub fn usage(self, usage: Option<(u64, u64)>) -> Self {
        Self { usage, ..self }
    }

    /// Another `finish_reason` than `stop` or `tool_calls`.
    pub fn finish(self, reason: &'static str) -> Self {
        Self { finish_reason: Some(reason), ..self }
    }

    /// The connection breaks after so many pieces (of a stream), or in the middle of a whole answer.
    pub fn break_after(self, pieces: usize) -> Self {
        Self { break_after: Some(pieces), ..self }
    }

    /// Every piece waits for a pass through `gate`; a whole answer waits for one.
    pub fn gated(self, gate: &Gate) -> Self {
        Self { gate: Some(gate.clone()), ..self }
    }
}

/// Holds pieces of an answer back until the test lets them pass.
#[derive(Clone, Debug)]
pub struct Gate(Arc<Semaphore>);

impl Default for Gate {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(0)))
    }
}

impl Gate {
    /// Lets so many more pieces pass.
    pub fn pass(&self, pieces: usize) {
        self.0.add_permits(pieces);
    }

    /// Lets everything pass.
    pub fn open(&self) {
        self.0.close();
    }

    /// Ends when one more piece may pass.
    pub(super) async fn wait(&self) {
        if let Ok(permit) = self.0.acquire().await {
            permit.forget();
        }
    }
}

/// A request as it came.
#[derive(Clone, Debug)]
pub struct Received {
    /// The path.
    pub path: String,
    /// The headers.
    pub headers: HeaderMap,
    /// The body; a text when it was no JSON.
    pub body: Value,
    /// The bytes of the body.
    pub raw: Bytes,
}

impl Received {
    /// The messages.
    pub fn messages(&self) -> &[Value] {
        self.body["messages"].as_array().map_or(&[], Vec::as_slice)
    }

    /// The text of the last user message; empty when there is none.
    pub fn last_user(&self) -> &str {
        let last = self.messages().iter().rev().find(|message| message["role"] == "user");
        last.and_then(|message| message["content"].as_str()).unwrap_or_default()
    }

    /// Is it a request for a summary of older turns? The daemon makes them of itself, whenever a session grew long.
    pub fn wants_summary(&self) -> bool {
        self.messages()
            .first()
            .and_then(|first| first["content"].as_str())
            .is_some_and(|text| text.starts_with("You condense"))
    }

    /// Was a stream asked for?
    pub fn streaming(&self) -> bool {
        self.body["stream"] == true
    }

    /// A header's text; empty when it is missing.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

fn finish_reason(reply: &Reply, calls: &[ScriptedCall]) -> &'static str {
    reply.finish_reason.unwrap_or(if calls.is_empty() { "stop" } else { "tool_calls" })
}

fn usage(reply: &Reply) -> Value {
    reply.usage.map_or(Value::Null, |(prompt, answer)| {
        json!({"prompt_tokens": prompt, "completion_tokens": answer, "total_tokens": prompt + answer})
    })
}

/// The JSON of a whole answer.
pub(super) fn whole(reply: &Reply, text: &str, calls: &[ScriptedCall]) -> String {
    let content = if text.is_empty() && !calls.is_empty() { Value::Null } else { json!(text) };
    let mut message = json!({"role": "assistant", "content": content});
    if !calls.is_empty() {
        let function = |call: &ScriptedCall| json!({"name": call.name, "arguments": call.arguments});
        let calls: Vec<Value> =
            calls.iter().map(|call| json!({"id": call.id, "type": "function", "function": function(call)})).collect();
        message["tool_calls"] = json!(calls);
    }
    let choice = json!({"index": 0, "message": message, "finish_reason": finish_reason(reply, calls)});
    let mut body = json!({"id": "chatcmpl-1", "object": "chat.completion", "created": 0, "model": "scripted"});
    body["choices"] = json!([choice]);
    if reply.usage.is_some() {
        body["usage"] = usage(reply);
    }
    body.to_string()
}

/// The events of a streamed answer: role, words, calls in pieces, finish reason, usage, `[DONE]`.
pub(super) fn stream_pieces(reply: &Reply, text: &str, calls: &[ScriptedCall]) -> Vec<String> {
    let event = |choices: Value, usage: Value| {
        let chunk = json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 0, "model": "scripted",
            "choices": choices, "usage": usage});
        format!("data: {chunk}\n\n")
    };
    let delta = |delta: Value| event(json!([{"index": 0, "delta": delta, "finish_reason": null}]), Value::Null);
    let mut pieces = vec![delta(json!({"role": "assistant", "content": ""}))];
    pieces.extend(text.split_inclusive(' ').map(|word| delta(json!({"content": word}))));
    for (at, call) in calls.iter().enumerate() {
        let function = json!({"name": call.name, "arguments": ""});
        let first = json!({"index": at, "id": call.id, "type": "function", "function": function});
        pieces.push(delta(json!({"tool_calls": [first]})));
    }
    let mut rest: Vec<Vec<String>> = calls.iter().map(|call| in_pieces(&call.arguments)).collect();
    while rest.iter().any(|pieces| !pieces.is_empty()) {
        for (at, arguments) in rest.iter_mut().enumerate() {
            if !arguments.is_empty() {
                let function = json!({"arguments": arguments.remove(0)});
                pieces.push(delta(json!({"tool_calls": [{"index": at, "function": function}]})));
            }
        }
    }
    let finish = finish_reason(reply, calls);
    pieces.push(event(json!([{"index": 0, "delta": {}, "finish_reason": finish}]), Value::Null));
    if reply.usage.is_some() {
        pieces.push(event(json!([]), usage(reply)));
    }
    pieces.push("data: [DONE]\n\n".to_owned());
    pieces
}

fn in_pieces(text: &str) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    characters.chunks(4).map(|piece| piece.iter().collect()).collect()
}
