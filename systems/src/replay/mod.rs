//! The inputs of a world: written down step by step, and fed to another world later.
//!
//! A world is what it was restored from and what it was told since: commands, outcomes, beats and the time of each.
//! Everything else follows, for nothing in this room asks a clock, a network or chance. So its inputs, with a seed and
//! the records it began with, are the whole world at every step.
//!
//! | part | what it does |
//! |------|--------------|
//! | `inputs` | writes the inputs of a step down while it takes them |
//! | `table` | every command that writes, by name: its written form and back |
//! | `entry` | one step in the log: its inputs, and hashes of the records it left |
//! | `epoch` | how a world came to life: what a replay begins with |
//! | `player` | a world that is fed from the log and compared with it |
//! | `difference` | what differs between two records, field by field |
//! | `hash` | the hash of a world |
//! | `patch` | fields that are left as they are, set, or emptied |
//! | `wire` | numbers and lengths |

mod difference;
mod epoch;
mod player;

use crate::kernel::domain::Domain;
pub use crate::kernel::inputs::entry::{Arrival, Entry, Mark, Step, write_entry};
pub use crate::kernel::inputs::hash::{quick_hash, world_hash};
pub use crate::kernel::inputs::recorder::{Inputs, QuietBeats};
pub use crate::kernel::inputs::table::{Written, names};
pub use crate::kernel::inputs::wire::Malformed;
pub use difference::{FieldDifference, compared, shown};
pub use epoch::Epoch;
pub use player::{Change, Played, Player, Rows};

/// What this domain brings.
pub(crate) const DOMAIN: Domain = Domain { uses: &["config", "memory", "agent"], ..Domain::named("replay") };

#[cfg(test)]
mod tests;
