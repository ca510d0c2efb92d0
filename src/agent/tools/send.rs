//! `agent_send`: asks another agent, and waits for its answer unless told not to.

use agentsvc_components::SessionId;
use agentsvc_systems::injection::{Shielded, shield};
use agentsvc_systems::turn::SendToAgent;
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use uuid::Uuid;

use crate::tool::toolset::{Context, Ended, Tool, input};

/// The table row. Safe to repeat: the world takes the message and settles the call in one step, so that a call without
/// a result has sent nothing. Its time is bounded by the other agent's turn.
pub(crate) const TOOL: Tool = Tool::new::<Input>(
    "agent_send",
    "Sends a message to another agent and returns its answer. With `async` true it does not wait and returns a task \
     id instead. The message goes to the other agent's current session unless `session_id` says otherwise.",
    run,
)
.safe()
.untimed()
.in_turn()
.order(5);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The other agent's name or id.
    agent: String,
    /// The message.
    message: String,
    /// A session of the other agent; a new id starts a new session.
    session_id: Option<Uuid>,
    /// Do not wait for the answer.
    #[serde(default, rename = "async")]
    is_async: bool,
}

fn run(context: Context, text: String) -> BoxFuture<'static, Result<Ended, String>> {
    Box::pin(async move {
        let Input { agent, message, session_id, is_async } = input(&text)?;
        let (from, index) = (context.run.attempt, context.run.index);
        let session = session_id.map(SessionId);
        // The other agent reads it as data when it looks like orders: this one may have been told to write it.
        let policy = context.parts.injection;
        let shielded = tokio::task::spawn_blocking(move || shield(policy, "another agent", message)).await;
        let Shielded { text, found } = shielded.map_err(|_| "The message could not be scanned.")?;
        let send = SendToAgent { from, index, to: agent, session, text, wait: !is_async, found };
        context.ask(send).await?;
        Ok(Ended::Adopted)
    })
}
