//! The fence of work for the outside: which try of what an outcome belongs to.

use serde::{Deserialize, Serialize};

use super::id::TurnId;

/// Which try of which turn an effect or outcome belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Attempt {
    /// The turn; a compaction stands here by its own id, which no turn has.
    pub turn: TurnId,
    /// The try; grows whenever the turn asks the outside for something.
    pub number: u32,
}
