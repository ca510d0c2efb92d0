//! A server that answers every request as it is told, piece by piece, over real HTTP.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming};
use hyper::header::HeaderMap;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    /// The path as it was sent, still encoded.
    pub(crate) path: String,
    /// What stands behind the question mark.
    pub(crate) query: String,
    pub(crate) headers: HeaderMap,
    pub(crate) bytes: Bytes,
}

impl Received {
    /// A header's value; empty where there is none.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// The body as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).expect("the body is JSON")
    }
}

/// How a body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// As it should.
    Whole,
    /// The connection breaks.
    Break,
    /// Nothing comes any more.
    Silence,
}

/// An answer.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    /// What is sent one by one.
    pub(crate) pieces: Vec<Vec<u8>>,
    pub(crate) end: End,
}

impl Answer {
    /// An answer with a body of this type.
    pub(crate) fn new(status: u16, content_type: &str, pieces: Vec<Vec<u8>>) -> Self {
        Self { status, headers: vec![("content-type", content_type.to_owned())], pieces, end: End::Whole }
    }

    /// One in JSON.
    pub(crate) fn json(status: u16, body: &Value) -> Self {
        Self::new(status, "application/json", vec![body.to_string().into_bytes()])
    }

    /// With a header.
    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    /// With another end.
    pub(crate) fn ending(self, end: End) -> Self {
        Self { end, ..self }
    }
}

/// The server. It ends when dropped.
pub(crate) struct Server {
    address: SocketAddr,
    state: Arc<State>,
    accepting: AbortHandle,
}

struct State {
    answer: Box<dyn Fn(usize) -> Answer + Send + Sync>,
    received: Mutex<Vec<Received>>,
}

impl Server {
    /// Gives the same answer to every request.
    pub(crate) async fn always(answer: Answer) -> Self {
        Self::answering(move |_| answer.clone()).await
    }

    /// Answers the request number n, from 0.
    pub(crate) async fn answering(answer: impl Fn(usize) -> Answer + Send + Sync + 'static) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
        let address = listener.local_addr().expect("a bound socket has an address");
        let state = Arc::new(State { answer: Box::new(answer), received: Mutex::default() });
        let accepting = tokio::spawn(serve(listener, Arc::clone(&state))).abort_handle();
        Self { address, state, accepting }
    }

    /// Its address as a URL with a path.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Every request so far.
    pub(crate) fn requests(&self) -> Vec<Received> {
        self.state.received.lock().expect("no test panics in here").clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn serve(listener: tokio::net::TcpListener, state: Arc<State>) {
    while let Ok((socket, _)) = listener.accept().await {
        let _ = socket.set_nodelay(true);
        let state = Arc::clone(&state);
        tokio::spawn(async move {
            let service = service_fn(move |request| answer(Arc::clone(&state), request));
            // A broken connection is what some scenarios are about.
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(socket), service).await;
        });
    }
}

async fn answer(state: Arc<State>, request: Request<Incoming>) -> Result<Response<Pieces>, Infallible> {
    let (head, body) = request.into_parts();
    let bytes = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let (path, query) = (head.uri.path().to_owned(), head.uri.query().unwrap_or_default().to_owned());
    let number = {
        let mut received = state.received.lock().expect("no test panics in here");
        received.push(Received { path, query, headers: head.headers, bytes });
        received.len() - 1
    };
    let answer = (state.answer)(number);
    if answer.pieces.is_empty() && answer.end == End::Silence {
        std::future::pending::<()>().await;
    }
    let mut response = Response::builder().status(answer.status);
    for (name, value) in &answer.headers {
        response = response.header(*name, value);
    }
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(send(answer, sender));
    Ok(response.body(Pieces(receiver)).expect("scripted statuses and headers are valid"))
}

async fn send(answer: Answer, sender: mpsc::Sender<io::Result<Bytes>>) {
    for piece in answer.pieces {
        if sender.send(Ok(Bytes::from(piece))).await.is_err() {
            return;
        }
    }
    match answer.end {
        End::Whole => {}
        End::Break => drop(sender.send(Err(io::ErrorKind::ConnectionReset.into())).await),
        End::Silence => sender.closed().await,
    }
}

/// A body of what the sender gives, each piece a chunk of its own. An error breaks the connection.
struct Pieces(mpsc::Receiver<io::Result<Bytes>>);

impl Body for Pieces {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        self.0.poll_recv(cx).map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }
}
