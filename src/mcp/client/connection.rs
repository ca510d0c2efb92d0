//! JSON-RPC with one server, whatever carries it. Neither side waits for the other; all that waits is bounded.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use agentsvc_components::AgentId;
use agentsvc_systems::mcp::limits::MCP_SERVER_REQUESTS_MAX;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc, oneshot};

use super::asks::Offers;
use super::asks::questions::{Guests, Question};
use super::incoming::{self, LogQuota};
use super::session::{self, Version};
use super::wire::Memory;

/// Bytes of a server's reason.
const REASON_BYTES_MAX: usize = 1 << 10;

/// Why a request has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// The server said so, in words of its own.
    Refused(String),
    /// There is no answer: a sentence of ours.
    Unanswered(String),
}

/// A result of a server, and the memory that it takes. That is free for other messages once this is dropped.
#[derive(Clone, Debug, Default)]
pub(super) struct Answer {
    /// The result.
    pub(super) value: Value,
    /// Its memory.
    pub(super) memory: Memory,
}

impl Answer {
    /// Another result that is made of this one and takes no more than it.
    pub(super) fn map(self, into: impl FnOnce(Value) -> Value) -> Self {
        Self { value: into(self.value), memory: self.memory }
    }
}

impl From<Value> for Answer {
    fn from(value: Value) -> Self {
        Self { value, memory: Memory::default() }
    }
}

/// Who waits for the answer to which request.
type Waiting = HashMap<u64, oneshot::Sender<Result<Answer, Failure>>>;

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
    /// What stands in headers, too, where the transport has them: names and values.
    pub(super) headers: Vec<(String, String)>,
}

impl Outgoing {
    /// The id of a request.
    pub(super) fn id(&self) -> Option<u64> {
        self.gone.as_ref().and_then(|_| self.message["id"].as_u64())
    }
}

#[derive(Debug)]
struct Shared {
    /// The server's name in the configuration.
    name: Box<str>,
    outgoing: mpsc::Sender<Outgoing>,
    /// Who waits for which answer; `None` when the connection has ended.
    waiting: Mutex<Option<Waiting>>,
    next: AtomicU64,
    /// The version that was agreed on.
    version: OnceLock<Version>,
    /// The server says that its tools are others now.
    tools_changed: Notify,
    /// Directories that the server is told of; `None` for one that has no use for them.
    roots: OnceLock<Vec<PathBuf>>,
    /// Its transport has headers.
    has_headers: OnceLock<()>,
    /// What it may ask of us.
    offers: OnceLock<Offers>,
    /// The calls that are under way, and what the server asks in them.
    guests: Mutex<Guests>,
    /// What the server may still write to the log.
    log: Mutex<LogQuota>,
}

/// A request under way. Dropped without an answer, the server is told that its answer is not needed.
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

/// Ends what waits for a connection when nothing carries it any more.
pub(super) struct Closing(Connection);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// A call that is under way until this is dropped.
pub(super) struct Visit<'a> {
    connection: &'a Connection,
    key: u64,
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        self.connection.0.guests.lock().leave(self.key);
    }
}

fn notification(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}

/// A message that has no answer.
const fn unasked(message: Value) -> Outgoing {
    Outgoing { message, gone: None, headers: Vec::new() }
}

impl Connection {
    /// A connection, and the messages that its transport has to send.
    pub(super) fn new(name: &str) -> (Self, mpsc::Receiver<Outgoing>) {
        let (outgoing, messages) = mpsc::channel(MCP_SERVER_REQUESTS_MAX);
        let shared = Shared {
            name: name.into(),
            outgoing,
            waiting: Mutex::new(Some(HashMap::new())),
            next: AtomicU64::new(1),
            version: OnceLock::new(),
            tools_changed: Notify::new(),
            roots: OnceLock::new(),
            has_headers: OnceLock::new(),
            offers: OnceLock::new(),
            guests: Mutex::default(),
            log: Mutex::default(),
        };
        (Self(Arc::new(shared)), messages)
    }

    /// The server's name in the configuration.
    pub(super) fn name(&self) -> &str {
        &self.0.name
    }

    /// The version that was agreed on.
    pub(super) fn version(&self) -> Option<Version> {
        self.0.version.get().copied()
    }

    /// From now on this version is spoken. The first one counts.
    pub(super) fn agree(&self, version: Version) {
        self.0.version.get_or_init(|| version);
    }

    /// Tells the server of directories when it asks. The first ones count.
    pub(super) fn offer_roots(&self, roots: Vec<PathBuf>) {
        self.0.roots.get_or_init(|| roots);
    }

    /// The directories that the server is told of, each once.
    pub(super) fn roots(&self) -> Option<Vec<PathBuf>> {
        let mut roots = self.0.roots.get()?.clone();
        roots.extend(self.0.guests.lock().workspaces().cloned());
        roots.sort();
        roots.dedup();
        Some(roots)
    }

    /// The transport has headers.
    pub(super) fn note_headers(&self) {
        self.0.has_headers.get_or_init(|| ());
    }

    /// Do arguments stand in headers, too?
    pub(super) fn mirrors(&self) -> bool {
        self.0.has_headers.get().is_some() && self.version().is_some_and(Version::is_stateless)
    }

    /// Lets the server ask for these. The first ones count.
    pub(super) fn offer(&self, offers: Offers) {
        self.0.offers.get_or_init(|| offers);
    }

    /// What the server may ask of us.
    pub(super) fn offers(&self) -> Offers {
        self.0.offers.get().copied().unwrap_or_default()
    }

    /// What the server is told of us.
    pub(super) fn capabilities(&self) -> Value {
        let mut told = json!({});
        if self.0.roots.get().is_some() {
            told["roots"] = json!({ "listChanged": false });
        }
        if self.offers().elicitation {
            told["elicitation"] = json!({ "form": {}, "url": {} });
        }
        if self.offers().sampling {
            told["sampling"] = json!({});
        }
        told
    }

    /// A call of the agent begins. Meanwhile the server is told of its workspace, too, if it has use for directories; what it asks
    /// in the call comes over the channel.
    pub(super) fn visit(
        &self,
        agent: Option<AgentId>,
        workspace: Option<PathBuf>,
    ) -> (Visit<'_>, mpsc::Receiver<Question>) {
        let workspace = workspace.filter(|_| self.0.roots.get().is_some());
        let (key, asked) = self.0.guests.lock().enter(agent, workspace);
        (Visit { connection: self, key }, asked)
    }

    /// The calls that are under way.
    pub(super) fn guests(&self) -> &Mutex<Guests> {
        &self.0.guests
    }

    /// Belongs to what carries this connection on.
    pub(super) fn closing(&self) -> Closing {
        Closing(self.clone())
    }

    /// Ends what waits.
    pub(super) fn close(&self) {
        drop(self.0.waiting.lock().take());
    }

    /// Waits until the server says that its tools are others.
    pub(super) async fn tools_changed(&self) {
        self.0.tools_changed.notified().await;
    }

    /// The server's tools are others.
    pub(super) fn change_tools(&self) {
        self.0.tools_changed.notify_one();
    }

    /// Sends a request and waits for its answer. `params` is an object.
    pub(super) async fn request(&self, method: &str, params: Value, time_max: Duration) -> Result<Value, Failure> {
        self.request_held(method, params, time_max).await.map(|answer| answer.value)
    }

    /// The same, for a result that may be large.
    pub(super) async fn request_held(
        &self,
        method: &str,
        params: Value,
        time_max: Duration,
    ) -> Result<Answer, Failure> {
        let exchange = self.exchange(None, method, params, Vec::new());
        tokio::time::timeout(time_max, exchange).await.unwrap_or_else(|_| Err(late(time_max)))
    }

    /// The request of a call, with what stands in headers, too. Its time is the caller's to bound.
    pub(super) async fn request_of(
        &self,
        visit: &Visit<'_>,
        method: &str,
        params: Value,
        headers: Vec<(String, String)>,
    ) -> Result<Answer, Failure> {
        self.exchange(Some(visit.key), method, params, headers).await
    }

    async fn exchange(
        &self,
        visit: Option<u64>,
        method: &str,
        mut params: Value,
        headers: Vec<(String, String)>,
    ) -> Result<Answer, Failure> {
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
        if let Some(key) = visit {
            self.0.guests.lock().send(key, id);
        }
        if method == "tools/call" {
            params["_meta"]["progressToken"] = id.into();
        }
        if let Some(version) = self.version() {
            session::mark(version, &mut params, || self.capabilities());
        }
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let _ended = self.0.outgoing.send(Outgoing { message, gone: Some(gone), headers }).await;
        answered.await.unwrap_or_else(|_| Err(unanswered("it ended before it answered")))
    }

    /// Tells the server something.
    pub(super) async fn notify(&self, method: &str) {
        let _ended = self.0.outgoing.send(unasked(notification(method, json!({})))).await;
    }

    /// Takes what the server sent: a message, or several, and their memory; with the answer to the request `within`, where that
    /// is known.
    pub(super) fn take_all(&self, messages: Value, memory: &Memory, within: Option<u64>) {
        match messages {
            Value::Array(batch) => batch.into_iter().for_each(|message| self.take(message, memory, within)),
            message => self.take(message, memory, within),
        }
    }

    /// Takes one message of the server.
    fn take(&self, mut message: Value, memory: &Memory, within: Option<u64>) {
        if message["method"].is_string() {
            return incoming::take(self, &message, within);
        }
        let Some(id) = message["id"].as_u64() else { return };
        let answer = match message.get("error") {
            Some(error) => {
                let said = error["message"].as_str().unwrap_or("no reason");
                Err(Failure::Refused(said[..said.floor_char_boundary(REASON_BYTES_MAX)].to_owned()))
            }
            None => {
                let value = message.get_mut("result").map(Value::take).unwrap_or_default();
                Ok(Answer { value, memory: memory.clone() })
            }
        };
        self.settle(id, answer);
    }

    /// Ends a request. An answer that comes too late has no one to go to.
    pub(super) fn settle(&self, id: u64, answer: Result<Answer, Failure>) {
        let waiting = self.0.waiting.lock().as_mut().and_then(|waiting| waiting.remove(&id));
        waiting.map(|waiting| waiting.send(answer));
    }

    /// Does something wait for the answer to this request?
    pub(super) fn waits_for(&self, id: u64) -> bool {
        self.0.waiting.lock().as_ref().is_some_and(|waiting| waiting.contains_key(&id))
    }

    /// Answers the server. One that asks faster than it reads gets no answers.
    pub(super) fn answer(&self, message: Value) {
        let _ = self.0.outgoing.try_send(unasked(message));
    }

    /// Answers the server; waits while it takes nothing.
    ///
    /// # Errors
    /// It took nothing for so long, or is gone.
    pub(super) async fn answer_within(&self, message: Value, time_max: Duration) -> Result<(), Failure> {
        match tokio::time::timeout(time_max, self.0.outgoing.send(unasked(message))).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(unanswered("it ended before it took the answer to its request")),
            Err(_) => {
                let secs = time_max.as_secs();
                Err(unanswered(format!("it did not take the answer to its request within {secs} seconds")))
            }
        }
    }

    /// What the server may still write to the log.
    pub(super) fn log_quota(&self) -> &Mutex<LogQuota> {
        &self.0.log
    }
}

/// There was no answer in time.
pub(super) fn late(time_max: Duration) -> Failure {
    unanswered(format!("it did not answer within {} seconds", time_max.as_secs()))
}

fn unanswered(why: impl Into<String>) -> Failure {
    Failure::Unanswered(why.into())
}
