//! Kinds of audit log entries: deliveries.

agentsvc_components::audit_kinds! {
    /// The targets of a schedule, cron job, trigger or workflow were set.
    DELIVERY_TARGETS_SET = "delivery_targets_set";
}
