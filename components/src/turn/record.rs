//! The stored form of a turn that has not ended. An ended turn has no record; its rows in the log remain.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::kernel::id::{AgentId, SessionId, TurnId};
use crate::kernel::record::{is_default, record};
use crate::kernel::taint::Taint;
use crate::kernel::time::Timestamp;
use crate::session::message::Usage;
use crate::turn::{BurstPlace, Journal, Origin, ParentLink, PendingTool, TurnRequest, TurnState};

/// One open turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TurnRecord {
    /// Also in the key.
    pub id: TurnId,
    /// Whose.
    pub agent: AgentId,
    /// In which session.
    pub session: SessionId,
    /// When the message was taken.
    pub created_at: Timestamp,
    /// Tokens so far.
    #[serde(default, skip_serializing_if = "is_default")]
    pub usage: Usage,
    /// Orders this turn's rows, and the session's inbox.
    pub ordinal: u32,
    /// The index of the next row.
    pub next_index: u32,
    /// The last attempt given out.
    #[serde(default, skip_serializing_if = "is_default")]
    pub attempt: u32,
    /// Model calls so far.
    #[serde(default, skip_serializing_if = "is_default")]
    pub iteration: u32,
    /// Tool calls made so far.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tool_calls: u32,
    /// Tool calls that are out and have no result row yet.
    #[serde(default, skip_serializing_if = "is_default")]
    pub pending: Vec<PendingTool>,
    /// Where it is.
    pub state: TurnState,
    /// Source of the message.
    #[serde(default, skip_serializing_if = "is_default")]
    pub origin: Origin,
    /// What the request asked for beside its message.
    #[serde(default, skip_serializing_if = "is_default")]
    pub request: Option<Arc<TurnRequest>>,
    /// The turn that began it through `agent_send`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub link: Option<Box<ParentLink>>,
    /// Number of turns of triggers and of messages of agents between this one and its first cause, itself included.
    #[serde(default, skip_serializing_if = "is_default")]
    pub depth: u8,
    /// Untrusted content it has read or began with.
    #[serde(default, skip_serializing_if = "is_default")]
    pub taint: Taint,
    /// It ends at the next boundary, interrupted.
    #[serde(default, skip_serializing_if = "is_default")]
    pub cancelled: bool,
    /// What it did so far.
    #[serde(default, skip_serializing_if = "is_default")]
    pub journal: Option<Box<Journal>>,
    /// Where it is stored when it has no record of its own; never written.
    #[serde(skip)]
    pub burst: Option<BurstPlace>,
}

record!(TurnRecord: b't', TurnId, id);
