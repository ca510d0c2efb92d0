//! `cron_create`: the agent makes a cron job for itself.

use agentsvc_components::schedule::ScheduleKind;
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::schedule::told::{Wanted, create};
use crate::tool::{Context, Ended, Tool, input};

/// The table row.
pub(crate) const TOOL: Tool = Tool::new::<Input>(
    "cron_create",
    "Makes a named cron job that wakes you with a prompt whenever its expression says, such as `0 9 * * MON` or \
        `@daily`, read in UTC unless `timezone` says otherwise; `every 15m`, `in 2h` and `at <moment>` work too.",
    run,
);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// A name for it.
    name: String,
    /// When: a cron expression of 5 or 6 fields, `@daily` and the like, `every 15m`, `in 2h` or `at 2026-12-01T09:00Z`.
    schedule: String,
    /// What you are told then.
    prompt: String,
    /// The IANA time zone of the expression, such as Europe/Berlin; UTC when left out.
    timezone: Option<String>,
}

fn run(context: Context, text: String) -> BoxFuture<'static, Result<Ended, String>> {
    Box::pin(async move {
        let Input { name, schedule: rule, prompt, timezone } = input(&text)?;
        let wanted = Wanted { kind: ScheduleKind::Cron, name: Some(name), rule, prompt, timezone };
        create(&context, wanted).await.map(Ended::Text)
    })
}
