//! A schedule or cron job is read (spec 1, GET /api/schedules/{id} and GET /api/cron/jobs/{id}).

use bevy_ecs::prelude::{Entity, World};

use agentsvc_components::manifest::SessionMode;
use agentsvc_components::schedule::record::{ScheduleRecord, ScheduleStateRecord};
use agentsvc_components::schedule::{MissedPolicy, OverlapPolicy, Past, Schedule, ScheduleKind};
use agentsvc_components::{AgentId, Refusal, ScheduleId, Timestamp};

use super::times::Timing;
use super::{find, next_run};
use crate::kernel::command::{Answer, command};
use crate::kernel::index::id_of;

/// A schedule or cron job as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleView {
    /// Its id.
    pub id: ScheduleId,
    /// Its family.
    pub kind: ScheduleKind,
    /// Whose.
    pub agent: AgentId,
    /// Name.
    pub name: Option<Box<str>>,
    /// Its rule as written.
    pub rule: Box<str>,
    /// The zone of a cron expression.
    pub timezone: Box<str>,
    /// Prompt for the agent.
    pub prompt: Box<str>,
    /// Does it fire?
    pub enabled: bool,
    /// Missed policy.
    pub missed: MissedPolicy,
    /// What happens to slots while a turn is open.
    pub overlap: OverlapPolicy,
    /// Session continuity of its turns, where it is not the manifest's.
    pub session_mode: Option<SessionMode>,
    /// When it was created.
    pub created_at: Timestamp,
    /// Time of the last change to its definition.
    pub updated_at: Timestamp,
    /// The first slot without an outcome; `None` when it is disabled.
    pub next_run: Option<Timestamp>,
    /// Turns it began that have not ended.
    pub open: u32,
    /// What came of it so far.
    pub past: Past,
}

impl ScheduleView {
    pub(super) fn of(world: &World, entity: Entity) -> Option<Self> {
        let schedule = world.get::<Schedule>(entity)?;
        Some(Self {
            id: id_of(world, entity),
            kind: schedule.kind,
            agent: id_of(world, schedule.agent),
            name: schedule.name.clone(),
            rule: schedule.rule.clone(),
            timezone: schedule.timezone.clone(),
            prompt: schedule.prompt.clone(),
            enabled: schedule.enabled,
            missed: schedule.missed,
            overlap: schedule.overlap,
            session_mode: schedule.session_mode,
            created_at: schedule.created_at,
            updated_at: schedule.updated_at,
            next_run: next_run(world, entity),
            open: world.get::<Timing>(entity).map_or(0, |timing| timing.open),
            past: schedule.past.as_deref().cloned().unwrap_or_default(),
        })
    }
}

/// Reads one.
#[derive(Clone, Copy, Debug)]
pub struct GetSchedule {
    /// Its family.
    pub kind: ScheduleKind,
    /// Which.
    pub id: ScheduleId,
}

command! {
    quick "get_schedule" GetSchedule => ScheduleView, Id(|it| it.id.0), |it, world| {
        let view =
            |entity| ScheduleView::of(world, entity).ok_or_else(|| Refusal::not_found(it.kind.noun(), it.id));
        Answer::Now(find(world, it.kind, it.id).and_then(view))
    }
}

/// The record of what it is; written by the command that changes it.
pub(crate) fn definition(world: &World, entity: Entity) -> Option<ScheduleRecord> {
    let schedule = world.get::<Schedule>(entity)?;
    Some(ScheduleRecord {
        id: id_of(world, entity),
        agent: id_of(world, schedule.agent),
        kind: schedule.kind,
        name: schedule.name.clone(),
        rule: schedule.rule.clone(),
        timezone: schedule.timezone.clone(),
        prompt: schedule.prompt.clone(),
        missed: schedule.missed,
        overlap: schedule.overlap,
        session_mode: schedule.session_mode,
        created_at: schedule.created_at,
        updated_at: schedule.updated_at,
        anchored_at: schedule.anchored_at,
        taint: schedule.taint,
        user: schedule.user.clone(),
        wake: schedule.wake.clone(),
    })
}

/// The record of how far it is; written for every one that is marked.
pub(crate) fn state(world: &World, entity: Entity) -> Option<ScheduleStateRecord> {
    let schedule = world.get::<Schedule>(entity)?;
    let (id, enabled, cursor) = (id_of(world, entity), schedule.enabled, schedule.cursor);
    Some(ScheduleStateRecord { id, enabled, cursor, past: schedule.past.clone() })
}
