//! JSON-RPC with one server: a message is a line. Neither side waits for the other; all that waits is bounded.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use agentsvc_systems::mcp::limits::{MCP_MESSAGE_BYTES_MAX, MCP_SERVER_REQUESTS_MAX};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{Notify, mpsc, oneshot};

/// The code of JSON-RPC for what is not offered.
const NO_METHOD: i32 = -32_601;

/// Why a connection ends when its server does.
const CLOSED: &str = "it closed its output";

/// Why a request has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// The server said so, in words of its own.
    Refused(String),
    /// There is no answer: a sentence of ours.
    Unanswered(String),
}

/// Who waits for the answer to which request.
type Waiting = HashMap<u64, oneshot::Sender<Result<Value, Failure>>>;

/// The way to a server. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Connection(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    outgoing: mpsc::Sender<Value>,
    /// Who waits for which answer; `None` when the connection has ended.
    waiting: Mutex<Option<Waiting>>,
    next: AtomicU64,
    /// The server says that its tools are others now.
    tools_changed: Notify,
}

/// A request under way. Dropped without an answer, the server is told that nobody waits for it.
struct Pending<'a> {
    connection: &'a Connection,
    id: u64,
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        let shared = &self.connection.0;
        let waited = shared.waiting.lock().as_mut().and_then(|waiting| waiting.remove(&self.id));
        if waited.is_some() {
            // A server that takes nothing any more does not learn of it.
            let _ = shared.outgoing.try_send(notification("notifications/cancelled", json!({ "requestId": self.id })));
        }
    }
}

fn notification(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}

impl Connection {
    /// A connection, and what carries it on: until it ends, and then says why.
    pub(super) fn new(stream: impl AsyncRead + AsyncWrite) -> (Self, impl Future<Output = String>) {
        let (outgoing, messages) = mpsc::channel(MCP_SERVER_REQUESTS_MAX);
        let (waiting, next) = (Mutex::new(Some(HashMap::new())), AtomicU64::new(1));
        let connection = Self(Arc::new(Shared { outgoing, waiting, next, tools_changed: Notify::new() }));
        let carried = connection.clone();
        let carry = async move {
            let (from, to) = tokio::io::split(stream);
            let ended = tokio::select! {
                why = carried.read(BufReader::new(from)) => why,
                why = write(to, messages) => why,
            };
            carried.close();
            ended
        };
        (connection, carry)
    }

    /// Ends what waits.
    pub(super) fn close(&self) {
        drop(self.0.waiting.lock().take());
    }

    /// Waits until the server says that its tools are others.
    pub(super) async fn tools_changed(&self) {
        self.0.tools_changed.notified().await;
    }

    /// Sends a request and waits for its answer.
    pub(super) async fn request(&self, method: &str, params: Value, time_max: Duration) -> Result<Value, Failure> {
        let id = self.0.next.fetch_add(1, Ordering::Relaxed);
        let (answer, answered) = oneshot::channel();
        {
            let mut waiting = self.0.waiting.lock();
            let waiting = waiting.as_mut().ok_or_else(|| unanswered("it has ended"))?;
            if waiting.len() >= MCP_SERVER_REQUESTS_MAX {
                return Err(unanswered(format!("it has {MCP_SERVER_REQUESTS_MAX} calls under way")));
            }
            waiting.insert(id, answer);
        }
        let _pending = Pending { connection: self, id };
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let exchange = async {
            let _ended = self.0.outgoing.send(message).await;
            answered.await.unwrap_or_else(|_| Err(unanswered("it ended before it answered")))
        };
        let late = || unanswered(format!("it did not answer within {} seconds", time_max.as_secs()));
        tokio::time::timeout(time_max, exchange).await.unwrap_or_else(|_| Err(late()))
    }

    /// Tells the server something.
    pub(super) async fn notify(&self, method: &str) {
        let _ended = self.0.outgoing.send(notification(method, json!({}))).await;
    }

    async fn read(&self, mut from: impl AsyncBufRead + Unpin) -> String {
        loop {
            let mut line = Vec::new();
            let most = MCP_MESSAGE_BYTES_MAX as u64 + 1;
            match (&mut from).take(most).read_until(b'\n', &mut line).await {
                Ok(0) => return CLOSED.to_owned(),
                Ok(_) if line.len() > MCP_MESSAGE_BYTES_MAX && !line.ends_with(b"\n") => {
                    return format!("it sent a message of more than {MCP_MESSAGE_BYTES_MAX} bytes");
                }
                Ok(_) => {}
                Err(error) => return lost(&error),
            }
            match serde_json::from_slice(&line) {
                Ok(Value::Array(batch)) => batch.into_iter().for_each(|message| self.take(message)),
                Ok(message) => self.take(message),
                // Some write what they have to say to people there.
                Err(_) => tracing::debug!(bytes = line.len(), "an MCP server wrote a line that is no message"),
            }
        }
    }

    /// Takes one message of the server.
    fn take(&self, mut message: Value) {
        let method = message["method"].as_str();
        if let (Some(method), id) = (method, &message["id"]) {
            match method {
                "notifications/tools/list_changed" => self.0.tools_changed.notify_one(),
                "ping" => self.answer(json!({ "jsonrpc": "2.0", "id": id, "result": {} })),
                _ if !id.is_null() => {
                    let error = json!({ "code": NO_METHOD, "message": "method not found" });
                    self.answer(json!({ "jsonrpc": "2.0", "id": id, "error": error }));
                }
                _ => {}
            }
            return;
        }
        let Some(id) = message["id"].as_u64() else { return };
        // Nobody waits for an answer that comes too late.
        let Some(answer) = self.0.waiting.lock().as_mut().and_then(|waiting| waiting.remove(&id)) else { return };
        let said = match message.get("error") {
            Some(error) => Err(Failure::Refused(error["message"].as_str().unwrap_or("no reason").to_owned())),
            None => Ok(message["result"].take()),
        };
        let _given_up = answer.send(said);
    }

    /// Answers the server. One that asks faster than it reads gets no answers.
    fn answer(&self, message: Value) {
        let _ = self.0.outgoing.try_send(message);
    }
}

fn unanswered(why: impl Into<String>) -> Failure {
    Failure::Unanswered(why.into())
}

/// Why a connection is lost. A server that ends with something unread resets it.
fn lost(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => CLOSED.to_owned(),
        _ => error.to_string(),
    }
}

async fn write(mut to: impl AsyncWrite + Unpin, mut messages: mpsc::Receiver<Value>) -> String {
    while let Some(message) = messages.recv().await {
        if let Err(error) = to.write_all(format!("{message}\n").as_bytes()).await {
            return lost(&error);
        }
    }
    "nobody needs it".to_owned()
}
