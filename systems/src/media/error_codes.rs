//! Error codes of media tasks.

agentsvc_components::error_codes! {
    /// Too many media tasks are open.
    MEDIA_TASKS_FULL = "media_tasks_full", [429], "Try again when some tasks have ended.";
    /// The media task has not ended.
    MEDIA_TASK_OPEN = "media_task_open", [409], "Delete it when it has ended.";
}
