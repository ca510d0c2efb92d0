//! Kinds of audit log entries: event.

agentsvc_components::audit_kinds! {
    /// A custom event was published.
    EVENT_PUBLISHED = "event_published";
}
