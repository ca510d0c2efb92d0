//! The approval: an action that waits for a person; an entity with an [`ApprovalId`](crate::ApprovalId) and this
//! component.

use crate::kernel::domain::Domain;
use crate::kernel::words::enum_words;
use bevy_ecs::prelude::Component;
use serde::{Deserialize, Serialize};

use crate::kernel::holder::Holder;
use crate::kernel::id::{AgentId, ApprovalId, TurnId};
use crate::kernel::record::{is_default, stored};
use crate::kernel::time::Timestamp;

/// What this domain is.
pub const DOMAIN: Domain = Domain { name: "approval", uses: &[] };

enum_words! {
    /// Where an approval is. Every state but the first is an end.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum ApprovalState [as_str] {
        /// Nobody has decided yet.
        #[default]
        Pending = "pending",
        /// A person said yes.
        Approved = "approved",
        /// A person said no.
        Rejected = "rejected",
        /// Its deadline passed, or what asked for it is gone: the same as no.
        Expired = "expired",
    }
}

/// The tool call that an approval is about. What was approved is what runs: the hash is compared before it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GatedCall {
    /// The turn that waits; of what waits outside the world the id of that wait, which no turn has.
    pub turn: TurnId,
    /// The log row that the call's result goes to; [`CLIENT_CALL`](Self::CLIENT_CALL) of a client's call.
    pub index: u32,
    /// SHA-256 of the tool's name, a zero byte and the input as the model wrote it.
    pub hash: [u8; 32],
}

impl GatedCall {
    /// The row of a call that a client makes without a turn; no log has it.
    pub const CLIENT_CALL: u32 = u32::MAX;

    /// Does a client make it, without a turn?
    #[must_use]
    pub const fn is_clients(&self) -> bool {
        self.index == Self::CLIENT_CALL
    }

    /// The turn that waits, if one does.
    #[must_use]
    pub fn waiting_turn(&self) -> Option<TurnId> {
        (!self.is_clients()).then_some(self.turn)
    }
}

/// An approval.
#[derive(Component, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    /// Who asks.
    pub agent: AgentId,
    /// Action: the tool name for a tool call.
    pub action: Box<str>,
    /// Description.
    pub description: Box<str>,
    /// The particulars, as compact JSON: the input of a tool call.
    pub payload: Box<str>,
    /// Where it is.
    pub state: ApprovalState,
    /// When it was asked for.
    pub created_at: Timestamp,
    /// When it expires.
    pub deadline: Timestamp,
    /// Time of the decision or expiry.
    #[serde(default)]
    pub decided_at: Option<Timestamp>,
    /// What the person said to the decision, or why it expired.
    #[serde(default)]
    pub reason: Option<Box<str>>,
    /// The tool call that waits for it; `None` when a client asked.
    #[serde(default)]
    pub call: Option<GatedCall>,
    /// The form that a person fills in to approve it, as a flat JSON schema; `None` when yes or no is all it needs. The answer
    /// goes to who waits for it and is not kept with it; the input log has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_schema: Option<Box<str>>,
    /// A stranger began the turn that asks: a client without a key, or another node.
    #[serde(default, skip_serializing_if = "is_default")]
    pub is_strangers: bool,
    /// Whose share of the decided approvals it takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<Holder>,
}

stored!(Approval: b'i', ApprovalId);

impl Approval {
    /// Bytes of its texts.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let option = |text: &Option<Box<str>>| text.as_ref().map_or(0, |text| text.len());
        let texts = self.action.len() + self.description.len() + self.payload.len();
        texts + option(&self.reason) + option(&self.answer_schema)
    }
}
