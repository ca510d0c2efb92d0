//! Snapshots of the whole world as this room sees them: taken, listed, deleted and restored. Implemented where the disk
//! and the world's threads are known.

use agentsvc_components::{Actor, Refusal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A snapshot: the world as of one committed step, in one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Snapshot {
    /// Its id.
    pub id: Uuid,
    /// Creation time (RFC 3339).
    pub created_at: String,
    /// Newest step in it; absent if steps were not numbered yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<u64>,
    /// File size in bytes.
    pub size_bytes: u64,
    /// `manual` if a client created it, `auto` if the daemon created it before an irreversible operation.
    pub reason: Reason,
    /// Operation that caused an automatic snapshot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Before>,
    /// Label.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Content missing from a snapshot of an older step; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<Lost>,
    /// Contents.
    pub counts: SnapshotCounts,
    /// SHA-256 of its rows, in hex; equal for equal worlds.
    pub sha256: String,
}

/// Content of an older step that cannot be restored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Lost {
    /// Conversations whose messages have been erased since.
    pub logs: u64,
    /// Manifests and memory entries that have been changed or deleted since.
    pub overwritten: u64,
}

/// Reason of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// A client.
    Manual,
    /// The daemon.
    Auto,
}

agentsvc_components::enum_words! {
    /// Operation that the daemon creates a snapshot before.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Before [as_str] {
        /// A restore.
        Restore = "restore",
        /// A migration.
        Migration = "migration",
        /// Deletion of many agents.
        Deletion = "deletion",
    }
}

/// Contents of a snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SnapshotCounts {
    /// Agents.
    pub agents: u64,
    /// Sessions.
    pub sessions: u64,
    /// Messages of all sessions.
    pub messages: u64,
    /// Open turns with their own record.
    pub turns: u64,
    /// Triggers.
    pub triggers: u64,
    /// Schedules and cron jobs.
    pub schedules: u64,
    /// Workflows.
    pub workflows: u64,
    /// Goals.
    pub goals: u64,
    /// Tasks.
    pub tasks: u64,
    /// Memory entries.
    pub memories: u64,
    /// Rows in total.
    pub rows: u64,
    /// Uncompressed bytes of all rows.
    pub bytes: u64,
}

/// A running operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Underway {
    /// `snapshot` or `restore`.
    pub kind: &'static str,
    /// The snapshot being created or restored.
    pub id: Uuid,
    /// Current phase: `writing`, `reading` or `exchanging`.
    pub phase: &'static str,
    /// Start time (RFC 3339).
    pub started_at: String,
    /// Rows written or read so far.
    pub rows: u64,
    /// Bytes of them.
    pub bytes: u64,
}

/// A completed restore.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Restored {
    /// `restored`.
    pub status: &'static str,
    /// Restored snapshot.
    pub snapshot: Snapshot,
    /// Snapshot of the previous world, unless automatic snapshots are disabled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Snapshot>,
    /// Milliseconds without a running world.
    pub pause_ms: u64,
}

/// Keeps the snapshots of the world. All of it may block for as long as the disk takes.
pub trait SnapshotService: Send + Sync + 'static {
    /// All snapshots, the newest first.
    ///
    /// # Errors
    /// `Failed`: they cannot be read.
    fn list(&self) -> Result<Vec<Snapshot>, Refusal>;

    /// What is under way now; at most one thing.
    fn underway(&self) -> Option<Underway>;

    /// Takes a snapshot of the newest committed step, which the world does not wait for.
    ///
    /// # Errors
    /// `Conflict` while another one is taken or restored, `Busy` while there is no world, `Failed`.
    fn take(&self, actor: Actor, label: Option<String>) -> Result<Snapshot, Refusal>;

    /// Takes a snapshot of the world as it was at an older step (time travel).
    ///
    /// # Errors
    /// Those of [`SnapshotService::take`]; `Conflict` with the code `step_not_kept` when the world of that step cannot be rebuilt.
    fn take_at(&self, actor: Actor, label: Option<String>, step: u64) -> Result<Snapshot, Refusal>;

    /// Takes a snapshot before something that cannot be undone; `None` when automatic ones are switched off. Waits for
    /// one that is under way.
    ///
    /// # Errors
    /// Those of [`take`](Self::take); what it was to be taken before must not be done then.
    fn take_before(&self, what: Before) -> Result<Option<Snapshot>, Refusal>;

    /// Deletes a snapshot and gives what it was.
    ///
    /// # Errors
    /// `NotFound`, `Conflict` while it is being restored, `Failed`.
    fn delete(&self, actor: Actor, id: Uuid) -> Result<Snapshot, Refusal>;

    /// Puts the world of a snapshot in the place of the present one. Everything that can be wrong with the snapshot is
    /// found before anything changes.
    ///
    /// # Errors
    /// `NotFound`, `Conflict` while another one is taken or restored or the snapshot is damaged, `Busy`, `Failed`; the
    /// present world stays.
    fn restore(&self, actor: Actor, id: Uuid) -> Result<Restored, Refusal>;
}
