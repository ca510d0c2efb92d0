//! Whose share of a pool something takes.

use serde::{Deserialize, Serialize};

use super::id::{AgentId, UserId};

/// Whose share of a pool something takes. It is stored with it: neither a change of the owner nor the end of an agent frees
/// what is still there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Holder {
    /// A family of agents, by the agent at its top.
    Family(AgentId),
    /// A user with a limited role, with the agents of that user.
    User(UserId),
}
