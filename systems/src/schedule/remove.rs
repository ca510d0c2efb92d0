//! Schedules and cron jobs are deleted, one by one or with their agent.

use crate::schedule::audit_kinds;
use bevy_ecs::prelude::{Entity, World};
use serde::{Deserialize, Serialize};

use agentsvc_components::schedule::{Schedule, ScheduleKind};
use agentsvc_components::{AgentId, Refusal, ScheduleId};
use serde_json::json;

use super::find;
use super::list::is_of;
use super::times::Schedules;
use crate::audit::Audit;
use crate::kernel::command::{Answer, command};
use crate::kernel::index::id_of;
use crate::kernel::reaction::{Removed, react};
use crate::taint;

/// Deletes one. Turns it began go on; slots that wait for them go with it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct RemoveSchedule {
    /// Its family.
    pub kind: ScheduleKind,
    /// Which.
    pub id: ScheduleId,
    /// Only when it belongs to this agent; that of another one is not found.
    pub owner: Option<AgentId>,
}

command!(write "remove_schedule" RemoveSchedule => (), Id(|it| it.id.0), |it, world| Answer::stored(remove(world, it)));

fn remove(world: &mut World, command: RemoveSchedule) -> Result<(), Refusal> {
    let RemoveSchedule { kind, id, owner } = command;
    let entity = find(world, kind, id)?;
    let agent = world.get::<Schedule>(entity).map(|schedule| id_of::<AgentId>(world, schedule.agent));
    let of_another = taint::apart(world).is_some_and(|user| !is_of(world, Some(entity), user.as_deref()));
    if (owner.is_some() && owner != agent) || of_another {
        return Err(Refusal::not_found(kind.noun(), id));
    }
    gone(world, entity);
    world.audit(audit_kinds::SCHEDULE_DELETED, agent, json!({ "id": id, "kind": kind.noun() }));
    Ok(())
}

/// An agent leaves the world: its schedules and cron jobs go with it.
pub(crate) fn agent_removed(world: &mut World, agent: Entity, _: AgentId) {
    let schedules = world.resource::<Schedules>();
    let kinds = [ScheduleKind::Schedule, ScheduleKind::Cron];
    let own = kinds.into_iter().flat_map(|kind| schedules.of(agent, kind, None));
    let own: Vec<Entity> = own.filter_map(|id| schedules.any(id)).collect();
    for entity in own {
        gone(world, entity);
    }
}

/// It leaves the world; the remove hook writes the tombstones.
fn gone(world: &mut World, entity: Entity) {
    let id = id_of::<ScheduleId>(world, entity);
    react(world, &Removed { entity, id });
    world.despawn(entity);
}
