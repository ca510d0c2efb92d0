//! Schedules and cron jobs: what makes an agent act at its time (spec 1, Schedules and Cron jobs).
//!
//! A *slot* is a moment that a rule names. Slots up to a schedule's cursor have their outcome; the cursor, the outcome and
//! the turn are one delta, so that no kill makes a slot fire twice or not at all.
//!
//! | a slot is due and                                | outcome                                            |
//! |--------------------------------------------------|----------------------------------------------------|
//! | it passed unnoticed, by the missed policy        | missed                                             |
//! | the agent does not run                           | agent_stopped                                      |
//! | the agent has no budget left                     | over_budget                                        |
//! | a turn is open, overlap policy skip              | overlapped                                         |
//! | a turn is open, overlap policy queue             | waits for the turn's end, at most 100; then refused |
//! | a turn is open, overlap policy parallel          | fired, in a new session                            |
//! | the same, and the slot is late by a minute       | waits for the end of a turn, as above              |
//! | the daemon is full                                | refused                                            |
//! | otherwise                                        | fired                                              |
//!
//! What is due is found in an index by time; nothing is scanned. A due schedule is *visited*: it walks at most 256 slots,
//! holds those that may still fire, and when it has reached the present the held ones fire. What the step's budget does
//! not cover goes on in the next step, in turn over schedules.

pub mod audit_kinds;
mod check;
mod create;
mod ended;
pub mod error_codes;
mod fire;
mod footprint;
mod list;
mod manifest;
mod metrics;
mod outcome;
mod preview;
pub(crate) mod query;
mod remove;
mod restore;
mod rule;
mod run;
mod times;
mod update;
mod view;

pub use agentsvc_components::schedule::SlotOutcome;
pub use create::{CreateSchedule, NewSchedule};
pub use list::ListSchedules;
pub use preview::PreviewRule;
pub use remove::RemoveSchedule;
pub use rule::{Cron, Error as RuleError, Rule};
pub use run::{RunSchedule, RunStarted};
pub use update::{SchedulePatch, UpdateSchedule};
pub use view::{GetSchedule, ScheduleView};

pub(crate) use check::check;
pub(crate) use ended::turn_ended;
pub(crate) use fire::fire;
pub(crate) use remove::agent_removed;
pub(crate) use restore::{load, reanchor};
pub(crate) use times::Schedules;
pub(crate) use view::{definition, state};

use bevy_ecs::lifecycle::HookContext;
use bevy_ecs::prelude::{Entity, Resource, With, World};
use bevy_ecs::world::DeferredWorld;

use agentsvc_components::schedule::{Schedule, ScheduleKind, Tally};
use agentsvc_components::{AgentId, Refusal, ScheduleId, Timestamp};

use crate::agent::{AgentSpawned, Spawning, check_reach};
use crate::kernel::clock::Now;
use crate::kernel::counters::Totals;
use crate::kernel::domain::{Domain, Phase, System};
use crate::kernel::footprint::{Measure, entries};
use crate::kernel::inputs::table::CommandDef;
use crate::kernel::outbox::Outbox;
use crate::kernel::reaction::{Removed, on, rule};
use crate::kernel::record::{self, Kind};
use crate::kernel::stage::Stage;
use crate::turn::FiredTurnEnded;
use agentsvc_components::schedule::record::{ScheduleRecord, ScheduleStateRecord};
use agentsvc_components::turn::Origin;
use times::Timing;

/// What this domain brings.
pub(crate) const DOMAIN: Domain = Domain {
    uses: &["agent", "audit", "budget", "manifest", "rehearsal", "taint", "turn", "event"],
    kinds: &[
        Kind::record::<ScheduleRecord>(),
        Kind::record::<ScheduleStateRecord>()
            .with_entities::<Schedule>(|world, entity| state(world, entity).map(|state| record::put(&state))),
    ],
    restore: &[(Phase::Owned, load)],
    rows: |world, rows| {
        let mut schedules = world.query_filtered::<Entity, With<Schedule>>();
        rows.extend(schedules.iter(world).filter_map(|entity| Some(record::put(&definition(world, entity)?))));
    },
    install,
    measures: &[Measure::of::<ScheduleId>("schedules", footprint::heap, entries(28, 3))],
    systems: &[
        System {
            stage: Stage::Time,
            name: "schedule_beat",
            // A look at the first entry of the index by time. What is due is fired in the step that follows.
            run: |world| {
                let now = world.resource::<Now>().0;
                world.resource_mut::<Schedules>().look(now);
            },
        },
        System { stage: Stage::Fire, name: "schedule_fire", run: fire },
    ],
    has_fires: has_due,
    next_due,
    clock_reset: reanchor,
    check,
    commands: &[
        CommandDef::of::<CreateSchedule>(),
        CommandDef::of::<RemoveSchedule>(),
        CommandDef::of::<RunSchedule>(),
        CommandDef::of::<UpdateSchedule>(),
    ],
    error_codes: error_codes::ALL,
    audit_kinds: audit_kinds::ALL,
    metrics: metrics::ALL,
    totals: &[Totals::of::<ScheduleTotals>()],
    ..Domain::named("schedule")
};

/// Slots and turns of all schedules and cron jobs since the daemon started, by outcome.
#[derive(Resource, Clone, Copy, Debug, Default)]
pub(crate) struct ScheduleTotals(pub(crate) Tally);

/// Prepares a new world for schedules.
pub(crate) fn install(world: &mut World) {
    world.init_resource::<Schedules>();
    world.register_component_hooks::<ScheduleId>().on_insert(inserted).on_remove(removed);
    rule(world, |world, agent: &Spawning| manifest::check(world, &agent.wakes));
    on(world, |world, new: &AgentSpawned| manifest::register(world, new.agent, &new.wakes));
    on(world, |world, gone: &Removed<AgentId>| agent_removed(world, gone.entity, gone.id));
    on(world, |world, event: &FiredTurnEnded| {
        if let Origin::Schedule { schedule } = event.origin {
            turn_ended(world, schedule, &event.ended);
        }
    });
}

/// Is anything due that was not visited?
pub(crate) fn has_due(world: &World) -> bool {
    world.resource::<Schedules>().has_due()
}

/// When the next slot is due; the distant past when slots wait to be visited or fired.
pub(crate) fn next_due(world: &World) -> Option<Timestamp> {
    world.resource::<Schedules>().next_visit()
}

/// How many schedules and cron jobs there are.
pub(crate) fn counts(world: &World) -> (usize, usize) {
    let schedules = world.resource::<Schedules>();
    (schedules.count(ScheduleKind::Schedule), schedules.count(ScheduleKind::Cron))
}

/// The first slot of a schedule without an outcome; `None` when it is disabled or has none left.
pub(crate) fn next_run(world: &World, entity: Entity) -> Option<Timestamp> {
    let is_enabled = world.get::<Schedule>(entity)?.enabled;
    let visit = world.get::<Timing>(entity)?.visit;
    // One that was visited and is not done stands at no time: it goes on in its turn.
    if is_enabled { visit.or_else(|| times::next_slot(world, entity)) } else { None }
}

/// Turns that a schedule began and that have not ended.
pub(crate) fn open_turns(world: &World, entity: Entity) -> u32 {
    world.get::<Timing>(entity).map_or(0, |timing| timing.open)
}

/// The schedule `id` of this kind.
fn find(world: &World, kind: ScheduleKind, id: ScheduleId) -> Result<Entity, Refusal> {
    let found = world.resource::<Schedules>().get(kind, id).filter(|entity| is_known(world, *entity));
    found.ok_or_else(|| Refusal::not_found(kind.noun(), id))
}

/// May whoever acts know of it?
fn is_known(world: &World, entity: Entity) -> bool {
    world.get::<Schedule>(entity).is_some_and(|schedule| check_reach(world, schedule.agent).is_ok())
}

/// What the indexes know of a schedule.
fn known(schedule: &Schedule) -> (ScheduleKind, Entity, usize) {
    (schedule.kind, schedule.agent, schedule.bytes())
}

fn inserted(mut world: DeferredWorld<'_>, at: HookContext) {
    let Some(id) = world.get::<ScheduleId>(at.entity).copied() else { return };
    let Some((kind, agent, bytes)) = world.get::<Schedule>(at.entity).map(known) else { return };
    let mut schedules = world.resource_mut::<Schedules>();
    schedules.insert(kind, agent, id, at.entity);
    schedules.used.add(bytes);
}

/// The entity goes: its places in the indexes and its records go with it.
fn removed(mut world: DeferredWorld<'_>, at: HookContext) {
    let Some(id) = world.get::<ScheduleId>(at.entity).copied() else { return };
    let visit = world.get::<Timing>(at.entity).and_then(|timing| timing.visit);
    if let Some((kind, agent, bytes)) = world.get::<Schedule>(at.entity).map(known) {
        let mut schedules = world.resource_mut::<Schedules>();
        schedules.remove(kind, agent, id, visit);
        schedules.used.remove(bytes);
    }
    let mut outbox = world.resource_mut::<Outbox>();
    outbox.ops.push(record::remove::<ScheduleRecord>(id));
    outbox.ops.push(record::remove::<ScheduleStateRecord>(id));
}

#[cfg(test)]
mod budget_tests;
#[cfg(test)]
mod manifest_tests;
#[cfg(test)]
mod policy_tests;
#[cfg(test)]
mod share_tests;
#[cfg(test)]
mod simulation;
#[cfg(test)]
pub(crate) mod tests;
