//! Kinds of audit log entries: chat.

agentsvc_components::audit_kinds! {
    /// A binding of the web chat was added.
    BINDING_ADDED = "binding_added";
    /// A binding of the web chat was removed.
    BINDING_REMOVED = "binding_removed";
}
