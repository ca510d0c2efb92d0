//! Who carries out a command.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::kernel::id::{AgentId, TurnId};

/// Who did something. It travels with a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Actor {
    /// The daemon itself: its start, its sweeps, the clock.
    #[default]
    System,
    /// A client of the API, WebSockets included.
    Api,
    /// An agent, in one of its turns.
    Agent {
        /// Which agent.
        agent: AgentId,
        /// In which turn.
        turn: TurnId,
    },
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System => f.write_str("system"),
            Self::Api => f.write_str("api"),
            Self::Agent { agent, turn } => write!(f, "agent:{agent}/turn:{turn}"),
        }
    }
}
