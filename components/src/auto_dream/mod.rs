//! Auto-dream: an agent that is idle consolidates its memory (spec 3, `GET /api/auto-dream/status`).

use bevy_ecs::prelude::Component;
use serde::{Deserialize, Serialize};

use crate::kernel::domain::Domain;
use crate::kernel::id::{AgentId, SessionId, TurnId, uuid_id};
use crate::kernel::record::{is_default, stored};
use crate::kernel::time::Timestamp;
use crate::kernel::words::enum_words;
use crate::proactive_memory::MemoryEntryId;

/// What this domain is.
pub const DOMAIN: Domain = Domain { name: "auto_dream", uses: &["proactive_memory"] };

uuid_id! {
    /// Names the dreaming of one agent: the id of that agent.
    DreamId
}

impl From<AgentId> for DreamId {
    fn from(agent: AgentId) -> Self {
        Self(agent.0)
    }
}

/// What is known of an agent's consolidation runs. Agents that never dreamed and are not to dream have none.
#[derive(Component, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dream {
    /// Does it dream by itself?
    pub enabled: bool,
    /// Where its clock starts when it has not consolidated yet.
    pub since: Timestamp,
    /// When its last run succeeded.
    #[serde(default, skip_serializing_if = "is_default")]
    pub last_consolidated_at: Option<Timestamp>,
    /// Sessions that have started since then, or, before the first run, in all.
    #[serde(default, skip_serializing_if = "is_default")]
    pub sessions: u32,
    /// When it is looked at again.
    pub check_at: Timestamp,
    /// Behind which memory entry the next run begins to read; `None` for the first entry.
    #[serde(default, skip_serializing_if = "is_default")]
    pub cursor: Option<MemoryEntryId>,
    /// How far the last second reading came, which has the untrusted entries as well; the next one goes on there.
    #[serde(default, skip_serializing_if = "is_default")]
    pub again: DreamPass,
    /// The run that is under way.
    #[serde(default, skip_serializing_if = "is_default")]
    pub run: Option<DreamRun>,
    /// How the last run ended.
    #[serde(default, skip_serializing_if = "is_default")]
    pub last: Option<DreamEnd>,
}

/// A run that is under way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DreamRun {
    /// Its turn.
    pub turn: TurnId,
    /// The session of the turn, which goes with it.
    pub session: SessionId,
    /// When it began.
    pub started_at: Timestamp,
    /// When it is stopped.
    pub deadline: Timestamp,
    /// A client asked for it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub is_manual: bool,
    /// The sessions that had started when it began.
    #[serde(default, skip_serializing_if = "is_default")]
    pub sessions: u32,
    /// Behind which memory entry it began to read.
    #[serde(default, skip_serializing_if = "is_default")]
    pub from: Option<MemoryEntryId>,
    /// How far it has read.
    #[serde(default, skip_serializing_if = "is_default")]
    pub read: DreamRead,
    /// It was told to stop, for this reason.
    #[serde(default, skip_serializing_if = "is_default")]
    pub ending: Option<DreamOutcome>,
}

/// How far a run has read the memory entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DreamRead {
    /// Pages, each counted once.
    pub pages: u32,
    /// Behind which entry the last page began.
    #[serde(default, skip_serializing_if = "is_default")]
    pub last: Option<MemoryEntryId>,
    /// Behind which entry the next page begins.
    #[serde(default, skip_serializing_if = "is_default")]
    pub next: Option<MemoryEntryId>,
    /// It has read the last page of all.
    #[serde(default, skip_serializing_if = "is_default")]
    pub is_whole: bool,
    /// It reads no more in this run: the second reading begins.
    #[serde(default, skip_serializing_if = "is_default")]
    pub has_ended: bool,
    /// How far the second reading has come.
    #[serde(default, skip_serializing_if = "is_default")]
    pub again: DreamPass,
}

/// How far a reading has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DreamPass {
    /// Pages, each counted once.
    pub pages: u32,
    /// Behind which entry it began.
    #[serde(default, skip_serializing_if = "is_default")]
    pub from: Option<MemoryEntryId>,
    /// Behind which entry the last page began.
    #[serde(default, skip_serializing_if = "is_default")]
    pub last: Option<MemoryEntryId>,
    /// Behind which entry the next page begins.
    #[serde(default, skip_serializing_if = "is_default")]
    pub next: Option<MemoryEntryId>,
    /// It has read the last page of all.
    #[serde(default, skip_serializing_if = "is_default")]
    pub is_whole: bool,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DreamEnd {
    /// Its turn.
    pub turn: TurnId,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Timestamp,
    /// How.
    pub outcome: DreamOutcome,
    /// What the model said at the end, or why the run failed; cut.
    #[serde(default, skip_serializing_if = "is_default")]
    pub text: Box<str>,
}

enum_words! {
    /// How a run can end.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum DreamOutcome [ALL, as_str] {
        /// The memory is consolidated.
        Completed = "completed",
        /// It failed, or reached one of its limits.
        Failed = "failed",
        /// It was stopped.
        Aborted = "aborted",
        /// It took too long.
        TimedOut = "timed_out",
    }
}

stored!(Dream: b'Q', DreamId);

impl Dream {
    /// Bytes of its texts.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.last.as_ref().map_or(0, |last| last.text.len())
    }
}
