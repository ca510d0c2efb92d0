//! `agent_send`: asks another agent, and waits for its answer unless told not to.

use agentsvc_api::http::cpu::Asker;
use agentsvc_api::injection::shielded;
use agentsvc_components::{RefusalKind, SessionId};
use agentsvc_systems::injection::Shielded;
use agentsvc_systems::turn::SendToAgent;
use schemars::JsonSchema;
use serde::Deserialize;
use uuid::Uuid;

use crate::tool::remote::{Remote, RemoteEnd, RemoteMessage};
use crate::tool::toolset::{Context, Ended, Tool, on_input};

/// The table row. Safe to repeat: the world takes the message and settles the call in one step, so that a call without
/// a result has sent nothing. Its time is bounded by the other agent's turn. A message to another node is not repeated.
pub(crate) const TOOL: Tool = Tool::new::<Input>(
    "agent_send",
    "Sends a message to another agent and returns its answer. With `async` true it does not wait and returns a task \
     id instead. The message goes to the other agent's current session unless `session_id` says otherwise.",
    |context, text| on_input(context, text, run),
)
.safe()
.untimed()
.in_turn()
.order(5);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The other agent's name or id; of an agent of another node `name@node`.
    agent: String,
    /// The message.
    message: String,
    /// A session of the other agent; a new id starts a new session.
    session_id: Option<Uuid>,
    /// Do not wait for the answer.
    #[serde(default, rename = "async")]
    is_async: bool,
}

async fn run(context: Context, Input { agent, message, session_id, is_async }: Input) -> Result<Ended, String> {
    let (from, index) = (context.run.attempt, context.run.index);
    let session = session_id.map(SessionId);
    // The other agent reads it as data when it looks like orders: this one may have been told to write it.
    let policy = context.parts.injection;
    let asker = Asker::agent(context.run.holder);
    let shielded = shielded(asker, policy, "another agent", message).await;
    let Shielded { text, found } = shielded.map_err(|_| "The message could not be scanned.")?;
    let send = SendToAgent { from, index, to: agent.clone(), session, text: text.clone(), wait: !is_async, found };
    match context.bridge().ask(send).await {
        Ok(_) => Ok(Ended::Adopted),
        // An agent of this node comes before those of others, also one with an `@` in its name.
        Err(refusal) if refusal.kind == RefusalKind::NotFound && agent.contains('@') => {
            remote(&context, agent, text, is_async).await
        }
        Err(refusal) if refusal.kind == RefusalKind::NotFound && session.is_none() => {
            let sent = remote(&context, agent, text, is_async).await;
            Ok(sent.unwrap_or_else(|_| Ended::own_failure(format!("Refused: {}.", refusal.message))))
        }
        // It names the agent that was asked for, and nobody else.
        Err(refusal) if refusal.kind == RefusalKind::NotFound => {
            Ok(Ended::own_failure(format!("Refused: {}.", refusal.message)))
        }
        Err(refusal) => Err(format!("Refused: {}.", refusal.message)),
    }
}

/// Sends a message to an agent of another node. A call that ran when the daemon ended may have sent it, and is not repeated.
async fn remote(context: &Context, to: String, text: String, is_async: bool) -> Result<Ended, String> {
    let remote = context.parts.settings.get::<Remote>().0.clone();
    let remote = remote.ok_or("Refused: this node has no network of other nodes.")?;
    if context.run.runs_before > 0 {
        let text = "the daemon was restarted while the message was sent".to_owned();
        return Ok(RemoteEnd::Unknown(text).into());
    }
    let sender = context.run.agent_name.to_string();
    Ok(remote.send(RemoteMessage { to, text, sender, wait: !is_async }).await.into())
}
