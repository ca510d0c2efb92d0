//! Kinds of audit log entries: chats.

agentsvc_components::audit_kinds! {
    /// Instances of channels came, changed or went with the configuration.
    CHANNELS_SET = "channels_set";
    /// A pairing code was created.
    CHAT_CODE_MADE = "chat_code_made";
    /// A chat was paired.
    CHAT_PAIRED = "chat_paired";
    /// A chat was unpaired, or a pairing code was revoked.
    CHAT_UNPAIRED = "chat_unpaired";
    /// A chat gave a command.
    CHAT_COMMAND = "chat_command";
    /// A person decided an approval in a chat.
    CHAT_APPROVAL_DECIDED = "chat_approval_decided";
    /// A message was sent to a chat at the wish of an agent or a client.
    CHAT_MESSAGE_SENT = "chat_message_sent";
}
