//! Error codes of media tasks.

agentsvc_components::error_codes! {
    /// Too many media tasks are open.
    MEDIA_TASKS_FULL = "media_tasks_full", [429], "Try again when some tasks have ended.";
}
