//! Which call a request of a server belongs to, and that each is answered once.
//!
//! Over streamable HTTP a request comes with the answer of its call. Elsewhere nothing says which call it belongs to: then it is
//! that of the newest one, if all calls that are under way are of one agent; otherwise it is refused.

use std::path::PathBuf;
use std::time::Duration;

use agentsvc_components::AgentId;
use agentsvc_systems::mcp::limits::{
    MCP_ELICITATIONS_PER_CALL_MAX, MCP_QUESTIONS_OPEN_MAX, MCP_SAMPLINGS_PER_CALL_MAX,
};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use super::{Asked, RpcError, UNAVAILABLE};
use crate::mcp::client::connection::{Connection, Failure};

/// Time that a server may take to take an answer of a person or a model.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(30);

/// A call that is under way.
#[derive(Debug)]
struct Guest {
    key: u64,
    agent: Option<AgentId>,
    /// The workspace that the server is told of meanwhile.
    workspace: Option<PathBuf>,
    /// The id of its request.
    request: Option<u64>,
    questions: mpsc::Sender<Question>,
    counts: Counts,
}

/// How often the server has asked in one call.
#[derive(Debug, Default)]
pub(in crate::mcp::client) struct Counts {
    persons: usize,
    models: usize,
}

impl Counts {
    /// Counts one more.
    ///
    /// # Errors
    /// There were as many as may be.
    pub(in crate::mcp::client) fn take(&mut self, asked: &Asked) -> Result<(), RpcError> {
        let (count, most) = match asked {
            Asked::Person(_) => (&mut self.persons, MCP_ELICITATIONS_PER_CALL_MAX),
            Asked::Model(_) => (&mut self.models, MCP_SAMPLINGS_PER_CALL_MAX),
        };
        if *count == most {
            return Err(RpcError::new(UNAVAILABLE, format!("a call may ask {most} times at most")));
        }
        *count += 1;
        Ok(())
    }
}

/// A request of the server that waits for its answer.
#[derive(Debug)]
struct Open {
    /// Ours: a server may use an id again once it took a request back.
    key: u64,
    /// The server's id, as JSON.
    id: String,
    _alive: oneshot::Sender<()>,
}

/// The calls that are under way, and the requests of the server that wait for their answers.
#[derive(Debug, Default)]
pub(in crate::mcp::client) struct Guests {
    calls: Vec<Guest>,
    /// What is dropped tells its question to end.
    open: Vec<Open>,
    next: u64,
}

impl Guests {
    /// A call begins.
    pub(in crate::mcp::client) fn enter(
        &mut self,
        agent: Option<AgentId>,
        workspace: Option<PathBuf>,
    ) -> (u64, mpsc::Receiver<Question>) {
        let (questions, asked) = mpsc::channel(MCP_QUESTIONS_OPEN_MAX);
        self.next += 1;
        let (key, request, counts) = (self.next, None, Counts::default());
        self.calls.push(Guest { key, agent, workspace, request, questions, counts });
        (key, asked)
    }

    /// A call has ended.
    pub(in crate::mcp::client) fn leave(&mut self, key: u64) {
        self.calls.retain(|call| call.key != key);
    }

    /// The call sends its request with this id.
    pub(in crate::mcp::client) fn send(&mut self, key: u64, request: u64) {
        if let Some(call) = self.calls.iter_mut().find(|call| call.key == key) {
            call.request = Some(request);
        }
    }

    /// The workspaces of the calls.
    pub(in crate::mcp::client) fn workspaces(&self) -> impl Iterator<Item = &PathBuf> {
        self.calls.iter().filter_map(|call| call.workspace.as_ref())
    }

    /// The call that a request belongs to, which came with the answer to `within`.
    fn call(&mut self, within: Option<u64>) -> Result<&mut Guest, RpcError> {
        if within.is_some() {
            let found = self.calls.iter_mut().find(|call| call.request == within);
            return found.ok_or_else(|| RpcError::new(UNAVAILABLE, "no call is under way that this could belong to"));
        }
        let agents = self.calls.iter().map(|call| call.agent);
        if agents.clone().zip(agents.skip(1)).any(|(one, other)| one != other) {
            return Err(RpcError::new(UNAVAILABLE, "calls of several agents are under way"));
        }
        self.calls.last_mut().ok_or_else(|| RpcError::new(UNAVAILABLE, "no call is under way"))
    }

    /// Takes the server's request `id`. Gives where it goes.
    fn take(&mut self, id: &Value, asked: &Asked, within: Option<u64>) -> Result<Place, RpcError> {
        let id = id.to_string();
        if self.open.len() >= MCP_QUESTIONS_OPEN_MAX {
            return Err(RpcError::new(UNAVAILABLE, "too many requests wait for their answers"));
        }
        if self.open.iter().any(|open| open.id == id) {
            return Err(RpcError::invalid("the id of the request is in use"));
        }
        let call = self.call(within)?;
        call.counts.take(asked)?;
        let (alive, cancelled) = oneshot::channel();
        let questions = call.questions.clone();
        self.next += 1;
        let key = self.next;
        self.open.push(Open { key, id, _alive: alive });
        Ok(Place { key, questions, cancelled })
    }
}

/// Where a request of the server goes.
struct Place {
    key: u64,
    questions: mpsc::Sender<Question>,
    cancelled: oneshot::Receiver<()>,
}

/// A request of the server that waits for its answer.
#[derive(Debug)]
pub(in crate::mcp::client) struct Question {
    /// What is asked; `None` once it is taken.
    pub(in crate::mcp::client) asked: Option<Asked>,
    connection: Connection,
    key: u64,
    id: Value,
    /// The answer if nothing else is.
    last: Option<Result<Value, RpcError>>,
    cancelled: oneshot::Receiver<()>,
}

impl Question {
    /// Answers the server, once it has taken what waits for it before.
    ///
    /// # Errors
    /// It took nothing for too long.
    pub(in crate::mcp::client) async fn answer(mut self, answer: Result<Value, RpcError>) -> Result<(), Failure> {
        let message = self.message(&answer);
        // Until then the answer stands here: it goes out with the end of the call, if there is a place by then.
        self.last = Some(answer);
        let taken = self.connection.answer_within(message, ANSWER_TIME_MAX).await;
        self.last = None;
        taken
    }

    fn message(&self, answer: &Result<Value, RpcError>) -> Value {
        match answer {
            Ok(result) => serde_json::json!({ "jsonrpc": "2.0", "id": self.id, "result": result }),
            Err(error) => error.answer(&self.id),
        }
    }

    /// Waits until the server takes its request back. It then gets no answer.
    pub(in crate::mcp::client) async fn cancelled(&mut self) {
        let _dropped = (&mut self.cancelled).await;
        self.last = None;
    }
}

impl Drop for Question {
    fn drop(&mut self) {
        self.connection.guests().lock().open.retain(|open| open.key != self.key);
        if let Some(answer) = self.last.take() {
            self.connection.answer(self.message(&answer));
        }
    }
}

/// Hands the server's request to the call that it belongs to. It came with the answer to the request `within`, where that is known.
///
/// # Errors
/// It belongs to no call, or there are too many.
pub(in crate::mcp::client) fn hand_over(
    connection: &Connection,
    id: &Value,
    asked: Asked,
    within: Option<u64>,
) -> Result<(), RpcError> {
    let Place { key, questions, cancelled } = connection.guests().lock().take(id, &asked, within)?;
    let last = Some(asked.unanswered());
    let question =
        Question { asked: Some(asked), connection: connection.clone(), key, id: id.clone(), last, cancelled };
    // A call that has just ended leaves it to be dropped, which answers it.
    let _ended = questions.try_send(question);
    Ok(())
}

/// The server takes a request back.
pub(in crate::mcp::client) fn take_back(connection: &Connection, id: &Value) {
    let id = id.to_string();
    connection.guests().lock().open.retain(|open| open.id != id);
}
