//! The conversation of a session in full: tool calls and their results, pictures, tokens; the newest messages first, in
//! whole turns as far as they fit a page (what a chat shows; spec 1, Session has the plain form).

use crate::http::blocking::spawn_blocking;
use agentsvc_components::session::message::{Block, Role};
use agentsvc_components::{FileId, LogId};
use agentsvc_systems::session::GetSession;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, Value, to_raw_value};
use uuid::Uuid;

use crate::http::call::Call;
use crate::http::error::{ContentError, Error};
use crate::http::reply::Response;
use crate::http::route::{Reach, Reply, Route};
use crate::http::timestamp::Moment;
use crate::http::{lists, reply};
use crate::session::content::{Content, MessageRange, MessageRow};
use crate::upload::files::Files;

/// Messages of a page, unless the request says otherwise.
const PAGE_MESSAGES: usize = 100;
/// Messages of a turn that stand on one page.
const TURN_MESSAGES_MAX: usize = 4_096;
/// Bytes of a page as JSON; older messages stand on the next one. A single message may be larger.
const PAGE_BYTES_MAX: usize = 4 << 20;
/// Bytes that a page takes while it is made: what is read of the store, its messages, their JSON, and what that grows by.
const PAGE_MEMORY: usize = 4 * PAGE_BYTES_MAX;
/// Bytes of what stands around the blocks of a message.
const MESSAGE_BYTES: usize = 512;
/// Bytes of what stands around a block.
const BLOCK_BYTES: usize = 256;
/// Bytes of a tool's result that are shown; the rest is cut, and counted.
const RESULT_BYTES_MAX: usize = 64 << 10;

pub(crate) const ROUTES: &[Route] =
    &[Route::get("/api/sessions/{id}/messages", "List the newest messages of a session", |call| Box::pin(show(call)))
        .reaching(Reach::Filtered)
        .query::<MessagesQuery>()
        .answer_max(PAGE_MEMORY)
        .replies(&[Reply::json::<Messages>(
            200,
            "a page of whole turns, oldest first; the next page has what is older",
        )])];

/// Options of the page.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct MessagesQuery {
    /// Approximate number of messages; only turns of more than 4 MiB or 4,096 messages are split. Default: 100.
    limit: Option<usize>,
    /// `next_cursor` of the previous page.
    cursor: Option<u64>,
}

/// A page of a conversation.
#[derive(Serialize, JsonSchema)]
struct Messages {
    session_id: Uuid,
    agent_id: Uuid,
    agent_name: Box<str>,
    label: Option<Box<str>>,
    /// Whether it is the agent's current session.
    current: bool,
    /// Open turns.
    queued: u32,
    /// First turn that is not part of the model's summary. All turns are listed here.
    compacted_turns: u32,
    /// Oldest first. A page ends at 4 MiB; a larger message stands alone on one.
    messages: Vec<Message>,
    /// Cursor of older messages, which may belong to the first turn of this page; null at the start of the session.
    next_cursor: Option<u64>,
}

/// One message.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Message2")]
struct Message {
    /// `User`, `Assistant` or `Tool`.
    role: &'static str,
    /// Text of the message, followed by attached texts, separated by blank lines.
    content: String,
    /// The model's thinking, if available.
    #[serde(skip_serializing_if = "String::is_empty")]
    thinking: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<ToolCall>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_results: Vec<ToolResult>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    images: Vec<Image>,
    /// Index of its turn in the session, from 0.
    turn: u32,
    turn_id: Uuid,
    /// The first of the turns that answer the same message, if this turn answers it again; only in the message that begins a turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    repeats: Option<Uuid>,
    created_at: Moment,
    /// Tokens of its model call; responses only.
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Tokens>,
    /// `provider/model` of its model call; responses only.
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<Box<str>>,
    /// Whether the response was stopped early.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stopped: bool,
}

/// A tool call of the model.
#[derive(Serialize, JsonSchema)]
struct ToolCall {
    id: String,
    name: String,
    /// Arguments; a string if the model wrote invalid JSON.
    #[schemars(with = "Value")]
    input: Box<RawValue>,
}

/// Result of a tool call.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ToolResult2")]
struct ToolResult {
    /// Id of the call.
    call_id: String,
    name: String,
    /// At most 64 KiB.
    content: String,
    /// Number of truncated bytes.
    cut_bytes: usize,
    is_error: bool,
}

/// An image, available at `/api/uploads/{file_id}`.
#[derive(Serialize, JsonSchema)]
struct Image {
    file_id: Uuid,
    /// Null if the upload was deleted.
    filename: Option<String>,
    media_type: String,
    bytes: u64,
}

/// Tokens of one model call.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Tokens3")]
struct Tokens {
    input_tokens: u64,
    output_tokens: u64,
    /// Cost; 0 if the price is unknown.
    cost_usd: f64,
}

async fn show(call: Call) -> Result<Response, Error> {
    let session = call.ask(GetSession::ById(call.id("id")?)).await?;
    let MessagesQuery { limit, cursor } = call.query()?;
    let limit = lists::limit(limit)?.unwrap_or(PAGE_MESSAGES);
    let (content, files, log) = (call.api.service::<dyn Content>()?, call.api.service::<dyn Files>()?, session.log);
    let read = spawn_blocking(move || {
        let (rows, next) = page(&*content, log, cursor.map(Place::of), limit)?;
        let name_of = |file| Some(files.upload(file).ok()?.filename);
        Ok::<_, ContentError>((rows.into_iter().map(|row| Message::of(row, name_of)).collect(), next))
    });
    let (messages, next_cursor) = read.await.map_err(|_| Error::internal("reading the messages was interrupted"))??;
    reply::ok(&Messages {
        session_id: session.id.0,
        agent_id: session.agent.0,
        agent_name: session.agent_name,
        label: session.label,
        current: session.current,
        queued: session.queued,
        compacted_turns: session.compacted,
        messages,
        next_cursor: next_cursor.map(Place::cursor),
    })
}

/// A place in the log, between its messages: the turn, and the message of it that stands behind the place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place(u32, u32);

impl Place {
    /// As a number, so that the beginnings of turns are the turns' own.
    fn cursor(self) -> u64 {
        (u64::from(self.1) << 32) | u64::from(self.0)
    }

    const fn of(cursor: u64) -> Self {
        Self(cursor as u32, (cursor >> 32) as u32)
    }
}

/// The newest messages before `before`, about `limit` of them, and the place of the first when there are older ones. Turns are
/// whole but where one alone is more than a page.
fn page(
    content: &dyn Content,
    log: LogId,
    before: Option<Place>,
    limit: usize,
) -> Result<(Vec<MessageRow>, Option<Place>), ContentError> {
    let before = before.map(|Place(ordinal, index)| (ordinal, index));
    let read = |before, limit, bytes| content.messages(log, MessageRange::Newest { before, limit, bytes });
    let mut limit = limit + 1;
    loop {
        let mut rows = read(before, limit, PAGE_BYTES_MAX)?;
        let Some(first) = rows.first().map(|row| (row.ordinal, row.index)) else { return Ok((rows, None)) };
        let fitting = fitting(&rows);
        let is_start = fitting == 0 && rows.len() < limit && read(Some(first), 1, 1)?.is_empty();
        if is_start {
            return Ok((rows, None));
        }
        // The oldest turn may have lost its beginning.
        let ordinal = rows[fitting].ordinal;
        let begins = fitting > 0 && rows[fitting - 1].ordinal != ordinal;
        let whole = (fitting..rows.len()).find(|at| rows[*at].ordinal != ordinal);
        let from = match whole {
            _ if begins => fitting,
            Some(from) => from,
            // Its beginning may be near.
            None if fitting == 0 && rows.len() == limit && limit < TURN_MESSAGES_MAX => {
                limit = (limit * 4).min(TURN_MESSAGES_MAX);
                continue;
            }
            None => fitting,
        };
        rows.drain(..from);
        let next = rows.first().map(|row| Place(row.ordinal, if from == fitting && !begins { row.index } else { 0 }));
        return Ok((rows, next));
    }
}

/// The first row so that it and all that follow have at most [`PAGE_BYTES_MAX`]; the newest stays in any case.
fn fitting(rows: &[MessageRow]) -> usize {
    let (mut bytes, last) = (0, rows.len().saturating_sub(1));
    for at in (0..rows.len()).rev() {
        bytes += MESSAGE_BYTES + rows[at].record.blocks.iter().map(bytes_of).sum::<usize>();
        if bytes > PAGE_BYTES_MAX && at < last {
            return at + 1;
        }
    }
    0
}

/// What a block weighs on the wire.
fn bytes_of(block: &Block) -> usize {
    match block {
        Block::Text { text } => json_bytes(text),
        // Written as it is; what is no JSON is a string.
        Block::ToolCall(call) => BLOCK_BYTES + call.input.len().max(json_bytes(&call.input)),
        Block::ToolResult { content, .. } => {
            BLOCK_BYTES + json_bytes(&content[..content.floor_char_boundary(RESULT_BYTES_MAX)])
        }
        Block::Reasoning(thought) => json_bytes(&thought.text),
        Block::Image { .. } => BLOCK_BYTES,
    }
}

/// Bytes of a text in a JSON string.
fn json_bytes(text: &str) -> usize {
    let escape = |byte: u8| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 8 | 12 => 1,
        0..0x20 => 5,
        _ => 0,
    };
    text.len() + text.bytes().map(escape).sum::<usize>()
}

impl Message {
    fn of(row: MessageRow, name_of: impl Fn(FileId) -> Option<String>) -> Self {
        let MessageRow { ordinal, record, .. } = row;
        let is_answer = record.role == Role::Assistant;
        let usage = record.usage.filter(|_| is_answer).map(|usage| Tokens {
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            cost_usd: usage.cost.usd(),
        });
        let mut message = Self {
            role: record.role.as_str(),
            content: String::new(),
            thinking: String::new(),
            tool_calls: Vec::new(),
            tool_results: Vec::new(),
            images: Vec::new(),
            turn: ordinal,
            turn_id: record.turn.0,
            repeats: record.repeats.map(|turn| turn.0),
            created_at: Moment(record.created_at),
            usage,
            model: record.model,
            stopped: record.stopped,
        };
        for block in record.blocks {
            message.add(block, record.role, &name_of);
        }
        message
    }

    fn add(&mut self, block: Block, role: Role, name_of: impl Fn(FileId) -> Option<String>) {
        match block {
            Block::Text { text } => {
                if role == Role::User && !self.content.is_empty() {
                    self.content.push_str("\n\n");
                }
                self.content.push_str(&text);
            }
            Block::Reasoning(thought) => self.thinking.push_str(&thought.text),
            Block::ToolCall(call) => {
                self.tool_calls.push(ToolCall { input: input(&call.input), id: call.id, name: call.name });
            }
            Block::ToolResult { call_id, name, mut content, is_error } => {
                let whole = content.len();
                content.truncate(content.floor_char_boundary(RESULT_BYTES_MAX));
                let cut_bytes = whole - content.len();
                self.tool_results.push(ToolResult { call_id, name, content, cut_bytes, is_error });
            }
            Block::Image { media_type, file, bytes } => {
                self.images.push(Image { file_id: file.0, filename: name_of(file), media_type, bytes });
            }
        }
    }
}

/// The arguments of a tool call: JSON as it is, anything else as a string.
fn input(text: &str) -> Box<RawValue> {
    let text = if text.trim().is_empty() { "{}" } else { text.trim() };
    let raw = RawValue::from_string(text.to_owned()).or_else(|_| to_raw_value(text));
    raw.unwrap_or_else(|_| RawValue::NULL.to_owned())
}

#[cfg(test)]
mod tests;
