//! What an agent's turns did, and which messages came in (spec 1, Other agent routes): traces and deliveries. Both are
//! read from the records of ended turns; turns that are open stand before them.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::http::blocking::spawn_blocking;
use agentsvc_components::kernel::limit;
use agentsvc_components::kernel::taint::Taint;
use agentsvc_components::proactive_memory::recall::{Recalled, RecalledEntry};
use agentsvc_components::turn::trace::{StepKind, StepStatus, TraceRecord, TraceStep};
use agentsvc_components::turn::{Origin, TurnEnd, TurnState};
use agentsvc_components::{AgentId, TurnId};
use agentsvc_systems::agent::GetAgent;
use agentsvc_systems::kernel::page::Page;
use agentsvc_systems::turn::{ListOpenTurns, OpenTurn};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::lists::{self, list_schema};
use crate::http::pages::Shape;
use crate::http::reply::Response;
use crate::http::route::{Reply, Route};
use crate::http::shape::shape;
use crate::http::timestamp::Moment;
use crate::turn::receipts::{self, ReceiptShape};
use crate::turn::sent::{SentCalls, WaitingShape};
use crate::turn::store::TraceStore;

/// Open turns that are shown at most.
const OPEN_MAX: usize = 256;
/// Traces that are read from the disk at once.
const PAGE_TRACES: usize = 256;

pub(crate) const ROUTES: &[Route] = &[
    Route::get("/api/agents/{id}/traces", "List the traces of an agent's turns", |call| Box::pin(traces(call)))
        .large()
        .query::<TraceQuery>()
        .replies(&[Reply::json::<TraceList>(200, "ended turns, newest first, and running turns")]),
    Route::get(
        "/api/agents/{id}/deliveries",
        "List the messages sent to an agent, and the newest that it sent out",
        |call| Box::pin(deliveries(call)),
    )
    .large()
    .query::<TraceQuery>()
    .replies(&[Reply::json::<DeliveryList>(200, "the messages, newest first")]),
];

/// Filter for turns.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct TraceQuery {
    /// Only turns of this session.
    session_id: Option<Uuid>,
    /// Maximum number of items. `next_cursor` of the response leads to the next page.
    limit: Option<usize>,
    /// Cursor of the previous page.
    cursor: Option<String>,
}

list_schema! {
    /// The traces of an agent.
    TraceList {
        traces: TraceShape,
        /// Traces of the agent that are kept.
        total: Option<u64>,
        /// Turns that have not ended, newest first; on the first page.
        running: Vec<OpenShape>
    }
}

list_schema! {
    /// The inbound messages of an agent.
    DeliveryList {
        deliveries: DeliveryShape,
        /// Messages in all.
        total: Option<u64>,
        agent_id: Uuid,
        /// How many `receipts` there are.
        count: usize,
        /// The newest messages that went out: to channels, webhooks and files.
        receipts: Vec<ReceiptShape>
    }
}

shape! {
    /// An ended turn.
    struct TraceShape from trace: TraceRecord {
        let parent = if let Origin::Agent { parent } = trace.origin { Some(parent.0) } else { None };
    } {
        turn_id: Uuid = trace.turn.0,
        session_id: Uuid = trace.session.0,
        /// Source of the message: `api`, `websocket`, `openai`, `agent`, `trigger`, `schedule` or `workflow`.
        origin: &'static str = trace.origin.as_str(),
        /// Turn of another agent that sent it.
        #[serde(skip_serializing_if = "Option::is_none")]
        parent_turn_id: Option<Uuid> = parent,
        /// `done`, `failed`, `stopped` or `interrupted`.
        status: &'static str = end_word(trace.end),
        started_at: Moment = Moment(trace.started_at),
        ended_at: Moment = Moment(trace.ended_at),
        /// Time from the message to the end, including waiting.
        duration_ms: u64 = trace.ended_at.ms_since(trace.started_at),
        /// Error code of a failure.
        #[serde(skip_serializing_if = "Option::is_none")]
        code: Option<Box<str>> = trace.code,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<Box<str>> = trace.error,
        input_tokens: u64 = trace.usage.input_tokens,
        output_tokens: u64 = trace.usage.output_tokens,
        /// Cost of its model calls; 0 if the price is unknown.
        cost_usd: f64 = trace.usage.cost.usd(),
        /// Model calls.
        iterations: u32 = trace.iterations,
        /// Tool calls.
        tool_calls: u32 = trace.tool_calls,
        /// Model and tool calls in order of completion.
        steps: Vec<StepShape> = trace.steps.into_iter().map(StepShape::from).collect(),
        /// Notes to the owner.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        notices: Vec<Box<str>> = trace.notices,
        /// How the search of the agent's memory entries for this turn ended: `done`, `late` or `failed`; the turn went on without
        /// entries after the last two. Left out if nothing was searched, or nothing found.
        #[serde(skip_serializing_if = "Option::is_none")]
        memory_search: Option<&'static str> = trace.recalled.as_ref().map(|recalled| recalled.status.as_str()),
        /// Time that the turn waited for that search.
        #[serde(skip_serializing_if = "Option::is_none")]
        memory_search_ms: Option<u32> = trace.recalled.as_ref().map(|recalled| recalled.duration_ms),
        /// The memory entries that the model was given, the best first.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        memories: Vec<RecalledShape> = trace.recalled.map(recalled).unwrap_or_default(),
    }
}

/// A memory entry that a turn was given.
#[derive(Serialize, JsonSchema)]
struct RecalledShape {
    id: Uuid,
    /// The beginning of what it said then.
    content: Box<str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    category: Box<str>,
    /// How well it matched the message; comparable within one turn only.
    score: f32,
    /// How the entries were ranked: `lexical` (by words) or `hybrid` (by words and vectors).
    mode: Box<str>,
    /// Untrusted content that it was made from, such as `web`. The turn counts as having read it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    taint: Vec<&'static str>,
    /// The plugin that brought it; absent for an entry of the memory.
    #[serde(skip_serializing_if = "str::is_empty")]
    plugin: Box<str>,
}

/// The entries of a trace.
fn recalled(recalled: Recalled) -> Vec<RecalledShape> {
    let Recalled { mode, memories, .. } = recalled;
    let shape = |RecalledEntry { id, content, category, score, taint, plugin }| {
        let taint: Taint = taint;
        RecalledShape { id: id.0, content, category, score, mode: mode.clone(), taint: taint.words(), plugin }
    };
    memories.into_iter().map(shape).collect()
}

shape! {
    /// A model or tool call.
    struct StepShape from step: TraceStep {
        /// `model` or `tool`.
        kind: &'static str = match step.kind {
            StepKind::Model => "model",
            StepKind::Tool => "tool",
        },
        /// `provider/model`, or the tool's name.
        name: Box<str> = step.name,
        started_at: Moment = Moment(step.started_at),
        duration_ms: u32 = step.duration_ms,
        /// `ok`, `error`, `unknown`, `refused` or `stopped`.
        status: &'static str = match step.status {
            StepStatus::Ok => "ok",
            StepStatus::Error => "error",
            StepStatus::Unknown => "unknown",
            StepStatus::Refused => "refused",
            StepStatus::Stopped => "stopped",
        },
        #[serde(skip_serializing_if = "Option::is_none")]
        input_tokens: Option<u64> = step.usage.map(|usage| usage.input_tokens),
        #[serde(skip_serializing_if = "Option::is_none")]
        output_tokens: Option<u64> = step.usage.map(|usage| usage.output_tokens),
        #[serde(skip_serializing_if = "Option::is_none")]
        cost_usd: Option<f64> = step.usage.map(|usage| usage.cost.usd()),
        /// Why it failed: the beginning of its error.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<Box<str>> = step.error,
    }
}

shape! {
    /// An open turn.
    struct OpenShape from open: OpenTurn {
        turn_id: Uuid = open.turn.0,
        session_id: Uuid = open.session.0,
        origin: &'static str = open.origin.as_str(),
        /// `queued`, `reserving`, `calling`, `waiting_for_tools` or `stopping`.
        state: &'static str = state_word(open.state),
        started_at: Moment = Moment(open.started_at),
        input_tokens: u64 = open.usage.input_tokens,
        output_tokens: u64 = open.usage.output_tokens,
        cost_usd: f64 = open.usage.cost.usd(),
        iterations: u32 = open.iterations,
        tool_calls: u32 = open.tool_calls,
        /// What holds up its model call; left out if nothing does.
        #[serde(skip_serializing_if = "Option::is_none")]
        waiting: Option<WaitingShape> = None,
    }
}

shape! {
    /// A received message.
    struct DeliveryShape from open: OpenTurn {
        /// The same as `turn_id`.
        id: Uuid = open.turn.0,
        turn_id: Uuid = open.turn.0,
        session_id: Uuid = open.session.0,
        received_at: Moment = Moment(open.started_at),
        /// `api`, `websocket`, `openai`, `agent`, `trigger`, `schedule` or `workflow`.
        channel: &'static str = open.origin.as_str(),
        /// `queued`, `running`, `answered`, `failed`, `stopped` or `interrupted`.
        status: &'static str = if open.state == TurnState::Queued { "queued" } else { "running" },
        /// End time of its turn.
        answered_at: Option<Moment> = None,
        #[serde(skip_serializing_if = "Option::is_none")]
        code: Option<Box<str>> = None,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<Box<str>> = None,
    }
}

/// The word for how a turn ended.
pub(crate) const fn end_word(end: TurnEnd) -> &'static str {
    match end {
        TurnEnd::Done => "done",
        TurnEnd::Failed => "failed",
        TurnEnd::Stopped => "stopped",
        TurnEnd::Interrupted => "interrupted",
    }
}

const fn state_word(state: TurnState) -> &'static str {
    match state {
        TurnState::Queued => "queued",
        TurnState::Reserving => "reserving",
        TurnState::Calling => "calling",
        TurnState::WaitingForTools => "waiting_for_tools",
        TurnState::WaitingForApproval => "waiting_for_approval",
        TurnState::Stopping => "stopping",
    }
}

impl From<TraceRecord> for DeliveryShape {
    fn from(trace: TraceRecord) -> Self {
        Self {
            id: trace.turn.0,
            turn_id: trace.turn.0,
            session_id: trace.session.0,
            received_at: Moment(trace.started_at),
            channel: trace.origin.as_str(),
            status: if trace.end == TurnEnd::Done { "answered" } else { end_word(trace.end) },
            answered_at: Some(Moment(trace.ended_at)),
            code: trace.code,
            error: trace.error,
        }
    }
}

/// A turn as a cursor: go on with the turns before it.
#[derive(Clone, Copy)]
struct Before(TurnId);

impl fmt::Display for Before {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Before {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        text.parse().map(Self).map_err(drop)
    }
}

/// Reads traces off the async threads.
pub(crate) async fn read<T: Send + 'static>(
    content: Arc<dyn TraceStore>,
    read: impl FnOnce(&dyn TraceStore) -> Result<T, crate::http::error::ContentError> + Send + 'static,
) -> Result<T, Error> {
    let read = spawn_blocking(move || read(&*content)).await;
    Ok(read.map_err(|_| Error::internal("reading the traces was interrupted"))??)
}

/// A page of ended turns as `I`; with a session it may be short, even empty, and still have a next one.
async fn page<I: From<TraceRecord>>(
    content: Arc<dyn TraceStore>,
    agent: AgentId,
    session: Option<Uuid>,
    before: Option<Before>,
    limit: usize,
) -> Result<Page<I, Before, ()>, Error> {
    // With a session most traces may be another's, so more are read than asked for.
    let ask = if session.is_some() { limit::PAGE_SCAN_MAX } else { limit.min(PAGE_TRACES) };
    let traces = read(content, move |content| content.traces(agent, before.map(|Before(turn)| turn), ask)).await?;
    let whole = traces.len() < ask;
    let last = traces.last().map(|trace| Before(trace.turn));
    let mut page = Page { items: Vec::new(), next: if whole { None } else { last }, total: () };
    let mut wanted = traces.into_iter().filter(|trace| session.is_none_or(|id| id == trace.session.0));
    for trace in wanted.by_ref().take(limit) {
        let turn = trace.turn;
        page.items.push(I::from(trace));
        if page.items.len() == limit {
            page.next = Some(Before(turn));
        }
    }
    // The last of all was just taken: there is no next page.
    if whole && wanted.next().is_none() {
        page.next = None;
    }
    Ok(page)
}

/// What both lists begin with: the agent, what is asked for, and its open turns on the first page.
struct Asked {
    agent: AgentId,
    session: Option<Uuid>,
    limit: Option<usize>,
    before: Option<Before>,
    open: Vec<OpenTurn>,
    open_total: usize,
    total: u64,
}

async fn asked(call: &Call) -> Result<Asked, Error> {
    let agent: AgentId = call.id("id")?;
    let TraceQuery { session_id, limit, cursor } = call.query()?;
    let (limit, before) = (lists::limit(limit)?, lists::cursor::<Before>(cursor.as_deref())?);
    call.ask(GetAgent(agent)).await?;
    let (mut open, open_total) =
        if before.is_none() { call.ask(ListOpenTurns { agent, limit: OPEN_MAX }).await? } else { (Vec::new(), 0) };
    open.retain(|turn| session_id.is_none_or(|id| id == turn.session.0));
    let total = read(call.api.service::<dyn TraceStore>()?, move |content| content.trace_count(agent)).await?;
    Ok(Asked { agent, session: session_id, limit, before, open, open_total, total })
}

async fn traces(call: Call) -> Result<Response, Error> {
    let Asked { agent, session, limit, before, open, total, .. } = asked(&call).await?;
    let sent = call.api.services.get::<dyn SentCalls>();
    let shown = |open: OpenTurn| {
        let waiting = sent.as_ref().and_then(|sent| sent.waiting(open.turn)).map(WaitingShape::from);
        OpenShape { waiting, ..OpenShape::from(open) }
    };
    let running: Vec<OpenShape> = open.into_iter().map(shown).collect();
    let running = json!(running);
    let shape = move |total: Option<u64>| {
        let around = [("total", json!(total)), ("running", running.clone())];
        let after = around.into_iter().map(|(key, value)| (key.to_owned(), value)).collect::<Map<String, Value>>();
        Shape::Object { key: "traces", after }
    };
    let content = call.api.service::<dyn TraceStore>()?;
    lists::answer(limit, before, shape, move |before, limit| {
        let content = Arc::clone(&content);
        async move {
            let page = page::<TraceShape>(content, agent, session, before, limit).await?;
            Ok(Page { items: page.items, next: page.next, total: Some(total) })
        }
    })
    .await
}

async fn deliveries(call: Call) -> Result<Response, Error> {
    let Asked { agent, session, limit, before, open, open_total, total } = asked(&call).await?;
    let total = total + open_total as u64;
    let content = call.api.service::<dyn TraceStore>()?;
    // Open turns are newer than ended ones, but for those that wait long; they come first, on top of `limit`.
    let mut first: Vec<DeliveryShape> = open.into_iter().map(DeliveryShape::from).collect();
    let receipts = receipts::newest(&call, agent).await?;
    let shape = move |total: Option<u64>| {
        let count = receipts.len();
        let around = [("total", json!(total)), ("agent_id", json!(agent)), ("count", json!(count))];
        let around = around.into_iter().chain([("receipts", json!(receipts))]);
        Shape::Object { key: "deliveries", after: around.map(|(key, value)| (key.to_owned(), value)).collect() }
    };
    lists::answer(limit, before, shape, move |before, limit| {
        let (content, mut items) = (Arc::clone(&content), std::mem::take(&mut first));
        async move {
            let Page { items: ended, next, .. } = page::<DeliveryShape>(content, agent, session, before, limit).await?;
            items.extend(ended);
            Ok(Page { items, next, total: Some(total) })
        }
    })
    .await
}
