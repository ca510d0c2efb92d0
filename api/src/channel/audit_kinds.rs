//! Kinds of audit log entries: channels.

agentsvc_components::audit_kinds! {
    /// A client sets up a channel or changes its values; before it is done.
    CHANNEL_CONFIGURED = "channel_configured";
    /// A client removes a channel; before it is done.
    CHANNEL_REMOVED = "channel_removed";
    /// A client sends a test message to a channel; before it is done.
    CHANNEL_TESTED = "channel_tested";
}
