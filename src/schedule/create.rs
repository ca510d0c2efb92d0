//! `schedule_create`: the agent lets itself be woken by time.

use agentsvc_components::schedule::ScheduleKind;
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::schedule::told::{Wanted, create};
use crate::tool::{Context, Ended, Tool, input};

/// The table row.
pub(crate) const TOOL: Tool = Tool::new::<Input>(
    "schedule_create",
    "Makes a schedule that wakes you by time with a prompt: once (`in 2h`, `at 2026-12-01T09:00Z`), at intervals \
        (`every 15m`), or by a cron expression (`30 9 * * MON-FRI`, read in UTC unless `timezone` says otherwise).",
    run,
);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// When: a cron expression of 5 or 6 fields, `@daily` and the like, `every 15m`, `in 2h` or `at 2026-12-01T09:00Z`.
    cron: String,
    /// What you are told then.
    prompt: String,
    /// The IANA time zone of a cron expression, such as Europe/Berlin; UTC when left out.
    timezone: Option<String>,
    /// A name for it.
    name: Option<String>,
}

fn run(context: Context, text: String) -> BoxFuture<'static, Result<Ended, String>> {
    Box::pin(async move {
        let Input { cron: rule, prompt, timezone, name } = input(&text)?;
        let wanted = Wanted { kind: ScheduleKind::Schedule, name, rule, prompt, timezone };
        create(&context, wanted).await.map(Ended::Text)
    })
}
