//! From durable ids, names and labels to entities. Kept by component hooks and by the commands that own them.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use bevy_ecs::lifecycle::HookContext;
use bevy_ecs::prelude::{Component, Entity, Resource, World};
use bevy_ecs::world::DeferredWorld;
use hashbrown::HashMap;

use agentsvc_components::agent::Agent;
use agentsvc_components::agent::record::AgentRecord;
use agentsvc_components::session::Session;
use agentsvc_components::session::record::SessionRecord;
use agentsvc_components::turn::record::TurnRecord;
use agentsvc_components::{AgentId, Refusal, SessionId, TurnId};

use crate::kernel::outbox::Outbox;
use crate::kernel::record;

mod check;
mod roster;
mod slots;

pub(crate) use check::check;
use roster::Roster;
pub(crate) use slots::Slots;

/// Turns for which room is made at once; when more follow, the table grows as it always does.
const TURNS_EXPECTED_MAX: usize = 1 << 17;

/// All indexes of the world.
#[derive(Resource)]
pub struct Index {
    keys: Keys,
    /// Agents and sessions are being restored: their indexes come whole at the end of that.
    loading: bool,
    agents: Roster,
    names: Slots,
    sessions: Slots,
    sessions_by_agent: BTreeSet<(Entity, SessionId)>,
    /// Sessions made for one request: known by their id, but in no list and no count. At most one for each open turn.
    hidden: BTreeSet<(Entity, SessionId)>,
    labels: HashMap<(Entity, Box<str>), Entity>,
    turns: HashMap<TurnId, Entity>,
    turns_by_agent: BTreeSet<(Entity, Entity)>,
}

/// Gives the hashes under which the indexes know names and ids; those of another world are others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Keys(u64);

impl Keys {
    /// Of an agent's name.
    pub(crate) fn name(self, name: &str) -> u64 {
        self.hash(name)
    }

    /// Of a session's id.
    pub(crate) fn session(self, id: SessionId) -> u64 {
        self.hash(&id)
    }

    fn hash(self, key: &(impl Hash + ?Sized)) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.0.hash(&mut hasher);
        key.hash(&mut hasher);
        hasher.finish()
    }
}

impl Index {
    pub(crate) fn new(hash_key: u64) -> Self {
        Self {
            keys: Keys(hash_key),
            loading: false,
            agents: Roster::default(),
            names: Slots::default(),
            sessions: Slots::default(),
            sessions_by_agent: BTreeSet::new(),
            hidden: BTreeSet::new(),
            labels: HashMap::new(),
            turns: HashMap::new(),
            turns_by_agent: BTreeSet::new(),
        }
    }

    /// How many agents live.
    #[must_use]
    pub fn agent_count(&self) -> usize {
        self.agents.len()
    }

    /// How many sessions there are.
    #[must_use]
    pub fn session_count(&self) -> usize {
        self.sessions_by_agent.len()
    }

    /// How many sessions made for one request there are.
    #[must_use]
    pub fn hidden_count(&self) -> usize {
        self.hidden.len()
    }

    /// How many turns are open.
    #[must_use]
    pub fn turn_count(&self) -> usize {
        self.turns.len()
    }

    /// Agents in order of creation, from after `after` on.
    pub(crate) fn agents_after(&self, after: Option<AgentId>) -> impl Iterator<Item = (AgentId, Entity)> + '_ {
        self.agents.after(after)
    }

    /// The agent that was created before all others.
    pub(crate) fn first_agent(&self) -> Option<Entity> {
        self.agents.first()
    }

    /// Sessions of one agent in order of id, from after `after` on.
    pub(crate) fn sessions_of(&self, agent: Entity, after: Option<SessionId>) -> impl Iterator<Item = SessionId> + '_ {
        self.sessions_after(Some((agent, after))).take_while(move |(owner, _)| *owner == agent).map(|(_, id)| id)
    }

    /// Sessions of all agents, from after a position on.
    pub(crate) fn sessions_after(
        &self,
        after: Option<(Entity, Option<SessionId>)>,
    ) -> impl Iterator<Item = (Entity, SessionId)> + '_ {
        use std::ops::Bound::{Excluded, Included, Unbounded};
        let from = match after {
            None => Unbounded,
            Some((agent, None)) => Included((agent, SessionId(uuid::Uuid::nil()))),
            Some((agent, Some(id))) => Excluded((agent, id)),
        };
        self.sessions_by_agent.range((from, Unbounded)).copied()
    }

    /// Sessions of one agent, the last made first, from before `before` on.
    pub(crate) fn sessions_before(
        &self,
        agent: Entity,
        before: Option<SessionId>,
    ) -> impl Iterator<Item = (Entity, SessionId)> + '_ {
        use std::ops::Bound::{Excluded, Included};
        let first = Included((agent, SessionId(uuid::Uuid::nil())));
        let end = before.map_or(Included((agent, SessionId(uuid::Uuid::max()))), |id| Excluded((agent, id)));
        self.sessions_by_agent.range((first, end)).rev().copied()
    }

    /// The hidden sessions of one agent.
    pub(crate) fn hidden_of(&self, agent: Entity) -> impl Iterator<Item = SessionId> + '_ {
        let from = (agent, SessionId(uuid::Uuid::nil()));
        self.hidden.range(from..).take_while(move |(owner, _)| *owner == agent).map(|(_, id)| *id)
    }

    /// The hidden sessions of all agents.
    pub(crate) fn hidden(&self) -> impl Iterator<Item = SessionId> + '_ {
        self.hidden.iter().map(|(_, id)| *id)
    }

    /// Open turns of one agent.
    pub(crate) fn turns_of(&self, agent: Entity) -> impl Iterator<Item = Entity> + '_ {
        let all = (agent, Entity::from_bits(1))..;
        self.turns_by_agent.range(all).take_while(move |(owner, _)| *owner == agent).map(|(_, turn)| *turn)
    }

    /// Open turns of all agents, from after an agent and its turn on.
    pub(crate) fn turns_after(&self, after: Option<(Entity, Entity)>) -> impl Iterator<Item = (Entity, Entity)> + '_ {
        use std::ops::Bound::{Excluded, Unbounded};
        self.turns_by_agent.range((after.map_or(Unbounded, Excluded), Unbounded)).copied()
    }

    /// Open turns of one agent, from after `after` on.
    pub(crate) fn turns_of_after(&self, agent: Entity, after: Option<Entity>) -> impl Iterator<Item = Entity> + '_ {
        use std::ops::Bound::{Excluded, Included, Unbounded};
        let from = after.map_or(Included((agent, Entity::from_bits(1))), |after| Excluded((agent, after)));
        self.turns_by_agent
            .range((from, Unbounded))
            .take_while(move |(owner, _)| *owner == agent)
            .map(|(_, turn)| *turn)
    }

    /// The session of `agent` that bears `label`.
    pub(crate) fn labelled(&self, agent: Entity, label: &str) -> Option<Entity> {
        self.labels.get(&(agent, Box::from(label))).copied()
    }

    pub(crate) fn insert_name(&mut self, name: &str, entity: Entity) {
        let hash = self.keys.name(name);
        self.names.insert(hash, entity);
    }

    pub(crate) fn remove_name(&mut self, name: &str, entity: Entity) {
        let hash = self.keys.name(name);
        self.names.remove(hash, entity);
    }

    pub(crate) fn insert_owned_session(&mut self, agent: Entity, id: SessionId) {
        self.sessions_by_agent.insert((agent, id));
    }

    /// What hashes names and ids.
    pub(crate) const fn keys(&self) -> Keys {
        self.keys
    }

    /// Agents and sessions that are made from here on come into their indexes with [`end_load`](Self::end_load)
    /// (restore).
    pub(crate) const fn begin_load(&mut self) {
        self.loading = true;
    }

    /// Takes in the agents of a world in the order of their ids, their names and all sessions at once (restore).
    pub(crate) fn end_load(&mut self, agents: Vec<(AgentId, Entity)>, names: Slots, sessions: Slots) {
        self.agents = Roster::of_sorted(agents);
        (self.names, self.sessions) = (names, sessions);
        self.loading = false;
    }

    /// Takes in the sorted owners of all sessions at once (restore).
    pub(crate) fn load_owned_sessions(&mut self, sorted: Vec<(Entity, SessionId)>) {
        self.sessions_by_agent = sorted.into_iter().collect();
    }

    pub(crate) fn insert_hidden_session(&mut self, agent: Entity, id: SessionId) {
        self.hidden.insert((agent, id));
    }

    /// Takes a session out of the lists, or of those that are in none.
    pub(crate) fn remove_owned_session(&mut self, agent: Entity, id: SessionId) {
        if !self.sessions_by_agent.remove(&(agent, id)) {
            self.hidden.remove(&(agent, id));
        }
    }

    /// Makes room for turns that a crowd of triggers is about to begin, so that the table is not moved again and again.
    pub(crate) fn expect_turns(&mut self, more: usize) {
        self.turns.reserve(more.min(TURNS_EXPECTED_MAX));
    }

    pub(crate) fn insert_owned_turn(&mut self, agent: Entity, turn: Entity) {
        self.turns_by_agent.insert((agent, turn));
    }

    pub(crate) fn remove_owned_turn(&mut self, agent: Entity, turn: Entity) {
        self.turns_by_agent.remove(&(agent, turn));
    }

    pub(crate) fn insert_label(&mut self, agent: Entity, label: Box<str>, session: Entity) {
        self.labels.insert((agent, label), session);
    }

    pub(crate) fn remove_label(&mut self, agent: Entity, label: &str) {
        self.labels.remove(&(agent, Box::from(label)));
    }
}

/// The agent `id`.
pub fn agent(world: &World, id: AgentId) -> Result<Entity, Refusal> {
    world.resource::<Index>().agents.get(id).ok_or_else(|| Refusal::not_found("agent", id))
}

/// The live agent called `name`.
#[must_use]
pub fn agent_named(world: &World, name: &str) -> Option<Entity> {
    let index = world.resource::<Index>();
    index.names.find(index.keys.name(name), |e| world.get::<Agent>(e).is_some_and(|a| &*a.name == name))
}

/// The session `id`, whoever owns it.
#[must_use]
pub fn session(world: &World, id: SessionId) -> Option<Entity> {
    let index = world.resource::<Index>();
    index.sessions.find(index.keys.session(id), |e| world.get::<SessionId>(e) == Some(&id))
}

/// The open turn `id`.
#[must_use]
pub fn turn(world: &World, id: TurnId) -> Option<Entity> {
    world.resource::<Index>().turns.get(&id).copied()
}

/// An entity's durable id. Every agent, session and turn entity has one from birth.
pub(crate) fn id_of<T: Component + Copy>(world: &World, entity: Entity) -> T {
    *world.get::<T>(entity).expect("an indexed entity carries its durable id")
}

/// Registers the hooks that keep the indexes and write the tombstones. Once, on an empty world.
pub(crate) fn register(world: &mut World) {
    world.register_component_hooks::<AgentId>().on_insert(agent_inserted).on_remove(agent_removed);
    world.register_component_hooks::<SessionId>().on_insert(session_inserted).on_remove(session_removed);
    world.register_component_hooks::<TurnId>().on_insert(turn_inserted).on_remove(turn_removed);
}

fn agent_inserted(mut world: DeferredWorld<'_>, at: HookContext) {
    if world.resource::<Index>().loading {
        return;
    }
    let Some(id) = world.get::<AgentId>(at.entity).copied() else { return };
    world.resource_mut::<Index>().agents.insert(id, at.entity);
}

fn agent_removed(mut world: DeferredWorld<'_>, at: HookContext) {
    let Some(id) = world.get::<AgentId>(at.entity).copied() else { return };
    world.resource_mut::<Index>().agents.remove(id);
    world.resource_mut::<Outbox>().ops.push(record::remove::<AgentRecord>(id));
}

fn session_inserted(mut world: DeferredWorld<'_>, at: HookContext) {
    if world.resource::<Index>().loading {
        return;
    }
    let Some(id) = world.get::<SessionId>(at.entity).copied() else { return };
    let mut index = world.resource_mut::<Index>();
    let hash = index.keys.session(id);
    index.sessions.insert(hash, at.entity);
}

fn session_removed(mut world: DeferredWorld<'_>, at: HookContext) {
    let Some(id) = world.get::<SessionId>(at.entity).copied() else { return };
    let owner = world.get::<Session>(at.entity).map(|session| session.agent);
    let mut index = world.resource_mut::<Index>();
    let hash = index.keys.session(id);
    index.sessions.remove(hash, at.entity);
    if let Some(owner) = owner {
        index.remove_owned_session(owner, id);
    }
    world.resource_mut::<Outbox>().ops.push(record::remove::<SessionRecord>(id));
}

fn turn_inserted(mut world: DeferredWorld<'_>, at: HookContext) {
    let Some(id) = world.get::<TurnId>(at.entity).copied() else { return };
    world.resource_mut::<Index>().turns.insert(id, at.entity);
}

fn turn_removed(mut world: DeferredWorld<'_>, at: HookContext) {
    let Some(id) = world.get::<TurnId>(at.entity).copied() else { return };
    world.resource_mut::<Index>().turns.remove(&id);
    world.resource_mut::<Outbox>().ops.push(record::remove::<TurnRecord>(id));
}
