//! The compaction: the job that replaces the older messages of one session by a summary; an entity with a
//! [`CompactionId`](crate::CompactionId) and this component. Turns run on while it is under way.

use crate::kernel::domain::Domain;
pub mod call;
pub mod record;

use bevy_ecs::prelude::{Component, Entity};
use serde::{Deserialize, Serialize};

use crate::kernel::id::LogId;

/// What this domain is.
pub const DOMAIN: Domain = Domain { name: "compaction", uses: &["manifest", "session", "usage"] };

/// Where a compaction is. It ends, and its entity with it, when the summary is stored or will not come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CompactionState {
    /// It waits for a slot of its agent's provider.
    Reserving,
    /// The summary is being written.
    Calling,
}

/// The state of one compaction. A session has at most one.
#[derive(Component, Clone, Debug)]
pub struct Compaction {
    /// Whose session.
    pub agent: Entity,
    /// Which session.
    pub session: Entity,
    /// The session's log when the compaction was planned; with another one the summary is of no use.
    pub log: LogId,
    /// Turns with a smaller ordinal are summarised already; 0 when none is.
    pub from: u32,
    /// Turns with a smaller ordinal, and not smaller than `from`, are to be summarised. They have all ended.
    pub upto: u32,
    /// Fences outcomes: one that carries another attempt is dropped.
    pub attempt: u32,
    /// Where it is.
    pub state: CompactionState,
}
