//! `schedule_list`: the agent's own schedules, page by page.

use agentsvc_components::schedule::ScheduleKind;
use futures_util::future::BoxFuture;

use crate::schedule::told::{ListInput, list};
use crate::tool::{Context, Ended, Tool, input};

/// The table row.
pub(crate) const TOOL: Tool = Tool::new::<ListInput>(
    "schedule_list",
    "Lists your own schedules, oldest first: id, rule, prompt, next and last run. Long lists come in pages.",
    run,
)
.safe();

fn run(context: Context, text: String) -> BoxFuture<'static, Result<Ended, String>> {
    Box::pin(async move { list(&context, ScheduleKind::Schedule, input(&text)?).await.map(Ended::Text) })
}
