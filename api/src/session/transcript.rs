//! A session with its messages, in bounded memory: the messages are read in chunks while the body is sent
//! (spec 1, Session).

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::http::blocking::spawn_blocking;
use agentsvc_components::session::message::{Block, Role};
use agentsvc_components::session::message_record::MessageRecord;
use agentsvc_components::{FileId, LogId};
use agentsvc_systems::kernel::stored::AwaitStored;
use agentsvc_systems::prompt::{MESSAGE_TOKENS, SEPARATOR, summary_text, text_tokens};
use agentsvc_systems::session::{GetSession, SessionView};
use bytes::Bytes;
use futures_util::stream;
use hyper::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Api;
use crate::http::error::{ContentError, Error};
use crate::http::reply::{BrokenOff, Response};
use crate::http::{lists, reply};
use crate::session::content::{Content, MessageRange};
use crate::session::shape::SessionShape;
use crate::upload::files::Files;

/// Rows that are read at first.
pub(crate) const FIRST_ROWS: usize = 16;
/// Rows that are read at once later.
pub(crate) const ROWS_MAX: usize = 512;
/// Bytes that a chunk should have; one long message may be more.
pub(crate) const CHUNK_BYTES: usize = 256 << 10;
/// Bytes that a chunk takes while it is made: one long message, its copy and its JSON.
pub(crate) const CHUNK_MEMORY: usize = 8 << 20;

/// Options of the message list.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct TranscriptQuery {
    /// Maximum number of messages. `next_cursor` of the response leads to the next page. Default: all.
    limit: Option<usize>,
    /// `next_cursor` of the previous page.
    cursor: Option<String>,
}

/// A session with its messages. Documents the body that [`respond`] writes piece by piece.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) struct Transcript {
    #[serde(flatten)]
    session: SessionShape<'static>,
    /// A compacted session starts with the summary, a `User` message that begins with `[Summary of the earlier
    /// conversation]`, followed by the kept messages.
    messages: Vec<Said<'static>>,
    /// The estimated tokens of the messages shown: 4 and a quarter of its bytes for each.
    context_window_tokens: u64,
    /// Cursor of the next messages if `limit` truncated the list.
    next_cursor: Option<String>,
}

/// One message as it is shown.
#[derive(Serialize, JsonSchema)]
struct Said<'a> {
    /// `User` or `Assistant`.
    role: &'static str,
    content: &'a str,
}

/// The place of a row in a log, as a cursor.
#[derive(Clone, Copy)]
pub(crate) struct Place(pub(crate) u32, pub(crate) u32);

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

impl FromStr for Place {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (ordinal, index) = text.split_once('.').ok_or(())?;
        Ok(Self(ordinal.parse().map_err(drop)?, index.parse().map_err(drop)?))
    }
}

/// What a person sees of a row: the text of messages and answers, and a mark for each image, which `name_of` names;
/// `None` for tool calls and results.
pub(crate) fn shown(record: &MessageRecord, name_of: impl Fn(FileId) -> Option<String>) -> Option<(Role, String)> {
    if record.role == Role::Tool {
        return None;
    }
    let mut shown = String::new();
    for block in &record.blocks {
        let mark;
        let text = match block {
            Block::Text { text } => text,
            Block::Image { file, .. } => {
                mark = name_of(*file).map_or_else(|| "[image]".to_owned(), |name| format!("[image: {name}]"));
                &mark
            }
            Block::ToolCall(_) | Block::ToolResult { .. } | Block::Reasoning(_) => continue,
        };
        if !shown.is_empty() && !text.is_empty() && record.role == Role::User {
            shown.push_str(SEPARATOR);
        }
        shown.push_str(text);
    }
    (!shown.is_empty()).then_some((record.role, shown))
}

/// Answers with `session` and its messages.
///
/// # Errors
/// 400 naming `limit` or `cursor`; 500 when the first messages cannot be read. A later failure breaks the body off.
pub(crate) async fn respond(api: &Api, session: &SessionView, query: TranscriptQuery) -> Result<Response, Error> {
    let limit = lists::limit(query.limit)?;
    let after = lists::cursor(query.cursor.as_deref())?;
    // The summary stands before the first page; a cursor is always behind it.
    let (session, summary) = match after {
        None => summarised(api, session).await?,
        Some(_) => (session.clone(), None),
    };
    let mut head = serde_json::to_vec(&SessionShape::of(&session))
        .map_err(|error| Error::internal(format!("the session cannot be written: {error}")))?;
    // The object is left open for what follows.
    head.pop();
    head.extend_from_slice(b",\"messages\":[");
    let (content, files) = (api.service::<dyn Content>()?, api.service::<dyn Files>()?);
    let kept_from = session.compacted.checked_sub(1).map(|upto| Place(upto, u32::MAX));
    let (after, log, rows) = (after.or(kept_from), session.log, FIRST_ROWS);
    let writer = Writer { content, files, log, summary, after, left: limit, rows, tokens: 0, first: true };
    let (body, rest) = chunk(writer, head).await?;
    let Some(rest) = rest else { return Ok(reply::bytes(StatusCode::OK, reply::JSON, body)) };
    let pieces =
        stream::try_unfold((Some(body), Some(rest)), async |(ready, rest): (Option<Vec<u8>>, Option<Writer>)| {
            if let Some(body) = ready {
                return Ok(Some((Bytes::from(body), (None, rest))));
            }
            let Some(writer) = rest else { return Ok(None) };
            let (body, rest) = chunk(writer, Vec::new()).await.map_err(|error| {
                tracing::warn!(%error, "reading a session's messages was interrupted");
                BrokenOff(error.message().to_owned())
            })?;
            Ok(Some((Bytes::from(body), (None, rest))))
        });
    Ok(reply::stream(StatusCode::OK, reply::JSON, Box::pin(pieces)))
}

/// The text of a compacted session's summary, and the session that it belongs to. The world may know of a summary that
/// is on its way to the disk still, or of another one by now: then what is stored is waited for, and looked at again.
async fn summarised(api: &Api, session: &SessionView) -> Result<(SessionView, Option<String>), Error> {
    let found = summary(api, session).await?;
    if found.is_some() || session.compacted == 0 {
        return Ok((session.clone(), found));
    }
    let session = api.bridge.ask(GetSession::ById(session.id)).await?;
    api.bridge.ask(AwaitStored).await?;
    let found = summary(api, &session).await?;
    Ok((session, found))
}

async fn summary(api: &Api, session: &SessionView) -> Result<Option<String>, Error> {
    let (content, log, upto) = (api.service::<dyn Content>()?, session.log, session.compacted);
    if upto == 0 {
        return Ok(None);
    }
    let read = spawn_blocking(move || content.summary(log, upto));
    let found = read.await.map_err(|_| Error::internal("reading the summary was interrupted"))??;
    Ok(found.map(|summary| summary.text))
}

/// Writes the next chunk behind `body`; gives the writer back unless that was the end.
async fn chunk(mut writer: Writer, mut body: Vec<u8>) -> Result<(Vec<u8>, Option<Writer>), Error> {
    let read = spawn_blocking(move || {
        let end = writer.write(&mut body)?;
        Ok::<_, ContentError>((body, (!end).then_some(writer)))
    });
    let read = read.await.map_err(|_| Error::internal("reading the messages was interrupted"))?;
    Ok(read?)
}

/// The array of messages on its way out.
struct Writer {
    content: Arc<dyn Content>,
    /// Where the names of images are.
    files: Arc<dyn Files>,
    log: LogId,
    /// The summary of what stands before the messages, until it is written.
    summary: Option<String>,
    /// The last row that was read.
    after: Option<Place>,
    /// Messages that may still be shown; `None` without a limit.
    left: Option<usize>,
    /// Rows that are read at once.
    rows: usize,
    /// Estimated tokens of the messages so far.
    tokens: u64,
    /// No message was written yet.
    first: bool,
}

impl Writer {
    /// Writes one chunk, and the end of the object after the last. True when that was the end.
    fn write(&mut self, body: &mut Vec<u8>) -> Result<bool, ContentError> {
        if let Some(summary) = self.summary.take() {
            self.say(body, Role::User, &summary_text(&summary))?;
        }
        let start = body.len();
        let is_filled = |body: &Vec<u8>| body.len() - start >= CHUNK_BYTES;
        loop {
            let after = self.after.map(|Place(ordinal, index)| (ordinal, index));
            let range = MessageRange::Chunk { after, limit: self.rows, bytes: CHUNK_BYTES };
            let rows = self.content.messages(self.log, range)?;
            if rows.is_empty() {
                self.close(body, None);
                return Ok(true);
            }
            self.rows = ROWS_MAX;
            for row in rows {
                if self.left == Some(0) {
                    self.close(body, self.after);
                    return Ok(true);
                }
                self.after = Some(Place(row.ordinal, row.index));
                if let Some((role, text)) = shown(&row.record, |file| Some(self.files.upload(file).ok()?.filename)) {
                    self.say(body, role, &text)?;
                }
                if is_filled(body) {
                    return Ok(false);
                }
            }
        }
    }

    fn say(&mut self, body: &mut Vec<u8>, role: Role, content: &str) -> Result<(), ContentError> {
        if !std::mem::replace(&mut self.first, false) {
            body.push(b',');
        }
        serde_json::to_writer(&mut *body, &Said { role: role.as_str(), content })
            .map_err(|error| ContentError::Failed(error.to_string()))?;
        self.tokens += MESSAGE_TOKENS + text_tokens(content.len());
        self.left = self.left.map(|left| left - 1);
        Ok(())
    }

    fn close(&self, body: &mut Vec<u8>, next: Option<Place>) {
        let next = next.map_or(Value::Null, |place| place.to_string().into());
        let end = format!("],\"context_window_tokens\":{},\"next_cursor\":{next}}}", self.tokens);
        body.extend_from_slice(end.as_bytes());
    }
}
