//! What the tools of schedules and cron jobs share: creating, listing and deleting those of the agent itself.

use agentsvc_components::ScheduleId;
use agentsvc_components::schedule::{MissedPolicy, OverlapPolicy, ScheduleKind};
use agentsvc_systems::kernel::page::Page;
use agentsvc_systems::schedule::{CreateSchedule, ListSchedules, NewSchedule, RemoveSchedule, ScheduleView};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::tool::Context;

/// Items of one page at most.
const PAGE_MAX: usize = 100;
/// Items of one page when nothing is said.
const PAGE_DEFAULT: usize = 50;

/// What a tool creates, whichever family.
pub(crate) struct Wanted {
    pub(crate) kind: ScheduleKind,
    pub(crate) name: Option<String>,
    pub(crate) rule: String,
    pub(crate) prompt: String,
    pub(crate) timezone: Option<String>,
}

/// Creates one for the agent itself.
pub(crate) async fn create(context: &Context, wanted: Wanted) -> Result<String, String> {
    let Wanted { kind, name, rule, prompt, timezone } = wanted;
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
    Ok(told(&view).to_string())
}

/// Which page to list.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListInput {
    /// At most so many, 1 to 100; 50 when left out.
    limit: Option<usize>,
    /// Go on after this one: `next` of an earlier page.
    after: Option<Uuid>,
}

/// Lists those of the agent itself.
pub(crate) async fn list(context: &Context, kind: ScheduleKind, input: ListInput) -> Result<String, String> {
    let ListInput { limit, after } = input;
    let limit = limit.unwrap_or(PAGE_DEFAULT).clamp(1, PAGE_MAX);
    let after = after.map(ScheduleId);
    let asked = ListSchedules { kind, agent: Some(context.run.agent), after, limit };
    let Page { items, next, total } = context.ask(asked).await?;
    let items: Vec<Value> = items.iter().map(told).collect();
    let key = if kind == ScheduleKind::Cron { "jobs" } else { "schedules" };
    Ok(json!({ key: items, "next": next, "total": total }).to_string())
}

/// Deletes one of the agent itself.
pub(crate) async fn remove(context: &Context, kind: ScheduleKind, id: Uuid) -> Result<String, String> {
    context.ask(RemoveSchedule { kind, id: ScheduleId(id), owner: Some(context.run.agent) }).await?;
    Ok(format!("Deleted the {} {id}.", kind.noun()))
}

/// One of them, for the model.
fn told(view: &ScheduleView) -> Value {
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
