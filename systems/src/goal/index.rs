//! Where goals are found: by id, by parent, by agent, and the open ones in the order of the prompt.

use crate::goal::error_codes;
use std::collections::{BTreeMap, BTreeSet};

use bevy_ecs::lifecycle::HookContext;
use bevy_ecs::prelude::{Entity, Resource, World};
use bevy_ecs::world::DeferredWorld;

use agentsvc_components::goal::Goal;
use agentsvc_components::kernel::limit;
use agentsvc_components::{AgentId, GoalId, Refusal, Timestamp};

use crate::kernel::check::Faults;
use crate::kernel::index::id_of;
use crate::kernel::outbox::{Emit, Outbox};
use crate::kernel::reaction::{Removed, on};
use crate::kernel::{quota as room, record};

/// Every goal, by all that a list or a prompt asks for. Kept by the hooks of [`GoalId`] and by [`change`].
#[derive(Resource, Default)]
pub(crate) struct Goals {
    by_id: BTreeMap<GoalId, Entity>,
    by_parent: BTreeSet<(Option<GoalId>, GoalId)>,
    by_agent: BTreeSet<(Option<AgentId>, GoalId)>,
    /// Open goals of agents, in the order in which they stand in the prompt: due ones first, then by age.
    open: BTreeSet<(AgentId, Timestamp, GoalId)>,
    /// Bytes of all texts.
    bytes: usize,
}

/// Goals without a due date stand behind all others.
const NEVER: Timestamp = Timestamp(i64::MAX);

/// The first of all ids.
const FIRST: GoalId = GoalId(uuid::Uuid::nil());

impl Goals {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// The goal `id`.
    pub(crate) fn get(&self, id: GoalId) -> Option<Entity> {
        self.by_id.get(&id).copied()
    }

    /// All goals in order of creation, from after `after` on.
    pub(crate) fn all(&self, after: Option<GoalId>) -> impl Iterator<Item = GoalId> + '_ {
        self.by_id.range((bound(after), std::ops::Bound::Unbounded)).map(|(id, _)| *id)
    }

    /// The goals right below `parent`, or those without a parent.
    pub(super) fn below(&self, parent: Option<GoalId>, after: Option<GoalId>) -> impl Iterator<Item = GoalId> + '_ {
        of(&self.by_parent, parent, after)
    }

    /// The goals of `agent`, or those without an agent.
    pub(crate) fn of_agent(&self, agent: Option<AgentId>, after: Option<GoalId>) -> impl Iterator<Item = GoalId> + '_ {
        of(&self.by_agent, agent, after)
    }

    /// The open goals of `agent`, those that are due first.
    pub(super) fn open_of(&self, agent: AgentId) -> impl Iterator<Item = GoalId> + '_ {
        let from = (agent, Timestamp(i64::MIN), FIRST);
        self.open.range(from..).take_while(move |(owner, ..)| *owner == agent).map(|(.., id)| *id)
    }

    /// Is there room for one more goal of `more` bytes?
    pub(super) fn has_room(&self, more: usize) -> Result<(), Refusal> {
        if self.by_id.len() >= limit::GOALS_MAX {
            return Err(Refusal::full(
                format!("the limit of {} goals is reached; delete some first", limit::GOALS_MAX),
                error_codes::GOALS_FULL,
            ));
        }
        self.has_room_for(more)
    }

    /// Is there room for texts that are `more` bytes longer? There always is for those that are not.
    pub(super) fn has_room_for(&self, more: usize) -> Result<(), Refusal> {
        room::has_room(self.bytes, more, limit::GOALS_BYTES_MAX, "goals", error_codes::GOALS_FULL)
    }

    /// Goes on as if there were so many goals more, of so many bytes, for tests of what a full house says.
    #[cfg(test)]
    pub(super) fn pretend(&mut self, goals: usize, bytes: usize) {
        let ids = (1..=goals).map(|n| GoalId(uuid::Uuid::from_u128(n as u128)));
        self.by_id.extend(ids.map(|id| (id, Entity::from_bits(1))));
        self.bytes += bytes;
    }

    fn insert(&mut self, id: GoalId, entity: Entity, goal: &Goal) {
        self.by_id.insert(id, entity);
        self.by_parent.insert((goal.parent, id));
        self.by_agent.insert((goal.agent, id));
        self.open.extend(place(id, goal));
        self.bytes += goal.bytes();
    }

    fn remove(&mut self, id: GoalId, goal: &Goal) {
        self.by_id.remove(&id);
        self.by_parent.remove(&(goal.parent, id));
        self.by_agent.remove(&(goal.agent, id));
        if let Some(place) = place(id, goal) {
            self.open.remove(&place);
        }
        self.bytes -= goal.bytes();
    }
}

fn bound(after: Option<GoalId>) -> std::ops::Bound<GoalId> {
    after.map_or(std::ops::Bound::Unbounded, std::ops::Bound::Excluded)
}

/// The goals that stand under `key`, from after `after` on.
fn of<K: Ord + Copy>(set: &BTreeSet<(K, GoalId)>, key: K, after: Option<GoalId>) -> impl Iterator<Item = GoalId> + '_ {
    use std::ops::Bound::{Excluded, Included, Unbounded};
    let from = after.map_or(Included((key, FIRST)), |after| Excluded((key, after)));
    set.range((from, Unbounded)).take_while(move |(owner, _)| *owner == key).map(|(_, id)| *id)
}

/// Where an open goal stands among those of its agent.
fn place(id: GoalId, goal: &Goal) -> Option<(AgentId, Timestamp, GoalId)> {
    let agent = goal.agent.filter(|_| goal.status.is_open())?;
    Some((agent, goal.due_at.unwrap_or(NEVER), id))
}

/// Prepares a new world for goals.
pub(crate) fn install(world: &mut World) {
    world.init_resource::<Goals>();
    world.register_component_hooks::<GoalId>().on_insert(inserted).on_remove(removed);
    on(world, |world, gone: &Removed<AgentId>| super::agent_removed(world, gone.id));
}

fn inserted(mut world: DeferredWorld<'_>, at: HookContext) {
    let Some(id) = world.get::<GoalId>(at.entity).copied() else { return };
    let Some(goal) = world.get::<Goal>(at.entity).cloned() else { return };
    world.resource_mut::<Goals>().insert(id, at.entity, &goal);
}

/// The entity goes: its record goes with it.
fn removed(mut world: DeferredWorld<'_>, at: HookContext) {
    let Some(id) = world.get::<GoalId>(at.entity).copied() else { return };
    let Some(goal) = world.get::<Goal>(at.entity).cloned() else { return };
    world.resource_mut::<Goals>().remove(id, &goal);
    world.resource_mut::<Outbox>().ops.push(record::remove_component::<Goal>(id));
}

/// The goal `id`, or a refusal that names it.
pub(super) fn find(world: &World, id: GoalId) -> Result<Entity, Refusal> {
    world.resource::<Goals>().get(id).ok_or_else(|| Refusal::not_found("goal", id))
}

/// Changes a goal in its component and in every index, and marks it. Nothing happens when there is none.
pub(super) fn change(world: &mut World, entity: Entity, change: impl FnOnce(&mut Goal)) {
    let Some(before) = world.get::<Goal>(entity).cloned() else { return };
    let id = id_of::<GoalId>(world, entity);
    let mut after = before.clone();
    change(&mut after);
    let mut goals = world.resource_mut::<Goals>();
    goals.remove(id, &before);
    goals.insert(id, entity, &after);
    if let Some(mut goal) = world.get_mut::<Goal>(entity) {
        *goal = after;
    }
    world.mark(entity);
}

/// Says which index is wrong ([`check`](crate::kernel::check)).
pub(crate) fn check(world: &mut World, faults: &mut Faults) {
    let mut found = world.query::<(Entity, &GoalId, &Goal)>();
    let world = &*world;
    let (mut scan, goals) = (Goals::default(), world.resource::<Goals>());
    for (entity, id, goal) in found.iter(world) {
        scan.insert(*id, entity, goal);
        let has_parent = goal.parent.is_none_or(|parent| goals.get(parent).is_some());
        faults.that(has_parent, || format!("goal {id}: the parent goal does not exist"));
        let has_agent = goal.agent.is_none_or(|agent| crate::kernel::index::agent(world, agent).is_ok());
        faults.that(has_agent, || format!("goal {id}: the agent does not exist"));
    }
    faults.same("goals", &goals.by_id, &scan.by_id);
    faults.same("goals by parent", &goals.by_parent, &scan.by_parent);
    faults.same("goals by agent", &goals.by_agent, &scan.by_agent);
    faults.same("open goals", &goals.open, &scan.open);
    faults.same("bytes of goals", &goals.bytes, &scan.bytes);
    faults.that(goals.bytes <= limit::GOALS_BYTES_MAX, || format!("goals take {} bytes", goals.bytes));
}
