//! Error codes of schedules and cron jobs.

agentsvc_components::error_codes! {
    /// The limit for schedules and cron jobs, or for the bytes of their texts, is reached.
    SCHEDULES_FULL = "schedules_full", [429], "Delete schedules or cron jobs.";
}
