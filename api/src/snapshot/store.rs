//! Snapshots of the whole world as this room sees them: taken, listed, deleted and restored. Implemented where the disk
//! and the world's threads are known.

use agentsvc_components::Refusal;
use agentsvc_components::audit::Actor;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A snapshot: the world as of one committed step, in a file of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Snapshot {
    /// Its id.
    pub id: Uuid,
    /// When it was taken (RFC 3339).
    pub created_at: String,
    /// The number of the newest step in it; absent when the world's steps were not numbered yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<u64>,
    /// Bytes of its file.
    pub size_bytes: u64,
    /// `manual` when a client asked for it, `auto` when the daemon took it before something that cannot be undone.
    pub reason: Reason,
    /// What an automatic one was taken before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Before>,
    /// What the client called it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// What is missing in it, when it was taken of an older step; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<Lost>,
    /// What is in it.
    pub counts: SnapshotCounts,
    /// SHA-256 of its rows, in hex: equal for equal worlds.
    pub sha256: String,
}

/// What of the content of an older step cannot come back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Lost {
    /// Conversations whose messages were erased since.
    pub logs: u64,
    /// Manifests as written and entries of memory that were changed or removed since, and whose older form is not known.
    pub overwritten: u64,
}

/// Who wanted a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// A client.
    Manual,
    /// The daemon.
    Auto,
}

/// What the daemon takes a snapshot before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Before {
    /// Another world takes the place of the present one.
    Restore,
    /// Agents of another program are taken over.
    Migration,
    /// Many agents are deleted at once.
    Deletion,
}

impl Before {
    /// In a sentence.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Restore => "restore",
            Self::Migration => "migration",
            Self::Deletion => "deletion",
        }
    }
}

/// What is in a snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SnapshotCounts {
    /// Agents.
    pub agents: u64,
    /// Sessions.
    pub sessions: u64,
    /// Messages of all sessions.
    pub messages: u64,
    /// Open turns that have a record of their own.
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
    /// Entries of agents' memory.
    pub memories: u64,
    /// Rows of the store in all.
    pub rows: u64,
    /// Bytes of all rows, not compressed.
    pub bytes: u64,
}

/// Something that is under way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Underway {
    /// `snapshot` or `restore`.
    pub kind: &'static str,
    /// The snapshot that is taken or restored.
    pub id: Uuid,
    /// What it does now: `writing`, `reading` or `exchanging`.
    pub phase: &'static str,
    /// When it began (RFC 3339).
    pub started_at: String,
    /// Rows written or read so far.
    pub rows: u64,
    /// Bytes of them.
    pub bytes: u64,
}

/// A restore that is done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Restored {
    /// `restored`.
    pub status: &'static str,
    /// The snapshot whose world this is now.
    pub snapshot: Snapshot,
    /// The snapshot of the world before, unless automatic ones are switched off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Snapshot>,
    /// Milliseconds for which no world took commands.
    pub pause_ms: u64,
}

/// Keeps the snapshots of the world. All of it may block for as long as the disk takes.
pub trait Worlds: Send + Sync + 'static {
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
    /// Those of [`Worlds::take`]; `Conflict` with the code `step_not_kept` when the world of that step cannot be rebuilt.
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
