//! How much sessions take: of the store each by its rows, and together, as many as there are, those of an agent, of a family and of
//! a user. A family and a user may take so much. Nothing scans: a row counts when it is written, and no more when its session
//! lets go of it.

use std::collections::BTreeMap;

use agentsvc_components::agent::{Agent, OwnedBy, SpawnedBy};
use agentsvc_components::kernel::holder::Holder;
use agentsvc_components::kernel::id::UserId;
use agentsvc_components::kernel::limit::POOL_SHARES;
use agentsvc_components::kernel::record::Op;
use agentsvc_components::session::{STORED_UNIT, Session};
use agentsvc_components::{AgentId, Refusal};
use bevy_ecs::prelude::{DetectChangesMut, Entity, Resource, World};

use super::error_codes::{SESSION_STORAGE_FULL, SESSIONS_FULL};
use super::limits::SESSIONS_MAX;
use crate::config::Settings;
use crate::kernel::check::Faults;
use crate::kernel::index::{self, Index, id_of};
use crate::kernel::outbox::Emit;
use crate::kernel::share;
use crate::people::{family_of, holder_of};

/// What sessions take of families and users. Those without any have no entry.
#[derive(Resource, Default)]
pub(crate) struct Stored {
    /// By family, the sessions of those below its top; the agent at the top has a sum of its own.
    below: BTreeMap<AgentId, Taken>,
    users: BTreeMap<UserId, Taken>,
}

/// What sessions take together, or so much more or less. Those made for one request count by their bytes alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Taken {
    /// How many they are.
    pub(crate) sessions: i64,
    /// Bytes of their rows.
    pub(crate) bytes: i64,
}

impl Taken {
    /// One session more.
    pub(super) const ONE: Self = Self { sessions: 1, bytes: 0 };

    const fn of_bytes(bytes: i64) -> Self {
        Self { sessions: 0, bytes }
    }

    /// What an agent has.
    pub(crate) fn by(index: &Index, at: Entity, agent: &Agent) -> Self {
        let sessions = i64::try_from(index.session_count_of(at)).unwrap_or(i64::MAX);
        Self { sessions, bytes: agent.stored.cast_signed() }
    }

    /// So much less.
    pub(crate) const fn less(self) -> Self {
        Self { sessions: -self.sessions, bytes: -self.bytes }
    }
}

impl Stored {
    /// The sessions of a user take more, or less.
    pub(crate) fn of_user(&mut self, user: UserId, more: Taken) {
        add(&mut self.users, user, more);
    }

    /// Has nobody anything?
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.below.is_empty() && self.users.is_empty()
    }
}

fn add<K: Ord>(sums: &mut BTreeMap<K, Taken>, key: K, more: Taken) {
    if more == Taken::default() {
        return;
    }
    let sum = sums.get(&key).copied().unwrap_or_default();
    let sum = Taken { sessions: (sum.sessions + more.sessions).max(0), bytes: (sum.bytes + more.bytes).max(0) };
    if sum == Taken::default() {
        sums.remove(&key);
    } else {
        sums.insert(key, sum);
    }
}

pub(super) fn install(world: &mut World) {
    world.init_resource::<Stored>();
}

/// Writes a row of a session's log. Whoever does marks the session.
pub(crate) fn put_row(world: &mut World, session: Entity, op: Op) {
    grow(world, session, op.key.len() + op.value.as_ref().map_or(0, Vec::len));
    world.op(op);
}

/// A row of so many bytes is written for a session.
pub(crate) fn grow(world: &mut World, session: Entity, bytes: usize) {
    let units = u32::try_from((bytes as u64).div_ceil(STORED_UNIT)).unwrap_or(u32::MAX);
    let Some(mut home) = world.get_mut::<Session>(session) else { return };
    let before = home.stored;
    home.stored = before.saturating_add(units);
    let (owner, more) = (home.agent, home.stored - before);
    change(world, owner, Taken::of_bytes(bytes_of(more).cast_signed()));
    world.mark(session);
}

/// The rows of a session go.
pub(super) fn release(world: &mut World, session: Entity) {
    let Some(mut home) = world.get_mut::<Session>(session) else { return };
    let (owner, all) = (home.agent, std::mem::take(&mut home.stored));
    change(world, owner, Taken::of_bytes(-bytes_of(all).cast_signed()));
}

/// Counts what a session of the agent had stored when the daemon ended.
pub(crate) fn restore_stored(world: &mut World, agent: Entity, units: u32) {
    if units > 0 {
        change(world, agent, Taken::of_bytes(bytes_of(units).cast_signed()));
    }
}

/// Counts the sessions that an agent had when the daemon ended; their rows have counted.
pub(crate) fn restore_count(world: &mut World, agent: Entity) {
    let Some(Taken { sessions, .. }) = taken_by(world, agent) else { return };
    change(world, agent, Taken { sessions, bytes: 0 });
}

/// What the sessions of an agent take counts for its family from here on.
pub(crate) fn enter_family(world: &mut World, agent: Entity) {
    let Some(taken) = taken_by(world, agent).filter(|_| world.get::<SpawnedBy>(agent).is_some()) else { return };
    let family = family_of(world, agent);
    add(&mut world.resource_mut::<Stored>().below, family, taken);
}

/// An agent leaves its family and its user: what its sessions take counts for neither any more.
pub(crate) fn leave_kin(world: &mut World, agent: Entity) {
    if let Some(taken) = taken_by(world, agent).filter(|_| world.get::<SpawnedBy>(agent).is_some()) {
        let family = family_of(world, agent);
        add(&mut world.resource_mut::<Stored>().below, family, taken.less());
    }
    // The hook of the owner takes what is the user's.
    world.entity_mut(agent).remove::<(SpawnedBy, OwnedBy)>();
}

fn taken_by(world: &World, agent: Entity) -> Option<Taken> {
    world.get::<Agent>(agent).map(|its| Taken::by(world.resource::<Index>(), agent, its))
}

/// Refuses a further session of an agent whose user or family has as many as it may.
pub(super) fn admit(world: &World, agent: Entity) -> Result<(), Refusal> {
    let (stored, holder) = (world.resource::<Stored>(), holder_of(world, agent));
    let taken = match holder {
        Holder::User(user) => stored.users.get(&user).map_or(0, |taken| taken.sessions),
        Holder::Family(family) => {
            let top = index::agent(world, family).ok().and_then(|top| taken_by(world, top));
            top.map_or(0, |top| top.sessions) + stored.below.get(&family).map_or(0, |taken| taken.sessions)
        }
    };
    let most = SESSIONS_MAX / POOL_SHARES;
    if usize::try_from(taken).unwrap_or(0) < most {
        Ok(())
    } else {
        Err(share::full(holder, most, "sessions", SESSIONS_FULL))
    }
}

const fn bytes_of(units: u32) -> u64 {
    units as u64 * STORED_UNIT
}

/// The sessions of an agent take more, or less.
pub(super) fn change(world: &mut World, agent: Entity, more: Taken) {
    let Some(mut owner) = world.get_mut::<Agent>(agent) else { return };
    // Its record has no such field.
    let owner = owner.bypass_change_detection();
    owner.stored = owner.stored.saturating_add_signed(more.bytes);
    let family = world.get::<SpawnedBy>(agent).map(|_| family_of(world, agent));
    let user = world.get::<OwnedBy>(agent).map(|by| by.0);
    let mut stored = world.resource_mut::<Stored>();
    if let Some(family) = family {
        add(&mut stored.below, family, more);
    }
    if let Some(user) = user {
        stored.of_user(user, more);
    }
}

/// Refuses what would store more in sessions of the agent where its family, or its user, has no room.
pub(crate) fn has_room(world: &World, agent: Entity) -> Result<(), Refusal> {
    let (stored, settings) = (world.resource::<Stored>(), world.resource::<Settings>());
    let own = |agent: Entity| world.get::<Agent>(agent).map_or(0, |agent| agent.stored);
    let family = if world.get::<SpawnedBy>(agent).is_some() { family_of(world, agent) } else { id_of(world, agent) };
    let top = index::agent(world, family).map_or(0, own);
    let bytes = |taken: Option<&Taken>| taken.map_or(0, |taken| taken.bytes.cast_unsigned());
    let taken = top.saturating_add(bytes(stored.below.get(&family)));
    let full = |whose: &str, most: u64, key: &str| {
        let text = format!(
            "the sessions of {whose} take as much of the store as they may ({most} bytes, `[sessions] {key}`); delete some first"
        );
        Err(Refusal::of(SESSION_STORAGE_FULL, text))
    };
    if taken >= settings.family_sessions_max_bytes {
        return full(
            "this agent, and of the agents that it and they spawned,",
            settings.family_sessions_max_bytes,
            "family_max_bytes",
        );
    }
    let of_user = bytes(world.get::<OwnedBy>(agent).and_then(|by| stored.users.get(&by.0)));
    if of_user >= settings.user_sessions_max_bytes {
        return full("the user's agents", settings.user_sessions_max_bytes, "user_max_bytes");
    }
    Ok(())
}

/// Says where sums are not those of a full scan.
pub(super) fn check(world: &mut World, faults: &mut Faults) {
    let mut of_agents = BTreeMap::new();
    for session in world.query::<&Session>().iter(world) {
        let (sessions, bytes) = of_agents.entry(session.agent).or_insert((0, 0));
        *sessions += i64::from(!session.ephemeral);
        *bytes += bytes_of(session.stored);
    }
    let (mut below, mut users) = (BTreeMap::new(), BTreeMap::new());
    let mut agents = world.query::<(Entity, &Agent, Option<&SpawnedBy>, Option<&OwnedBy>)>();
    let world = &*world;
    for (at, agent, spawned, owned) in agents.iter(world) {
        let (sessions, sum) = of_agents.get(&at).copied().unwrap_or((0, 0));
        let taken = Taken { sessions, bytes: sum.cast_signed() };
        faults.that(agent.stored == sum, || {
            format!("the sessions of agent {:?} take {sum} bytes, and it says {}", agent.name, agent.stored)
        });
        if spawned.is_some() {
            add(&mut below, family_of(world, at), taken);
        }
        if let Some(OwnedBy(user)) = owned {
            add(&mut users, *user, taken);
        }
    }
    let stored = world.resource::<Stored>();
    faults.same("sessions below the tops of families", &stored.below, &below);
    faults.same("sessions of users", &stored.users, &users);
}
