//! The stored forms of an agent's knowledge: its entities and relations, and how much there is of them.

use serde::{Deserialize, Serialize};

use super::{EntityKey, RelationKey};
use crate::kernel::id::AgentId;
use crate::kernel::record::{is_default, record};
use crate::kernel::taint::Taint;
use crate::kernel::time::Timestamp;

/// One entity; its folded name and its type are in the record's key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EntityRecord {
    /// The name as it was first written.
    pub name: Box<str>,
    /// A JSON object, compact; empty for none.
    #[serde(default, skip_serializing_if = "is_default")]
    pub properties: Box<str>,
    /// How sure it is, 0 to 1.
    pub confidence: f32,
    /// When it was first stored.
    pub created_at: Timestamp,
    /// When it was last stored.
    pub updated_at: Timestamp,
    /// Untrusted content that the turns had read that stored it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub taint: Taint,
}

impl EntityRecord {
    /// Bytes of its texts and those of its key: what counts towards the limit of an agent.
    #[must_use]
    pub fn bytes(&self, key: &EntityKey) -> u64 {
        key.bytes() + (self.name.len() + self.properties.len()) as u64
    }
}

/// One relation; what it joins and its type are in the record's key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RelationRecord {
    /// How sure it is, 0 to 1.
    pub confidence: f32,
    /// A JSON object, compact; empty for none.
    #[serde(default, skip_serializing_if = "is_default")]
    pub properties: Box<str>,
    /// When it was first stored.
    pub created_at: Timestamp,
    /// When it was last stored.
    pub updated_at: Timestamp,
    /// Untrusted content that the turns had read that stored it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub taint: Taint,
}

impl RelationRecord {
    /// Bytes of its texts and those of its key, which is stored twice: what counts towards the limit of an agent.
    #[must_use]
    pub fn bytes(&self, key: &RelationKey) -> u64 {
        2 * key.bytes() + self.properties.len() as u64
    }
}

/// How much knowledge an agent has; agents that never had any have no such record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnowledgeUseRecord {
    /// Also in the key.
    pub agent: AgentId,
    /// How many entities.
    pub entities: u32,
    /// How many relations.
    pub relations: u32,
    /// Bytes of their texts.
    pub bytes: u64,
    /// Changes so far; grows with each.
    pub revision: u64,
}

record!(KnowledgeUseRecord: b'G', AgentId, agent);
