//! Pairing: a chat that is unknown is let in by a code.

use bevy_ecs::prelude::Component;
use serde::{Deserialize, Serialize};

use super::PairingId;
use crate::kernel::record::stored;
use crate::kernel::time::Timestamp;

/// How far a pairing is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PairingState {
    /// A code waits for the chat that sends `/start <code>`.
    Offered {
        /// The code. Never shown again after it was made.
        code: Box<str>,
        /// When it is void.
        expires_at: Timestamp,
    },
    /// The chat is let in.
    Paired {
        /// Which chat.
        chat: Box<str>,
        /// Who, for people.
        name: Box<str>,
        /// Since when.
        at: Timestamp,
    },
}

/// One pairing of an instance.
#[derive(Component, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pairing {
    /// The name of the instance.
    pub instance: Box<str>,
    /// When it was made.
    pub created_at: Timestamp,
    /// How far it is.
    pub state: PairingState,
}

stored!(Pairing: b'L', PairingId);

impl Pairing {
    /// Bytes of its texts.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let state = match &self.state {
            PairingState::Offered { code, .. } => code.len(),
            PairingState::Paired { chat, name, .. } => chat.len() + name.len(),
        };
        self.instance.len() + state
    }
}
