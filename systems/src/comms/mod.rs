//! Comms: who talks to whom (spec 3, Comms). Events of the world about agents, their messages and tasks are kept as a bounded
//! list that outlives a restart: the audit log has no texts, and nothing may look for these few among all its entries.
//!
//! | event of the world  | kept as            | source              | target                       |
//! |---------------------|--------------------|---------------------|------------------------------|
//! | `message_received` of a turn that an agent began | `agent_message` | the sender | the receiver |
//! | `agent_spawned` by an agent | `agent_spawned` | the agent      | the agent that spawned it    |
//! | `agent_terminated` by an agent | `agent_terminated` | the agent | the agent that deleted it   |
//! | `task_posted`       | `task_posted`      | the agent that did  | the agent that it is for     |
//! | `task_claimed`      | `task_claimed`     | the agent that did  | none                         |
//! | `task_completed`    | `task_completed`   | the agent that did  | none                         |

pub mod limits;
mod list;
mod note;
mod send;
#[cfg(test)]
mod tests;
mod topology;

use agentsvc_components::comms::{CommsEvent, CommsEventId};

pub use list::{CommsEventView, ListCommsEvents};
pub use note::{Noted, noted_of};
pub use send::SendBetween;
pub use topology::{Edge, EdgeKind, GetTopology, Node, Topology};

use crate::kernel::domain::{Domain, Phase};
use crate::kernel::entities::{self, Entities};
use crate::kernel::footprint::{Measure, entries, of};
use crate::kernel::inputs::table::CommandDef;
use crate::kernel::reaction::on;
use crate::kernel::record::{Kind, restore_components};

/// What this domain brings.
pub(crate) const DOMAIN: Domain = Domain {
    uses: &["agent", "event", "session", "task", "turn"],
    kinds: &[Kind::component::<CommsEvent>()],
    restore: &[(Phase::Owned, restore_components::<CommsEvent>)],
    install: |world| {
        entities::install::<CommsEvent>(world);
        world.init_resource::<note::Fresh>();
        on(world, note::happened);
    },
    told: note::take,
    measures: &[Measure::of::<CommsEventId>(
        "comms_events",
        |world, at| of(world, at, CommsEvent::bytes),
        entries(32, 1),
    )],
    check: |world, faults| {
        entities::check::<CommsEvent>(world, faults, |_, _, _, _| {});
        let kept = world.resource::<Entities<CommsEvent>>().len();
        faults.that(kept <= limits::COMMS_EVENTS_KEPT, || format!("{kept} comms events are kept"));
    },
    commands: &[CommandDef::of::<SendBetween>()],
    limits: limits::ALL,
    ..Domain::named("comms")
};
