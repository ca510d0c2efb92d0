//! JSON-RPC with one server, whatever carries it. Neither side waits for the other; all that waits is bounded.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use agentsvc_systems::mcp::limits::MCP_SERVER_REQUESTS_MAX;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc, oneshot};

/// The code of JSON-RPC for what is not offered.
const NO_METHOD: i32 = -32_601;

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
pub(crate) struct Connection(Arc<Shared>);

/// A message to the server.
#[derive(Debug)]
pub(super) struct Outgoing {
    /// The message.
    pub(super) message: Value,
    /// Ends when nothing waits for the answer any more; `None` where there is none.
    pub(super) gone: Option<oneshot::Receiver<()>>,
}

#[derive(Debug)]
struct Shared {
    /// The server's name in the configuration.
    name: Box<str>,
    outgoing: mpsc::Sender<Outgoing>,
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
    _alive: oneshot::Sender<()>,
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        let shared = &self.connection.0;
        let waited = shared.waiting.lock().as_mut().and_then(|waiting| waiting.remove(&self.id));
        if waited.is_some() {
            // A server that takes nothing any more does not learn of it.
            let params = json!({ "requestId": self.id });
            let _ = shared.outgoing.try_send(unasked(notification("notifications/cancelled", params)));
        }
    }
}

fn notification(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}

/// A message that has no answer.
const fn unasked(message: Value) -> Outgoing {
    Outgoing { message, gone: None }
}

impl Connection {
    /// A connection, and the messages that its transport has to send.
    pub(super) fn new(name: &str) -> (Self, mpsc::Receiver<Outgoing>) {
        let (outgoing, messages) = mpsc::channel(MCP_SERVER_REQUESTS_MAX);
        let (waiting, next) = (Mutex::new(Some(HashMap::new())), AtomicU64::new(1));
        let name = name.into();
        (Self(Arc::new(Shared { name, outgoing, waiting, next, tools_changed: Notify::new() })), messages)
    }

    /// The server's name in the configuration.
    pub(super) fn name(&self) -> &str {
        &self.0.name
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
        let (alive, gone) = oneshot::channel();
        let _pending = Pending { connection: self, id, _alive: alive };
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let exchange = async {
            let _ended = self.0.outgoing.send(Outgoing { message, gone: Some(gone) }).await;
            answered.await.unwrap_or_else(|_| Err(unanswered("it ended before it answered")))
        };
        let late = || unanswered(format!("it did not answer within {} seconds", time_max.as_secs()));
        tokio::time::timeout(time_max, exchange).await.unwrap_or_else(|_| Err(late()))
    }

    /// Tells the server something.
    pub(super) async fn notify(&self, method: &str) {
        let _ended = self.0.outgoing.send(unasked(notification(method, json!({})))).await;
    }

    /// Takes a text of the server: a message, or several. False when it is none.
    pub(super) fn take_text(&self, text: &[u8]) -> bool {
        match serde_json::from_slice(text) {
            Ok(Value::Array(batch)) => batch.into_iter().for_each(|message| self.take(message)),
            Ok(message) => self.take(message),
            Err(_) => return false,
        }
        true
    }

    /// Takes one message of the server.
    pub(super) fn take(&self, mut message: Value) {
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
        let _ = self.0.outgoing.try_send(unasked(message));
    }
}

fn unanswered(why: impl Into<String>) -> Failure {
    Failure::Unanswered(why.into())
}
