//! Kinds of audit log entries: template.

agentsvc_components::audit_kinds! {
    /// An agent type was made.
    TEMPLATE_CREATED = "template_created";
    /// An agent type changed.
    TEMPLATE_UPDATED = "template_updated";
    /// An agent type was deleted.
    TEMPLATE_DELETED = "template_deleted";
}
