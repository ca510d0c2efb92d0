//! `a2a_status`: a task that the agent sent to an external agent.

use agentsvc_components::a2a::outbound::A2aSentId;
use agentsvc_systems::a2a::outbound::A2aSentView;
use agentsvc_systems::kernel::entities::Get;
use schemars::JsonSchema;
use serde::Deserialize;
use uuid::Uuid;

use super::shown;
use crate::tool::toolset::{Context, Ended, Need, Tool, on_input};

/// The table row.
pub(super) const TOOL: Tool = Tool::new::<Input>(
    "a2a_status",
    "Tells where a task is that you sent with a2a_send, and its answer.",
    |context, text| on_input(context, text, run),
)
.safe()
.needs(Need::Network)
.anywhere()
.order(39);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The task's id.
    task_id: Uuid,
}

async fn run(context: Context, Input { task_id }: Input) -> Result<Ended, String> {
    let view = context.ask(Get::<A2aSentView>(A2aSentId(task_id))).await?;
    if view.task.from != context.agent() {
        return Err(format!("Refused: sent A2A task not found: {task_id}."));
    }
    Ok(Ended::Text(shown(&view)))
}
