//! Chats: the instances of channels, their conversations, messages that wait for an answer, and what is sent (spec 3,
//! Channels).

pub mod conversation;
pub mod message;
pub mod pairing;
pub mod rules;
pub mod send;
pub mod signal;

use crate::kernel::domain::Domain;
use crate::kernel::id::uuid_id;

/// What this domain is.
pub const DOMAIN: Domain = Domain { name: "channel", uses: &["manifest", "session"] };

uuid_id! {
    /// Names one instance of a channel while its name is in the configuration.
    ChannelId
}
uuid_id! {
    /// Names one conversation: a chat of an instance, with its thread where threads are conversations of their own.
    ConversationId
}
uuid_id! {
    /// Names one message of a chat that is not answered yet.
    ChatMessageId
}
uuid_id! {
    /// Names one outgoing message; its job has the same UUID.
    SendId
}
uuid_id! {
    /// Names one pairing, or one offer of a code.
    PairingId
}
