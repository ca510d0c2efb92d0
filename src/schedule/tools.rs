//! The tools with which an agent creates, lists and deletes its own schedules and cron jobs. The two families differ in
//! their names and in the names of their fields.

use agentsvc_components::ScheduleId;
use agentsvc_components::schedule::{MissedPolicy, OverlapPolicy, ScheduleKind};
use agentsvc_systems::kernel::page::Page;
use agentsvc_systems::schedule::{CreateSchedule, ListSchedules, NewSchedule, RemoveSchedule, ScheduleView};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::tool::toolset::{Context, Ended, Running, Tool, input};

/// Items of one page at most.
const PAGE_MAX: usize = 100;
/// Items of one page when nothing is said.
const PAGE_DEFAULT: usize = 50;

/// Creates a schedule.
pub(crate) const SCHEDULE_CREATE: Tool = Tool::new::<NewOne>(
    "schedule_create",
    "Creates a schedule that sends you a prompt: once (`in 2h`, `at 2026-12-01T09:00Z`), at intervals (`every 15m`), \
     or by a cron expression (`30 9 * * MON-FRI`, in UTC unless you set `timezone`).",
    create::<NewOne>,
)
.order(27);

/// Deletes a schedule.
pub(crate) const SCHEDULE_DELETE: Tool = Tool::new::<OldOne>(
    "schedule_delete",
    "Deletes one of your own schedules. A turn that it started continues.",
    remove::<OldOne>,
)
.order(28);

/// Lists schedules.
pub(crate) const SCHEDULE_LIST: Tool = Tool::new::<ListInput>(
    "schedule_list",
    "Lists your own schedules, oldest first: id, rule, prompt, next and last run. Long lists are paged.",
    |context, text| Box::pin(list(context, text, ScheduleKind::Schedule, "schedules")),
)
.safe()
.order(29);

/// Deletes a cron job.
pub(crate) const CRON_CANCEL: Tool = Tool::new::<OldJob>(
    "cron_cancel",
    "Deletes one of your own cron jobs. A turn that it started continues.",
    remove::<OldJob>,
)
.order(22);

/// Creates a cron job.
pub(crate) const CRON_CREATE: Tool = Tool::new::<NewJob>(
    "cron_create",
    "Creates a named cron job that sends you a prompt, by a cron expression such as `0 9 * * MON` or `@daily`, in \
     UTC unless you set `timezone`; `every 15m`, `in 2h` and `at <timestamp>` work too.",
    create::<NewJob>,
)
.order(23);

/// Lists cron jobs.
pub(crate) const CRON_LIST: Tool = Tool::new::<ListInput>(
    "cron_list",
    "Lists your own cron jobs, oldest first: id, name, rule, prompt, next and last run. Long lists are paged.",
    |context, text| Box::pin(list(context, text, ScheduleKind::Cron, "jobs")),
)
.safe()
.order(24);

/// What a tool creates, whichever family.
struct Wanted {
    kind: ScheduleKind,
    name: Option<String>,
    rule: String,
    prompt: String,
    timezone: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewOne {
    /// Rule: a cron expression of 5 or 6 fields, a macro such as `@daily`, `every 15m`, `in 2h` or `at
    /// 2026-12-01T09:00Z`.
    cron: String,
    /// Prompt to send to you.
    prompt: String,
    /// IANA time zone of a cron expression, such as Europe/Berlin. Default: UTC.
    timezone: Option<String>,
    /// Name.
    name: Option<String>,
}

impl From<NewOne> for Wanted {
    fn from(NewOne { cron: rule, prompt, timezone, name }: NewOne) -> Self {
        Self { kind: ScheduleKind::Schedule, name, rule, prompt, timezone }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewJob {
    /// Name.
    name: String,
    /// Rule: a cron expression of 5 or 6 fields, a macro such as `@daily`, `every 15m`, `in 2h` or `at
    /// 2026-12-01T09:00Z`.
    schedule: String,
    /// Prompt to send to you.
    prompt: String,
    /// IANA time zone of the expression, such as Europe/Berlin. Default: UTC.
    timezone: Option<String>,
}

impl From<NewJob> for Wanted {
    fn from(NewJob { name, schedule: rule, prompt, timezone }: NewJob) -> Self {
        Self { kind: ScheduleKind::Cron, name: Some(name), rule, prompt, timezone }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OldOne {
    /// The schedule's id.
    id: Uuid,
}

impl From<OldOne> for (ScheduleKind, Uuid) {
    fn from(OldOne { id }: OldOne) -> Self {
        (ScheduleKind::Schedule, id)
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OldJob {
    /// The cron job's id.
    id: Uuid,
}

impl From<OldJob> for (ScheduleKind, Uuid) {
    fn from(OldJob { id }: OldJob) -> Self {
        (ScheduleKind::Cron, id)
    }
}

/// Which page to list.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListInput {
    /// Maximum number, 1 to 100. Default: 50.
    limit: Option<usize>,
    /// `next` of the previous page.
    after: Option<Uuid>,
}

/// Creates one for the agent itself.
fn create<Input: DeserializeOwned + Into<Wanted>>(context: Context, text: String) -> Running {
    Box::pin(async move {
        let Wanted { kind, name, rule, prompt, timezone } = input::<Input>(&text)?.into();
        let new = NewSchedule {
            kind,
            agent: context.run.agent,
            name: name.map(Into::into),
            rule: rule.into(),
            timezone: timezone.map(Into::into),
            prompt: prompt.into(),
            enabled: true,
            missed: MissedPolicy::default(),
            overlap: OverlapPolicy::default(),
            session_mode: None,
        };
        let view = context.ask(CreateSchedule { new, by_tool: true }).await?;
        Ok(Ended::Text(shown(&view).to_string()))
    })
}

/// Deletes one of the agent itself.
fn remove<Input: DeserializeOwned + Into<(ScheduleKind, Uuid)>>(context: Context, text: String) -> Running {
    Box::pin(async move {
        let (kind, id) = input::<Input>(&text)?.into();
        context.ask(RemoveSchedule { kind, id: ScheduleId(id), owner: Some(context.run.agent) }).await?;
        Ok(Ended::Text(format!("Deleted the {} {id}.", kind.noun())))
    })
}

/// Lists those of the agent itself as `key`.
async fn list(context: Context, text: String, kind: ScheduleKind, key: &'static str) -> Result<Ended, String> {
    let ListInput { limit, after } = input(&text)?;
    let limit = limit.unwrap_or(PAGE_DEFAULT).clamp(1, PAGE_MAX);
    let after = after.map(ScheduleId);
    let asked = ListSchedules { kind, agent: Some(context.run.agent), after, limit };
    let Page { items, next, total } = context.ask(asked).await?;
    let items: Vec<Value> = items.iter().map(shown).collect();
    Ok(Ended::Text(json!({ key: items, "next": next, "total": total }).to_string()))
}

/// One of them, for the model.
fn shown(view: &ScheduleView) -> Value {
    let result = view.past.last_result.as_ref().map(|result| result.status.as_str());
    json!({
        "id": view.id,
        "name": view.name,
        view.kind.rule_field(): view.rule,
        "timezone": view.timezone,
        "prompt": view.prompt,
        "enabled": view.enabled,
        "next_run": view.next_run.map(|slot| slot.to_string()),
        "last_run": view.past.last_run.map(|slot| slot.to_string()),
        "last_result": result,
        "run_count": view.past.run_count,
    })
}
