//! One session as a redacted trail for auditors (spec 1, Trajectory), in bounded memory: rows are read, redacted and
//! sent in chunks.

use std::sync::Arc;

use crate::http::blocking::spawn_blocking;
use agentsvc_components::agent::AgentState;
use agentsvc_components::compaction::record::SummaryRecord;
use agentsvc_components::session::message::{Block, Role, Usage, text_of};
use agentsvc_components::session::message_record::MessageRecord;
use agentsvc_components::{AgentId, LogId, RefusalKind, SessionId};
use agentsvc_systems::agent::{AgentView, GetAgent};
use agentsvc_systems::kernel::record::hex;
use agentsvc_systems::prompt::{merged, system_text};
use agentsvc_systems::redact::redact;
use agentsvc_systems::session::{GetSession, SessionView};
use bytes::Bytes;
use futures_util::stream;
use hyper::StatusCode;
use hyper::header::HeaderValue;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, Value, to_raw_value};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::transcript::{CHUNK_BYTES, CHUNK_MEMORY, FIRST_ROWS, ROWS_MAX};
use crate::http::call::Call;
use crate::http::error::{ContentError, Error};
use crate::http::reply::{self, BrokenOff, Response};
use crate::http::route::{Reply, Route};
use crate::http::shape::shape;
use crate::http::timestamp::Moment;
use crate::session::content::{Content, MessageRange, MessageRow};

/// `content-type` of the form with one value a line.
const NDJSON: HeaderValue = HeaderValue::from_static("application/x-ndjson");
/// Shorter tool results are whole in any case.
const STUB_BYTES_MIN: usize = 8 << 10;
/// What an export costs the client's rate budget: it reads a whole session.
const COST: u32 = 10;

pub(crate) const ROUTES: &[Route] = &[Route::get(
    "/api/agents/{id}/sessions/{session_id}/trajectory",
    "Export a session without secrets and personal data",
    |call| Box::pin(export(call)),
)
.cost(COST)
.answer_max(CHUNK_MEMORY)
.query::<TrajectoryQuery>()
.replies(&[
    Reply::json::<Trajectory>(200, "metadata and messages; with `format=jsonl` one per line"),
    Reply::plain(200, "the metadata, then one message per line", "application/x-ndjson"),
])];

/// Format.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct TrajectoryQuery {
    /// `json` (default) or `jsonl`.
    format: Option<String>,
}

/// The form of an export.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Json,
    Jsonl,
}

impl Format {
    fn of(query: &TrajectoryQuery) -> Result<Self, Error> {
        match query.format.as_deref() {
            None | Some("" | "json") => Ok(Self::Json),
            Some("jsonl") => Ok(Self::Jsonl),
            Some(other) => {
                let other: String = other.chars().take(32).collect();
                Err(Error::bad_field("format", format!("query parameter 'format': '{other}' is not json or jsonl")))
            }
        }
    }
}

/// The whole export.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct Trajectory {
    metadata: Metadata<'static>,
    messages: Vec<Line>,
}

/// Metadata of the session.
#[derive(Serialize, JsonSchema)]
struct Metadata<'a> {
    /// `metadata`: marks the first line of `jsonl`.
    r#type: &'static str,
    agent_id: Uuid,
    agent_name: String,
    session_id: Uuid,
    label: Option<String>,
    provider: &'a str,
    model: &'a str,
    /// SHA-256 of the current system prompt, in hex after `sha256:`.
    system_prompt_fingerprint: String,
    service: &'static str,
    version: &'static str,
    agent_state: &'static str,
    created_at: Moment,
    updated_at: Moment,
    exported_at: Moment,
    /// User messages and responses, without tool results.
    message_count: u32,
    /// Summaries of older messages, oldest first. All messages are exported as well.
    summaries: Vec<SummaryShape>,
    /// Every text passed the privacy redactor.
    redacted: bool,
}

shape! {
    /// A summary of older messages (compaction).
    struct SummaryShape from summary: SummaryRecord {
        /// First summarized turn.
        from_turn: u32 = summary.from,
        /// First turn after the summarized ones.
        upto_turn: u32 = summary.upto,
        /// Number of summarized messages.
        messages: u32 = summary.messages,
        content: String = clean(summary.text),
        created_at: Moment = Moment(summary.created_at),
        model: Box<str> = summary.model,
        usage: UsageShape = summary.usage.into(),
    }
}

/// One message.
#[derive(Serialize, JsonSchema)]
struct Line {
    /// `message`.
    r#type: &'static str,
    /// `User`, `Assistant` or `Tool`.
    role: &'static str,
    /// Text of the message, without tool calls and results.
    content: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<CallShape>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_results: Vec<ResultShape>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    images: Vec<ImageShape>,
    /// Index of its turn in the session, from 0.
    turn: u32,
    turn_id: Uuid,
    /// The first of the turns that answer the same message, if this turn answers it again; only in the message that begins a turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    repeats: Option<Uuid>,
    created_at: Moment,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<UsageShape>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<Box<str>>,
    /// Whether the response was stopped early.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stopped: bool,
}

/// A tool call of the model.
#[derive(Serialize, JsonSchema)]
struct CallShape {
    id: String,
    name: String,
    /// Arguments; a string if the model wrote invalid JSON.
    #[schemars(with = "Value")]
    input: Box<RawValue>,
}

/// Result of a tool call.
#[derive(Serialize, JsonSchema)]
struct ResultShape {
    call_id: String,
    name: String,
    content: String,
    is_error: bool,
}

/// A picture; its bytes are not exported.
#[derive(Serialize, JsonSchema)]
struct ImageShape {
    file_id: Uuid,
    media_type: String,
    bytes: u64,
}

shape! {
    /// Tokens of a model call.
    struct UsageShape from usage: Usage {
        input_tokens: u64 = usage.input_tokens,
        output_tokens: u64 = usage.output_tokens,
        /// Cost; 0 if the price is unknown.
        cost_usd: f64 = usage.cost.usd(),
    }
}

impl Line {
    fn of(turn: u32, mut record: MessageRecord) -> Self {
        if record.role == Role::User {
            record.blocks = merged(record.blocks);
        }
        let text = text_of(&record.blocks);
        let mut line = Self {
            r#type: "message",
            role: record.role.as_str(),
            content: clean(text),
            tool_calls: Vec::new(),
            tool_results: Vec::new(),
            images: Vec::new(),
            turn,
            turn_id: record.turn.0,
            repeats: record.repeats.map(|turn| turn.0),
            created_at: Moment(record.created_at),
            usage: record.usage.filter(|_| record.role == Role::Assistant).map(UsageShape::from),
            model: record.model,
            stopped: record.stopped,
        };
        for block in record.blocks {
            match block {
                Block::Text { .. } | Block::Reasoning(_) => {}
                Block::ToolCall(call) => {
                    let input = input(&call.input);
                    line.tool_calls.push(CallShape { id: call.id, name: clean(call.name), input });
                }
                Block::ToolResult { call_id, name, content, is_error } => {
                    let (name, content) = (clean(name), clean(content));
                    line.tool_results.push(ResultShape { call_id, name, content, is_error });
                }
                Block::Image { media_type, file, bytes } => {
                    line.images.push(ImageShape { file_id: file.0, media_type, bytes });
                }
            }
        }
        line
    }
}

/// `text` without secrets; without a copy when there are none.
fn clean(text: String) -> String {
    match redact(&text) {
        std::borrow::Cow::Borrowed(_) => text,
        std::borrow::Cow::Owned(redacted) => redacted,
    }
}

/// The redacted arguments of a tool call: JSON as it is, anything else as a string.
fn input(text: &str) -> Box<RawValue> {
    let redacted = redact(text);
    let text = if redacted.trim().is_empty() { "{}" } else { redacted.trim() };
    // A line break between tokens would end the line of `jsonl`.
    if !text.contains(['\n', '\r'])
        && let Ok(raw) = serde_json::from_str::<&RawValue>(text)
    {
        return raw.to_owned();
    }
    let value = serde_json::from_str::<Value>(text).unwrap_or_else(|_| Value::from(text));
    to_raw_value(&value).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

async fn export(call: Call) -> Result<Response, Error> {
    let agent: AgentId = call.id("id")?;
    let session: SessionId = call.id("session_id")?;
    let format = Format::of(&call.query()?)?;
    let view = call.ask(GetAgent(agent)).await?;
    let missing = || Error::not_found(format!("session not found: {session}"));
    // Another agent's session is none of this agent's.
    let session = match call.api.bridge.ask(GetSession::Of(agent, session)).await {
        Ok(session) if !session.ephemeral => session,
        Ok(_) => return Err(missing()),
        Err(refusal) if refusal.kind == RefusalKind::Forbidden => return Err(missing()),
        Err(refusal) => return Err(refusal.into()),
    };
    let (content, log) = (call.api.service::<dyn Content>()?, session.log);
    let summaries = spawn_blocking(move || {
        let summaries = content.summaries(log)?;
        Ok::<_, ContentError>(summaries.into_iter().map(SummaryShape::from).collect())
    });
    let summaries = summaries.await.map_err(|_| Error::internal("reading the summaries was interrupted"))??;
    let metadata = metadata(&call, &view, &session, summaries);
    let unwritable = |error| Error::internal(format!("the metadata cannot be written: {error}"));
    let metadata = serde_json::to_vec(&metadata).map_err(unwritable)?;
    let head = match format {
        Format::Json => [b"{\"metadata\":", metadata.as_slice(), b",\"messages\":["].concat(),
        Format::Jsonl => [metadata.as_slice(), b"\n"].concat(),
    };
    let content = call.api.service::<dyn Content>()?;
    let writer = Writer { content, log: session.log, format, after: None, rows: FIRST_ROWS, first: true };
    let (body, rest) = chunk(writer, head).await?;
    let content_type = if format == Format::Json { reply::JSON } else { NDJSON };
    let Some(rest) = rest else { return Ok(reply::bytes(StatusCode::OK, content_type, body)) };
    let pieces = stream::try_unfold((Some(body), Some(rest)), async |(ready, rest): (Option<Vec<u8>>, _)| {
        if let Some(body) = ready {
            return Ok(Some((Bytes::from(body), (None, rest))));
        }
        let Some(writer) = rest else { return Ok(None) };
        let (body, rest) = chunk(writer, Vec::new()).await.map_err(|error| {
            tracing::warn!(%error, "an export was interrupted");
            BrokenOff(error.message().to_owned())
        })?;
        Ok(Some((Bytes::from(body), (None, rest))))
    });
    Ok(reply::stream(StatusCode::OK, content_type, Box::pin(pieces)))
}

fn metadata<'a>(call: &Call, view: &'a AgentView, session: &SessionView, summaries: Vec<SummaryShape>) -> Metadata<'a> {
    let prompt = system_text(&view.manifest.manifest, &view.name);
    let fingerprint = format!("sha256:{}", hex(&Sha256::digest(prompt.as_bytes())));
    let state: AgentState = view.state;
    Metadata {
        r#type: "metadata",
        agent_id: view.id.0,
        agent_name: redact(&view.name).into_owned(),
        session_id: session.id.0,
        label: session.label.as_deref().map(|label| redact(label).into_owned()),
        provider: &view.provider,
        model: &view.model,
        system_prompt_fingerprint: fingerprint,
        service: "agentsvc",
        version: call.api.settings.build.version,
        agent_state: state.as_str(),
        created_at: Moment(session.created_at),
        updated_at: Moment(session.updated_at),
        exported_at: Moment(crate::http::timestamp::timestamp_now()),
        message_count: session.message_count,
        summaries,
        redacted: true,
    }
}

/// Writes the next chunk behind `body`, off the async threads; gives the writer back unless that was the end.
async fn chunk(mut writer: Writer, mut body: Vec<u8>) -> Result<(Vec<u8>, Option<Writer>), Error> {
    let write = spawn_blocking(move || {
        let end = writer.write(&mut body)?;
        Ok::<_, ContentError>((body, (!end).then_some(writer)))
    });
    Ok(write.await.map_err(|_| Error::internal("reading the messages was interrupted"))??)
}

/// The messages on their way out.
struct Writer {
    content: Arc<dyn Content>,
    log: LogId,
    format: Format,
    /// The last row that was read.
    after: Option<(u32, u32)>,
    /// Rows that are read at once.
    rows: usize,
    /// No message was written yet.
    first: bool,
}

impl Writer {
    /// Puts a long tool result in the place of the start and end that the conversation has of it.
    fn make_whole(&self, row: &mut MessageRow) -> Result<(), ContentError> {
        if let [Block::ToolResult { content, .. }] = row.record.blocks.as_mut_slice()
            && content.len() > STUB_BYTES_MIN
            && let Some(whole) = self.content.result(self.log, row.ordinal, row.index)?
        {
            *content = whole;
        }
        Ok(())
    }

    /// Writes one chunk, and the end after the last. True when that was the end.
    fn write(&mut self, body: &mut Vec<u8>) -> Result<bool, ContentError> {
        let start = body.len();
        loop {
            let range = MessageRange::Chunk { after: self.after, limit: self.rows, bytes: CHUNK_BYTES };
            let rows = self.content.messages(self.log, range)?;
            if rows.is_empty() {
                if self.format == Format::Json {
                    body.extend_from_slice(b"]}");
                }
                return Ok(true);
            }
            self.rows = ROWS_MAX;
            for row in rows {
                self.write_row(row, body)?;
                if body.len() - start >= CHUNK_BYTES {
                    return Ok(false);
                }
            }
        }
    }

    fn write_row(&mut self, mut row: MessageRow, body: &mut Vec<u8>) -> Result<(), ContentError> {
        self.after = Some((row.ordinal, row.index));
        self.make_whole(&mut row)?;
        if !std::mem::replace(&mut self.first, false) && self.format == Format::Json {
            body.push(b',');
        }
        serde_json::to_writer(&mut *body, &Line::of(row.ordinal, row.record))
            .map_err(|error| ContentError::Failed(error.to_string()))?;
        if self.format == Format::Jsonl {
            body.push(b'\n');
        }
        Ok(())
    }
}
