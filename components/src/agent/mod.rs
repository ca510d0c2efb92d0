//! The agent: one entity with an [`AgentId`](crate::AgentId) and this component.

use crate::kernel::domain::Domain;
use crate::kernel::words::enum_words;
pub mod record;
pub mod sweep;

use bevy_ecs::prelude::{Component, Entity};
use serde::{Deserialize, Serialize};

use crate::kernel::id::{AgentId, UserId};
use crate::kernel::taint::AgentTaint;
use crate::kernel::time::Timestamp;
use crate::manifest::SharedManifest;

/// What this domain is.
pub const DOMAIN: Domain = Domain { name: "agent", uses: &["manifest"] };

enum_words! {
    /// Where an agent is in its life.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
    pub enum AgentState [as_str] {
        /// Accepts messages.
        #[default]
        Running = "Running",
        /// Refuses messages with 409 until started again.
        Stopped = "Stopped",
        /// Failed and needs attention.
        Crashed = "Crashed",
        /// Gone; only events and audit still speak of it.
        Terminated = "Terminated",
    }
}

/// Whether an agent follows changes of the daemon (spec 1, States and transitions, Agent mode).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum AgentMode {
    /// Follows the default model and new skills.
    #[default]
    Normal,
    /// Its model is pinned and its skills are frozen.
    Stable,
}

/// Which agent spawned this one. Only agents that an agent spawned have it.
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpawnedBy(pub AgentId);

/// The user whom the agent belongs to. An agent without one belongs to the installation: admins and owners alone see it.
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnedBy(pub UserId);

/// The agent begins no turns by itself: its schedules, its triggers and the consolidation of its memory rest. Not stored: the
/// domain that says so restores it.
#[derive(Component, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WakesPaused;

/// Where an agent came from that was taken over from another program. Only such agents have it; it stays as it is, whatever
/// becomes of the agent.
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportedFrom {
    /// SHA-256 of where it stood: the kind of home, which home, and what the agent is called in there.
    pub place: [u8; 32],
    /// SHA-256 of what stood there: the kind of home, what the agent is called in there, and its manifest.
    pub text: [u8; 32],
}

/// The state of one agent that decisions need. Kept small: a world holds a million of these.
#[derive(Component, Clone, Debug)]
pub struct Agent {
    /// Unique among live agents.
    pub name: Box<str>,
    /// What it is; shared with every agent of the same manifest.
    pub manifest: SharedManifest,
    /// The session that a message without `session_id` goes to.
    pub current: Entity,
    /// When it was spawned.
    pub created_at: Timestamp,
    /// Time of the last change to its manifest, mode, state or current session.
    pub updated_at: Timestamp,
    /// Tokens of all its model calls so far, prompt side.
    pub input_tokens: u64,
    /// Tokens of all its model calls so far, answer side.
    pub output_tokens: u64,
    /// Lifecycle state.
    pub state: AgentState,
    /// Pinned or not.
    pub mode: AgentMode,
    /// Untrusted content that it has, beside its sessions.
    pub taint: AgentTaint,
    /// Bytes that its sessions take in the store. Not stored: the sum of those of its sessions.
    pub stored: u64,
}
