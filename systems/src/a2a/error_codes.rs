//! Error codes of A2A tasks.

agentsvc_components::error_codes! {
    /// Too many A2A tasks are open.
    A2A_TASKS_FULL = "a2a_tasks_full", [429], "Try again when some tasks have ended.";
    /// What A2A tasks may cost in a day (`[a2a] daily_limit_usd`) is used up.
    A2A_BUDGET_EXCEEDED = "a2a_budget_exceeded", [429], "Wait until the next UTC day, or raise the limit.";
    /// The A2A task id is taken by a task with another message.
    A2A_TASK_EXISTS = "a2a_task_exists", [409], "Choose another id.";
    /// The A2A task has ended, so that it cannot be cancelled.
    A2A_TASK_ENDED = "a2a_task_ended", [409], "Read the task for its result.";
    /// The A2A task has as many push notification configurations as it may have.
    A2A_PUSH_FULL = "a2a_push_full", [429], "Delete a configuration of the task.";
}
