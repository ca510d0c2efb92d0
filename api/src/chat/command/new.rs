//! `/new`: a fresh session becomes the current one; the old one is kept.

use agentsvc_systems::session::{CreateSession, GetSession, SwitchSession};

use super::{Chat, Command, Outcome};
use crate::http::error::Error;

pub(super) const COMMAND: Command = Command {
    name: "new",
    argument: "[label]",
    summary: "start a new session; the current one is kept",
    is_slow: false,
    run: |chat, label| Box::pin(new(chat, label)),
};

async fn new(chat: Chat, label: String) -> Result<Outcome, Error> {
    let (bridge, agent) = (&chat.api.bridge, chat.agent);
    let old = bridge.ask(GetSession::Current(agent)).await?.id;
    let label = (!label.is_empty()).then_some(label);
    let session = bridge.ask(CreateSession { agent, label }).await?;
    bridge.ask(SwitchSession { agent, session }).await?;
    let back = format!("POST /api/agents/{agent}/sessions/{old}/switch");
    Ok(format!("Started session {session}. Session {old} is kept; use {back} to return to it.").into())
}
