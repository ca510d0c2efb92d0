//! Who carries out a command.

use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::kernel::id::{AgentId, KeyId, TurnId, UserId};

/// Who did something. It travels with a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Actor {
    /// The daemon itself: its start, its sweeps, the clock.
    #[default]
    System,
    /// A client of the API with the key of the configuration, or any where none is set; WebSockets included.
    Api,
    /// An agent, in one of its turns.
    Agent {
        /// Which agent.
        agent: AgentId,
        /// In which turn.
        turn: TurnId,
    },
    /// A client of the API with a named key.
    Key {
        /// Which key.
        key: KeyId,
        /// Whose key.
        user: Option<UserId>,
    },
    /// A client of the API without a key, where one is set: of a route that is for all.
    Client,
    /// A caller of a hook, with the token of hooks.
    Hook,
    /// Another daemon, over the network of peers.
    Peer,
    /// A person in a chat of a channel.
    Chat,
}

impl Actor {
    /// Whose share of what there is for all is taken: that of the user, or of the named key without one.
    #[must_use]
    pub fn user_or_key(self) -> Option<Uuid> {
        match self {
            Self::Key { key, user } => Some(user.map_or(key.0, |user| user.0)),
            _ => None,
        }
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System => f.write_str("system"),
            Self::Api => f.write_str("api"),
            Self::Client => f.write_str("client"),
            Self::Hook => f.write_str("hook"),
            Self::Peer => f.write_str("peer"),
            Self::Chat => f.write_str("chat"),
            Self::Agent { agent, turn } => write!(f, "agent:{agent}/turn:{turn}"),
            Self::Key { key, user: None } => write!(f, "key:{key}"),
            Self::Key { key, user: Some(user) } => write!(f, "user:{user}/key:{key}"),
        }
    }
}
