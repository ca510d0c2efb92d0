//! Error codes of the task queue.

agentsvc_components::error_codes! {
    /// The limit for open tasks, or for the bytes of the texts of tasks, is reached.
    TASKS_FULL = "tasks_full", [429], "Complete or delete tasks.";
    /// The task is not running.
    TASK_NOT_RUNNING = "task_not_running", [409], "Claim the task first.";
    /// Another agent has claimed the task.
    TASK_NOT_YOURS = "task_not_yours", [409], "Leave the task to that agent.";
    /// Only failed tasks can be retried.
    TASK_NOT_FAILED = "task_not_failed", [409], "Read the task's status.";
    /// Only pending tasks can be claimed.
    TASK_NOT_PENDING = "task_not_pending", [409], "Claim another task.";
    /// The task is assigned to another agent.
    TASK_ASSIGNED = "task_assigned", [409], "Claim another task.";
}
