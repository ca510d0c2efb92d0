//! A hash index that stores only a hash and the entity; the key itself stands in the entity's component. At a
//! million entries this takes a third of what a map with its keys would.

use bevy_ecs::prelude::Entity;
use hashbrown::HashTable;

/// 12 bytes: half of the hash, and the entity in two halves so that nothing is spent on alignment.
#[derive(Clone, Copy)]
struct Slot {
    hash: u32,
    entity: [u32; 2],
}

impl Slot {
    #[expect(clippy::cast_possible_truncation, reason = "the halves are what is wanted")]
    const fn new(hash: u64, entity: Entity) -> Self {
        let bits = entity.to_bits();
        Self { hash: hash as u32, entity: [bits as u32, (bits >> 32) as u32] }
    }

    fn entity(self) -> Entity {
        Entity::from_bits(u64::from(self.entity[1]) << 32 | u64::from(self.entity[0]))
    }

    /// The table takes the bucket from the low bits and the tag from the high ones: both get some of the half.
    const fn spread(self) -> u64 {
        (self.hash as u64) << 32 | self.hash as u64
    }
}

/// The index.
#[derive(Default)]
pub(super) struct Slots(HashTable<Slot>);

impl Slots {
    pub(super) fn reserve(&mut self, more: usize) {
        self.0.reserve(more, |slot| slot.spread());
    }

    pub(super) fn insert(&mut self, hash: u64, entity: Entity) {
        let slot = Slot::new(hash, entity);
        self.0.insert_unique(slot.spread(), slot, |slot| slot.spread());
    }

    pub(super) fn remove(&mut self, hash: u64, entity: Entity) {
        let gone = Slot::new(hash, entity);
        if let Ok(entry) = self.0.find_entry(gone.spread(), |slot| slot.entity == gone.entity) {
            entry.remove();
        }
    }

    /// The entity under `hash` that `is` the one sought.
    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn find(&self, hash: u64, is: impl Fn(Entity) -> bool) -> Option<Entity> {
        let sought = Slot::new(hash, Entity::PLACEHOLDER);
        let found = self.0.find(sought.spread(), |slot| slot.hash == sought.hash && is(slot.entity()));
        found.map(|slot| slot.entity())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_went_in_is_found_until_it_is_removed() {
        let mut slots = Slots::default();
        let entity = |n: u32| Entity::from_raw_u32(n).unwrap();
        let hash = |n: u32| u64::from(n % 100).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for n in 0..10_000 {
            slots.insert(hash(n), entity(n));
        }
        for n in (0..10_000).step_by(2) {
            slots.remove(hash(n), entity(n));
        }
        for n in 0..10_000 {
            let found = slots.find(hash(n), |e| e == entity(n));
            assert_eq!(found.is_some(), n % 2 == 1, "{n}");
        }
    }
}
