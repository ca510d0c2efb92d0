//! Where ids come from: UUID v7 of the world's time and seeded randomness, strictly increasing. Their last three hex digits
//! are a [`Slot`].

use bevy_ecs::prelude::{Entity, Resource, World};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use uuid::{Builder, Uuid};

use agentsvc_components::kernel::id::DurableId;
use agentsvc_components::kernel::slot::Slot;
use agentsvc_components::{AgentId, LogId, Timestamp};

use super::clock::Now;
use super::index::id_of;

/// Mints durable ids. Ids of one process increase strictly, so that id order is the order of creation.
#[derive(Resource)]
pub struct IdGenerator {
    rng: ChaCha8Rng,
    last_ms: u64,
    counter: u16,
    next_log: u64,
    hash_key: u64,
    born: Timestamp,
}

impl IdGenerator {
    /// A mint whose randomness comes from `seed` alone.
    #[must_use]
    pub fn new(seed: [u8; 32]) -> Self {
        let mut rng = ChaCha8Rng::from_seed(seed);
        let hash_key = rng.next_u64();
        Self { rng, last_ms: 0, counter: 0, next_log: 1, hash_key, born: Timestamp(0) }
    }

    /// Ids from before `born` have no slot; all minted from here on have one, and are not from before it.
    pub(crate) fn set_born(&mut self, born: Timestamp) {
        self.born = born;
        self.last_ms = self.last_ms.max(u64::try_from(born.0).unwrap_or(0));
    }

    /// Since when ids have a slot.
    pub(crate) const fn born(&self) -> Timestamp {
        self.born
    }

    /// A new UUID v7 in `slot` that sorts after every one minted before it.
    pub fn uuid(&mut self, now: Timestamp, slot: Slot) -> Uuid {
        // RFC 9562, method 1: a counter in the 12 bits behind the millisecond keeps one millisecond's ids in
        // order; when it runs over, or the clock stands still or goes back, the last millisecond is counted on.
        let ms = u64::try_from(now.0).unwrap_or(0);
        if ms > self.last_ms {
            (self.last_ms, self.counter) = (ms, 0);
        } else if self.counter < 0x0fff {
            self.counter += 1;
        } else {
            (self.last_ms, self.counter) = (self.last_ms + 1, 0);
        }
        let mut random = [0; 10];
        self.rng.fill_bytes(&mut random);
        [random[0], random[1]] = self.counter.to_be_bytes();
        let [high, low] = slot.number().to_be_bytes();
        (random[8], random[9]) = (random[8] & 0xf0 | high, low);
        Builder::from_unix_timestamp_millis(self.last_ms, &random).into_uuid()
    }

    /// A number below `bound`, by chance.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.rng.next_u64() % bound.max(1)
    }

    /// A log that no session has had since the daemon started, and that no stored one has.
    pub fn log(&mut self) -> LogId {
        let log = LogId(self.next_log);
        self.next_log += 1;
        log
    }

    /// The log that is given out next.
    pub(crate) const fn next_log(&self) -> u64 {
        self.next_log
    }

    /// Logs up to and including `log` are taken (restore).
    pub fn reserve_log(&mut self, log: LogId) {
        self.next_log = self.next_log.max(log.0.saturating_add(1));
    }

    /// Keys the hash indexes, so that nobody can choose ids that collide.
    #[must_use]
    pub const fn hash_key(&self) -> u64 {
        self.hash_key
    }
}

/// A new id in `slot`, of this moment.
pub(crate) fn mint<Id: DurableId>(world: &mut World, slot: Slot) -> Id {
    let now = world.resource::<Now>().0;
    Id::from_uuid(world.resource_mut::<IdGenerator>().uuid(now, slot))
}

/// A new id, of this moment, for what belongs to this agent.
pub(crate) fn mint_for<Id: DurableId>(world: &mut World, agent: Entity) -> Id {
    mint_beside(world, id_of::<AgentId>(world, agent).0)
}

/// A new id, of this moment, in the slot of another one.
pub(crate) fn mint_beside<Id: DurableId>(world: &mut World, other: Uuid) -> Id {
    let slot = Slot::of_id(other, world.resource::<IdGenerator>().born);
    mint(world, slot)
}

/// Is this id one of those that chance draws, one in `every`? Always the same answer for an id. The bits of the slot, which
/// all ids of an agent share, have no part in it.
pub(crate) fn is_drawn(id: Uuid, every: u128) -> bool {
    (id.as_u128() / u128::from(Slot::COUNT)).is_multiple_of(every)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_same_seed_mints_the_same_ids() {
        let (mut a, mut b) = (IdGenerator::new([1; 32]), IdGenerator::new([1; 32]));
        assert_eq!(a.uuid(Timestamp(5), Slot::ROOT), b.uuid(Timestamp(5), Slot::ROOT));
        assert_eq!(a.hash_key(), b.hash_key());
    }

    #[test]
    fn what_belongs_to_an_agent_of_an_older_release_is_in_the_root_slot() {
        let born = Timestamp(1_000);
        let (before, after) = (Uuid::from_u128(999 << 80 | 0xabc), Uuid::from_u128(1_000 << 80 | 0xabc));
        let mut world = World::new();
        world.insert_resource(Now::default());
        world.insert_resource(IdGenerator::new([1; 32]));
        world.resource_mut::<IdGenerator>().set_born(born);
        let slots = [before, after].map(|agent| {
            let agent = world.spawn(AgentId(agent)).id();
            let id: AgentId = mint_for(&mut world, agent);
            assert!(id.0.as_u128() >> 80 >= 1_000, "not from before the birth, though the clock is");
            Slot::of_id(id.0, born).number()
        });
        assert_eq!(slots, [0, 0xabc]);
    }

    proptest! {
        #[test]
        fn ids_increase_strictly_and_bear_their_slot_whatever_the_clock_does(
            seed in any::<[u8; 32]>(),
            born in 0..5_000_i64,
            steps in prop::collection::vec((-3..3_i64, 1..3_000_u32, "[a-z]{0,3}"), 1..9),
        ) {
            let mut mint = IdGenerator::new(seed);
            mint.set_born(Timestamp(born));
            let (mut last, mut now) = (Uuid::nil(), 2_500);
            for (step, count, name) in steps {
                now += step;
                for _ in 0..count {
                    let id = mint.uuid(Timestamp(now), Slot::of_name(&name));
                    prop_assert!(id > last, "{id} after {last}");
                    prop_assert_eq!(id.get_version_num(), 7);
                    prop_assert_eq!(id.get_variant(), uuid::Variant::RFC4122);
                    prop_assert_eq!(Slot::of_id(id, Timestamp(born)), Slot::of_name(&name));
                    last = id;
                }
            }
        }
    }
}
