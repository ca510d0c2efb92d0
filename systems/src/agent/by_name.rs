//! Agents in order of their names, a page at a time. There is no index by name in order: a look goes over a bounded
//! number of agents and keeps the first names, so that many short looks make a page and none is long.

use std::collections::BinaryHeap;

use bevy_ecs::prelude::{Entity, World};

use agentsvc_components::AgentId;
use agentsvc_components::agent::Agent;
use agentsvc_components::kernel::limit;
use agentsvc_components::manifest::SharedManifest;

use crate::kernel::command::{Answer, command};
use crate::kernel::index::Index;
use crate::people::{self, Owners};

/// Looks at [`limit::PAGE_SCAN_MAX`] agents and gives those whose names come first.
#[derive(Clone, Debug, Default)]
pub struct ScanNames {
    /// Only names behind this one.
    pub behind: Option<Box<str>>,
    /// Go on after this agent: `next` of the look before.
    pub after: Option<AgentId>,
    /// At most so many; a look has no more than [`limit::PAGE_SCAN_MAX`] anyway.
    pub limit: usize,
}

/// An agent by its name.
#[derive(Clone, Debug)]
pub struct NamedAgent {
    /// Its name.
    pub name: Box<str>,
    /// Its id.
    pub id: AgentId,
    /// Its manifest.
    pub manifest: SharedManifest,
}

/// What one look saw.
#[derive(Clone, Debug)]
pub struct NameScan {
    /// In order of their names.
    pub items: Vec<NamedAgent>,
    /// Where the next look goes on; `None` when all were seen.
    pub next: Option<AgentId>,
    /// All agents that there are for whoever asks.
    pub total: usize,
}

command!(read "scan_names" ScanNames => NameScan, All, |it, world| Answer::read(scan(world, &it)));

fn scan(world: &World, command: &ScanNames) -> NameScan {
    let index = world.resource::<Index>();
    let most = command.limit.clamp(1, limit::PAGE_SCAN_MAX);
    let mut first: BinaryHeap<(&str, AgentId, Entity)> = BinaryHeap::with_capacity(most + 1);
    let mut next = None;
    let owners = world.resource::<Owners>();
    let (mut agents, total): (Box<dyn Iterator<Item = (AgentId, Entity)>>, usize) = match people::limit(world) {
        Some(user) => (Box::new(owners.after(user, command.after)), owners.count(user)),
        None => (Box::new(index.agents_after(command.after)), index.agent_count()),
    };
    for (id, entity) in agents.by_ref().take(limit::PAGE_SCAN_MAX) {
        next = Some(id);
        let Some(agent) = world.get::<Agent>(entity) else { continue };
        let name = &*agent.name;
        let is_behind = command.behind.as_deref().is_none_or(|behind| name > behind);
        let is_among = first.len() < most || first.peek().is_some_and(|last| name < last.0);
        if is_behind && is_among {
            first.push((name, id, entity));
            if first.len() > most {
                first.pop();
            }
        }
    }
    if agents.next().is_none() {
        next = None;
    }
    let named = first.into_sorted_vec().into_iter().filter_map(|(name, id, entity)| {
        let agent = world.get::<Agent>(entity)?;
        Some(NamedAgent { name: name.into(), id, manifest: agent.manifest.clone() })
    });
    NameScan { items: named.collect(), next, total }
}

#[cfg(test)]
mod tests {
    use agentsvc_components::manifest::Manifest;

    use super::*;
    use crate::agent::{SpawnAgent, SpawnAgents};
    use crate::manifest;
    use crate::testing::TestWorld;

    /// A world with `count` agents, named against the order of their creation.
    fn world(count: usize) -> TestWorld {
        let mut world = TestWorld::new();
        let hash = manifest::hash(&Manifest::default());
        let agent = |at| SpawnAgent {
            name: format!("agent-{:06}", count - at).into(),
            manifest: Manifest::default(),
            hash,
            text: String::new(),
        };
        let spawned = world.ask(SpawnAgents((0..count).map(agent).collect())).unwrap();
        assert!(spawned.iter().all(Result::is_ok));
        world
    }

    fn names(scan: &NameScan) -> Vec<&str> {
        scan.items.iter().map(|item| &*item.name).collect()
    }

    #[test]
    fn a_look_gives_the_first_names_in_order() {
        let mut world = world(5);
        let scan = world.ask(ScanNames { limit: 2, ..ScanNames::default() }).unwrap();
        assert_eq!((names(&scan), scan.next, scan.total), (vec!["agent-000001", "agent-000002"], None, 5));
        let behind = Some("agent-000003".into());
        let scan = world.ask(ScanNames { behind, limit: 9, after: None }).unwrap();
        assert_eq!(names(&scan), ["agent-000004", "agent-000005"]);
    }

    #[test]
    fn a_look_is_short_and_many_see_all() {
        let count = limit::PAGE_SCAN_MAX + 10;
        let mut world = world(count);
        let first = world.ask(ScanNames { limit: 1, ..ScanNames::default() }).unwrap();
        assert_eq!(names(&first), ["agent-000011"], "the last ten were not looked at");
        let rest = world.ask(ScanNames { limit: 1_000_000, after: first.next, ..ScanNames::default() }).unwrap();
        assert_eq!((rest.items.len(), names(&rest)[0], rest.next), (10, "agent-000001", None));
    }
}
