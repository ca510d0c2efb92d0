//! What the agents of a family, or of a user with a limited role, remember together: their memory, entries and knowledge. Domains
//! that keep such content count it here, so that no family and no user fills the disk with many agents. Nothing walks over the
//! agents of a user: sums follow each change, and each change of hands.

use std::collections::BTreeMap;

use agentsvc_components::agent::OwnedBy;
use agentsvc_components::kernel::id::UserId;
use agentsvc_components::{AgentId, ErrorCode, Refusal};
use bevy_ecs::prelude::{Entity, Resource, World};

use crate::agent::{OwnerChanged, family_of, limit_of};
use crate::config::Settings;
use crate::kernel::check::Faults;
use crate::kernel::index;

/// Bytes that agents remember. Those without any have no entry.
#[derive(Resource, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Remembered {
    of: BTreeMap<AgentId, u64>,
    /// By family, those of the agent at its top included.
    families: BTreeMap<AgentId, u64>,
    /// By user, whatever their role is: it may change.
    users: BTreeMap<UserId, u64>,
}

impl Remembered {
    fn add(&mut self, agent: AgentId, family: AgentId, user: Option<UserId>, bytes: i64) {
        add(&mut self.of, agent, bytes);
        add(&mut self.families, family, bytes);
        if let Some(user) = user {
            add(&mut self.users, user, bytes);
        }
    }
}

fn add<K: Ord>(sums: &mut BTreeMap<K, u64>, key: K, bytes: i64) {
    let sum = sums.get(&key).copied().unwrap_or_default().saturating_add_signed(bytes);
    if sum == 0 {
        sums.remove(&key);
    } else {
        sums.insert(key, sum);
    }
}

fn user_of(world: &World, agent: Entity) -> Option<UserId> {
    world.get::<OwnedBy>(agent).map(|by| by.0)
}

/// An agent remembers so many bytes more, or fewer.
pub(crate) fn count(world: &mut World, agent: AgentId, bytes: i64) {
    let Ok(entity) = index::agent(world, agent) else { return };
    let (family, user) = (family_of(world, entity), user_of(world, entity));
    world.resource_mut::<Remembered>().add(agent, family, user, bytes);
}

/// The agent goes, with all that it remembered.
pub(super) fn forget(world: &mut World, agent: AgentId) {
    let all = world.resource::<Remembered>().of.get(&agent).copied().unwrap_or_default();
    count(world, agent, -all.cast_signed());
}

/// What an agent remembers goes with it into other hands.
pub(super) fn hand_over(world: &mut World, changed: &OwnerChanged) {
    let mut remembered = world.resource_mut::<Remembered>();
    let all = remembered.of.get(&changed.agent).copied().unwrap_or_default().cast_signed();
    for (user, bytes) in [(changed.change.before, -all), (changed.change.now, all)] {
        if let Some(user) = user {
            add(&mut remembered.users, user, bytes);
        }
    }
}

/// Refuses so many bytes more where the agents of its family or user have no room for them.
pub(crate) fn admit(world: &World, agent: AgentId, more: i64, code: ErrorCode) -> Result<(), Refusal> {
    let entity = index::agent(world, agent)?;
    let (remembered, most) = (world.resource::<Remembered>(), world.resource::<Settings>().family_memory_max_bytes);
    let taken = match limit_of(world, entity) {
        Some(user) => remembered.users.get(&user),
        None => remembered.families.get(&family_of(world, entity)),
    };
    if more <= 0 || taken.copied().unwrap_or_default().saturating_add_signed(more) <= most {
        return Ok(());
    }
    let text = format!(
        "the agents of the same user, or those spawned below the same agent and that agent, remember as much as they may \
         together ({most} bytes, `[proactive_memory] family_max_bytes`); delete some entries first"
    );
    Err(Refusal::of(code, text))
}

/// Gives the bytes that a domain keeps of each agent to the function, from the domain's own numbers.
pub(crate) type Sums = fn(&World, &mut dyn FnMut(AgentId, u64));

/// The numbers of all domains that count here.
#[derive(Resource, Default)]
struct Counted(Vec<Sums>);

/// The domain counts here, and [`check`] compares what it counted with `sums`. For `install` functions.
pub(crate) fn counts_also(world: &mut World, sums: Sums) {
    world.get_resource_or_insert_with(Counted::default).0.push(sums);
}

/// Says where sums are not those of all agents, or not those of what the domains keep.
pub(super) fn check(world: &mut World, faults: &mut Faults) {
    let remembered = world.resource::<Remembered>();
    let mut kept = BTreeMap::new();
    for sums in &world.resource::<Counted>().0 {
        // A row of an agent that is gone is for its own domain to find.
        sums(world, &mut |agent, bytes| {
            if index::agent(world, agent).is_ok() {
                add(&mut kept, agent, bytes.cast_signed());
            }
        });
    }
    faults.same("bytes that agents remember", &remembered.of, &kept);
    let mut scan = Remembered::default();
    for (agent, bytes) in &remembered.of {
        match index::agent(world, *agent) {
            Ok(entity) => scan.add(*agent, family_of(world, entity), user_of(world, entity), bytes.cast_signed()),
            Err(_) => faults.that(false, || format!("agent {agent} is gone and remembers {bytes} bytes")),
        }
    }
    faults.same("bytes that families remember", &remembered.families, &scan.families);
    faults.same("bytes that users' agents remember", &remembered.users, &scan.users);
}
