//! What the world takes in memory, kind by kind: an estimate that is made from counts and sizes.
//!
//! | part | how it is known |
//! |---|---|
//! | rows | exact: how many entities there are of each set of components, times the sizes of those |
//! | heap | texts and boxes behind the components: measured on at most [`SAMPLES`] entities of a kind and multiplied |
//! | index | a fixed guess for each entity: the entries in maps and sets that lead to it |
//!
//! Room that tables and maps keep in reserve is not in it, nor is what belongs to no entity, such as sums of usage.

use bevy_ecs::component::ComponentId;
use bevy_ecs::prelude::{Component, Entity, World};

use crate::kernel::command::{Answer, command};

/// Entities of a kind whose texts are measured.
pub(crate) const SAMPLES: usize = 64;
/// Bytes that the world keeps for every entity beside its components: where it stands.
const ENTITY_BYTES: usize = 24;

/// What one kind takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KindFootprint {
    /// The kind, as queries call it.
    pub kind: &'static str,
    /// How many there are.
    pub count: usize,
    /// Bytes of their components.
    pub rows_bytes: usize,
    /// Bytes of their texts and boxes, estimated.
    pub heap_bytes: usize,
    /// Bytes of the indexes that lead to them, guessed.
    pub index_bytes: usize,
}

impl KindFootprint {
    /// All of it.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.rows_bytes + self.heap_bytes + self.index_bytes
    }
}

/// A kind of entities, and how it is measured.
#[derive(Clone, Copy)]
pub struct Measure {
    kind: &'static str,
    id: fn(&World) -> Option<ComponentId>,
    heap: fn(&World, Entity) -> usize,
    index_bytes: usize,
}

impl Measure {
    /// Of the entities with the id `I`: `heap` gives the bytes of texts and boxes of one, `index_bytes` are those of the
    /// entries that lead to it.
    pub(crate) const fn of<I: Component>(
        kind: &'static str,
        heap: fn(&World, Entity) -> usize,
        index_bytes: usize,
    ) -> Self {
        Self { kind, id: id::<I>, heap, index_bytes }
    }
}

/// A node of an ordered set is full to about two thirds.
pub(crate) const fn entries(of: usize, count: usize) -> usize {
    of * count * 3 / 2
}

fn id<C: Component>(world: &World) -> Option<ComponentId> {
    world.components().component_id::<C>()
}

/// What `measure` says of a component; 0 when the entity has none.
pub(crate) fn of<C: Component>(world: &World, entity: Entity, measure: impl FnOnce(&C) -> usize) -> usize {
    world.get::<C>(entity).map_or(0, measure)
}

/// What the world takes, kind by kind.
pub(crate) fn measure(world: &World) -> Vec<KindFootprint> {
    let domains = crate::kernel::domain::all();
    let measures = domains.iter().flat_map(|domain| domain.measures);
    let mut found: Vec<KindFootprint> = measures.map(|measure| kind(world, measure)).collect();
    found.extend(domains.iter().filter_map(|domain| (domain.shared_footprint)(world)));
    found
}

fn kind(world: &World, measure: &Measure) -> KindFootprint {
    let none = KindFootprint { kind: measure.kind, ..KindFootprint::default() };
    let Some(id) = (measure.id)(world) else { return none };
    let (mut found, mut sampled, mut heap) = (none, 0, 0);
    for archetype in world.archetypes().iter().filter(|archetype| archetype.contains(id)) {
        let count = archetype.len() as usize;
        let sizes = archetype.components().iter().filter_map(|id| world.components().get_info(*id));
        let row: usize = sizes.map(|of| of.layout().size()).sum::<usize>() + ENTITY_BYTES;
        found.count += count;
        found.rows_bytes += count * row;
        let stride = (count / SAMPLES).max(1);
        for at in archetype.entities().iter().step_by(stride).take(SAMPLES.saturating_sub(sampled)) {
            heap += (measure.heap)(world, at.id());
            sampled += 1;
        }
    }
    found.heap_bytes = (heap * found.count).checked_div(sampled).unwrap_or(0);
    found.index_bytes = found.count * measure.index_bytes;
    found
}

/// Reads what the world takes. Looks at a bounded number of entities.
#[derive(Clone, Copy, Debug)]
pub struct MeasureWorld;

command!(read "measure_world" MeasureWorld => Vec<KindFootprint>, All, |_, world| Answer::read(measure(world)));

#[cfg(test)]
mod tests {
    use agentsvc_components::AgentId;
    use agentsvc_components::agent::Agent;

    use super::*;
    use crate::task::PostTask;
    use crate::testing::TestWorld;

    #[test]
    fn what_there_is_more_of_takes_more() {
        let mut world = TestWorld::new();
        let of = |world: &mut TestWorld, kind: &str| {
            let all = world.ask(MeasureWorld).unwrap();
            *all.iter().find(|found| found.kind == kind).unwrap()
        };
        assert_eq!(of(&mut world, "agents").bytes(), 0);
        world.spawn("a");
        let one = of(&mut world, "agents");
        assert_eq!((one.count, one.heap_bytes), (1, 1));
        assert!(one.rows_bytes >= size_of::<Agent>() + size_of::<AgentId>());
        for at in 0..200 {
            world.spawn(&format!("agent-{at:04}"));
        }
        let many = of(&mut world, "agents");
        assert_eq!((many.count, many.rows_bytes), (201, 201 * one.rows_bytes));
        assert!((8 * 201..=10 * 201).contains(&many.heap_bytes), "{many:?}");
        let manifests = of(&mut world, "manifests");
        assert!(manifests.count == 1 && manifests.bytes() > size_of::<agentsvc_components::manifest::Interned>());
        let task = |text: &str| PostTask {
            title: "t".into(),
            description: text.into(),
            assignee: None,
            posted_by: None,
            by: None,
        };
        world.ask(task(&"x".repeat(8_000))).unwrap();
        assert!((8_000..8_100).contains(&of(&mut world, "tasks").heap_bytes));
    }

    #[test]
    fn every_kind_that_is_made_of_entities_is_measured() {
        let measures = crate::kernel::domain::all().iter().flat_map(|domain| domain.measures);
        let kinds: Vec<&str> = measures.map(|measure| measure.kind).collect();
        // Cron jobs are schedules; the rest of the kinds are sums.
        let sums = ["cron_jobs", "budgets", "manifests", "providers", "models"];
        for kind in crate::query::KINDS.iter().filter(|kind| !sums.contains(&kind.name)) {
            assert!(kinds.contains(&kind.name), "{}", kind.name);
        }
    }
}
