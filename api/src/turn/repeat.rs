//! What a message can answer again: the turns that answer the last message of its session.

use agentsvc_components::kernel::limit::TURN_VARIANTS_MAX;
use agentsvc_components::{AgentId, LogId, SessionId, TurnId};
use agentsvc_systems::session::GetSession;
use agentsvc_systems::turn::{Repeated, ResolveSession};
use hyper::StatusCode;

use crate::http::blocking::spawn_blocking;
use crate::http::call::Call;
use crate::http::error::{ContentError, Error};
use crate::session::content::{Content, MessageRange};

/// The turns that a message of `agent` answers again, and the session that they are in. `turn` is one of them: those at the end of the
/// session.
///
/// # Errors
/// 400 naming `repeats` when it is none of those, or they are too many; those of resolving the session.
pub(crate) async fn repeated(
    call: &Call,
    agent: AgentId,
    session: Option<SessionId>,
    turn: TurnId,
) -> Result<(SessionId, Repeated), Error> {
    let session = call.ask(ResolveSession { agent, session }).await?;
    let view = match call.ask(GetSession::ById(session)).await {
        Err(error) if error.status() == StatusCode::NOT_FOUND => return Err(unknown(turn)),
        found => found?,
    };
    let (content, log, turns) = (call.api.service::<dyn Content>()?, view.log, view.ended_turns + view.queued);
    let read = spawn_blocking(move || last_turns(&*content, log, turns)).await;
    let found = read.map_err(|_| Error::internal("reading the messages was interrupted"))??;
    let (Some(&first), true) = (found.last(), found.contains(&turn)) else { return Err(unknown(turn)) };
    if found.len() >= TURN_VARIANTS_MAX {
        let text =
            format!("the message already has {TURN_VARIANTS_MAX} responses, the maximum; send it as a new message");
        return Err(Error::bad_field("repeats", text));
    }
    Ok((session, Repeated { first, last: turns.saturating_sub(1), log }))
}

fn unknown(turn: TurnId) -> Error {
    let text = format!(
        "turn {turn} does not answer the last message of the session; only that message can be answered again: branch the session \
         before an earlier one"
    );
    Error::bad_field("repeats", text)
}

/// The turns that answer the last message of a log of so many turns, the newest first.
fn last_turns(content: &dyn Content, log: LogId, turns: u32) -> Result<Vec<TurnId>, ContentError> {
    let mut found = Vec::new();
    for ordinal in (0..turns).rev().take(TURN_VARIANTS_MAX) {
        let after = ordinal.checked_sub(1).map(|before| (before, u32::MAX));
        let rows = content.messages(log, MessageRange::After { after, limit: 1 })?;
        let Some(row) = rows.into_iter().next().filter(|row| row.ordinal == ordinal) else { break };
        found.push(row.record.turn);
        if row.record.repeats.is_none() {
            break;
        }
    }
    Ok(found)
}
