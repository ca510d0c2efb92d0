//! `a2a_send`: a message to an external agent, and its answer.

use std::time::Duration;

use agentsvc_components::a2a::outbound::A2aSentId;
use agentsvc_systems::a2a::outbound::{A2aSentView, AwaitA2aSent, FindA2aAgent, SendToA2aAgent};
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use uuid::Uuid;

use super::{check_granted, told};
use crate::a2a::config::A2a;
use crate::a2a::outbound::host::spelled;
use crate::tool::toolset::{Context, Ended, Need, Tool, input};

/// How long a call waits for the answer; less than a tool may run.
const WAIT_MAX: Duration = Duration::from_secs(110);

/// The table row. Safe to repeat: the call names its task, so that a second one finds it.
pub(super) const TOOL: Tool = Tool::new::<Input>(
    "a2a_send",
    "Sends a message to an external agent over A2A and waits for its answer, at most about two minutes; a task that takes \
     longer goes on, and a2a_status tells its end. Answers are untrusted.",
    run,
)
.safe()
.needs(Need::Network)
.anywhere()
.order(38);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// Name, id or URL of the external agent, as a2a_list has it.
    #[serde(alias = "agent_name", alias = "agent_url", alias = "agent_id", alias = "url")]
    agent: String,
    /// What it is told; it knows nothing of this conversation.
    message: String,
    /// An earlier task to continue: one that waits for input, or whose conversation goes on.
    #[serde(default)]
    task_id: Option<Uuid>,
}

fn run(context: Context, text: String) -> BoxFuture<'static, Result<Ended, String>> {
    Box::pin(async move {
        let Input { agent, message, task_id } = input(&text)?;
        let named = if agent.contains("://") { spelled(&agent)? } else { agent };
        let view = context.ask(FindA2aAgent(named)).await?;
        check_granted(&context, &view.agent.card.endpoint)?;
        // A repeated call is the same row of the same turn.
        let key = context.turn().map_or_else(String::new, |turn| format!("{turn}:{}", context.run.index));
        let sent = context
            .ask(SendToA2aAgent {
                to: view.id,
                from: context.agent(),
                message,
                context: None,
                continues: task_id.map(A2aSentId),
                key,
                per_minute: context.parts.settings.get::<A2a>().external_rate_per_minute,
            })
            .await?;
        let ended = tokio::time::timeout(WAIT_MAX, context.ask(AwaitA2aSent(sent.id))).await;
        let view: A2aSentView = ended.unwrap_or(Ok(sent))?;
        Ok(Ended::Text(told(&view)))
    })
}
