//! How far a world is: the number of its newest step.

use serde::{Deserialize, Serialize};

use crate::kernel::time::Timestamp;

/// The key of the newest step in the world space. It sorts before every kind byte: it is the store's own note of how
/// far it is, and no record of the world.
pub const STEP_KEY: [u8; 2] = [0, b's'];

/// One step of the world. Steps that store something are numbered from 1; numbers grow over restarts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct StepMark {
    /// Its number; 0 when nothing was ever stored.
    pub number: u64,
    /// The world's time in it.
    pub at: Timestamp,
}

impl StepMark {
    /// Its stored form: number and time, big-endian.
    #[must_use]
    pub fn to_bytes(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.number.to_be_bytes());
        bytes[8..].copy_from_slice(&self.at.0.to_be_bytes());
        bytes
    }

    /// Reads the stored form; `None` when it is of another length.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (number, at) = bytes.split_at_checked(8)?;
        let at = Timestamp(i64::from_be_bytes(at.try_into().ok()?));
        Some(Self { number: u64::from_be_bytes(number.try_into().ok()?), at })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_comes_back() {
        let mark = StepMark { number: 7, at: Timestamp(-3) };
        assert_eq!(StepMark::from_bytes(&mark.to_bytes()), Some(mark));
        assert_eq!(StepMark::from_bytes(&[0; 15]), None);
        assert_eq!(StepMark::from_bytes(&[]), None);
    }
}
