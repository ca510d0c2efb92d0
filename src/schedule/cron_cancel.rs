//! `cron_cancel`: deletes one of the agent's own cron jobs.

use agentsvc_components::schedule::ScheduleKind;
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use uuid::Uuid;

use crate::schedule::told::remove;
use crate::tool::{Context, Ended, Tool, input};

/// The table row.
pub(crate) const TOOL: Tool =
    Tool::new::<Input>("cron_cancel", "Deletes one of your own cron jobs. A turn that it began goes on.", run);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The cron job's id.
    id: Uuid,
}

fn run(context: Context, text: String) -> BoxFuture<'static, Result<Ended, String>> {
    Box::pin(async move {
        let Input { id } = input(&text)?;
        remove(&context, ScheduleKind::Cron, id).await.map(Ended::Text)
    })
}
