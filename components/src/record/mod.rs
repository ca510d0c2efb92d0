//! Stored forms. Records name every field and start with a version byte, so that a later release can add
//! fields and still read old homes. They are separate from components: a component may change freely.
//!
//! | space   | key                                        | value                |
//! |---------|--------------------------------------------|----------------------|
//! | world   | `a` + agent id                             | [`AgentRecord`]      |
//! | world   | `m` + manifest hash                        | [`Manifest`](crate::manifest::Manifest) |
//! | world   | `s` + session id                           | [`SessionRecord`]    |
//! | world   | `t` + turn id                              | [`TurnRecord`]       |
//! | world   | `c` + compaction id                        | [`CompactionRecord`] |
//! | world   | `w` + log id                               | empty: a log to sweep |
//! | world   | `w` + agent id                             | empty: a removed agent whose content is to sweep |
//! | world   | `k` + agent id                             | [`MemoryUseRecord`]  |
//! | world   | `i` + approval id                          | [`ApprovalRecord`]   |
//! | content | `r` + log id + turn ordinal + row index    | [`MessageRecord`]    |
//! | content | `u` + log id + turn ordinal                | [`SummaryRecord`] of the turns before the ordinal |
//! | content | `x` + agent id                             | manifest text as written |
//! | content | `y` + agent id + turn id                   | [`TraceRecord`]      |
//! | content | `k` + agent id + key                       | [`MemoryRecord`]     |
//! | content | `q` + log id + turn ordinal + row index    | a long tool result, whole, as text |
//!
//! Numbers in keys are big-endian, so that key order is the order of time.

mod agent;
mod approval;
mod compaction;
mod memory;
mod message;
mod session;
mod trace;
mod turn;

pub use agent::AgentRecord;
pub use approval::ApprovalRecord;
pub use compaction::{CompactionRecord, SummaryRecord};
pub use memory::{MemoryRecord, MemoryUseRecord};
pub use message::MessageRecord;
pub use session::SessionRecord;
pub use trace::{StepKind, StepStatus, TraceRecord, TraceStep};
pub use turn::TurnRecord;

use serde::{Deserialize, Serialize};

/// Which keyspace a record lives in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Space {
    /// Read whole at start; one small record per entity.
    World,
    /// Read on demand, never at start.
    Content,
}

/// One record to store or remove.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Op {
    /// Where.
    pub space: Space,
    /// The kind byte and the id.
    pub key: Vec<u8>,
    /// The encoded record, or `None` to remove it.
    pub value: Option<Vec<u8>>,
}
