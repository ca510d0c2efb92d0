//! Triggers: an event of the world makes an agent act (spec 1, Triggers).
//!
//! | what happens                        | then                                                                  |
//! |-------------------------------------|-----------------------------------------------------------------------|
//! | an event                            | in the same step it meets the index ([`index`]); those that wait for it become a wave of each holder |
//! | a wave's turn comes, in this step   | each of its triggers ends in one outcome ([`deliver`]); nothing is stored of the wave |
//! | the step's fires are used up        | what is left of the waves is stored, with what the step did           |
//! | a stored wave's turn comes          | the same, and its record goes, or shrinks, in that commit             |
//! | a kill                              | the next start goes on behind the last match that was delivered       |
//!
//! What a fire leaves behind ([`burst`]):
//!
//! | what happens                                        | then                                                       |
//! |-----------------------------------------------------|------------------------------------------------------------|
//! | one event has fired a few triggers in this step     | each has a turn record and its log's record                |
//! | it has fired more, whose turns wait at the step's end | one burst record stands for up to `BURST_FIRES_MAX` turns and what they add to logs |
//! | a turn of a burst changes or ends                   | the turn, its trigger's log and what has left the burst are stored in that commit |
//! | the last one leaves                                 | the burst's records go in that commit                      |
//! | a restart                                           | bursts unfold to the records that they stand for ([`burst::unfold`]) |
//!
//! The message of a fire is a row of its log at once, whichever way its turn is stored: readers see it from the first.
//!
//! Each holder of triggers has a line of waves, and those that nobody holds have one ([`waves`]); the lines are served in turn. The
//! waves of a line are delivered in the order of their events, the triggers of an event in the order of their creation. The
//! outcomes, in the order in which they are looked for:
//!
//! | outcome         | when                                                                                       |
//! |-----------------|--------------------------------------------------------------------------------------------|
//! | `disabled`      | the trigger is switched off                                                                |
//! | `exhausted`     | `max_fires` is reached                                                                     |
//! | `too_deep`      | as many fired turns lie behind the event as `[triggers] max_depth` allows                  |
//! | `cooling_down`  | the event came sooner after the one it last fired for than the cooldown                    |
//! | `rate_limited`  | the event comes from a fired turn, and the minute has had `[triggers] cascade_per_minute` of those |
//! | `agent_stopped` | who would get the message does not run                                                     |
//! | `refused`       | the message would be too long, or the daemon is full                                        |
//! | `over_budget`   | who would get the message has no budget left, or its turn has begun and ends for that      |
//! | `fired`         | none of these: a turn has begun                                                            |
//!
//! A trigger goes with its owner. One whose target goes is switched off and left without a target.

pub mod audit_kinds;
mod burst;
mod check;
mod create;
mod custom;
mod deliver;
pub mod error_codes;
mod footprint;
mod index;
mod meet;
mod metrics;
mod names;
mod ngram_index;
pub(crate) mod query;
mod remove;
mod resume;
pub(crate) mod rows;
mod show;
mod tell;
mod update;
mod waves;

use burst::turn_goes;
#[cfg(test)]
pub(crate) use burst::unfold as unfold_for_tests;
pub(crate) use burst::{Bursts, keep_bursts, load_bursts};
pub(crate) use check::check;
pub(crate) use create::record_of;
pub use create::{CreateTrigger, NewTrigger};
use create::{register, room_for, wakes_itself_only};
pub(crate) use deliver::{TriggerFired, deliver, turn_ended};
pub(crate) use index::Triggers;
pub(crate) use meet::{keep_waiting, meet};
pub use remove::DeleteTrigger;
pub(crate) use remove::agent_removed;
pub(crate) use resume::load;
pub use show::{GetTrigger, GetTriggerFires, ListTriggers, TriggerFires, TriggerView};
pub use tell::TellEvents;
pub use update::{TriggerPatch, UpdateTrigger};
pub(crate) use waves::{Waves, has_waiting};

use bevy_ecs::prelude::{Entity, Resource, With, World};

use crate::agent::{AgentSpawned, Owning, Spawning, check_reach};
use crate::event::told::Events;
use crate::kernel::counters::{PerStep, Totals};
use crate::kernel::domain::{Domain, Phase, System};
use crate::kernel::footprint::{Measure, entries};
use crate::kernel::inputs::table::CommandDef;
use crate::kernel::reaction::{Removed, on, rule};
use crate::kernel::record::{self, Kind};
use crate::kernel::stage::Stage;
use crate::turn::FiredTurnEnded;
use agentsvc_components::trigger::record::{TriggerRecord, TriggerStateRecord};
use agentsvc_components::trigger::{OutcomeCounts, Trigger, TriggerState};
use agentsvc_components::turn::{Origin, Turn};
use agentsvc_components::{AgentId, Refusal, TriggerId};

/// What this domain brings.
pub(crate) const DOMAIN: Domain = Domain {
    uses: &["agent", "audit", "budget", "config", "event", "injection", "rehearsal", "taint", "turn"],
    kinds: &[
        Kind::record::<TriggerRecord>(),
        Kind::record::<TriggerStateRecord>().with_entities::<TriggerState>(rows::state),
        Kind::new(rows::WAVES, rows::read_wave),
        Kind::new(rows::BURSTS, rows::read_burst).not_compared(),
    ],
    restore: &[(Phase::Shared, load_bursts), (Phase::Owned, load)],
    rows: |world, found| {
        let mut triggers = world.query_filtered::<Entity, With<Trigger>>();
        found.extend(triggers.iter(world).filter_map(|entity| Some(record::put(&record_of(world, entity)?))));
        found.extend(world.resource::<Waves>().records().map(|wave| rows::put_wave(&wave)));
    },
    normalize_rows: rows::unfolded,
    install,
    measures: &[Measure::of::<TriggerId>("triggers", footprint::heap, entries(24, 4))],
    systems: &[
        System { stage: Stage::Match, name: "trigger_meet", run: meet },
        System { stage: Stage::Fire, name: "trigger_deliver", run: deliver },
        System { stage: Stage::Collect, name: "trigger_keep_waiting", run: keep_waiting },
        System { stage: Stage::Collect, name: "trigger_keep_bursts", run: keep_bursts },
    ],
    has_work: |world| world.resource::<Events>().has_unmatched(),
    has_fires: has_waiting,
    has_event_fires: has_waiting,
    check,
    is_quiet: |world| world.resource::<Waves>().waiting() == 0,
    commands: &[
        CommandDef::of::<CreateTrigger>(),
        CommandDef::of::<DeleteTrigger>(),
        CommandDef::of::<TellEvents>(),
        CommandDef::of::<UpdateTrigger>(),
    ],
    error_codes: error_codes::ALL,
    audit_kinds: audit_kinds::ALL,
    metrics: metrics::ALL,
    per_step: &[PerStep::of::<custom::Published>()],
    totals: &[Totals::of::<TriggerTotals>()],
    ..Domain::named("trigger")
};

/// What became of triggers since the daemon started.
#[derive(Resource, Clone, Copy, Debug, Default)]
pub struct TriggerTotals {
    /// How matches ended.
    pub outcomes: OutcomeCounts,
    /// Turns that ended because a budget was used up; among the outcomes their matches are `fired`.
    pub turns_over_budget: u64,
}

/// Prepares a new world for triggers.
pub(crate) fn install(world: &mut World) {
    world.init_resource::<Triggers>();
    world.init_resource::<Waves>();
    world.init_resource::<Bursts>();
    world.register_component_hooks::<Turn>().on_remove(|mut world, at| turn_goes(&mut world, at.entity));
    rule(world, |world, agent: &Spawning| room_for(world, &agent.triggers));
    rule(world, |world, owning: &Owning| wakes_itself_only(world, owning.agent));
    rule(world, custom::has_room);
    on(world, custom::count);
    on(world, |world, new: &AgentSpawned| register(world, new.agent, &new.triggers));
    on(world, |world, gone: &Removed<AgentId>| agent_removed(world, gone.entity, gone.id));
    on(world, |world, event: &FiredTurnEnded| {
        if let Origin::Trigger { trigger } = event.origin {
            turn_ended(world, trigger, &event.ended);
        }
    });
}

/// The trigger `id`.
fn find(world: &World, id: TriggerId) -> Result<Entity, Refusal> {
    let found = world.resource::<Triggers>().get(id).filter(|entity| is_known(world, *entity));
    found.ok_or_else(|| Refusal::not_found("trigger", id))
}

/// May whoever acts know of it?
fn is_known(world: &World, entity: Entity) -> bool {
    world.get::<Trigger>(entity).is_some_and(|trigger| check_reach(world, trigger.agent).is_ok())
}

#[cfg(test)]
mod budget_tests;
#[cfg(test)]
mod burst_tests;
#[cfg(test)]
mod fire_tests;
#[cfg(test)]
mod index_tests;
#[cfg(test)]
mod line_tests;
#[cfg(test)]
mod share_tests;
#[cfg(test)]
mod tests;
