//! Messages that come from outside without a conversation of their own: calls of hooks, and files of the inbox (spec 3,
//! Webhooks).

use bevy_ecs::prelude::Component;
use serde::{Deserialize, Serialize};

use crate::kernel::domain::Domain;
use crate::kernel::id::{AgentId, SessionId, TurnId, uuid_id};
use crate::kernel::record::{is_default, stored};
use crate::kernel::taint::Taint;
use crate::kernel::time::Timestamp;
use crate::kernel::words::enum_words;

/// What this domain is.
pub const DOMAIN: Domain = Domain { name: "hook", uses: &[] };

uuid_id! {
    /// Names one call of a hook.
    HookCallId
}

enum_words! {
    /// What was called.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum HookKind [as_str] {
        /// `/api/hooks/agent`: the caller waits for the answer.
        #[default]
        Agent = "agent",
        /// `/api/hooks/wake`
        Wake = "wake",
        /// A file of the inbox.
        Inbox = "inbox",
    }
}

enum_words! {
    /// How far a call is.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum HookState [as_str] {
        /// It waits for the next time that its agent is woken.
        Waiting = "waiting",
        /// Its turn waits or runs.
        #[default]
        Running = "running",
        /// The agent answered.
        Completed = "completed",
        /// The turn ended without an answer.
        Failed = "failed",
        /// The turn was stopped.
        Stopped = "stopped",
        /// The turn took too long, and was stopped.
        TimedOut = "timed_out",
    }
}

impl HookState {
    /// Is it still to end?
    #[must_use]
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Waiting | Self::Running)
    }
}

/// Where the answer goes beside the caller.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookTarget {
    /// The channel's name.
    pub channel: Box<str>,
    /// Whom; `None` is the channel's usual conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recipient: Option<Box<str>>,
}

/// The state of one call.
#[derive(Component, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookCall {
    /// Who answers.
    pub agent: AgentId,
    /// What was called.
    pub kind: HookKind,
    /// How far it is.
    pub state: HookState,
    /// What a repetition is known by; empty for what is never one.
    #[serde(default, skip_serializing_if = "is_default")]
    pub key: Box<str>,
    /// What the call is a digest of, so that another one under the same key is told apart.
    #[serde(default, skip_serializing_if = "is_default")]
    pub digest: Box<str>,
    /// What is said, as long as it waits.
    #[serde(default, skip_serializing_if = "is_default")]
    pub message: Box<str>,
    /// Untrusted content in what is said, as long as it waits.
    #[serde(default, skip_serializing_if = "is_default")]
    pub taint: Taint,
    /// The session of its turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// The turn that answers it. Several that waited together have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    /// The answer, or why there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Box<str>>,
    /// The code of the failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<Box<str>>,
    /// Tokens of the turn: those that it read.
    #[serde(default, skip_serializing_if = "is_default")]
    pub input_tokens: u64,
    /// Those that it wrote.
    #[serde(default, skip_serializing_if = "is_default")]
    pub output_tokens: u64,
    /// Where the answer goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<HookTarget>,
    /// When it came, or when it last began to wait.
    pub created_at: Timestamp,
    /// Milliseconds that it may be open.
    pub timeout_ms: u32,
    /// When it ended; `None` while it is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// It is kept until what it came from is gone, however old it is.
    #[serde(default, skip_serializing_if = "is_default")]
    pub held: bool,
}

stored!(HookCall: b'^', HookCallId);

impl HookCall {
    /// Bytes of its texts.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let long = |text: &Option<Box<str>>| text.as_deref().map_or(0, str::len);
        let target = self.target.as_ref().map_or(0, |target| target.channel.len() + long(&target.recipient));
        self.key.len() + self.digest.len() + self.message.len() + long(&self.result) + long(&self.code) + target
    }

    /// When it has been open for too long, or has waited long enough.
    #[must_use]
    pub fn due_at(&self) -> Timestamp {
        self.created_at.plus_ms(self.timeout_ms.into())
    }
}
