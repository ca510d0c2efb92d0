//! A conversation goes on from an earlier place in a session of its own.

use agentsvc_components::kernel::limit::{IMPORTED_BYTES_MAX, IMPORTED_MESSAGES_MAX};
use agentsvc_components::{LogId, SessionId};
use agentsvc_systems::session::{BranchSession, GetSession, ImportedMessage, block_bytes};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::http::blocking::spawn_blocking;
use crate::http::call::Call;
use crate::http::error::Error;
use crate::http::reply::{self, Response};
use crate::http::route::{Reach, Reply, Route};
use crate::session::content::{Content, MessageRange, MessageRow, in_force};

/// Messages that are read at once, and about how many bytes of them.
const PIECE_MESSAGES: usize = 256;
const PIECE_BYTES: usize = 1 << 20;
/// Bytes of copied messages for each of which a branch costs one more unit of the client's rate budget: they are written anew.
const UNIT_BYTES: usize = 8 << 10;
/// Bytes that a request takes: what is read of the store, the messages, and the command as it is logged.
const MEMORY: usize = 3 * IMPORTED_BYTES_MAX;

pub(crate) const ROUTES: &[Route] =
    &[Route::post("/api/sessions/{id}/branch", "Branch a session", |call| Box::pin(branch(call)))
        .reaching(Reach::Filtered)
        .answer_max(MEMORY)
        .body::<BranchBody>()
        .replies(&[
            Reply::json::<Branched>(201, "created, with a copy of the turns; the session stays as it is"),
            Reply::error(409, "the label is already taken, or the history was cleared in the meantime"),
            Reply::error(429, "the sessions of the agent, its family or its user take as much as they may"),
        ])];

/// Where to branch.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct BranchBody {
    /// Number of turns to copy, from the start of the session; 0 for none. Default: all that have ended. Of turns that answer the same
    /// message only the newest one with a response is copied.
    turns: Option<u32>,
    /// Label of the new session, unique within the agent.
    label: Option<String>,
}

/// The session was branched.
#[derive(Serialize, JsonSchema)]
struct Branched {
    /// The new session.
    session_id: Uuid,
    agent_id: Uuid,
    label: Option<String>,
    /// The original.
    branched_from: Uuid,
    /// Number of copied turns.
    turns: u32,
}

async fn branch(call: Call) -> Result<Response, Error> {
    let session: SessionId = call.id("id")?;
    let BranchBody { turns, label } = call.json_or_default()?;
    let original = call.ask(GetSession::ById(session)).await?;
    let turns = turns.unwrap_or(original.ended_turns);
    if turns > original.ended_turns {
        let text = format!("turns must be at most {}, the number of turns that have ended", original.ended_turns);
        return Err(Error::bad_field("turns", text));
    }
    let (content, log) = (call.api.service::<dyn Content>()?, original.log);
    let read = spawn_blocking(move || copied(&*content, log, turns)).await;
    let (rows, bytes) = read.map_err(|_| Error::internal("reading the messages was interrupted"))??;
    call.charge(u32::try_from(bytes / UNIT_BYTES).unwrap_or(u32::MAX))?;
    let turns = rows.chunk_by(|one, next| one.ordinal == next.ordinal).count() as u32;
    let messages = rows.into_iter().map(|MessageRow { record, .. }| {
        let (role, blocks, at, model) = (record.role, record.blocks, record.created_at, record.model);
        ImportedMessage { role, blocks, at, model }
    });
    let messages = messages.collect();
    let kept = label.as_deref().map(str::trim).filter(|label| !label.is_empty()).map(str::to_owned);
    let made = call.ask(BranchSession { session, log, label, messages }).await?;
    reply::created(&Branched {
        session_id: made.0,
        agent_id: original.agent.0,
        label: kept,
        branched_from: session.0,
        turns,
    })
}

/// The messages of the first `turns` turns without those that others repeat, and the bytes of all that were read.
fn copied(content: &dyn Content, log: LogId, turns: u32) -> Result<(Vec<MessageRow>, usize), Error> {
    let (mut messages, mut bytes, mut after) = (Vec::new(), 0, None);
    loop {
        let piece = MessageRange::Chunk { after, limit: PIECE_MESSAGES, bytes: PIECE_BYTES };
        let rows = content.messages(log, piece)?;
        let Some(last) = rows.last() else { return Ok((in_force(messages, None), bytes)) };
        after = Some((last.ordinal, last.index));
        for row in rows {
            if row.ordinal >= turns {
                return Ok((in_force(messages, None), bytes));
            }
            bytes += row.record.blocks.iter().map(block_bytes).sum::<usize>();
            messages.push(row);
            if messages.len() > IMPORTED_MESSAGES_MAX || bytes > IMPORTED_BYTES_MAX {
                let text = format!(
                    "these turns have more than {IMPORTED_MESSAGES_MAX} messages or {IMPORTED_BYTES_MAX} bytes; copy fewer"
                );
                return Err(Error::bad_field("turns", text));
            }
        }
    }
}
