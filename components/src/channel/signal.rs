//! What an adapter shows of a message on its way: typing and reactions.

use super::{ChatMessageId, ConversationId};
use crate::kernel::effect::Effect;
use crate::kernel::id::{AgentId, SessionId, TurnId};
use crate::manifest::channel::TypingMode;

/// How far a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// Its turn is open, in this session: it is stored.
    Began {
        /// Which agent answers.
        agent: AgentId,
        /// In which session.
        session: SessionId,
        /// The turn.
        turn: TurnId,
        /// When typing is shown.
        typing: TypingMode,
    },
    /// Its turn has ended. Whether with an answer says what is sent.
    Ended {
        /// It failed or was stopped.
        has_failed: bool,
    },
}

/// Shows in a chat how far a message is. Is lost with a kill; what is open after a start is listed with the messages.
#[derive(Clone, Debug)]
pub struct ChatSignal {
    /// The message.
    pub message: ChatMessageId,
    /// Its conversation.
    pub conversation: ConversationId,
    /// The name of the instance.
    pub instance: Box<str>,
    /// The chat.
    pub chat: Box<str>,
    /// The thread.
    pub thread: Option<Box<str>>,
    /// The id of the message on its platform.
    pub message_id: Option<Box<str>>,
    /// How far it is.
    pub shown: Shown,
}

impl Effect for ChatSignal {}
