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

/// Parts of the table that are filled one after another: of a million entries, each fits into the processor's cache.
const PARTS: usize = 256;

/// The index.
#[derive(Default)]
pub(crate) struct HashIndex(HashTable<Slot>);

impl HashIndex {
    /// An index of these hashes and entities, made at once. They are put in in about the order of their places, so that
    /// memory is not walked all over for each of them.
    pub(crate) fn filled(entries: &[(u64, Entity)]) -> Self {
        let mut table = HashTable::with_capacity(entries.len());
        // The buckets of a table are a power of two, and the lowest bits of a hash say which.
        let buckets = table.capacity().next_power_of_two();
        let part = |slot: &Slot| (slot.hash as usize & (buckets - 1)) * PARTS / buckets;
        let mut starts = [0_usize; PARTS];
        let hash_index = || entries.iter().map(|(hash, entity)| Slot::new(*hash, *entity));
        hash_index().for_each(|slot| starts[part(&slot)] += 1);
        let mut end = 0;
        for start in &mut starts {
            end += std::mem::replace(start, end);
        }
        let mut sorted = vec![Slot::new(0, Entity::PLACEHOLDER); entries.len()];
        for slot in hash_index() {
            let start = &mut starts[part(&slot)];
            sorted[*start] = slot;
            *start += 1;
        }
        for slot in sorted {
            table.insert_unique(slot.spread(), slot, |slot| slot.spread());
        }
        Self(table)
    }

    pub(crate) fn insert(&mut self, hash: u64, entity: Entity) {
        let slot = Slot::new(hash, entity);
        self.0.insert_unique(slot.spread(), slot, |slot| slot.spread());
    }

    pub(crate) fn remove(&mut self, hash: u64, entity: Entity) {
        let gone = Slot::new(hash, entity);
        if let Ok(entry) = self.0.find_entry(gone.spread(), |slot| slot.entity == gone.entity) {
            entry.remove();
        }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The entity under `hash` that `is` the one sought.
    pub(crate) fn find(&self, hash: u64, is: impl Fn(Entity) -> bool) -> Option<Entity> {
        let sought = Slot::new(hash, Entity::PLACEHOLDER);
        let found = self.0.find(sought.spread(), |slot| slot.hash == sought.hash && is(slot.entity()));
        found.map(|slot| slot.entity())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_filled_at_once_is_like_what_was_put_in_one_by_one() {
        for count in [0, 1, 5, 1_000, 100_000] {
            let entity = |n: u32| Entity::from_raw_u32(n).unwrap();
            let hash = |n: u32| u64::from(n / 2).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let entries: Vec<_> = (0..count).map(|n| (hash(n), entity(n))).collect();
            let mut hash_index = HashIndex::filled(&entries);
            assert_eq!(hash_index.len(), count as usize);
            for n in 0..count {
                assert_eq!(hash_index.find(hash(n), |e| e == entity(n)), Some(entity(n)));
                assert_eq!(hash_index.find(hash(n + 2 * count), |e| e == entity(n)), None);
            }
            hash_index.insert(hash(count), entity(count));
            (0..count).for_each(|n| hash_index.remove(hash(n), entity(n)));
            assert_eq!((hash_index.len(), hash_index.find(hash(count), |_| true)), (1, Some(entity(count))));
        }
    }

    #[test]
    fn what_went_in_is_found_until_it_is_removed() {
        let mut hash_index = HashIndex::default();
        let entity = |n: u32| Entity::from_raw_u32(n).unwrap();
        let hash = |n: u32| u64::from(n % 100).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for n in 0..10_000 {
            hash_index.insert(hash(n), entity(n));
        }
        for n in (0..10_000).step_by(2) {
            hash_index.remove(hash(n), entity(n));
        }
        for n in 0..10_000 {
            let found = hash_index.find(hash(n), |e| e == entity(n));
            assert_eq!(found.is_some(), n % 2 == 1, "{n}");
        }
    }
}
