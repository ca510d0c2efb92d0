//! Agents that agents spawned: who may spawn how many, and who may kill whom.

use std::collections::{BTreeSet, VecDeque};

use bevy_ecs::prelude::{Entity, Resource, World};
use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

use agentsvc_components::agent::{Agent, SpawnedBy};
use agentsvc_components::kernel::limit;
use agentsvc_components::manifest::Manifest;
use agentsvc_components::{AgentId, Refusal, RefusalKind, TurnId};

use super::remove::remove;
use super::show::reached_as;
use super::spawn::spawn;
use super::{SpawnAgent, Spawned, limits};
use crate::kernel::check::Faults;
use crate::kernel::command::{Answer, command};
use crate::kernel::index::{self, id_of};
use crate::kernel::outbox::Emit;
use crate::manifest::{self, bound_child};
use crate::people::{ancestors, family_of};
use crate::session;

/// The live agents that each agent spawned. An entry lives as long as its child.
#[derive(Resource, Default)]
pub(crate) struct Family(HashMap<AgentId, Vec<AgentId>>);

/// Says where the children of agents are not counted right ([`check`](crate::kernel::check)).
pub(crate) fn check(world: &mut World, faults: &mut Faults) {
    let mut spawned = world.query::<(&AgentId, &SpawnedBy)>();
    let world = &*world;
    let scan: BTreeSet<(AgentId, AgentId)> = spawned.iter(world).map(|(id, by)| (by.0, *id)).collect();
    let family = &world.resource::<Family>().0;
    let known = family.iter().flat_map(|(parent, children)| children.iter().map(|child| (*parent, *child))).collect();
    faults.same("agents spawned by agents", &known, &scan);
}

impl Family {
    /// A child was born, or restored.
    pub(crate) fn insert(&mut self, parent: AgentId, child: AgentId) {
        self.0.entry(parent).or_default().push(child);
    }

    /// The live agents below one.
    fn below(&self, top: AgentId) -> impl Iterator<Item = AgentId> + '_ {
        let mut found = VecDeque::from([top]);
        std::iter::from_fn(move || {
            let next = found.pop_front()?;
            found.extend(self.0.get(&next).into_iter().flatten());
            Some(next)
        })
        .skip(1)
    }

    /// A child is gone.
    pub(crate) fn remove(&mut self, parent: AgentId, child: AgentId) {
        if let Some(children) = self.0.get_mut(&parent) {
            children.retain(|other| *other != child);
            if children.is_empty() {
                self.0.remove(&parent);
            }
        }
    }
}

/// Spawns an agent on behalf of another, which it never exceeds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SpawnChild {
    /// Agent.
    pub parent: AgentId,
    /// The child; its manifest is fitted under the parent's.
    pub child: SpawnAgent,
    /// The turn that does it, if one does.
    pub by: Option<TurnId>,
}

command! {
    write "spawn_child" SpawnChild => Spawned, Name(|it| &it.child.name), |it, world|
        Answer::stored(spawn_child(world, it))
}

fn spawn_child(world: &mut World, command: SpawnChild) -> Result<Spawned, Refusal> {
    let SpawnChild { parent, mut child, by } = command;
    let owner = index::agent(world, parent)?;
    let own = world.get::<Agent>(owner).map(|agent| agent.manifest.clone());
    let own = own.ok_or_else(|| Refusal::not_found("agent", parent))?;
    let forbidden = |text: String| Refusal::new(RefusalKind::Forbidden, text);
    if own.manifest.capabilities.agent_spawn != Some(true) {
        return Err(forbidden("this agent does not have the capability agent_spawn".to_owned()));
    }
    let siblings = world.resource::<Family>().0.get(&parent).map_or(0, Vec::len);
    if siblings >= limit::AGENT_CHILDREN_MAX {
        return Err(forbidden(format!("this agent already has {siblings} child agents; delete some first")));
    }
    if ancestors(world, owner).count() >= limit::AGENT_CHAIN_MAX {
        return Err(forbidden(format!("agents can be nested at most {} deep", limit::AGENT_CHAIN_MAX)));
    }
    bound_child(&own.manifest, &mut child.manifest).map_err(forbidden)?;
    admit(world, owner, &child.manifest).map_err(forbidden)?;
    child.hash = manifest::hash(&child.manifest);
    child.text = manifest::render(&child.text, &child.name, &child.manifest);
    let spawned = spawn(world, child, by)?;
    let entity = index::agent(world, spawned.agent)?;
    world.entity_mut(entity).insert(SpawnedBy(parent));
    world.resource_mut::<Family>().insert(parent, spawned.agent);
    session::enter_family(world, entity);
    world.mark(entity);
    Ok(spawned)
}

/// Refuses another agent below the one at the top above `owner` where there is no room. That one may be gone already.
fn admit(world: &World, owner: Entity, child: &Manifest) -> Result<(), String> {
    let top = family_of(world, owner);
    let manifest = |id| index::agent(world, id).ok().and_then(|entity| world.get::<Agent>(entity));
    let (mut count, mut bytes) = (0, child.bytes());
    // An older home may have more; nothing looks at all of those.
    for id in world.resource::<Family>().below(top).take(limits::AGENT_DESCENDANTS_MAX) {
        count += 1;
        bytes += manifest(id).map_or(0, |agent| agent.manifest.manifest.bytes());
    }
    let (most, most_bytes) = (limits::AGENT_DESCENDANTS_MAX, limits::AGENT_DESCENDANTS_BYTES_MAX);
    if count >= most {
        return Err(format!("agents spawned {most} agents below the same agent; delete some first"));
    }
    if bytes > most_bytes {
        return Err(format!(
            "the manifests of agents spawned below the same agent would have {bytes} bytes; the limit is {most_bytes}"
        ));
    }
    Ok(())
}

/// An agent goes: whom it spawned belongs to the agent that spawned it, so that they stay below the same agent.
pub(super) fn leave(world: &mut World, id: AgentId, parent: AgentId) {
    let mut family = world.resource_mut::<Family>();
    family.remove(parent, id);
    let children = family.0.remove(&id).unwrap_or_default();
    for child in children {
        world.resource_mut::<Family>().insert(parent, child);
        if let Ok(entity) = index::agent(world, child) {
            world.entity_mut(entity).insert(SpawnedBy(parent));
            world.mark(entity);
        }
    }
}

/// All live agents of a family.
pub(crate) fn members(world: &World, family: AgentId) -> impl Iterator<Item = Entity> + '_ {
    let ids = std::iter::once(family).chain(world.resource::<Family>().below(family));
    ids.filter_map(|id| index::agent(world, id).ok())
}

/// Kills an agent on behalf of one of its ancestors.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct KillDescendant {
    /// Agent.
    pub by: AgentId,
    /// Whom: an id or a name.
    pub agent: String,
    /// The turn that does it, if one does.
    pub turn: Option<TurnId>,
}

command! {
    /// Who was killed.
    write "kill_descendant" KillDescendant => (AgentId, Box<str>), Id(|it| it.by.0), |it, world|
        Answer::stored(kill(world, &it))
}

fn kill(world: &mut World, command: &KillDescendant) -> Result<(AgentId, Box<str>), Refusal> {
    // It may be another's by now.
    let entity = reached_as(world, &command.agent)?;
    if !ancestors(world, entity).any(|ancestor| ancestor == command.by) {
        let text = "an agent can only delete its own descendants";
        return Err(Refusal::new(RefusalKind::Forbidden, text));
    }
    let id = id_of::<AgentId>(world, entity);
    remove(world, id, command.turn).map(|name| (id, name))
}
