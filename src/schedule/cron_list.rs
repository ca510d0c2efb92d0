//! `cron_list`: the agent's own cron jobs, page by page.

use agentsvc_components::schedule::ScheduleKind;
use futures_util::future::BoxFuture;

use crate::schedule::told::{ListInput, list};
use crate::tool::{Context, Ended, Tool, input};

/// The table row.
pub(crate) const TOOL: Tool = Tool::new::<ListInput>(
    "cron_list",
    "Lists your own cron jobs, oldest first: id, name, rule, prompt, next and last run. Long lists come in pages.",
    run,
)
.safe();

fn run(context: Context, text: String) -> BoxFuture<'static, Result<Ended, String>> {
    Box::pin(async move { list(&context, ScheduleKind::Cron, input(&text)?).await.map(Ended::Text) })
}
