//! The stored forms of an agent's memory: its entries, and how much there is of it.

use serde::{Deserialize, Serialize};

use crate::kernel::id::AgentId;
use crate::kernel::record::{is_default, record};
use crate::kernel::taint::Taint;
use crate::kernel::time::Timestamp;

/// One entry; its key is in the record's key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryRecord {
    /// Compact JSON.
    pub value: Box<str>,
    /// When the key was first stored.
    pub created_at: Timestamp,
    /// When the value was last stored.
    pub updated_at: Timestamp,
    /// Untrusted content that the turn had read that stored it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub taint: Taint,
}

/// How much memory an agent has; agents without any have no such record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryUseRecord {
    /// Also in the key.
    pub agent: AgentId,
    /// How many entries.
    pub entries: u32,
    /// Bytes of their keys and values.
    pub bytes: u64,
}

record!(MemoryUseRecord: b'k', AgentId, agent);
