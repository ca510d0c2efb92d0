//! The stored forms of the audit trail: where it ends, and one entry of it.

use serde::{Deserialize, Serialize};

use crate::kernel::effect::Effect;
use crate::kernel::id::AgentId;
use crate::kernel::time::Timestamp;

/// A SHA-256 hash.
pub type Sha256Hash = [u8; 32];

/// Both ends of the trail; the world's record of it. The rows between are content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditHead {
    /// The first entry that is kept; 1 while none was trimmed.
    pub first: u64,
    /// The hash of the entry before the first kept one; zeros before entry 1.
    pub anchor: Sha256Hash,
    /// The newest entry; 0 when there is none.
    pub last: u64,
    /// Its hash; the anchor when there is none.
    pub hash: Sha256Hash,
}

impl Default for AuditHead {
    fn default() -> Self {
        Self { first: 1, anchor: [0; 32], last: 0, hash: [0; 32] }
    }
}

impl AuditHead {
    /// How many entries are kept.
    #[must_use]
    pub const fn kept(&self) -> u64 {
        (self.last + 1).saturating_sub(self.first)
    }
}

/// Sign a checkpoint of the audit trail up to its end as it is now. Nothing comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SealAudit(pub AuditHead);

impl Effect for SealAudit {}

/// One entry of the trail (spec 3, Audit entry). Its stored form is the one that is hashed; see
/// `systems/src/audit/entry.rs`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    /// Sequence number from 1, without gaps.
    pub id: u64,
    /// When it happened.
    pub at: Timestamp,
    /// The word of its [`AuditKind`](crate::audit::AuditKind); of a later release perhaps one that this one does not know.
    pub event_type: Box<str>,
    /// The agent it is about, if it is about one.
    pub agent: Option<AgentId>,
    /// Who did it, as [`Actor`](crate::Actor) writes itself.
    pub actor: Box<str>,
    /// A JSON object as text.
    pub details: Box<str>,
    /// The hash of the entry before; zeros in entry 1.
    pub prev_hash: Sha256Hash,
    /// The hash of all of the above.
    pub hash: Sha256Hash,
}

/// What is signed now and then, so that entries that are missing at the end are missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditCheckpoint {
    /// Up to which entry, included.
    pub sequence: u64,
    /// That entry's hash.
    pub hash: Sha256Hash,
    /// The sequence of the checkpoint before; 0 in the first one.
    pub previous: u64,
    /// The first entry that was kept then.
    pub first: u64,
    /// The hash of the entry before that one.
    pub anchor: Sha256Hash,
    /// When it was signed.
    pub at: Timestamp,
}
