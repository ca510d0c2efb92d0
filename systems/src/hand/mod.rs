//! Hands: packages of agents that work together, activated as a whole (spec 2, Hands).
//!
//! | rule | why |
//! |---|---|
//! | a definition is text outside of the world; an instance is an entity that names its agents | definitions are many and large, instances few |
//! | activation spawns all agents and the instance in one step, or refuses and spawns none | a kill leaves a whole instance or none |
//! | each activation is another instance; its number is in the names of its agents | |
//! | a pause is a mark on the agents: turns that they would begin by themselves are refused | schedules that are made meanwhile rest too |
//! | an agent that is deleted by itself leaves its instance in state `error` | the user sees why the team does not work |
//! | values of secrets are sealed before they come here | no record, input log or backup has them in clear |
//! | schedules of agents are ordinary schedules, made from the manifest | budget, audit and restarts hold for them |

mod activate;
pub mod audit_kinds;
mod change;
pub mod definition;
pub mod error_codes;
mod index;
pub mod limits;
mod list;
mod metrics;
pub mod prepare;
#[cfg(test)]
mod tests;
pub mod values;

pub use activate::ActivateHand;
pub use change::{PauseHand, ResumeHand, SetHandConfig};
pub use list::{CountHands, HandEnvironment, HandView};

use agentsvc_components::AgentId;
use agentsvc_components::hand::{HandInstance, HandInstanceId};
use agentsvc_components::kernel::audit_kind::AuditKind;
use agentsvc_components::turn::TurnEnd;
use bevy_ecs::prelude::{Entity, World};
use serde_json::{Value, json};

use crate::audit::Audit;
use crate::kernel::domain::{Domain, Phase};
use crate::kernel::entities::{self, Remove, state};
use crate::kernel::footprint::{Measure, entries, of};
use crate::kernel::inputs::table::CommandDef;
use crate::kernel::reaction::{Removed, on};
use crate::kernel::record::{Error, Kind, restore_components};
use crate::kernel::restore::Records;
use crate::turn::TurnClosed;
use index::Instances;

/// What this domain brings.
pub(crate) const DOMAIN: Domain = Domain {
    uses: &["agent", "audit", "manifest", "turn"],
    kinds: &[Kind::component::<HandInstance>()],
    restore: &[(Phase::Owned, restore_components::<HandInstance>), (Phase::Joined, restored)],
    install: |world| {
        entities::install::<HandInstance>(world);
        on(world, |world, gone: &Removed<AgentId>| change::agent_removed(world, gone.id));
        on(world, turn_ended);
    },
    measures: &[Measure::of::<HandInstanceId>(
        "hand_instances",
        |world, at| of(world, at, HandInstance::bytes),
        entries(64, 4),
    )],
    check: index::check,
    commands: &[
        CommandDef::of::<ActivateHand>(),
        CommandDef::of::<PauseHand>(),
        CommandDef::of::<ResumeHand>(),
        CommandDef::of::<SetHandConfig>(),
        CommandDef::of::<Remove<HandInstance>>(),
    ],
    error_codes: error_codes::ALL,
    audit_kinds: audit_kinds::ALL,
    limits: limits::ALL,
    metrics: metrics::ALL,
    ..Domain::named("hand")
};

/// Agents of paused instances rest again. An instance that a backup brought without its agents says that they are gone.
fn restored(world: &mut World, _: &mut Records) -> Result<(), Error> {
    let all: Vec<Entity> = world.resource::<Instances>().after(None).map(|(_, at)| at).collect();
    for at in all {
        change::lose_agents(world, at);
        change::hold(world, at);
    }
    Ok(())
}

/// A turn of an agent has ended: it counts for its instance.
fn turn_ended(world: &mut World, ended: &TurnClosed) {
    let Some(id) = world.resource::<Instances>().instance_of(ended.agent) else { return };
    let Some(at) = world.resource::<Instances>().get(id) else { return };
    index::change_instance(world, at, |instance| {
        instance.turns += 1;
        instance.failed += u64::from(ended.end == TurnEnd::Failed);
    });
}

/// Puts what became of an instance on the audit trail.
fn note(world: &mut World, kind: AuditKind, id: HandInstanceId, mut details: Value) {
    if let Some(instance) = state::<HandInstance>(world, id) {
        let agents = activate::agents(instance);
        details["hand"] = json!(instance.hand);
        details["agents"] = json!(agents);
    }
    details["instance"] = json!(id);
    world.audit(kind, None, details);
}
