//! How much of the store sessions take: each by its rows, and together those of an agent, of a family and of a user. A family
//! and a user may take so much. Nothing scans: a row counts when it is written, and no more when its session lets go of it.

use std::collections::BTreeMap;

use agentsvc_components::agent::{Agent, OwnedBy, SpawnedBy};
use agentsvc_components::kernel::id::UserId;
use agentsvc_components::kernel::record::Op;
use agentsvc_components::session::{STORED_UNIT, Session};
use agentsvc_components::{AgentId, Refusal};
use bevy_ecs::prelude::{DetectChangesMut, Entity, Resource, World};

use super::error_codes::SESSION_STORAGE_FULL;
use crate::config::Settings;
use crate::kernel::check::Faults;
use crate::kernel::index::id_of;
use crate::kernel::outbox::Emit;
use crate::people::family_of;

/// What sessions take of families and users. Those without any have no entry.
#[derive(Resource, Default)]
pub(crate) struct Stored {
    /// By family, the sessions of those below its top; the agent at the top has a sum of its own.
    below: BTreeMap<AgentId, u64>,
    users: BTreeMap<UserId, u64>,
}

impl Stored {
    /// The sessions of a user take more, or less.
    pub(crate) fn of_user(&mut self, user: UserId, bytes: i64) {
        add(&mut self.users, user, bytes);
    }

    /// Has nobody anything?
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.below.is_empty() && self.users.is_empty()
    }
}

fn add<K: Ord>(sums: &mut BTreeMap<K, u64>, key: K, bytes: i64) {
    if bytes == 0 {
        return;
    }
    let sum = sums.get(&key).copied().unwrap_or(0).saturating_add_signed(bytes);
    if sum == 0 {
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
    change(world, owner, bytes_of(more).cast_signed());
    world.mark(session);
}

/// The rows of a session go.
pub(super) fn release(world: &mut World, session: Entity) {
    let Some(mut home) = world.get_mut::<Session>(session) else { return };
    let (owner, all) = (home.agent, std::mem::take(&mut home.stored));
    change(world, owner, -bytes_of(all).cast_signed());
}

/// Counts what a session of the agent had stored when the daemon ended.
pub(crate) fn restore_stored(world: &mut World, agent: Entity, units: u32) {
    if units > 0 {
        change(world, agent, bytes_of(units).cast_signed());
    }
}

const fn bytes_of(units: u32) -> u64 {
    units as u64 * STORED_UNIT
}

fn change(world: &mut World, agent: Entity, bytes: i64) {
    let Some(mut owner) = world.get_mut::<Agent>(agent) else { return };
    // Its record has no such field.
    let owner = owner.bypass_change_detection();
    owner.stored = owner.stored.saturating_add_signed(bytes);
    let family = world.get::<SpawnedBy>(agent).map(|_| family_of(world, agent));
    let user = world.get::<OwnedBy>(agent).map(|by| by.0);
    let mut stored = world.resource_mut::<Stored>();
    if let Some(family) = family {
        add(&mut stored.below, family, bytes);
    }
    if let Some(user) = user {
        stored.of_user(user, bytes);
    }
}

/// Refuses what would store more in sessions of the agent where its family, or its user, has no room.
pub(crate) fn has_room(world: &World, agent: Entity) -> Result<(), Refusal> {
    let (stored, settings) = (world.resource::<Stored>(), world.resource::<Settings>());
    let own = |agent: Entity| world.get::<Agent>(agent).map_or(0, |agent| agent.stored);
    let family = if world.get::<SpawnedBy>(agent).is_some() { family_of(world, agent) } else { id_of(world, agent) };
    let top = crate::kernel::index::agent(world, family).map_or(0, own);
    let taken = top.saturating_add(stored.below.get(&family).copied().unwrap_or(0));
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
    let of_user = world.get::<OwnedBy>(agent).and_then(|by| stored.users.get(&by.0)).copied().unwrap_or(0);
    if of_user >= settings.user_sessions_max_bytes {
        return full("the user's agents", settings.user_sessions_max_bytes, "user_max_bytes");
    }
    Ok(())
}

/// Says where sums are not those of a full scan.
pub(super) fn check(world: &mut World, faults: &mut Faults) {
    let mut of_agents = BTreeMap::new();
    for session in world.query::<&Session>().iter(world) {
        *of_agents.entry(session.agent).or_insert(0) += bytes_of(session.stored);
    }
    let (mut below, mut users) = (BTreeMap::new(), BTreeMap::new());
    let mut agents = world.query::<(Entity, &Agent, Option<&SpawnedBy>, Option<&OwnedBy>)>();
    let world = &*world;
    for (at, agent, spawned, owned) in agents.iter(world) {
        let sum = of_agents.get(&at).copied().unwrap_or(0);
        faults.that(agent.stored == sum, || {
            format!("the sessions of agent {:?} take {sum} bytes, and it says {}", agent.name, agent.stored)
        });
        if spawned.is_some() {
            add(&mut below, family_of(world, at), sum.cast_signed());
        }
        if let Some(OwnedBy(user)) = owned {
            add(&mut users, *user, sum.cast_signed());
        }
    }
    let stored = world.resource::<Stored>();
    faults.same("bytes of sessions below the tops of families", &stored.below, &below);
    faults.same("bytes of sessions of users", &stored.users, &users);
}
