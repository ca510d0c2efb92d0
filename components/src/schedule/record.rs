//! The stored forms of a schedule or cron job: what it is, and how far it is. They are two records, so that a fire does
//! not write the prompt again.

use serde::{Deserialize, Serialize};

use crate::kernel::id::{AgentId, ScheduleId};
use crate::kernel::record::{is_default, record};
use crate::kernel::taint::Taint;
use crate::kernel::time::Timestamp;
use crate::manifest::SessionMode;
use crate::schedule::{MissedPolicy, OverlapPolicy, Past, ScheduleKind, WakeRules};

/// What one schedule or cron job is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduleRecord {
    /// Also in the key.
    pub id: ScheduleId,
    /// Whose.
    pub agent: AgentId,
    /// Its family.
    pub kind: ScheduleKind,
    /// Name.
    #[serde(default)]
    pub name: Option<Box<str>>,
    /// Its rule as written.
    pub rule: Box<str>,
    /// The zone of a cron expression.
    pub timezone: Box<str>,
    /// Prompt for the agent.
    pub prompt: Box<str>,
    /// See there.
    pub missed: MissedPolicy,
    /// See there.
    pub overlap: OverlapPolicy,
    /// Session continuity of its turns.
    #[serde(default)]
    pub session_mode: Option<SessionMode>,
    /// When it was created.
    pub created_at: Timestamp,
    /// Time of the last change to its definition.
    pub updated_at: Timestamp,
    /// When its rule was set, or it was enabled.
    pub anchored_at: Timestamp,
    /// Untrusted content that the turn had read that made it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub taint: Taint,
    /// The user that the turn was for that made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<Box<str>>,
    /// Further rules of one that a manifest asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wake: Option<Box<WakeRules>>,
}

record!(ScheduleRecord: b'd', ScheduleId, id);

/// How far one schedule or cron job is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduleStateRecord {
    /// Also in the key.
    pub id: ScheduleId,
    /// Does it fire?
    pub enabled: bool,
    /// Slots up to this one have their outcome.
    pub cursor: Timestamp,
    /// What came of it so far.
    #[serde(default)]
    pub past: Option<Box<Past>>,
}

record!(ScheduleStateRecord: b'e', ScheduleId, id);
