//! Kinds of audit log entries: schedule.

agentsvc_components::audit_kinds! {
    /// A schedule or cron job was made.
    SCHEDULE_CREATED = "schedule_created";
    /// A schedule or cron job changed.
    SCHEDULE_UPDATED = "schedule_updated";
    /// A schedule or cron job was deleted.
    SCHEDULE_DELETED = "schedule_deleted";
    /// A schedule or cron job was run by hand.
    SCHEDULE_RUN = "schedule_run";
}
