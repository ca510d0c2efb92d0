//! The stored form of one message of a session's log.

use serde::{Deserialize, Serialize};

use crate::kernel::id::TurnId;
use crate::kernel::record::is_default;
use crate::kernel::time::Timestamp;
use crate::session::message::{Block, Role, Usage};

/// One message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageRecord {
    /// The turn it belongs to.
    pub turn: TurnId,
    /// Who speaks.
    pub role: Role,
    /// What is said.
    pub blocks: Vec<Block>,
    /// When it was stored.
    pub created_at: Timestamp,
    /// Tokens of the call that wrote it; answers only.
    #[serde(default, skip_serializing_if = "is_default")]
    pub usage: Option<Usage>,
    /// `provider/model` of its model call; responses only.
    #[serde(default, skip_serializing_if = "is_default")]
    pub model: Option<Box<str>>,
    /// Whether the response was stopped early.
    #[serde(default, skip_serializing_if = "is_default")]
    pub stopped: bool,
    /// The first of the turns that answer the same message, where this turn answers it again; only in the message that begins it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub repeats: Option<TurnId>,
}
