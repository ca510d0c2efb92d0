//! From durable ids, names and labels to entities. Kept by component hooks and by the commands that own them.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use bevy_ecs::prelude::{Component, Entity, Resource, World};
use hashbrown::HashMap;

use agentsvc_components::{AgentId, Refusal, SessionId, TurnId};

mod hash_index;
mod id_index;

pub(crate) use hash_index::HashIndex;
use id_index::IdIndex;

/// Turns for which room is made at once; when more follow, the table grows as it always does.
const TURNS_EXPECTED_MAX: usize = 1 << 17;

/// All indexes of the world.
#[derive(Resource)]
pub struct Index {
    keys: Keys,
    /// Agents and sessions are being restored: their indexes come whole at the end of that.
    pub(crate) loading: bool,
    pub(crate) agents: IdIndex,
    pub(crate) names: HashIndex,
    pub(crate) sessions: HashIndex,
    pub(crate) sessions_by_agent: BTreeSet<(Entity, SessionId)>,
    /// How many sessions beyond their first those agents have that have several.
    pub(crate) more_sessions: HashMap<Entity, usize>,
    /// Sessions made for one request: known by their id, but in no list and no count. At most one for each open turn.
    pub(crate) hidden: BTreeSet<(Entity, SessionId)>,
    pub(crate) labels: HashMap<(Entity, Box<str>), Entity>,
    pub(crate) turns: HashMap<TurnId, Entity>,
    pub(crate) turns_by_agent: BTreeSet<(Entity, Entity)>,
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
            agents: IdIndex::default(),
            names: HashIndex::default(),
            sessions: HashIndex::default(),
            sessions_by_agent: BTreeSet::new(),
            more_sessions: HashMap::new(),
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

    /// How many sessions an agent has.
    #[must_use]
    pub fn session_count_of(&self, agent: Entity) -> usize {
        let more = self.more_sessions.get(&agent).copied();
        more.map_or_else(|| usize::from(self.sessions_of(agent, None).next().is_some()), |more| more + 1)
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

    /// What hashes names and ids.
    pub(crate) const fn keys(&self) -> Keys {
        self.keys
    }

    /// Takes in the agents of a world in the order of their ids, their names and all sessions at once (restore).
    pub(crate) fn end_load(&mut self, agents: Vec<(AgentId, Entity)>, names: HashIndex, sessions: HashIndex) {
        self.agents = IdIndex::of_sorted(agents);
        (self.names, self.sessions) = (names, sessions);
        self.loading = false;
    }

    /// Takes in the listed sessions of all agents at once (restore).
    pub(crate) fn set_owned_sessions(&mut self, mut owned: Vec<(Entity, SessionId)>) {
        owned.sort_unstable();
        self.more_sessions = beyond_first(&owned);
        self.sessions_by_agent = owned.into_iter().collect();
    }

    /// Takes a session into the lists.
    pub(crate) fn insert_owned_session(&mut self, agent: Entity, id: SessionId) {
        if self.session_count_of(agent) > 0 {
            *self.more_sessions.entry(agent).or_default() += 1;
        }
        self.sessions_by_agent.insert((agent, id));
    }

    /// Takes a session out of the lists, or of those that are in none.
    pub(crate) fn remove_owned_session(&mut self, agent: Entity, id: SessionId) {
        if !self.sessions_by_agent.remove(&(agent, id)) {
            self.hidden.remove(&(agent, id));
        } else if let Some(more) = self.more_sessions.get_mut(&agent) {
            *more -= 1;
            if *more == 0 {
                self.more_sessions.remove(&agent);
            }
        }
    }

    /// Makes room for turns that a crowd of triggers is about to begin, so that the table is not moved again and again.
    pub(crate) fn expect_turns(&mut self, more: usize) {
        self.turns.reserve(more.min(TURNS_EXPECTED_MAX));
    }

    pub(crate) fn remove_label(&mut self, agent: Entity, label: &str) {
        self.labels.remove(&(agent, Box::from(label)));
    }
}

/// How many sessions beyond their first those agents have that have several; `sorted` by agent.
pub(crate) fn beyond_first(sorted: &[(Entity, SessionId)]) -> HashMap<Entity, usize> {
    let by_agent = sorted.chunk_by(|(one, _), (other, _)| one == other);
    by_agent.filter(|own| own.len() > 1).map(|own| (own[0].0, own.len() - 1)).collect()
}

/// The agent `id`.
pub fn agent(world: &World, id: AgentId) -> Result<Entity, Refusal> {
    world.resource::<Index>().agents.get(id).ok_or_else(|| Refusal::not_found("agent", id))
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
