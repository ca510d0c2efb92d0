//! Kinds of audit log entries: task.

agentsvc_components::audit_kinds! {
    /// A task was put in the queue.
    TASK_POSTED = "task_posted";
    /// A task was claimed for an agent.
    TASK_CLAIMED = "task_claimed";
    /// A task was ended as done.
    TASK_COMPLETED = "task_completed";
    /// A task was given up.
    TASK_FAILED = "task_failed";
    /// A failed task was put in the queue again.
    TASK_RETRIED = "task_retried";
    /// A task was deleted.
    TASK_DELETED = "task_deleted";
}
