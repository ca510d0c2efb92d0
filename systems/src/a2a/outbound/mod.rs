//! External agents: those that the operator discovered, and the tasks that were sent to them (spec 3, A2A).
//!
//! | in        | by                                           | goes to        |
//! |-----------|----------------------------------------------|----------------|
//! |           | send                                         | submitted      |
//! | submitted | the external agent took it                   | working        |
//! | submitted | it could not be sent                         | failed         |
//! | submitted | it may have been received, and no answer came | unknown       |
//! | working   | the external agent is asked for it           | as it says     |
//! | open      | its external agent is removed                | cancelled      |
//! | ended     | a week later, or too many newer ones         | removed        |
//!
//! | rule | why |
//! |---|---|
//! | a task and the job that sends it begin in one step | no kill leaves one without the other |
//! | the job that sends is never repeated; the one that asks is | nothing is sent twice unasked |
//! | what is sent again under the same key is the same task | a tool call that is repeated after a restart sends nothing |
//! | agents send to external agents that the operator discovered | a page or a message does not add receivers |
//! | what external agents say is untrusted | others wrote it |

mod ask;
mod index;
mod keep;
mod list;
mod register;
mod send;
mod settle;
#[cfg(test)]
mod tests;

use agentsvc_components::Timestamp;
use agentsvc_components::a2a::outbound::{A2aAgent, A2aAgentId, A2aSent, A2aSentId};
use bevy_ecs::prelude::{Resource, World};

pub use ask::AwaitA2aSent;
pub use list::{A2aAgentView, A2aSentView, FindA2aAgent};
pub use register::{DiscoveredA2aAgent, RegisterA2aAgent};
pub use send::SendToA2aAgent;
pub use settle::{ASK, SEND, SentReport};

use crate::kernel::check::Faults;
use crate::kernel::entities;
use crate::kernel::entities::Remove;
use crate::kernel::footprint::{Measure, entries, of};
use crate::kernel::inputs::table::CommandDef;
use crate::kernel::job::JobKind;
use crate::kernel::waiters::Waiters;

pub(super) use index::{ExternalAgents, SentTasks};
pub(super) use keep::{beat, clock_set_back, next_due};

/// Its jobs: what is sent once, and what is asked again and again.
pub(super) const JOBS: [JobKind; 2] = [settle::SENDING, settle::ASKING];

/// Its commands that write.
pub(super) const COMMANDS: [CommandDef; 3] =
    [CommandDef::of::<RegisterA2aAgent>(), CommandDef::of::<Remove<A2aAgent>>(), CommandDef::of::<SendToA2aAgent>()];

/// What its entities take.
pub(super) const MEASURES: [Measure; 2] = [
    Measure::of::<A2aAgentId>("a2a_external_agents", |world, at| of(world, at, A2aAgent::bytes), entries(48, 3)),
    Measure::of::<A2aSentId>("a2a_sent_tasks", |world, at| of(world, at, A2aSent::bytes), entries(56, 5)),
];

/// Tasks since the daemon started.
#[derive(Resource, Clone, Copy, Debug, Default)]
pub(crate) struct SentTotals {
    pub(super) completed: u64,
    pub(super) failed: u64,
    pub(super) unknown: u64,
    pub(super) other: u64,
    pub(super) over_rate: u64,
}

/// Prepares a new world.
pub(super) fn install(world: &mut World) {
    entities::install::<A2aAgent>(world);
    entities::install::<A2aSent>(world);
    world.init_resource::<Waiters<A2aSentView>>();
}

/// Says which index is wrong, and which open task lacks its job.
pub(super) fn check(world: &mut World, faults: &mut Faults) {
    index::check(world, faults);
}

/// The earlier of two moments.
pub(super) fn earlier(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    one.into_iter().chain(other).min()
}
