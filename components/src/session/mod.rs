//! The session: one conversation of one agent; an entity with a [`SessionId`](crate::SessionId) and this
//! component. Its messages are rows in the content store under its [`LogId`].

use crate::kernel::domain::Domain;
pub mod message;
pub mod message_record;
pub mod record;
pub mod sweep;

use bevy_ecs::prelude::{Component, Entity};
use serde::{Deserialize, Serialize};

use crate::kernel::id::{LogId, TurnId};
use crate::kernel::taint::Taint;
use crate::kernel::time::Timestamp;

/// What this domain is.
pub const DOMAIN: Domain = Domain { name: "session", uses: &[] };

/// What a session has stored is counted in units of so many bytes: each row takes a whole number of them.
pub const STORED_UNIT: u64 = 64;

/// The state of one session that decisions need.
#[derive(Component, Clone, Debug)]
pub struct Session {
    /// The agent it belongs to, for ever.
    pub agent: Entity,
    /// Where its messages are.
    pub log: LogId,
    /// When it was created.
    pub created_at: Timestamp,
    /// Time of the last message, response or label change.
    pub updated_at: Timestamp,
    /// The turn that runs now: the head of the inbox.
    pub head: Option<Entity>,
    /// The turn that was queued last; equal to `head` when nothing waits.
    pub tail: Option<Entity>,
    /// A name given by the user, unique within the agent. Boxed twice: most sessions have none, and this way none
    /// takes 8 bytes instead of 16.
    pub label: Option<Box<Box<str>>>,
    /// User messages and responses so far.
    pub message_count: u32,
    /// The ordinal of the next turn; orders the rows of the log.
    pub next_ordinal: u32,
    /// Turns in the inbox, the running one included. A message is refused when there are
    /// [`SESSION_INBOX_MAX`](crate::kernel::limit::SESSION_INBOX_MAX); what fires is not.
    pub queued: u32,
    /// Tool-call boundaries are left by the running turn (spec 1, Interrupting a turn).
    pub interrupted: bool,
    /// Made for one request; goes with its turn, and no list shows it.
    pub ephemeral: bool,
    /// Strangers began it in a chat: its rows are of their share of the store.
    pub is_strangers: bool,
    /// Turns with a smaller ordinal are summarised; 0 when none is.
    pub compacted: u32,
    /// What the rows of its log take in the store, in units of [`STORED_UNIT`] bytes.
    pub stored: u32,
    /// Untrusted content in its history; whoever goes on with it reads that too.
    pub taint: Taint,
}

/// Turns of a session end step by step: it was removed, and is hidden then, or its history was cleared.
#[derive(Component, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ending {
    /// The last of those turns. What came in later goes on.
    pub upto: TurnId,
    /// The log of their messages, of those behind `earlier`.
    pub log: LogId,
    /// Why they end, for people.
    pub why: Box<str>,
    /// Histories that were cleared before and whose turns still end: the last turn of each and the log of its messages, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<(TurnId, LogId)>,
}

impl Ending {
    /// The log of the messages of one of those turns.
    #[must_use]
    pub fn log_of(&self, turn: TurnId) -> LogId {
        self.earlier.iter().find(|(upto, _)| turn <= *upto).map_or(self.log, |(_, log)| *log)
    }
}
