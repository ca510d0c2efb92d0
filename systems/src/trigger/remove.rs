//! A trigger leaves the world: by a request, or with its owner.

use crate::trigger::audit_kinds;
use bevy_ecs::prelude::{Entity, World};
use serde::{Deserialize, Serialize};

use agentsvc_components::trigger::record::{TriggerRecord, TriggerStateRecord};
use agentsvc_components::trigger::{Trigger, TriggerState};
use agentsvc_components::{AgentId, TriggerId};
use serde_json::json;

use super::create::store;
use super::index::{Member, Triggers};
use crate::audit::Audit;
use crate::kernel::command::{Answer, command};
use crate::kernel::index::id_of;
use crate::kernel::outbox::Emit;
use crate::kernel::reaction::{Removed, react};
use crate::kernel::record;

/// Deletes a trigger. What it has matched and is not delivered yet goes with it; turns that it began go on.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct DeleteTrigger(pub TriggerId);

command! {
    write "delete_trigger" DeleteTrigger => (), Id(|it| it.0.0), |DeleteTrigger(it), world|
        Answer::stored(super::find(world, it).map(|entity| delete(world, it, entity)))
}

fn delete(world: &mut World, id: TriggerId, entity: Entity) {
    let owner = world.get::<Trigger>(entity).map(|trigger| id_of::<AgentId>(world, trigger.agent));
    world.audit(audit_kinds::TRIGGER_DELETED, owner, json!({ "trigger": id }));
    remove(world, id, entity);
}

fn remove(world: &mut World, id: TriggerId, entity: Entity) {
    react(world, &Removed { entity, id });
    let Some(trigger) = world.get::<Trigger>(entity) else { return };
    let (agent, target, pattern, bytes) = (trigger.agent, trigger.target, trigger.pattern.clone(), trigger.bytes());
    let (holder, member) = (trigger.holder, Member { id, entity, line: trigger.line() });
    let owner = (agent, id_of::<AgentId>(world, agent));
    let mut triggers = world.resource_mut::<Triggers>();
    triggers.remove(member, owner, &pattern);
    triggers.set_target(id, target, None);
    triggers.used.remove(bytes);
    triggers.shares.remove(holder, 1, bytes);
    let has_log = world.get::<TriggerState>(entity).is_some_and(|state| state.0.is_some());
    world.despawn(entity);
    world.op(record::remove::<TriggerRecord>(id));
    if has_log {
        world.op(record::remove::<TriggerStateRecord>(id));
    }
}

/// An agent leaves the world: its triggers go with it, and those that route to it are switched off.
pub(crate) fn agent_removed(world: &mut World, agent: Entity, _: AgentId) {
    let own: Vec<(TriggerId, Entity)> = world.resource::<Triggers>().of_owner(agent, None).collect();
    for (id, entity) in own {
        remove(world, id, entity);
    }
    let others: Vec<TriggerId> = world.resource::<Triggers>().of_target(agent).collect();
    for id in others {
        let mut triggers = world.resource_mut::<Triggers>();
        triggers.set_target(id, Some(agent), None);
        let Some(entity) = triggers.get(id) else { continue };
        if let Some(mut trigger) = world.get_mut::<Trigger>(entity) {
            (trigger.target, trigger.enabled) = (None, false);
        }
        store(world, entity);
    }
}
