//! The stored form of an approval, decided or not.

use serde::{Deserialize, Serialize};

use crate::approval::{ApprovalState, GatedCall};
use crate::kernel::id::{AgentId, ApprovalId};
use crate::kernel::time::Timestamp;

/// One approval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalRecord {
    /// Also in the key.
    pub id: ApprovalId,
    /// Who asks.
    pub agent: AgentId,
    /// What is to be done, in a word.
    pub action: Box<str>,
    /// The same for people.
    pub description: Box<str>,
    /// The particulars, as compact JSON.
    pub payload: Box<str>,
    /// Where it is.
    pub state: ApprovalState,
    /// When it was asked for.
    pub created_at: Timestamp,
    /// When it expires.
    pub deadline: Timestamp,
    /// When it was decided.
    #[serde(default)]
    pub decided_at: Option<Timestamp>,
    /// What was said to it.
    #[serde(default)]
    pub reason: Option<Box<str>>,
    /// The tool call that waits.
    #[serde(default)]
    pub call: Option<GatedCall>,
}
