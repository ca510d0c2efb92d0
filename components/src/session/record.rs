//! The stored form of a session.

use serde::{Deserialize, Serialize};

use crate::kernel::id::{AgentId, LogId, SessionId};
use crate::kernel::record::{is_default, record};
use crate::kernel::taint::Taint;
use crate::kernel::time::Timestamp;

use super::Ending;

/// One session. Its inbox is not here: the turns' own records rebuild it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRecord {
    /// Also in the key.
    pub id: SessionId,
    /// Whose.
    pub agent: AgentId,
    /// Where its messages are.
    pub log: LogId,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// The user's name for it.
    pub label: Option<Box<str>>,
    /// User messages and responses so far.
    pub message_count: u32,
    /// The ordinal of the next turn.
    pub next_ordinal: u32,
    /// The interrupt flag.
    #[serde(default)]
    pub interrupted: bool,
    /// Made for one request; goes with its turn.
    #[serde(default)]
    pub ephemeral: bool,
    /// Turns with a smaller ordinal are summarised.
    #[serde(default)]
    pub compacted: u32,
    /// What the rows of its log take, in units of [`STORED_UNIT`](super::STORED_UNIT) bytes.
    #[serde(default, skip_serializing_if = "is_default")]
    pub stored: u32,
    /// Untrusted content in its history.
    #[serde(default, skip_serializing_if = "is_default")]
    pub taint: Taint,
    /// Addresses that its tainted turns may fetch ([`KnownAddresses`](crate::kernel::taint::KnownAddresses)).
    #[serde(default, skip_serializing_if = "is_default")]
    pub addresses: Vec<u64>,
    /// Its turns end, as it was removed or cleared.
    #[serde(default, skip_serializing_if = "is_default")]
    pub ending: Option<Ending>,
    /// Strangers began it in a chat.
    #[serde(default, skip_serializing_if = "is_default")]
    pub is_strangers: bool,
}

record!(SessionRecord: b's', SessionId, id);
