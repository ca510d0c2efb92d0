//! `/stop`: the current run is cancelled.

use agentsvc_systems::session::GetSession;
use agentsvc_systems::turn::StopTurns;

use super::{Chat, Command, Outcome};
use crate::http::error::Error;

pub(super) const COMMAND: Command = Command {
    name: "stop",
    argument: "",
    summary: "stop the response",
    is_slow: false,
    run: |chat, _| Box::pin(stop(chat)),
};

/// Stops the turns that this chat waits for; without any, that of the agent's current session.
async fn stop(chat: Chat) -> Result<Outcome, Error> {
    let (bridge, agent) = (&chat.api.bridge, chat.agent);
    let mut sessions = chat.sessions;
    if sessions.is_empty() {
        sessions.push(bridge.ask(GetSession::Current(agent)).await?.id);
    }
    let mut stopped = 0;
    for session in sessions {
        stopped += bridge.ask(StopTurns { agent, session: Some(session) }).await?;
    }
    let text = match stopped {
        0 => "No turn was running.".to_owned(),
        1 => "The running turn was stopped.".to_owned(),
        many => format!("{many} running turns were stopped."),
    };
    Ok(text.into())
}
