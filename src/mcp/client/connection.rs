//! JSON-RPC with one server, whatever carries it. Neither side waits for the other; all that waits is bounded.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use agentsvc_systems::mcp::limits::MCP_SERVER_REQUESTS_MAX;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc, oneshot};

use super::incoming::{self, LogQuota};
use super::session::Version;

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
    /// The workspaces of agents whose calls are under way.
    workspaces: Mutex<Vec<PathBuf>>,
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

/// A workspace that the server is told of until this is dropped.
pub(super) struct Visit<'a> {
    connection: &'a Connection,
    workspace: Option<PathBuf>,
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        let mut workspaces = self.connection.0.workspaces.lock();
        let at = workspaces.iter().position(|workspace| Some(workspace) == self.workspace.as_ref());
        at.map(|at| workspaces.swap_remove(at));
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
        let shared = Shared {
            name: name.into(),
            outgoing,
            waiting: Mutex::new(Some(HashMap::new())),
            next: AtomicU64::new(1),
            version: OnceLock::new(),
            tools_changed: Notify::new(),
            roots: OnceLock::new(),
            workspaces: Mutex::default(),
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
        roots.extend(self.0.workspaces.lock().iter().cloned());
        roots.sort();
        roots.dedup();
        Some(roots)
    }

    /// Tells the server of an agent's workspace, too, for as long as the agent's call takes.
    pub(super) fn visit(&self, workspace: Option<PathBuf>) -> Visit<'_> {
        let workspace = workspace.filter(|_| self.0.roots.get().is_some());
        self.0.workspaces.lock().extend(workspace.clone());
        Visit { connection: self, workspace }
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
    pub(super) async fn request(&self, method: &str, mut params: Value, time_max: Duration) -> Result<Value, Failure> {
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
        if method == "tools/call" {
            params["_meta"]["progressToken"] = id.into();
        }
        if let Some(version) = self.version() {
            version.mark(&mut params);
        }
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

    /// Takes what the server sent: a message, or several.
    pub(super) fn take_all(&self, messages: Value) {
        match messages {
            Value::Array(batch) => batch.into_iter().for_each(|message| self.take(message)),
            message => self.take(message),
        }
    }

    /// Takes one message of the server.
    fn take(&self, mut message: Value) {
        if message["method"].is_string() {
            return incoming::take(self, &message);
        }
        let Some(id) = message["id"].as_u64() else { return };
        let answer = match message.get("error") {
            Some(error) => {
                let said = error["message"].as_str().unwrap_or("no reason");
                Err(Failure::Refused(said[..said.floor_char_boundary(REASON_BYTES_MAX)].to_owned()))
            }
            None => Ok(message.get_mut("result").map(Value::take).unwrap_or_default()),
        };
        self.settle(id, answer);
    }

    /// Ends a request. An answer that comes too late has no one to go to.
    pub(super) fn settle(&self, id: u64, answer: Result<Value, Failure>) {
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

    /// What the server may still write to the log.
    pub(super) fn log_quota(&self) -> &Mutex<LogQuota> {
        &self.0.log
    }
}

fn unanswered(why: impl Into<String>) -> Failure {
    Failure::Unanswered(why.into())
}
