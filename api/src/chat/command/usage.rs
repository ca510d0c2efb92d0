//! `/usage`: tokens and their cost so far.

use crate::http::blocking::spawn_blocking;
use agentsvc_components::LogId;
use agentsvc_components::session::message::Usage;
use agentsvc_systems::agent::GetAgent;
use agentsvc_systems::session::GetSession;

use super::{Chat, Command, Outcome};
use crate::http::error::{ContentError, Error};
use crate::session::content::{Content, MessageRange};

pub(super) const COMMAND: Command = Command {
    name: "usage",
    argument: "",
    summary: "show the tokens and cost of this session and this agent",
    is_slow: false,
    run: |chat, _| Box::pin(usage(chat)),
};

/// Rows of a session that are counted, from the oldest on.
const ROWS_MAX: usize = 20_000;

/// Rows read at once.
const PAGE_ROWS: usize = 1_000;

async fn usage(chat: Chat) -> Result<Outcome, Error> {
    let agent = chat.api.bridge.ask(GetAgent(chat.agent)).await?;
    let session = match chat.sessions.first() {
        Some(session) => GetSession::Of(chat.agent, *session),
        None => GetSession::Current(chat.agent),
    };
    let session = chat.api.bridge.ask(session).await?;
    let content = chat.api.service::<dyn Content>()?;
    let count = spawn_blocking(move || count(&*content, session.log)).await;
    let (used, whole) = count.map_err(|_| Error::internal("the session could not be read"))??;
    let more = if whole { "" } else { " or more" };
    Ok(format!(
        "Session {}: {} input and {} output tokens{more}, {} messages, {} USD. Agent {}: {} input and {} output tokens, \
         {} USD.",
        session.id,
        used.input_tokens,
        used.output_tokens,
        session.message_count,
        used.cost,
        agent.name,
        agent.input_tokens,
        agent.output_tokens,
        agent.cost,
    )
    .into())
}

/// The tokens of a log; false when it was too long to be read whole.
fn count(content: &dyn Content, log: LogId) -> Result<(Usage, bool), ContentError> {
    let mut used = Usage::default();
    let mut after = None;
    for _ in 0..ROWS_MAX / PAGE_ROWS {
        let rows = content.messages(log, MessageRange::After { after, limit: PAGE_ROWS })?;
        for usage in rows.iter().filter_map(|row| row.record.usage) {
            used = used.plus(usage);
        }
        match rows.last() {
            Some(last) if rows.len() == PAGE_ROWS => after = Some((last.ordinal, last.index)),
            _ => return Ok((used, true)),
        }
    }
    Ok((used, false))
}
