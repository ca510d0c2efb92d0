//! Calls of what a server has.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use agentsvc_components::AgentId;
use agentsvc_systems::mcp::limits::{MCP_INPUT_ROUNDS_MAX, MCP_MEMORY_UNCOUNTED_BYTES, MCP_QUESTIONS_OPEN_MAX};
use futures_util::stream::{FuturesUnordered, StreamExt};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::asks::questions::{Counts, Question};
use super::asks::{Answers, Asked, RpcError};
use super::connection::{Answer, Connection, Failure, Visit, late};
use super::incoming::roots;
use super::mirrored;
use super::session::{Described, Means, memory_of, pages};

/// The key of `_meta` that says on whose behalf a call is made.
const CALLER_KEY: &str = "io.librefang/caller";
/// What models must not say for the daemon.
const CALLER_ARGUMENT: &str = "_librefang_caller";
/// Bytes of a description in a list.
const DESCRIPTION_BYTES_MAX: usize = 1 << 10;

/// On whose behalf a call is made.
#[derive(Clone, Default)]
pub(super) struct Caller {
    /// The session of the turn, where there is one.
    pub(super) session: Option<String>,
    /// The agent, where there is one.
    pub(super) agent: Option<AgentId>,
    /// The workspace of the agent, where it has one.
    pub(super) workspace: Option<PathBuf>,
    /// Who answers what the server asks meanwhile.
    pub(super) host: Option<Arc<dyn Answers>>,
}

/// Calls something of the server: once, whatever comes of it. The result is that of a tool. While the server waits for an answer
/// of ours, its time does not run.
pub(super) async fn call(
    connection: &Connection,
    called: &Described,
    mut arguments: Map<String, Value>,
    caller: Caller,
    time_max: Duration,
) -> Result<Answer, Failure> {
    arguments.remove(CALLER_ARGUMENT);
    let Caller { session, agent, workspace, host } = caller;
    let (visit, questions) = connection.visit(agent, workspace);
    let mut asking = Asking {
        connection,
        visit,
        questions,
        host: host.as_deref(),
        time_max,
        time_left: time_max,
        counts: Counts::default(),
        headers: Vec::new(),
    };
    match called.means {
        Means::Tool => {
            if connection.mirrors() {
                asking.headers = mirrored::headers(&called.mirrored, &arguments).map_err(Failure::Unanswered)?;
            }
            let mut params = json!({ "name": called.name, "arguments": arguments });
            let session = session.map(|session| json!({ "session_id": session }));
            params["_meta"] = json!({ CALLER_KEY: session.unwrap_or_else(|| json!({})) });
            asking.request("tools/call", params).await
        }
        Means::ReadResource => {
            let params = json!({ "uri": arguments.remove("uri") });
            let mut read = asking.request("resources/read", params).await?;
            let Value::Array(contents) = taken(&mut read.value, "contents") else {
                return Err(Failure::Unanswered("its resource has no contents".to_owned()));
            };
            let parts = contents.into_iter().map(|content| json!({ "type": "resource", "resource": content }));
            let content = parts.collect::<Vec<_>>();
            Ok(read.map(|_| json!({ "content": content })))
        }
        Means::GetPrompt => {
            let arguments_of = arguments.remove("arguments").unwrap_or_else(|| json!({}));
            let params = json!({ "name": arguments.remove("name"), "arguments": arguments_of });
            let mut got = asking.request("prompts/get", params).await?;
            let Value::Array(messages) = taken(&mut got.value, "messages") else {
                return Err(Failure::Unanswered("its prompt has no messages".to_owned()));
            };
            let parts = messages.into_iter().flat_map(|mut message| {
                let role =
                    json!({ "type": "text", "text": format!("{}:", message["role"].as_str().unwrap_or("user")) });
                [role, taken(&mut message, "content")]
            });
            let content = parts.collect::<Vec<_>>();
            Ok(got.map(|_| json!({ "content": content })))
        }
        means @ (Means::ListResources | Means::ListPrompts) => {
            let listed = tokio::time::timeout(time_max, list(connection, means)).await;
            listed.unwrap_or_else(|_| Err(late(time_max))).map(Answer::from)
        }
    }
}

/// Lists the resources or the prompts.
async fn list(connection: &Connection, means: Means) -> Result<Value, Failure> {
    if means == Means::ListPrompts {
        let keep = |entry| shown(&entry, &["name", "description", "arguments"]);
        let prompts = pages(connection, "prompts/list", "prompts", keep).await?;
        return Ok(text(&Value::Array(prompts).to_string()));
    }
    let keep = |entry| shown(&entry, &["uri", "uriTemplate", "name", "description", "mimeType", "size"]);
    let resources = pages(connection, "resources/list", "resources", keep).await?;
    // Not all servers have them.
    let templates = pages(connection, "resources/templates/list", "resourceTemplates", keep).await;
    let listed = json!({ "resources": resources, "templates": templates.unwrap_or_default() });
    Ok(text(&listed.to_string()))
}

/// A call, with what the server asks in it.
struct Asking<'a> {
    connection: &'a Connection,
    visit: Visit<'a>,
    questions: mpsc::Receiver<Question>,
    host: Option<&'a dyn Answers>,
    time_max: Duration,
    /// What is left of it for the server.
    time_left: Duration,
    /// What the server asked in results.
    counts: Counts,
    /// What stands in headers, too.
    headers: Vec<(String, String)>,
}

impl Asking<'_> {
    /// Sends the request of the call and answers what the server asks, until there is a result. A server of a version without
    /// requests of its own asks in a result; then the request is sent again with the answers, as that version wants it.
    async fn request(&mut self, method: &str, mut params: Value) -> Result<Answer, Failure> {
        for _ in 0..MCP_INPUT_ROUNDS_MAX {
            let mut answer = self.round(method, params.clone()).await?;
            if answer.value["resultType"] != "input_required" {
                return Ok(answer);
            }
            if !self.connection.version().is_some_and(super::session::Version::is_stateless) {
                return Err(Failure::Unanswered(
                    "it asks for input in a way that its version does not know".to_owned(),
                ));
            }
            let asked = taken(&mut answer.value, "inputRequests");
            let state = answer.value.get_mut("requestState").map(Value::take);
            // A person or a model may take long to answer: meanwhile other servers have the memory of this result.
            drop(answer);
            let bytes = memory_of(&asked) + state.as_ref().map_or(0, memory_of);
            if bytes > MCP_MEMORY_UNCOUNTED_BYTES {
                return Err(Failure::Unanswered(format!(
                    "its request for input takes more than {MCP_MEMORY_UNCOUNTED_BYTES} bytes of memory"
                )));
            }
            params["inputResponses"] = self.inputs(&asked).await?;
            match state {
                Some(state) => params["requestState"] = state,
                None => drop(params.as_object_mut().and_then(|params| params.remove("requestState"))),
            }
        }
        Err(Failure::Unanswered("it asks for input again and again".to_owned()))
    }

    /// Sends the request once and answers the server's requests meanwhile.
    async fn round(&mut self, method: &str, params: Value) -> Result<Answer, Failure> {
        let Self { connection, visit, questions, host, time_max, time_left, headers, .. } = self;
        let calling = connection.request_of(visit, method, params, headers.clone());
        tokio::pin!(calling);
        let mut open = FuturesUnordered::new();
        loop {
            let (since, is_idle) = (Instant::now(), open.is_empty());
            tokio::select! {
                biased;
                result = &mut calling => return result,
                Some(question) = questions.recv() => open.push(settled(question, *host)),
                Some(told) = open.next(), if !is_idle => told?,
                () = tokio::time::sleep(*time_left), if is_idle => return Err(late(*time_max)),
            }
            if is_idle {
                *time_left = time_left.saturating_sub(since.elapsed());
            }
        }
    }

    /// The answers to what the server asks in a result, by its names for them.
    async fn inputs(&mut self, requests: &Value) -> Result<Value, Failure> {
        let none = Map::new();
        let mut answers = Map::new();
        let requests = requests.as_object().unwrap_or(&none);
        // One more than questions: the roots.
        if requests.len() > MCP_QUESTIONS_OPEN_MAX + 1 {
            return Err(Failure::Unanswered(format!("it asks for input {} times at once", requests.len())));
        }
        for (key, request) in requests {
            let (method, params) = (request["method"].as_str().unwrap_or_default(), &request["params"]);
            let answer = match (method, self.connection.roots()) {
                ("roots/list", Some(told)) => Ok(roots(&told)),
                _ => self.input(method, params).await,
            };
            let refused =
                |error: RpcError| Failure::Unanswered(format!("it asks for input that is refused: {}", error.message));
            answers.insert(key.clone(), answer.map_err(refused)?);
        }
        Ok(Value::Object(answers))
    }

    async fn input(&mut self, method: &str, params: &Value) -> Result<Value, RpcError> {
        let asked = Asked::read(method, params, self.connection.offers(), true)?;
        self.counts.take(&asked)?;
        match self.host {
            Some(host) => host.answer(asked).await,
            None => asked.unanswered(),
        }
    }
}

/// Answers a request of the server, unless it takes that back.
///
/// # Errors
/// It did not take the answer: what a person or a model said did not arrive.
async fn settled(mut question: Question, host: Option<&dyn Answers>) -> Result<(), Failure> {
    let (Some(host), Some(asked)) = (host, question.asked.take()) else { return Ok(()) };
    let answer = tokio::select! {
        answer = host.answer(asked) => answer,
        () = question.cancelled() => return Ok(()),
    };
    question.answer(answer).await
}

/// A result that is one text.
fn text(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

/// A member of what a server sent, whatever that is.
fn taken(value: &mut Value, key: &str) -> Value {
    value.get_mut(key).map(Value::take).unwrap_or_default()
}

/// An entry of a list with these keys alone, and what it takes: a list is for models to choose from.
fn shown(entry: &Value, keys: &[&str]) -> Option<(usize, Value)> {
    let pairs = keys.iter().filter_map(|key| {
        let value = match entry.get(*key)? {
            Value::String(text) => text[..text.floor_char_boundary(DESCRIPTION_BYTES_MAX)].into(),
            value => value.clone(),
        };
        Some(((*key).to_owned(), value))
    });
    let shown: Map<String, Value> = pairs.collect();
    let shown = (!shown.is_empty()).then_some(Value::Object(shown))?;
    Some((memory_of(&shown), shown))
}
