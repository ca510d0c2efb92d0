//! What turns sent to models: each call with its prompt, its tools and its tries, as far as they are kept in memory.

use std::sync::Arc;

use agentsvc_components::kernel::attempt::Attempt;
use agentsvc_components::session::message::{Block, ChatMessage, Role};
use agentsvc_components::turn::outcome::FailureCode;
use agentsvc_components::{AgentId, LogId, SessionId, Timestamp, TurnId};
use agentsvc_systems::agent::GetAgent;
use agentsvc_systems::prompt::{Prompt, message_tokens, text_tokens};
use agentsvc_systems::session::GetSession;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::{RawValue, Value};

use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::reply::{self, Response};
use crate::http::route::{Reply, Route};
use crate::http::shape::shape;
use crate::http::timestamp::Moment;

pub(crate) const ROUTES: &[Route] = &[
    Route::get("/api/agents/{id}/traces/{turn_id}/calls", "List what a turn sent to models", |call| {
        Box::pin(list(call))
    })
    .large()
    .replies(&[Reply::json::<SentList>(200, "the model calls of the turn that are kept, oldest first")]),
    Route::get("/api/agents/{id}/traces/{turn_id}/calls/{call_id}", "Get the prompt of a model call as sent", |call| {
        Box::pin(show(call))
    })
    .large()
    .replies(&[
        Reply::json::<SentDetail>(200, "the call with its prompt and tools"),
        Reply::error(404, "the call is not kept"),
    ]),
];

/// What is kept of model calls. Reading it does not block.
pub trait SentCalls: Send + Sync + 'static {
    /// The calls of a turn, oldest first.
    fn of_turn(&self, turn: TurnId) -> Vec<SentCall>;

    /// What holds up the model call of a turn; `None` if nothing does.
    fn waiting(&self, turn: TurnId) -> Option<Waiting>;
}

/// A model call.
#[derive(Clone, Debug)]
pub struct SentCall {
    /// Which of all calls of this process.
    pub id: u64,
    /// Which call of which turn; a fallback model has the attempt of the model that it stands in for.
    pub attempt: Attempt,
    /// Whose.
    pub agent: AgentId,
    /// In which session.
    pub session: SessionId,
    /// Where the conversation was.
    pub log: LogId,
    /// When it was ready to go out.
    pub sent_at: Timestamp,
    /// The provider that was asked.
    pub provider: Box<str>,
    /// The model that was asked.
    pub model: Box<str>,
    /// The context window of the model, in tokens.
    pub context_tokens: u32,
    /// Sampling temperature, where one was sent.
    pub temperature: Option<f32>,
    /// Bound of the answer in tokens, where one was sent.
    pub max_tokens: Option<u32>,
    /// What was sent; `None` where it is larger than what is kept at all.
    pub content: Option<Arc<SentContent>>,
    /// The tries that have ended.
    pub tries: Vec<SentTry>,
}

/// What was sent.
#[derive(Debug, Default)]
pub struct SentContent {
    /// System text and messages.
    pub prompt: Prompt,
    /// The tools that were offered.
    pub tools: Vec<SentTool>,
}

/// A tool as it was offered.
#[derive(Clone, Debug)]
pub struct SentTool {
    /// Its name.
    pub name: Box<str>,
    /// What it does, in the words that the model reads.
    pub description: Box<str>,
    /// The JSON schema of its input.
    pub input_schema: Arc<RawValue>,
}

impl SentTool {
    /// The estimate of what offering it costs.
    fn tokens(&self) -> u64 {
        text_tokens(self.name.len() + self.description.len() + self.input_schema.get().len())
    }
}

/// One try of a call.
#[derive(Clone, Debug)]
pub struct SentTry {
    /// When it began.
    pub started_at: Timestamp,
    /// How long it took.
    pub duration_ms: u64,
    /// Why it failed; `None` if it did not.
    pub fault: Option<(FailureCode, Box<str>)>,
}

/// Why a model call does not go on.
#[derive(Clone, Debug)]
pub struct Waiting {
    /// The provider.
    pub provider: Box<str>,
    /// What the provider did.
    pub code: FailureCode,
    /// One sentence for people.
    pub message: Box<str>,
    /// When the call goes on, if that is known.
    pub until: Option<Timestamp>,
    /// Tries that failed so far.
    pub tries: usize,
}

shape! {
    /// Why a model call does not go on.
    pub(crate) struct WaitingShape from waiting: Waiting {
        provider: Box<str> = waiting.provider,
        /// Error code, such as `provider_rate_limited`.
        code: &'static str = waiting.code.as_str(),
        error: Box<str> = waiting.message,
        /// When the call goes on; null if that is not known.
        until: Option<Moment> = waiting.until.map(Moment),
        /// Tries that failed so far.
        tries: usize = waiting.tries,
    }
}

/// The model calls of a turn.
#[derive(Serialize, JsonSchema)]
struct SentList {
    calls: Vec<SentShape>,
    /// How many.
    total: usize,
}

shape! {
    /// A model call. Tokens are estimates; the usage of the trace is what the provider counted.
    struct SentShape from call: SentCall {
        let content = call.content.unwrap_or_default();
        let tokens = Parts::of(&content);
    } {
        id: u64 = call.id,
        /// Number of the call in its turn; a fallback model has the number of the model that it stands in for.
        number: u32 = call.attempt.number,
        provider: Box<str> = call.provider,
        model: Box<str> = call.model,
        sent_at: Moment = Moment(call.sent_at),
        /// Context window of the model in tokens.
        context_tokens: u32 = call.context_tokens,
        temperature: Option<f32> = call.temperature,
        /// Limit of the response in tokens; null if none was sent.
        max_tokens: Option<u32> = call.max_tokens,
        /// Tokens of the prompt by what they are for.
        tokens: Parts = tokens,
        messages: usize = content.prompt.messages.len(),
        tools: usize = content.tools.len(),
        /// Whether earlier messages were left out because they did not fit.
        cut: bool = content.prompt.is_cut,
        /// Its tries. More than one: the others failed and were repeated.
        tries: Vec<TryShape> = call.tries.into_iter().map(TryShape::from).collect(),
    }
}

/// The tokens of a prompt, estimated.
#[derive(Serialize, JsonSchema)]
struct Parts {
    system: u64,
    tools: u64,
    /// Messages of people, triggers and other agents.
    user: u64,
    /// Responses of the model and its tool calls.
    assistant: u64,
    /// Results of tools.
    results: u64,
}

impl Parts {
    fn of(content: &SentContent) -> Self {
        let of = |role| content.prompt.messages.iter().filter(move |one| one.role == role).map(message_tokens).sum();
        Self {
            system: text_tokens(content.prompt.system.len()),
            tools: content.tools.iter().map(SentTool::tokens).sum(),
            user: of(Role::User),
            assistant: of(Role::Assistant),
            results: of(Role::Tool),
        }
    }
}

shape! {
    /// A try of a model call.
    struct TryShape from one: SentTry {
        let (code, error) = one.fault.map_or((None, None), |(code, error)| (Some(code.as_str()), Some(error)));
    } {
        started_at: Moment = Moment(one.started_at),
        duration_ms: u64 = one.duration_ms,
        /// Error code of a failure.
        #[serde(skip_serializing_if = "Option::is_none")]
        code: Option<&'static str> = code,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<Box<str>> = error,
    }
}

/// A model call with what was sent.
#[derive(Serialize, JsonSchema)]
struct SentDetail {
    id: u64,
    /// The system text.
    system: String,
    /// Estimate of its tokens.
    system_tokens: u64,
    /// The messages, oldest first.
    messages: Vec<SentMessageShape>,
    /// The tools that the model could call.
    tools: Vec<SentToolShape>,
}

/// A message of a prompt.
#[derive(Serialize, JsonSchema)]
struct SentMessageShape {
    /// `User`, `Assistant` or `Tool`.
    role: &'static str,
    /// Estimate of its tokens.
    tokens: u64,
    /// Its parts, in order. What a model thought is sent back to it in the form of its provider and shown as text.
    parts: Vec<SentPart>,
}

/// A part of a message.
#[derive(Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
enum SentPart {
    Text { text: String },
    Thinking { text: String },
    ToolCall { name: String, input: String },
    ToolResult { name: String, content: String, is_error: bool },
    Image { media_type: String, bytes: u64 },
}

/// A tool as the model saw it.
#[derive(Serialize, JsonSchema)]
struct SentToolShape {
    name: Box<str>,
    description: Box<str>,
    /// JSON schema of its input.
    input_schema: Value,
    /// Estimate of its tokens.
    tokens: u64,
}

impl From<&SentTool> for SentToolShape {
    fn from(tool: &SentTool) -> Self {
        let input_schema = serde_json::from_str(tool.input_schema.get()).unwrap_or_default();
        let (name, description) = (tool.name.clone(), tool.description.clone());
        Self { name, description, input_schema, tokens: tool.tokens() }
    }
}

impl From<&ChatMessage> for SentMessageShape {
    fn from(message: &ChatMessage) -> Self {
        let parts = message.blocks.iter().cloned().map(|block| match block {
            Block::Text { text } => SentPart::Text { text },
            Block::Reasoning(thought) => SentPart::Thinking { text: thought.text },
            Block::ToolCall(call) => SentPart::ToolCall { name: call.name, input: call.input },
            Block::ToolResult { name, content, is_error, .. } => SentPart::ToolResult { name, content, is_error },
            Block::Image { media_type, bytes, .. } => SentPart::Image { media_type, bytes },
        });
        Self { role: message.role.as_str(), tokens: message_tokens(message), parts: parts.collect() }
    }
}

/// The kept calls of the turn that the path names. Those of a conversation that was erased are not shown.
async fn kept(call: &Call) -> Result<Vec<SentCall>, Error> {
    let (agent, turn) = (call.id::<AgentId>("id")?, call.id::<TurnId>("turn_id")?);
    call.ask(GetAgent(agent)).await?;
    let mut found = call.api.services.get::<dyn SentCalls>().map(|sent| sent.of_turn(turn)).unwrap_or_default();
    found.retain(|sent| sent.agent == agent);
    let Some(first) = found.first() else { return Ok(found) };
    let session = call.ask(GetSession::ById(first.session)).await;
    let is_there = session.is_ok_and(|session| session.log == first.log);
    Ok(if is_there { found } else { Vec::new() })
}

async fn list(call: Call) -> Result<Response, Error> {
    let calls: Vec<SentShape> = kept(&call).await?.into_iter().map(SentShape::from).collect();
    reply::ok(&SentList { total: calls.len(), calls })
}

async fn show(call: Call) -> Result<Response, Error> {
    let id = call.param("call_id")?.parse::<u64>().ok();
    let found = kept(&call).await?.into_iter().find(|sent| Some(sent.id) == id);
    let gone = || Error::not_found("the prompt of this call is not kept".to_owned());
    let SentCall { id, content, .. } = found.ok_or_else(gone)?;
    let content = content.ok_or_else(gone)?;
    reply::ok(&SentDetail {
        id,
        system: content.prompt.system.clone(),
        system_tokens: text_tokens(content.prompt.system.len()),
        messages: content.prompt.messages.iter().map(SentMessageShape::from).collect(),
        tools: content.tools.iter().map(SentToolShape::from).collect(),
    })
}
