//! Slots: which share of all agents, and of what belongs to them, an id is part of.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::time::Timestamp;

/// One of 4,096 shares of all agents, and of what belongs to them. The last three hex digits of an id say its slot, so
/// that each id tells where its entity is without a directory.
///
/// An agent is in the slot that its name has when it is created, and whatever is minted for it later is in the slot of
/// its id. What belongs to no agent is in [`Slot::ROOT`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Slot(u16);

impl Slot {
    /// How many slots there are.
    pub const COUNT: u16 = 1 << 12;
    /// The slot of what belongs to no agent.
    pub const ROOT: Self = Self(0);

    /// The slot of agents that are created with this name: its 64-bit FNV-1a hash, the lowest 12 bits of which are joined
    /// by exclusive or with the 12 bits above them. This is stored in ids and must never change.
    #[must_use]
    pub const fn of_name(name: &str) -> Self {
        let (mut hash, mut at) = (0xcbf2_9ce4_8422_2325_u64, 0);
        while at < name.len() {
            hash = (hash ^ name.as_bytes()[at] as u64).wrapping_mul(0x0100_0000_01b3);
            at += 1;
        }
        Self(((hash >> 12 ^ hash) & 0xfff) as u16)
    }

    /// The slot of an id. Ids from before `born` were minted without one; they are in [`Slot::ROOT`].
    #[must_use]
    pub const fn of_id(id: Uuid, born: Timestamp) -> Self {
        let bits = id.as_u128();
        if born.0 > 0 && (bits >> 80) < born.0 as u128 { Self::ROOT } else { Self((bits & 0xfff) as u16) }
    }

    /// The id with these bytes in the slot of `other`, as a UUID of version 8.
    #[must_use]
    pub fn beside(other: Uuid, bytes: [u8; 16]) -> Uuid {
        let (id, slot) = (uuid::Builder::from_custom_bytes(bytes).into_uuid().as_u128(), u128::from(Self::COUNT) - 1);
        Uuid::from_u128(id & !slot | other.as_u128() & slot)
    }

    /// Its number, below [`Slot::COUNT`].
    #[must_use]
    pub const fn number(self) -> u16 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slot_of_a_name_is_what_it_was_in_every_release() {
        for (name, slot) in [("", 0x107), ("a", 0xc92), ("foobar", 0x47e)] {
            assert_eq!(Slot::of_name(name).number(), slot, "{name}");
        }
    }

    #[test]
    fn names_spread_over_all_slots() {
        let mut counts = [0_u32; Slot::COUNT as usize];
        for n in 0..64 * u32::from(Slot::COUNT) {
            counts[usize::from(Slot::of_name(&format!("agent-{n}")).number())] += 1;
        }
        let (least, most) = (counts.iter().min(), counts.iter().max());
        assert!(least > Some(&20) && most < Some(&130), "{least:?} to {most:?}, 64 on average");
    }

    #[test]
    fn an_id_of_given_bytes_is_beside_another() {
        let other = Uuid::from_u128(0x7abc);
        let id = Slot::beside(other, [0xff; 16]);
        assert_eq!((id.get_version_num(), Slot::of_id(id, Timestamp(0)).number()), (8, 0xabc));
        assert_ne!(id, Slot::beside(other, [1; 16]));
    }

    #[test]
    fn only_ids_of_after_the_birth_have_a_slot() {
        let id = |ms: u128| Uuid::from_u128(ms << 80 | 0xabc);
        assert_eq!(Slot::of_id(id(999), Timestamp(1_000)), Slot::ROOT);
        assert_eq!(Slot::of_id(id(1_000), Timestamp(1_000)).number(), 0xabc);
        assert_eq!(Slot::of_id(id(0), Timestamp(0)).number(), 0xabc);
        assert_eq!(Slot::of_id(Uuid::nil(), Timestamp(0)), Slot::ROOT);
    }
}
