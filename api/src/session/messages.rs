//! The conversation of a session in full: tool calls and their results, pictures, tokens; the newest messages first, in
//! whole turns (what a chat shows; spec 1, Session has the plain form).

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
use crate::http::route::{Reply, Route};
use crate::http::timestamp::Moment;
use crate::http::{lists, reply};
use crate::session::content::{Content, MessageRange, MessageRow};
use crate::upload::files::Files;

/// Messages of a page, unless the request says otherwise.
const PAGE_MESSAGES: usize = 100;
/// Messages of one turn that are shown; of a longer one the newest.
const TURN_MESSAGES_MAX: usize = 4_096;
/// Bytes of a page; older turns beyond stand on the next one. A turn is never split, so one long turn may be more.
const PAGE_BYTES_MAX: usize = 4 << 20;
/// Bytes of a tool's result that are shown; the rest is cut, and counted.
const RESULT_BYTES_MAX: usize = 64 << 10;

pub(crate) const ROUTES: &[Route] =
    &[Route::get("/api/sessions/{id}/messages", "List the newest messages of a session", |call| Box::pin(show(call)))
        .query::<MessagesQuery>()
        .replies(&[Reply::json::<Messages>(
            200,
            "a page of whole turns, oldest first; the next page has older turns",
        )])];

/// Options of the page.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct MessagesQuery {
    /// Approximate number of messages; turns are not split. Default: 100.
    limit: Option<usize>,
    /// `next_cursor` of the previous page.
    cursor: Option<u32>,
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
    /// Oldest first.
    messages: Vec<Message>,
    /// Cursor of older messages; null at the start of the session.
    next_cursor: Option<u32>,
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
        let (rows, next) = page(&*content, log, cursor, limit)?;
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
        next_cursor,
    })
}

/// The newest messages of turns before `before`, about `limit` of them in whole turns, and the first turn of the page
/// when there are older ones.
fn page(
    content: &dyn Content,
    log: LogId,
    before: Option<u32>,
    limit: usize,
) -> Result<(Vec<MessageRow>, Option<u32>), ContentError> {
    let Some(ordinal) = before.unwrap_or(u32::MAX).checked_sub(1) else { return Ok((Vec::new(), None)) };
    let mut limit = limit + 1;
    loop {
        let mut rows = content.messages(log, MessageRange::Newest { ordinal, limit })?;
        let is_start = rows.len() < limit;
        let Some(first) = rows.first().map(|row| row.ordinal) else { return Ok((rows, None)) };
        // The oldest turn of the page may have lost its beginning.
        let whole = if is_start { Some(0) } else { rows.iter().position(|row| row.ordinal != first) };
        let from = match whole {
            Some(from) => from,
            None if limit < TURN_MESSAGES_MAX => {
                limit *= 4;
                continue;
            }
            None => 0,
        };
        let from = within_bytes(&rows, from);
        rows.drain(..from);
        let next = rows.first().map(|row| row.ordinal).filter(|_| !is_start || from > 0);
        return Ok((rows, next));
    }
}

/// The first row at or after `from` that begins a turn, so that it and all that follow have at most [`PAGE_BYTES_MAX`];
/// the newest turn stays in any case.
fn within_bytes(rows: &[MessageRow], from: usize) -> usize {
    let (mut bytes, mut kept) = (0, rows.len());
    for at in (from..rows.len()).rev() {
        bytes += rows[at].record.blocks.iter().map(bytes_of).sum::<usize>();
        if bytes > PAGE_BYTES_MAX && kept < rows.len() {
            return kept;
        }
        let begins = at == from || rows[at - 1].ordinal != rows[at].ordinal;
        if begins {
            kept = at;
        }
    }
    kept
}

/// What a block weighs on the wire.
fn bytes_of(block: &Block) -> usize {
    match block {
        Block::Text { text } => text.len(),
        Block::ToolCall(call) => call.input.len(),
        Block::ToolResult { content, .. } => content.len().min(RESULT_BYTES_MAX),
        Block::Reasoning(thought) => thought.text.len(),
        Block::Image { .. } => 0,
    }
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
mod tests {
    use super::*;
    use agentsvc_components::session::message_record::MessageRecord;
    use agentsvc_components::{Timestamp, TurnId};

    /// A log of turns with so many rows each; only what the page reads.
    struct Log(Vec<MessageRow>);

    impl Log {
        fn of(turns: &[usize], bytes: usize) -> Self {
            let row = |ordinal: usize, index: usize| MessageRow {
                ordinal: ordinal as u32,
                index: index as u32,
                record: MessageRecord {
                    turn: TurnId(Uuid::from_u128(ordinal as u128)),
                    role: if index == 0 { Role::User } else { Role::Assistant },
                    blocks: vec![Block::Text { text: "x".repeat(bytes) }],
                    created_at: Timestamp::default(),
                    usage: None,
                    model: None,
                    stopped: false,
                },
            };
            let rows = turns.iter().enumerate();
            Self(rows.flat_map(|(ordinal, rows)| (0..*rows).map(move |index| row(ordinal, index))).collect())
        }

        /// The sizes of the turns of each page, from the newest page back.
        fn pages(&self, limit: usize) -> Vec<Vec<(u32, usize)>> {
            let (mut pages, mut cursor) = (Vec::new(), None);
            loop {
                let (rows, next) = page(self, LogId(1), cursor, limit).unwrap();
                let mut turns: Vec<(u32, usize)> = Vec::new();
                for row in rows {
                    match turns.last_mut() {
                        Some((ordinal, count)) if *ordinal == row.ordinal => *count += 1,
                        _ => turns.push((row.ordinal, 1)),
                    }
                }
                pages.push(turns);
                cursor = next;
                if cursor.is_none() {
                    return pages;
                }
            }
        }
    }

    impl Content for Log {
        fn messages(&self, _: LogId, range: MessageRange) -> Result<Vec<MessageRow>, ContentError> {
            let MessageRange::Newest { ordinal, limit } = range else { unreachable!("only the newest are read") };
            let rows: Vec<_> = self.0.iter().filter(|row| row.ordinal <= ordinal).cloned().collect();
            Ok(rows[rows.len().saturating_sub(limit)..].to_vec())
        }

        fn result(&self, _: LogId, _: u32, _: u32) -> Result<Option<String>, ContentError> {
            Ok(None)
        }

        fn summary(
            &self,
            _: LogId,
            _: u32,
        ) -> Result<Option<agentsvc_components::compaction::record::SummaryRecord>, ContentError> {
            Ok(None)
        }

        fn summaries(
            &self,
            _: LogId,
        ) -> Result<Vec<agentsvc_components::compaction::record::SummaryRecord>, ContentError> {
            Ok(Vec::new())
        }
    }

    #[test]
    fn pages_have_whole_turns_and_lose_none() {
        assert_eq!(Log::of(&[2, 3, 2], 1).pages(5), [vec![(1, 3), (2, 2)], vec![(0, 2)]]);
        assert_eq!(Log::of(&[2, 3, 2], 1).pages(100), [vec![(0, 2), (1, 3), (2, 2)]]);
        assert_eq!(Log::of(&[2, 2], 1).pages(3), [vec![(1, 2)], vec![(0, 2)]]);
        // A turn that is longer than the page stands whole on it.
        assert_eq!(Log::of(&[2, 30, 2], 1).pages(4), [vec![(2, 2)], vec![(0, 2), (1, 30)]]);
        assert_eq!(Log::of(&[], 1).pages(4), [vec![]]);
    }

    #[test]
    fn a_page_is_bounded_in_bytes() {
        let half = PAGE_BYTES_MAX / 2;
        assert_eq!(Log::of(&[1, 1, 1], half).pages(100), [vec![(1, 1), (2, 1)], vec![(0, 1)]]);
        assert_eq!(Log::of(&[1, 1], PAGE_BYTES_MAX + 1).pages(100), [vec![(1, 1)], vec![(0, 1)]]);
    }

    #[test]
    fn arguments_are_json_or_a_string() {
        assert_eq!(input("{\"a\": 1}").get(), "{\"a\": 1}");
        assert_eq!(input(" ").get(), "{}");
        assert_eq!(input("{a").get(), "\"{a\"");
    }
}
