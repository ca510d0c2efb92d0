//! Kinds of audit log entries: trigger.

agentsvc_components::audit_kinds! {
    /// A trigger was made.
    TRIGGER_CREATED = "trigger_created";
    /// A trigger changed.
    TRIGGER_UPDATED = "trigger_updated";
    /// A trigger was deleted.
    TRIGGER_DELETED = "trigger_deleted";
}
