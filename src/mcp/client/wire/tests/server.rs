//! A server on a loopback address that answers each request as a test wants, well or badly.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::UnboundedReceiver;

/// A request as it arrived.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) method: String,
    pub(super) path: String,
    head: String,
    pub(super) text: String,
    pub(super) body: Value,
}

impl Seen {
    /// The value of a header.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// The method of the message.
    pub(super) fn rpc(&self) -> &str {
        self.body["method"].as_str().unwrap_or_default()
    }

    /// The answer to the message.
    pub(super) fn result(&self, result: Value) -> Value {
        json!({ "jsonrpc": "2.0", "id": self.body["id"], "result": result })
    }
}

/// What a server does with a request.
pub(super) enum Reply {
    /// Answers with a status, more headers, a type and a body.
    Plain(u16, &'static str, &'static str, String),
    /// Sends events, and then closes, or not.
    Events(String, bool),
    /// Sends events, and then messages as they come.
    Live(String, UnboundedReceiver<Value>),
    /// Never answers.
    Hang,
    /// Closes the connection.
    Close,
    /// Sends this again and again after the head of an answer of this type.
    Flood(&'static str, String),
}

impl Reply {
    pub(super) fn json(body: &Value) -> Self {
        Self::Plain(200, "", "application/json", body.to_string())
    }

    pub(super) fn status(status: u16) -> Self {
        Self::Plain(status, "", "text/plain", "some words".to_owned())
    }

    /// One event for each message, and then the end.
    pub(super) fn events(messages: &[Value]) -> Self {
        Self::Events(messages.iter().map(|message| format!("event: message\ndata: {message}\n\n")).collect(), true)
    }
}

/// The server.
pub(super) struct Server {
    pub(super) url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Server {
    pub(super) async fn start(answer: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let (answer, seen) = (Arc::new(answer), Arc::<Mutex<Vec<Seen>>>::default());
        let noted = Arc::clone(&seen);
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let (answer, noted) = (Arc::clone(&answer), Arc::clone(&noted));
                tokio::spawn(async move { serve(socket, &*answer, &noted).await });
            }
        });
        Self { url, seen }
    }

    /// The requests so far.
    pub(super) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().clone()
    }

    /// How many messages of this method came so far.
    pub(super) fn count(&self, rpc: &str) -> usize {
        self.seen().iter().filter(|seen| seen.rpc() == rpc).count()
    }

    /// Waits for a request that is so.
    pub(super) async fn until(&self, is_so: impl Fn(&Seen) -> bool) -> Seen {
        loop {
            if let Some(seen) = self.seen().into_iter().find(|seen| is_so(seen)) {
                return seen;
            }
            tokio::task::yield_now().await;
        }
    }
}

async fn serve(
    mut socket: TcpStream,
    answer: &(impl Fn(&Seen) -> Reply + Sync),
    noted: &Mutex<Vec<Seen>>,
) -> Option<()> {
    let (mut bytes, mut piece) = (Vec::new(), vec![0; 64 << 10]);
    let end = loop {
        let count = socket.read(&mut piece).await.ok().filter(|count| *count > 0)?;
        bytes.extend_from_slice(&piece[..count]);
        if let Some(at) = bytes.windows(4).position(|end| end == b"\r\n\r\n") {
            break at + 4;
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut words = head.split(' ');
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut seen = Seen { method, path, head, text: String::new(), body: Value::Null };
    let length: usize = seen.header("content-length").map_or(0, |length| length.parse().unwrap());
    while bytes.len() < end + length {
        let count = socket.read(&mut piece).await.ok().filter(|count| *count > 0)?;
        bytes.extend_from_slice(&piece[..count]);
    }
    seen.text = String::from_utf8_lossy(&bytes[end..]).into_owned();
    seen.body = serde_json::from_str(&seen.text).unwrap_or_default();
    let reply = answer(&seen);
    noted.lock().push(seen);
    let head = |status, kind: &str, more: &str| {
        format!("HTTP/1.1 {status} x\r\ncontent-type: {kind}\r\nconnection: close\r\n{more}")
    };
    match reply {
        Reply::Plain(status, more, kind, body) => {
            let head = head(status, kind, more);
            socket.write_all(format!("{head}content-length: {}\r\n\r\n{body}", body.len()).as_bytes()).await.ok()?;
        }
        Reply::Events(events, is_over) => {
            socket.write_all(format!("{}\r\n{events}", head(200, "text/event-stream", "")).as_bytes()).await.ok()?;
            if !is_over {
                std::future::pending().await
            }
        }
        Reply::Live(events, mut messages) => {
            socket.write_all(format!("{}\r\n{events}", head(200, "text/event-stream", "")).as_bytes()).await.ok()?;
            while let Some(message) = messages.recv().await {
                socket.write_all(format!("data: {message}\n\n").as_bytes()).await.ok()?;
            }
        }
        Reply::Hang => std::future::pending().await,
        Reply::Close => {}
        Reply::Flood(kind, piece) => {
            socket.write_all(format!("{}\r\n", head(200, kind, "")).as_bytes()).await.ok()?;
            while socket.write_all(piece.as_bytes()).await.is_ok() {}
        }
    }
    Some(())
}
