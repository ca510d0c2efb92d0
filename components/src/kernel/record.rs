//! Stored forms. Records name every field and start with a version byte, so that a later release can add
//! fields and still read old homes. They are separate from components: a component may change freely.
//!
//! | space   | key                                        | value                |
//! |---------|--------------------------------------------|----------------------|
//! | world   | 0                                          | format of the store, no record of the world |
//! | world   | 0 + `s`                                    | [`StepMark`], no record of the world |
//! | world   | `a` + agent id                             | [`AgentRecord`]      |
//! | world   | `m` + manifest hash                        | [`Manifest`](crate::manifest::Manifest) |
//! | world   | `s` + session id                           | [`SessionRecord`]    |
//! | world   | `t` + turn id                              | [`TurnRecord`]       |
//! | world   | `c` + compaction id                        | [`CompactionRecord`] |
//! | world   | `w` + log id                               | empty: a log to sweep |
//! | world   | `w` + agent id                             | empty: a removed agent whose content is to sweep |
//! | world   | `k` + agent id                             | [`MemoryUseRecord`]  |
//! | world   | `G` + agent id                             | [`KnowledgeUseRecord`] |
//! | world   | `E` + agent id                             | [`MemoryEntriesRecord`] |
//! | world   | `b` + `c` + turn id + attempt              | [`CallRecord`]: a model call that is out |
//! | world   | `b` + `g`, `b` + `a` + agent id            | [`ScopeUseRecord`]   |
//! | world   | `b` + `f` + agent id                       | [`ScopeUseRecord`] of its descendants |
//! | world   | `b` + `n`, `h` or `d` + minute, hour or day | [`UsageSum`](crate::usage::UsageSum) of that time |
//! | world   | `b` + `m` + provider + 0 + model           | [`UsageSum`](crate::usage::UsageSum) of the model |
//! | world   | `b` + `x` + day + provider + 0 + model     | [`UsageSum`](crate::usage::UsageSum) of the model on that day |
//! | world   | `6` + minute                               | [`MinuteRecord`](crate::history::MinuteRecord) of the hour under way |
//! | content | `6` + hour + number                        | [`HourRecord`](crate::history::HourRecord) |
//! | world   | `l`, `l` + agent id                        | [`BudgetRecord`]     |
//! | content | `b` + time + turn id + attempt + number    | [`UsageRecord`]      |
//! | content | `b` + 255 + day + agent id                 | empty: the agent asked a model on that day |
//! | world   | `z`                                        | [`AuditHead`]        |
//! | world   | `o` + goal id                              | [`Goal`](crate::goal::Goal) |
//! | world   | `j` + task id                              | [`Task`](crate::task::Task) |
//! | world   | `q` + job id                               | [`Job`](crate::kernel::job::Job) |
//! | world   | `f` + workflow id                          | [`Workflow`](crate::workflow::Workflow) |
//! | world   | `n` + run id                               | [`RunRecord`]        |
//! | world   | `p` + run id + part                        | [`RunPlanRecord`], or [`RunTextRecord`]; see [`RunPart`] |
//! | world   | `g` + trigger id                           | [`TriggerRecord`]    |
//! | world   | `h` + trigger id                           | [`TriggerStateRecord`] |
//! | world   | `v` + wave number                          | [`WaveRecord`]       |
//! | world   | `x` + burst number                         | [`BurstRecord`]      |
//! | world   | `x` + burst number + `l`                   | [`BurstLeftRecord`]  |
//! | world   | `d` + schedule id                          | [`ScheduleRecord`]   |
//! | world   | `e` + schedule id                          | [`ScheduleStateRecord`] |
//! | world   | `i` + approval id                          | [`Approval`](crate::approval::Approval) |
//! | world   | `V` + version id                           | [`PromptVersion`](crate::prompt::PromptVersion) |
//! | world   | `Z` + experiment id                        | [`PromptExperiment`](crate::prompt::PromptExperiment) |
//! | world   | `I` + turn id                              | [`PromptImpression`](crate::prompt::PromptImpression) |
//! | content | `r` + log id + turn ordinal + row index    | [`MessageRecord`]    |
//! | content | `u` + log id + turn ordinal                | [`SummaryRecord`] of the turns before the ordinal |
//! | content | `x` + agent id                             | manifest text as written |
//! | content | `y` + agent id + turn id                   | [`TraceRecord`]      |
//! | content | `k` + agent id + key                       | [`MemoryRecord`]     |
//! | content | `g` + agent id + `e` + name + 0 + type     | [`EntityRecord`]     |
//! | content | `g` + agent id + `o` + source + 0 + relation + 0 + target | [`RelationRecord`]; source and target are name + 0 + type |
//! | content | `g` + agent id + `i` + target + 0 + relation + 0 + source | empty: the same relation, to be found by its target |
//! | content | `e` + agent id + entry id                  | [`MemoryEntryRecord`] |
//! | content | `i` + entry id + agent id                  | empty: whose the entry is |
//! | content | `j` + user + 0 + agent id + entry id       | empty: the entry is about the user |
//! | content | `q` + log id + turn ordinal + row index    | a long tool result, whole, as text |
//! | content | `z` + sequence                             | [`AuditEntry`], in its hashed form |
//! | content | `z` + sequence + `c`                       | [`AuditCheckpoint`] up to the entry, signed |
//!
//! Numbers in keys are big-endian, so that key order is the order of time.

use std::fmt::Debug;

use bevy_ecs::prelude::Component;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::id::DurableId;

/// Has it the value that a reader fills in where it is left out? Then it is, which shortens most records.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A component that is stored as it is: its record has its id and all of its fields, under the key [`KEY`](Self::KEY) and
/// its id.
pub trait StoredComponent: Component + Serialize + DeserializeOwned + Debug {
    /// The byte that the keys of its records begin with.
    const KEY: u8;
    /// The id that its entities have.
    type Id: DurableId;
}

/// Makes a component a [`StoredComponent`]: its key and the id that its entities have.
macro_rules! stored {
    ($component:ident: $key:literal, $id:ty) => {
        impl $crate::kernel::record::StoredComponent for $component {
            const KEY: u8 = $key;
            type Id = $id;
        }
    };
}

/// A stored form of its own, under the key [`KEY`](Self::KEY) and its id.
pub trait Record: Serialize + DeserializeOwned + Debug + Send + Sync + 'static {
    /// The byte that its keys begin with.
    const KEY: u8;
    /// What it is the record of.
    type Id: DurableId;
    /// Of which one.
    fn id(&self) -> Self::Id;
}

/// Makes a type a [`Record`]: its key, its id, and the field that holds the id.
macro_rules! record {
    ($record:ident: $key:literal, $id:ty, $field:ident) => {
        impl $crate::kernel::record::Record for $record {
            const KEY: u8 = $key;
            type Id = $id;

            fn id(&self) -> $id {
                self.$field
            }
        }
    };
}

pub(crate) use {record, stored};

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
