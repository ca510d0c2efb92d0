//! A schedule or cron job changes (spec 1, PUT /api/schedules/{id}, PUT /api/cron/jobs/{id} and its `enable`).

use crate::schedule::audit_kinds;
use bevy_ecs::prelude::{Entity, World};
use chrono_tz::Tz;
use serde::{Deserialize, Serialize};

use agentsvc_components::manifest::SessionMode;
use agentsvc_components::schedule::{MissedPolicy, OverlapPolicy, Schedule, ScheduleKind, Spans};
use agentsvc_components::{AgentId, Refusal, ScheduleId};
use serde_json::json;

use super::create::{check_future, check_name, check_prompt, read_rule, zone};
use super::find;
use super::outcome::{self, Outcome};
use super::rule::Rule;
use super::times::{QUOTA, Schedules, Timing, plan};
use super::view::{ScheduleView, definition};
use crate::agent::reached;
use crate::audit::Audit;
use crate::kernel::clock::Now;
use crate::kernel::command::{Answer, command};
use crate::kernel::outbox::Emit;
use crate::kernel::patch::set;
use crate::kernel::record;

/// The fields to change; `None` leaves a field as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchedulePatch {
    /// Another agent.
    pub agent: Option<AgentId>,
    /// Name.
    pub name: Option<Box<str>>,
    /// Its rule; another one is counted from now.
    pub rule: Option<Box<str>>,
    /// The zone of a cron expression; another one is counted from now.
    pub timezone: Option<Box<str>>,
    /// Prompt for the agent.
    pub prompt: Option<Box<str>>,
    /// Does it fire? When it is enabled its slots are counted from now; when it is disabled those that wait are missed.
    pub enabled: Option<bool>,
    /// Missed policy.
    pub missed: Option<MissedPolicy>,
    /// What happens to slots while a turn is open.
    pub overlap: Option<OverlapPolicy>,
    /// Session continuity; `Some(None)` follows the manifest again.
    #[serde(with = "crate::kernel::patch")]
    pub session_mode: Option<Option<SessionMode>>,
}

/// Changes some fields. All of them are taken, or none. Refused with 429 when its texts become longer and there is no room
/// for that.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct UpdateSchedule {
    /// Its family.
    pub kind: ScheduleKind,
    /// Which.
    pub id: ScheduleId,
    /// What.
    pub patch: SchedulePatch,
}

command! {
    /// It as it is now.
    write "update_schedule" UpdateSchedule => ScheduleView, Id(|it| it.id.0), |it, world|
        Answer::stored(update(world, it))
}

/// What was checked before anything changes.
struct Checked {
    agent: Option<Entity>,
    /// The rule and zone it has from here on.
    rule: Option<Rule>,
    zone: Tz,
    /// They are others than before.
    is_new: bool,
    /// Is it enabled from here on?
    enabled: bool,
}

fn update(world: &mut World, command: UpdateSchedule) -> Result<ScheduleView, Refusal> {
    let UpdateSchedule { kind, id, patch } = command;
    let missing = || Refusal::not_found(kind.noun(), id);
    let entity = find(world, kind, id)?;
    let checked = check(world, entity, kind, &patch)?;
    let now = world.resource::<Now>().0;
    let mut schedule = world.get_mut::<Schedule>(entity).ok_or_else(missing)?;
    let (was_enabled, old_agent, was_bytes) = (schedule.enabled, schedule.agent, schedule.bytes());
    apply(&mut schedule, patch, &checked);
    let bytes = schedule.bytes();
    schedule.updated_at = now;
    let counts_anew = checked.is_new || (checked.enabled && !was_enabled);
    if counts_anew {
        (schedule.anchored_at, schedule.cursor) = (now, now);
        if let Some(past) = &mut schedule.past {
            (past.since, past.done, past.failed_in_a_row) = (None, Spans::default(), 0);
        }
    }
    if let Some(agent) = checked.agent.filter(|agent| *agent != old_agent) {
        schedule.agent = agent;
        world.resource_mut::<Schedules>().give(kind, old_agent, agent, id);
    }
    let used = &mut world.resource_mut::<Schedules>().used;
    used.bytes = used.bytes - was_bytes + bytes;
    if let Some(mut timing) = world.get_mut::<Timing>(entity) {
        (timing.rule, timing.zone) = (checked.rule, checked.zone);
    }
    world.mark(entity);
    if was_enabled && !checked.enabled {
        drop_waiting(world, entity, id);
    }
    if counts_anew || was_enabled != checked.enabled {
        plan(world, entity);
    }
    if let Some(record) = definition(world, entity) {
        world.op(record::put(&record));
    }
    let view = ScheduleView::of(world, entity).ok_or_else(missing)?;
    let details = json!({ "id": id, "kind": kind.noun(), "enabled": view.enabled });
    world.audit(audit_kinds::SCHEDULE_UPDATED, view.agent, details);
    Ok(view)
}

fn check(world: &World, entity: Entity, kind: ScheduleKind, patch: &SchedulePatch) -> Result<Checked, Refusal> {
    let missing = || Refusal::not_found(kind.noun(), "deleted");
    let schedule = world.get::<Schedule>(entity).ok_or_else(missing)?;
    let timing = world.get::<Timing>(entity).ok_or_else(missing)?;
    if let Some(name) = &patch.name {
        check_name(kind, Some(name))?;
    }
    if let Some(prompt) = &patch.prompt {
        check_prompt(prompt)?;
    }
    let rule = patch.rule.as_deref().map(|rule| read_rule(kind, rule)).transpose()?;
    let zone = patch.timezone.as_deref().map(|name| zone(Some(name))).transpose()?.unwrap_or(timing.zone);
    let agent = patch.agent.map(|agent| reached(world, agent)).transpose()?;
    let rule_differs = patch.rule.as_ref().is_some_and(|rule| *rule != schedule.rule);
    let is_new = rule_differs || zone != timing.zone;
    let rule = rule.or(timing.rule);
    let enabled = patch.enabled.unwrap_or(schedule.enabled);
    if let Some(rule) = &rule
        && (rule_differs || (enabled && !schedule.enabled))
    {
        check_future(kind, rule, world.resource::<Now>().0)?;
    }
    QUOTA.admit(world.resource::<Schedules>().used, 0, growth(schedule, patch, zone))?;
    Ok(Checked { agent, rule, zone, is_new, enabled })
}

/// By how many bytes the texts of a schedule become longer.
fn growth(schedule: &Schedule, patch: &SchedulePatch, zone: Tz) -> usize {
    let name = patch.name.as_ref().or(schedule.name.as_ref()).map_or(0, |name| name.len());
    let rule = patch.rule.as_ref().unwrap_or(&schedule.rule).len();
    let prompt = patch.prompt.as_ref().unwrap_or(&schedule.prompt).len();
    (name + rule + zone.name().len() + prompt).saturating_sub(schedule.bytes())
}

fn apply(schedule: &mut Schedule, patch: SchedulePatch, checked: &Checked) {
    set(&mut schedule.name, patch.name.map(Some));
    set(&mut schedule.rule, patch.rule);
    set(&mut schedule.prompt, patch.prompt);
    set(&mut schedule.missed, patch.missed);
    set(&mut schedule.overlap, patch.overlap);
    set(&mut schedule.session_mode, patch.session_mode);
    schedule.timezone = checked.zone.name().into();
    schedule.enabled = checked.enabled;
}

/// Slots that wait for an open turn do not fire any more.
pub(super) fn drop_waiting(world: &mut World, entity: Entity, id: ScheduleId) {
    world.resource_mut::<Schedules>().unset_ready(id);
    let waiting = outcome::past(world, entity, |past| std::mem::take(&mut past.queue)).unwrap_or_default();
    for slot in waiting {
        #[cfg(test)]
        super::simulation::taken(world, entity, slot);
        outcome::note(world, entity, Outcome::Missed, slot, 1, "it was waiting when the schedule was disabled");
    }
}
