//! The stored form of an agent.

use serde::{Deserialize, Serialize};

use crate::agent::{AgentMode, AgentState, ImportedFrom};
use crate::kernel::id::{AgentId, SessionId, UserId};
use crate::kernel::record::{is_default, record};
use crate::kernel::taint::AgentTaint;
use crate::kernel::time::Timestamp;
use crate::manifest::ManifestHash;

/// One agent; its manifest is a record of its own, shared by hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentRecord {
    /// Also in the key.
    pub id: AgentId,
    /// Unique among live agents.
    pub name: Box<str>,
    /// Which manifest.
    pub manifest: ManifestHash,
    /// The current session.
    pub current: SessionId,
    /// When it was spawned.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// Prompt tokens so far.
    pub input_tokens: u64,
    /// Answer tokens so far.
    pub output_tokens: u64,
    /// Lifecycle state.
    pub state: AgentState,
    /// Pinned or not.
    pub mode: AgentMode,
    /// The agent that spawned it, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<AgentId>,
    /// Untrusted content that it has, beside its sessions.
    #[serde(default, skip_serializing_if = "is_default")]
    pub taint: AgentTaint,
    /// Where it was taken over from, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported_from: Option<Box<ImportedFrom>>,
    /// The user whom it belongs to, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<UserId>,
}

record!(AgentRecord: b'a', AgentId, id);
