//! Kinds of audit log entries: webhooks.

agentsvc_components::audit_kinds! {
    /// A webhook or an event subscription was made.
    WEBHOOK_CREATED = "webhook_created";
    /// A webhook or an event subscription changed.
    WEBHOOK_UPDATED = "webhook_updated";
    /// A webhook or an event subscription was deleted, with its deliveries.
    WEBHOOK_DELETED = "webhook_deleted";
    /// A webhook was switched off because every try had failed for a day.
    WEBHOOK_DISABLED = "webhook_disabled";
}
