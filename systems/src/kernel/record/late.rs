//! Records of which there may be very many in one step: the world says what they are, the store's thread writes them.

use std::sync::Arc;

use agentsvc_components::TurnId;
use agentsvc_components::kernel::record::Op;
use agentsvc_components::trigger::record::BurstRecord;

use super::{MessageKey, Stencil, put_burst};

/// Bytes that a fire takes in a burst's record, roughly: four ids and a number.
const FIRE_BYTES: usize = 80;
/// Bytes of a message's key.
const KEY_BYTES: usize = 17;

/// A record that is yet to be written. Its key stands nowhere else in its step.
#[derive(Clone, Debug)]
pub enum Late {
    /// The message of a fired turn.
    Said(Arc<Stencil>, MessageKey, TurnId),
    /// A burst of fires.
    Burst(Box<BurstRecord>),
}

impl Late {
    /// Bytes of its key and value, roughly.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            Self::Said(row, ..) => KEY_BYTES + row.bytes(),
            Self::Burst(burst) => burst.fires.len() * FIRE_BYTES,
        }
    }

    /// The record.
    #[must_use]
    pub fn write(self) -> Op {
        match self {
            Self::Said(row, at, turn) => row.put(at, turn),
            Self::Burst(burst) => put_burst(&burst),
        }
    }
}
