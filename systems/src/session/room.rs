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
use crate::kernel::index::{self, Index};
use crate::kernel::outbox::Emit;
use crate::kernel::share;
use crate::people::{family_of, holder_of};

/// What sessions take of families and users. Those without any have no entry.
#[derive(Resource, Default)]
pub(crate) struct Stored {
    /// By family, the sessions of those below its top; the agent at the top has a sum of its own.
    below: BTreeMap<AgentId, Taken>,
    users: BTreeMap<UserId, Taken>,
    /// By agent, those that strangers began.
    strangers: BTreeMap<Entity, Taken>,
}

/// What sessions take together, or so much more or less. Those made for one request count by their bytes alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Taken {
    /// How many they are.
    pub(crate) sessions: i64,
    /// Bytes of their rows.
    pub(crate) bytes: i64,
    /// Those of them in sessions that strangers began.
    pub(crate) strangers: i64,
}

impl Taken {
    /// One session more.
    pub(super) const ONE: Self = Self { sessions: 1, bytes: 0, strangers: 0 };

    const fn of_bytes(bytes: i64, is_strangers: bool) -> Self {
        Self { sessions: 0, bytes, strangers: if is_strangers { bytes } else { 0 } }
    }

    /// What an agent has.
    pub(crate) fn by(index: &Index, stored: &Stored, at: Entity, agent: &Agent) -> Self {
        let sessions = i64::try_from(index.session_count_of(at)).unwrap_or(i64::MAX);
        let strangers = stored.strangers.get(&at).map_or(0, |taken| taken.strangers);
        Self { sessions, bytes: agent.stored.cast_signed(), strangers }
    }

    /// So much less.
    pub(crate) const fn less(self) -> Self {
        Self { sessions: -self.sessions, bytes: -self.bytes, strangers: -self.strangers }
    }

    /// Both together; never less than nothing.
    fn and(self, more: Self) -> Self {
        let sum = |one: i64, other: i64| one.saturating_add(other).max(0);
        Self {
            sessions: sum(self.sessions, more.sessions),
            bytes: sum(self.bytes, more.bytes),
            strangers: sum(self.strangers, more.strangers),
        }
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
        self.below.is_empty() && self.users.is_empty() && self.strangers.is_empty()
    }
}

fn add<K: Ord>(sums: &mut BTreeMap<K, Taken>, key: K, more: Taken) {
    if more == Taken::default() {
        return;
    }
    let sum = sums.get(&key).copied().unwrap_or_default().and(more);
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
    let (owner, more, is_strangers) = (home.agent, home.stored - before, home.is_strangers);
    change(world, owner, Taken::of_bytes(bytes_of(more).cast_signed(), is_strangers));
    world.mark(session);
}

/// The rows of a session go.
pub(super) fn release(world: &mut World, session: Entity) {
    let Some(mut home) = world.get_mut::<Session>(session) else { return };
    let (owner, all, is_strangers) = (home.agent, std::mem::take(&mut home.stored), home.is_strangers);
    change(world, owner, Taken::of_bytes(-bytes_of(all).cast_signed(), is_strangers));
}

/// The session is one that strangers began from here on, or no longer: its rows count for their share, or not.
pub(super) fn set_strangers(world: &mut World, session: Entity, is_strangers: bool) {
    let Some(mut home) = world.get_mut::<Session>(session).filter(|home| home.is_strangers != is_strangers) else {
        return;
    };
    home.is_strangers = is_strangers;
    let (owner, bytes) = (home.agent, bytes_of(home.stored).cast_signed());
    change(world, owner, Taken { strangers: if is_strangers { bytes } else { -bytes }, ..Taken::default() });
    world.mark(session);
}

/// Counts what a session of the agent had stored when the daemon ended.
pub(crate) fn restore_stored(world: &mut World, agent: Entity, units: u32, is_strangers: bool) {
    if units > 0 {
        change(world, agent, Taken::of_bytes(bytes_of(units).cast_signed(), is_strangers));
    }
}

/// Counts the sessions that an agent had when the daemon ended; their rows have counted.
pub(crate) fn restore_count(world: &mut World, agent: Entity) {
    let Some(Taken { sessions, .. }) = taken_by(world, agent) else { return };
    change(world, agent, Taken { sessions, ..Taken::default() });
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
    let (index, stored) = (world.resource::<Index>(), world.resource::<Stored>());
    world.get::<Agent>(agent).map(|its| Taken::by(index, stored, agent, its))
}

/// What the sessions of a family take.
pub(super) fn taken_by_family(world: &World, family: AgentId) -> Taken {
    let top = index::agent(world, family).ok().and_then(|top| taken_by(world, top)).unwrap_or_default();
    top.and(world.resource::<Stored>().below.get(&family).copied().unwrap_or_default())
}

/// What the sessions of a user's agents take.
pub(super) fn taken_by_user(world: &World, user: UserId) -> Taken {
    world.resource::<Stored>().users.get(&user).copied().unwrap_or_default()
}

/// Refuses a further session of an agent whose user or family has as many as it may.
pub(super) fn admit(world: &World, agent: Entity) -> Result<(), Refusal> {
    let holder = holder_of(world, agent);
    let taken = match holder {
        Holder::User(user) => taken_by_user(world, user),
        Holder::Family(family) => taken_by_family(world, family),
    };
    let most = SESSIONS_MAX / POOL_SHARES;
    if usize::try_from(taken.sessions).unwrap_or(0) < most {
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
    let of_strangers = Taken { strangers: more.strangers, ..Taken::default() };
    add(&mut world.resource_mut::<Stored>().strangers, agent, of_strangers);
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
    let settings = world.resource::<Settings>();
    let full = |whose: &str, most: u64, key: &str| {
        let text = format!(
            "the sessions of {whose} take as much of the store as they may ({most} bytes, `[sessions] {key}`); delete some first"
        );
        Err(Refusal::of(SESSION_STORAGE_FULL, text))
    };
    let taken = taken_by_family(world, family_of(world, agent));
    if taken.bytes.cast_unsigned() >= settings.family_sessions_max_bytes {
        return full(
            "this agent, and of the agents that it and they spawned,",
            settings.family_sessions_max_bytes,
            "family_max_bytes",
        );
    }
    let of_user = world.get::<OwnedBy>(agent).map_or_else(Taken::default, |by| taken_by_user(world, by.0));
    if of_user.bytes.cast_unsigned() >= settings.user_sessions_max_bytes {
        return full("the user's agents", settings.user_sessions_max_bytes, "user_max_bytes");
    }
    Ok(())
}

/// Says where sums are not those of a full scan.
pub(super) fn check(world: &mut World, faults: &mut Faults) {
    let mut of_agents = BTreeMap::new();
    for session in world.query::<&Session>().iter(world) {
        let of_agent: &mut Taken = of_agents.entry(session.agent).or_default();
        let sessions = i64::from(!session.ephemeral);
        let bytes = Taken::of_bytes(bytes_of(session.stored).cast_signed(), session.is_strangers);
        *of_agent = of_agent.and(Taken { sessions, ..bytes });
    }
    let (mut below, mut users, mut strangers) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    let mut agents = world.query::<(Entity, &Agent, Option<&SpawnedBy>, Option<&OwnedBy>)>();
    let world = &*world;
    for (at, agent, spawned, owned) in agents.iter(world) {
        let taken = of_agents.get(&at).copied().unwrap_or_default();
        let sum = taken.bytes.cast_unsigned();
        add(&mut strangers, at, Taken { strangers: taken.strangers, ..Taken::default() });
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
    faults.same("sessions that strangers began", &stored.strangers, &strangers);
}
