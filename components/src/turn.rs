//! The turn: one message's way through the model to its answer; an entity with a
//! [`TurnId`](crate::TurnId) and this component. A turn is parked data, never a waiting task.

use bevy_ecs::prelude::{Component, Entity};
use serde::{Deserialize, Serialize};

use crate::message::{ToolCall, Usage};
use crate::time::Timestamp;

/// Where a turn is. The table of transitions stands at the head of `systems/src/turn/mod.rs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum TurnState {
    /// Behind another turn in the session's inbox.
    Queued,
    /// First in its session, waiting for a slot of its provider.
    Admitting,
    /// A model call is out.
    Calling,
    /// Tool calls are out.
    WaitingForTools,
    /// Stop was asked; waiting for the call that is out to come back.
    Stopping,
}

/// The state of one turn.
#[derive(Component, Clone, Debug)]
pub struct Turn {
    /// Whose turn.
    pub agent: Entity,
    /// In which session.
    pub session: Entity,
    /// The next turn in the session's inbox.
    pub next: Option<Entity>,
    /// When the message was taken.
    pub created_at: Timestamp,
    /// Tokens of this turn's model calls so far.
    pub usage: Usage,
    /// Orders this turn's rows in the session's log.
    pub ordinal: u32,
    /// The index of the next row this turn writes; row 0 is the user's message.
    pub next_index: u32,
    /// Fences outcomes: one that carries another attempt is dropped.
    pub attempt: u32,
    /// Model calls begun so far.
    pub iteration: u32,
    /// Tool calls made so far in this turn.
    pub tool_calls: u32,
    /// Where it is.
    pub state: TurnState,
    /// Someone reads the answer as it is written.
    pub streaming: bool,
    /// The tool calls that are out; empty unless `state` is `WaitingForTools`.
    pub pending: Vec<PendingTool>,
}

/// A tool call that is out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingTool {
    /// The index of the log row that its result goes to.
    pub index: u32,
    /// The call as the model made it.
    pub call: ToolCall,
}
