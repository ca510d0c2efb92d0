//! The agents in order of creation: a sorted list, because new ids sort last.

use bevy_ecs::prelude::Entity;

use agentsvc_components::AgentId;

/// Removed agents a list of any length may keep before it is packed.
const DEAD_MIN: usize = 1_024;

/// Ids and entities in order of id. A removed agent leaves an empty place, and when half of the places are empty
/// the list is packed, so that removing costs the same however many there are.
#[derive(Default)]
pub(crate) struct IdIndex {
    places: Vec<(AgentId, Entity)>,
    dead: usize,
    /// The first place that may be taken; those before it are empty.
    head: usize,
}

impl IdIndex {
    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.dead
    }

    /// A list of places that are in the order of their ids.
    pub(crate) const fn of_sorted(places: Vec<(AgentId, Entity)>) -> Self {
        Self { places, dead: 0, head: 0 }
    }

    pub(crate) fn insert(&mut self, id: AgentId, entity: Entity) {
        if self.places.last().is_none_or(|(last, _)| *last < id) {
            return self.places.push((id, entity));
        }
        match self.at(id) {
            Ok(at) => {
                if self.places[at].1 == Entity::PLACEHOLDER {
                    self.dead -= 1;
                }
                self.places[at].1 = entity;
            }
            Err(at) => self.places.insert(at, (id, entity)),
        }
        // Ids that sort before others come only with a restore or a clock that was set back.
        self.head = 0;
        self.skip_empty();
    }

    /// Moves the head to the first taken place.
    fn skip_empty(&mut self) {
        let empty = self.places[self.head..].iter().take_while(|(_, entity)| *entity == Entity::PLACEHOLDER).count();
        self.head += empty;
    }

    /// The first of all.
    pub(crate) fn first(&self) -> Option<Entity> {
        self.places.get(self.head).map(|(_, entity)| *entity)
    }

    pub(crate) fn remove(&mut self, id: AgentId) {
        let Ok(at) = self.at(id) else { return };
        if std::mem::replace(&mut self.places[at].1, Entity::PLACEHOLDER) == Entity::PLACEHOLDER {
            return;
        }
        self.dead += 1;
        if self.dead >= DEAD_MIN && self.dead * 2 > self.places.len() {
            self.places.retain(|(_, entity)| *entity != Entity::PLACEHOLDER);
            (self.dead, self.head) = (0, 0);
        } else {
            self.skip_empty();
        }
    }

    pub(crate) fn get(&self, id: AgentId) -> Option<Entity> {
        self.at(id).ok().map(|at| self.places[at].1).filter(|entity| *entity != Entity::PLACEHOLDER)
    }

    /// The living from after `after` on; it need not live any more.
    pub(crate) fn after(&self, after: Option<AgentId>) -> impl Iterator<Item = (AgentId, Entity)> + '_ {
        let from = after.map_or(0, |id| self.places.partition_point(|(place, _)| *place <= id));
        self.places[from..].iter().copied().filter(|(_, entity)| *entity != Entity::PLACEHOLDER)
    }

    fn at(&self, id: AgentId) -> Result<usize, usize> {
        self.places.binary_search_by_key(&id, |(place, _)| *place)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;

    proptest! {
        #[test]
        fn it_behaves_like_a_map(acts in prop::collection::vec((any::<bool>(), 0_u32..64), 0..400)) {
            let (mut id_index, mut map) = (IdIndex::default(), BTreeMap::new());
            for (add, n) in acts {
                let (id, entity) = (AgentId(Uuid::from_u128(n.into())), Entity::from_raw_u32(n).unwrap());
                if add {
                    id_index.insert(id, entity);
                    map.insert(id, entity);
                } else {
                    id_index.remove(id);
                    map.remove(&id);
                }
                prop_assert_eq!(id_index.len(), map.len());
                prop_assert_eq!(id_index.get(id), map.get(&id).copied());
                prop_assert_eq!(id_index.first(), map.values().next().copied());
            }
            let all: Vec<_> = id_index.after(None).collect();
            prop_assert_eq!(all, map.into_iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_list_that_is_half_empty_is_packed() {
        let mut id_index = IdIndex::default();
        let id = |n: u32| AgentId(Uuid::from_u128(n.into()));
        for n in 0..10_000 {
            id_index.insert(id(n), Entity::from_raw_u32(n).unwrap());
        }
        for n in 0..9_000 {
            id_index.remove(id(n));
        }
        assert_eq!(id_index.len(), 1_000);
        assert!(id_index.places.len() < 5_000, "{}", id_index.places.len());
        assert_eq!(id_index.after(Some(id(500))).next().unwrap().0, id(9_000));
    }
}
