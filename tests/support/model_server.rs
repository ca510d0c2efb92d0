//! A scripted OpenAI-compatible model server over real HTTP, for tests and benches. Included by `#[path]`.
//!
//! It has a thread and a runtime of its own, so that blocking tests may use it too, and ends when dropped. Each
//! request takes the next scripted [`Reply`]; without one the responder is asked, and without that it repeats the
//! last user message. Nothing in it sleeps: slow answers wait at a [`Gate`] that the test opens.
#![allow(dead_code, unreachable_pub, reason = "every program that includes this uses another part of it")]

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming};
use hyper::service::service_fn;
use hyper::{HeaderMap, Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::sync::{Notify, Semaphore, mpsc, oneshot};

/// How long a blocking wait may take before the test is wrong.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// One scripted answer.
#[derive(Clone, Debug)]
pub struct Reply {
    kind: Kind,
    /// Prompt and answer tokens; `None` leaves the usage out.
    usage: Option<(u64, u64)>,
    finish_reason: Option<&'static str>,
    /// Streams: the piece after which the connection breaks.
    break_after: Option<usize>,
    gate: Option<Gate>,
}

#[derive(Clone, Debug)]
enum Kind {
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

    async fn wait(&self) {
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
    /// The body; `null` when it was no JSON.
    pub body: Value,
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

    /// Was a stream asked for?
    pub fn streaming(&self) -> bool {
        self.body["stream"] == true
    }

    /// A header's text; empty when it is missing.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

type Responder = Arc<dyn Fn(&Received) -> Reply + Send + Sync>;

/// The server.
pub struct ModelServer {
    address: SocketAddr,
    state: Arc<State>,
    stop: Option<oneshot::Sender<()>>,
}

#[derive(Default)]
struct State {
    script: Mutex<Script>,
    changed: Condvar,
    changed_async: Notify,
    /// Answers to every request, ready to send: whole and streamed. Nothing is recorded then.
    fixed: Option<(Bytes, Bytes)>,
}

#[derive(Default)]
struct Script {
    replies: VecDeque<Reply>,
    responder: Option<Responder>,
    received: Vec<Received>,
    /// Answers that the client did not wait for the end of.
    given_up: usize,
    connections: usize,
}

impl ModelServer {
    /// A server with an empty script.
    pub fn start() -> Self {
        Self::run(State::default())
    }

    /// A server that answers every request with `text` at once, and records nothing: for benches.
    pub fn fixed(text: &str) -> Self {
        let reply = Reply::text(text);
        let Kind::Answer { text, calls } = &reply.kind else { unreachable!("a text is an answer") };
        let pieces = stream_pieces(&reply, text, calls).concat();
        let fixed = (Bytes::from(whole(&reply, text, calls)), Bytes::from(pieces));
        Self::run(State { fixed: Some(fixed), ..State::default() })
    }

    fn run(state: State) -> Self {
        let state = Arc::new(state);
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        listener.set_nonblocking(true).expect("a socket can be made non-blocking");
        let address = listener.local_addr().expect("a bound socket has an address");
        let (stop, stopped) = oneshot::channel();
        let served = Arc::clone(&state);
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
            // The runtime ends with its connections when the server is dropped.
            runtime.block_on(async {
                tokio::select! {
                    () = serve(listener, served) => {}
                    _ = stopped => {}
                }
            });
        });
        Self { address, state, stop: Some(stop) }
    }

    /// What goes into a manifest or configuration.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Adds a reply to the end of the script.
    pub fn push(&self, reply: Reply) {
        self.state.script().replies.push_back(reply);
    }

    /// What to answer when the script is empty.
    pub fn respond(&self, responder: impl Fn(&Received) -> Reply + Send + Sync + 'static) {
        self.state.script().responder = Some(Arc::new(responder));
    }

    /// Every request so far.
    pub fn requests(&self) -> Vec<Received> {
        self.state.script().received.clone()
    }

    /// Connections taken so far.
    pub fn connections(&self) -> usize {
        self.state.script().connections
    }

    /// Answers so far that the client did not wait for the end of.
    pub fn given_up(&self) -> usize {
        self.state.script().given_up
    }

    /// Blocks until so many requests have come.
    pub fn wait_for_requests(&self, count: usize) {
        let script = self.state.script();
        let waited = self.state.changed.wait_timeout_while(script, WAIT_MAX, |script| script.received.len() < count);
        let (script, _) = waited.unwrap_or_else(PoisonError::into_inner);
        assert!(script.received.len() >= count, "{} requests came, {count} were expected", script.received.len());
    }

    /// Ends when so many requests have come.
    pub async fn received(&self, count: usize) {
        self.until(|script| script.received.len() >= count).await;
    }

    /// Ends when the client has given up so many answers.
    pub async fn abandoned(&self, count: usize) {
        self.until(|script| script.given_up >= count).await;
    }

    async fn until(&self, reached: impl Fn(&Script) -> bool) {
        let wait = async {
            loop {
                let changed = self.state.changed_async.notified();
                if reached(&self.state.script()) {
                    return;
                }
                changed.await;
            }
        };
        tokio::time::timeout(WAIT_MAX, wait).await.expect("the server saw what the test waits for");
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        drop(self.stop.take());
    }
}

impl State {
    fn script(&self) -> MutexGuard<'_, Script> {
        // A failed assertion elsewhere must not hide behind a poisoned lock.
        self.script.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut Script)) {
        change(&mut self.script());
        self.changed.notify_all();
        self.changed_async.notify_waiters();
    }

    fn next_reply(&self, received: &Received) -> Reply {
        let mut script = self.script();
        if let Some(reply) = script.replies.pop_front() {
            return reply;
        }
        let responder = script.responder.clone();
        drop(script);
        responder.map_or_else(|| Reply::text(received.last_user()), |responder| responder(received))
    }
}

async fn serve(listener: std::net::TcpListener, state: Arc<State>) {
    let listener = tokio::net::TcpListener::from_std(listener).expect("the socket fits the runtime");
    loop {
        let Ok((socket, _)) = listener.accept().await else { continue };
        let _ = socket.set_nodelay(true);
        let state = Arc::clone(&state);
        state.change(|script| script.connections += 1);
        tokio::spawn(async move {
            let service = service_fn(move |request| answer(Arc::clone(&state), request));
            // A broken connection is what some scripts are about.
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(socket), service).await;
        });
    }
}

/// A body of what the sender gives, or of bytes at once. An error breaks the connection.
enum Pieces {
    Sent(mpsc::Receiver<io::Result<Bytes>>),
    Whole(Option<Bytes>),
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        match &mut *self {
            Self::Sent(pieces) => pieces.poll_recv(cx).map(|piece| piece.map(|piece| piece.map(Frame::data))),
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
        }
    }

    fn size_hint(&self) -> hyper::body::SizeHint {
        match self {
            Self::Whole(bytes) => hyper::body::SizeHint::with_exact(bytes.as_ref().map_or(0, |b| b.len() as u64)),
            Self::Sent(_) => hyper::body::SizeHint::default(),
        }
    }
}

async fn answer(state: Arc<State>, request: Request<Incoming>) -> Result<Response<Pieces>, Infallible> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    if let Some((whole, streamed)) = &state.fixed {
        let streaming = body.windows(13).any(|window| window == b"\"stream\":true");
        let (kind, bytes) = if streaming { ("text/event-stream", streamed) } else { ("application/json", whole) };
        return Ok(response(200, &[("content-type", kind)], Pieces::Whole(Some(bytes.clone()))));
    }
    let body = serde_json::from_slice(&body).unwrap_or_default();
    let received = Received { path: head.uri.path().to_owned(), headers: head.headers, body };
    let reply = state.next_reply(&received);
    let streaming = received.streaming();
    state.change(|script| script.received.push(received));
    Ok(render(&state, reply, streaming).await)
}

async fn render(state: &Arc<State>, reply: Reply, streaming: bool) -> Response<Pieces> {
    let unfinished = Unfinished(Some(Arc::clone(state)));
    match &reply.kind {
        Kind::Hang => std::future::pending().await,
        Kind::Raw { status, headers, body } => {
            if let Some(gate) = &reply.gate {
                gate.wait().await;
            }
            unfinished.finish();
            let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (&**name, &**value)).collect();
            response(*status, &headers, Pieces::Whole(Some(Bytes::from(body.clone()))))
        }
        Kind::Answer { text, calls } if streaming => {
            let pieces = stream_pieces(&reply, text, calls);
            let headers = [("content-type", "text/event-stream"), ("cache-control", "no-cache")];
            response(200, &headers, send(pieces, reply, unfinished))
        }
        Kind::Answer { text, calls } => {
            if let Some(gate) = &reply.gate {
                gate.wait().await;
            }
            let body = whole(&reply, text, calls);
            let (first, second) = body.split_at(body.len() / 2);
            let headers = [("content-type", "application/json")];
            match reply.break_after {
                Some(_) => {
                    let reply = Reply { break_after: Some(1), gate: None, ..reply.clone() };
                    response(200, &headers, send(vec![first.to_owned(), second.to_owned()], reply, unfinished))
                }
                None => {
                    unfinished.finish();
                    response(200, &headers, Pieces::Whole(Some(Bytes::from(body))))
                }
            }
        }
    }
}

/// Counts an answer as given up when it is dropped unfinished.
struct Unfinished(Option<Arc<State>>);

impl Unfinished {
    fn finish(mut self) {
        self.0 = None;
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if let Some(state) = self.0.take() {
            state.change(|script| script.given_up += 1);
        }
    }
}

fn send(pieces: Vec<String>, reply: Reply, unfinished: Unfinished) -> Pieces {
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(async move {
        for (at, piece) in pieces.into_iter().enumerate() {
            if reply.break_after == Some(at) {
                let _ = sender.send(Err(io::ErrorKind::ConnectionReset.into())).await;
                return unfinished.finish();
            }
            if let Some(gate) = &reply.gate {
                tokio::select! {
                    () = gate.wait() => {}
                    () = sender.closed() => return,
                }
            }
            if sender.send(Ok(Bytes::from(piece))).await.is_err() {
                return;
            }
        }
        unfinished.finish();
    });
    Pieces::Sent(receiver)
}

fn response(status: u16, headers: &[(&str, &str)], body: Pieces) -> Response<Pieces> {
    let mut builder = Response::builder().status(status);
    for (name, value) in headers {
        builder = builder.header(*name, *value);
    }
    builder.body(body).expect("scripted statuses and headers are valid")
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
fn whole(reply: &Reply, text: &str, calls: &[ScriptedCall]) -> String {
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
fn stream_pieces(reply: &Reply, text: &str, calls: &[ScriptedCall]) -> Vec<String> {
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
