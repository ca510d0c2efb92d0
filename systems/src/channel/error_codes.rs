//! Error codes of chats.

agentsvc_components::error_codes! {
    /// No instance of a channel has this name.
    CHANNEL_NOT_FOUND = "channel_not_found", [404], "Name an instance of `GET /api/channels`.";
    /// Too many messages of chats are not answered yet, or too many messages wait to be sent.
    CHANNEL_BUSY = "channel_busy", [429], "Try again when some are answered or sent.";
    /// The agent may not send to this chat.
    CHANNEL_SEND_DENIED = "channel_send_denied", [403], "Add the chat to `allow_send_to` of the instance.";
    /// The sender may decide no approvals, or the agent that asks does not answer in this channel.
    CHANNEL_APPROVAL_DENIED = "channel_approval_denied", [403], "Name the sender in `approval_recipients`, or decide it on the page.";
    /// What would be done is too long to be shown in a chat.
    CHANNEL_APPROVAL_UNSEEN = "channel_approval_unseen", [409], "Approve it on the page.";
    /// There are as many pairings, or open codes, as there may be.
    PAIRINGS_FULL = "pairings_full", [429], "Delete pairings, or wait until codes expire.";
    /// The agent is not among those of the channel.
    CHANNEL_AGENT_UNKNOWN = "channel_agent_unknown", [400], "Name one of `available_agents` of the instance.";
}
