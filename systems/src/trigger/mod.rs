//! Triggers: an event of the world makes an agent act (spec 1, Triggers).
//!
//! | what happens                        | then                                                                  |
//! |-------------------------------------|-----------------------------------------------------------------------|
//! | an event                            | in the same step it meets the index ([`index`]); those that wait for it become waves of at most `WAVE_TRIGGERS_MAX` |
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
//! Waves are delivered in the order of their events, the triggers of an event in the order of their creation. The
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
//! | `refused`       | the message would be too long, or the house is full                                        |
//! | `over_budget`   | who would get the message has no budget left, or its turn has begun and ends for that      |
//! | `fired`         | none of these: a turn has begun                                                            |
//!
//! A trigger goes with its owner. One whose target goes is switched off and left without a target.

mod burst;
mod check;
mod create;
mod deliver;
mod grams;
mod index;
mod names;
mod pattern;
pub(crate) mod query;
mod remove;
mod resume;
mod show;
mod tell;
mod update;
mod waves;

pub(crate) use burst::{Bursts, bursts_so_far, is_in_burst, keep_bursts, load_bursts, turn_goes, unfold};
pub(crate) use check::check;
pub use create::{CreateTrigger, NewTrigger};
pub(crate) use create::{record_of, register, room_for};
pub(crate) use deliver::{deliver, turn_ended};
pub(crate) use index::Triggers;
pub use pattern::{parse_pattern, render_pattern};
pub use remove::DeleteTrigger;
pub(crate) use remove::agent_removed;
pub(crate) use resume::load;
pub use show::{GetTrigger, GetTriggerFires, ListTriggers, TriggerFires, TriggerPage, TriggerView};
pub use tell::TellEvents;
pub use update::{TriggerPatch, UpdateTrigger};
pub(crate) use waves::{Waves, has_waiting, keep_waiting, match_events};

use bevy_ecs::prelude::{Entity, World};

use agentsvc_components::{Refusal, TriggerId};

/// Prepares a new world for triggers.
pub(crate) fn install(world: &mut World) {
    world.init_resource::<Triggers>();
    world.init_resource::<Waves>();
    world.init_resource::<Bursts>();
}

/// The trigger `id`.
fn find(world: &World, id: TriggerId) -> Result<Entity, Refusal> {
    world.resource::<Triggers>().get(id).ok_or_else(|| Refusal::not_found("trigger", id))
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
mod tests;
