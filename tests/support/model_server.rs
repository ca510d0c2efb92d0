//! A scripted OpenAI-compatible model server over real HTTP, for tests and benches. Included by `#[path]`.
//!
//! It has a thread and a runtime of its own, so that blocking tests may use it too, and ends when dropped. Each
//! request takes the next scripted [`Reply`]; without one the responder is asked, and without that it repeats the
//! last user message. Nothing in it sleeps: slow answers wait at a [`Gate`] that the test opens.
#![allow(
    dead_code,
    unreachable_pub,
    unused_imports,
    reason = "every program that includes this uses another part of it"
)]

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
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::sync::{Notify, mpsc, oneshot};

// By path, so that it is found however this file itself is included.
#[path = "model_script.rs"]
mod script;

use script::Kind;
pub use script::{Gate, Received, Reply};

/// How long a blocking wait may take before the test is wrong.
const WAIT_MAX: Duration = Duration::from_secs(180);

type Apart = Arc<dyn Fn(&Received) -> bool + Send + Sync>;
type Responder = Arc<dyn Fn(&Received) -> Reply + Send + Sync>;

/// The server.
pub struct ModelServer {
    address: SocketAddr,
    state: Arc<State>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

#[derive(Default)]
struct State {
    script: Mutex<Script>,
    changed: Condvar,
    changed_async: Notify,
    /// Answers to every request, ready to send: whole and streamed. Nothing is recorded then.
    fixed: Option<(Bytes, Bytes)>,
    /// Requests are answered and not kept.
    is_forgetful: bool,
}

#[derive(Default)]
struct Script {
    replies: VecDeque<Reply>,
    responder: Option<Responder>,
    apart: Option<Apart>,
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
        let pieces = script::stream_pieces(&reply, text, calls).concat();
        let fixed = (Bytes::from(script::whole(&reply, text, calls)), Bytes::from(pieces));
        Self::run(State { fixed: Some(fixed), ..State::default() })
    }

    /// A server that keeps no request: for programs that ask it for hours.
    pub fn forgetful() -> Self {
        Self::run(State { is_forgetful: true, ..State::default() })
    }

    fn run(state: State) -> Self {
        let state = Arc::new(state);
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        listener.set_nonblocking(true).expect("a socket can be made non-blocking");
        let address = listener.local_addr().expect("a bound socket has an address");
        let (stop, stopped) = oneshot::channel();
        let served = Arc::clone(&state);
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
            // The runtime ends with its connections when the server is dropped.
            runtime.block_on(async {
                tokio::select! {
                    () = serve(listener, served) => {}
                    _ = stopped => {}
                }
            });
        });
        Self { address, state, stop: Some(stop), thread: Some(thread) }
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

    /// From now on the script is only for requests that are not `apart`: what the daemon asks of itself, at any time, must
    /// not take the answer of another one.
    pub fn spare(&self, apart: impl Fn(&Received) -> bool + Send + Sync + 'static) {
        self.state.script().apart = Some(Arc::new(apart));
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
        // Behind this nobody answers there any more.
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
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
        let is_apart = script.apart.as_ref().is_some_and(|apart| apart(received));
        if !is_apart && let Some(reply) = script.replies.pop_front() {
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
    // What is no JSON, such as a form, is kept as text.
    let raw = body;
    let body = serde_json::from_slice(&raw).unwrap_or_else(|_| String::from_utf8_lossy(&raw).into());
    let received = Received { path: head.uri.path().to_owned(), headers: head.headers, body, raw };
    let reply = state.next_reply(&received);
    let streaming = received.streaming();
    if !state.is_forgetful {
        state.change(|script| script.received.push(received));
    }
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
            let pieces = script::stream_pieces(&reply, text, calls);
            let headers = [("content-type", "text/event-stream"), ("cache-control", "no-cache")];
            response(200, &headers, send(pieces, reply, unfinished))
        }
        Kind::Answer { text, calls } => {
            if let Some(gate) = &reply.gate {
                gate.wait().await;
            }
            let body = script::whole(&reply, text, calls);
            let (first, second) = body.split_at(body.floor_char_boundary(body.len() / 2));
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
