//! `/compact`: older messages are replaced by a summary that a model writes.

use agentsvc_systems::compaction::CompactSession;

use super::{Chat, Command, Outcome};
use crate::http::error::Error;

pub(super) const COMMAND: Command = Command {
    name: "compact",
    argument: "",
    summary: "replace older messages of the session with a summary",
    is_slow: true,
    run: |chat, _| Box::pin(compact(chat)),
};

/// Compacts the session in which this chat waits for an answer; without one, the agent's current session.
async fn compact(chat: Chat) -> Result<Outcome, Error> {
    let session = chat.sessions.first().copied();
    let done = chat.api.bridge.ask(CompactSession { agent: chat.agent, session }).await?;
    Ok(done.sentence().into())
}
