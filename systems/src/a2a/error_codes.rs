//! Error codes of A2A tasks.

agentsvc_components::error_codes! {
    /// Too many A2A tasks are open.
    A2A_TASKS_FULL = "a2a_tasks_full", [429], "Try again when some tasks have ended.";
    /// What A2A tasks may cost in a day (`[a2a] daily_limit_usd`) is used up.
    A2A_BUDGET_EXCEEDED = "a2a_budget_exceeded", [429], "Wait until the next UTC day, or raise the limit.";
    /// A client of A2A began it, and A2A is off (`[a2a] enabled`).
    A2A_OFF = "a2a_off", [409], "Remove what such clients left behind, or turn A2A on.";
    /// The A2A task id is taken by a task with another message.
    A2A_TASK_EXISTS = "a2a_task_exists", [409], "Choose another id.";
    /// The A2A task has ended, so that it cannot be cancelled.
    A2A_TASK_ENDED = "a2a_task_ended", [409], "Read the task for its result.";
    /// The A2A task has as many push notification configurations as it may have.
    A2A_PUSH_FULL = "a2a_push_full", [429], "Delete a configuration of the task.";
    /// There are as many external A2A agents as there may be.
    A2A_EXTERNAL_AGENTS_FULL = "a2a_external_agents_full", [429], "Remove some with `DELETE /api/a2a/agents/{id}`.";
    /// The name belongs to an external A2A agent with another URL.
    A2A_EXTERNAL_AGENT_EXISTS = "a2a_external_agent_exists", [409], "Give the new one another `name`, or remove the old one.";
    /// Too many tasks of external A2A agents are open.
    A2A_SENT_FULL = "a2a_sent_full", [429], "Try again when some tasks have ended.";
    /// The task of the external A2A agent is open, so that it takes no further message.
    A2A_SENT_OPEN = "a2a_sent_open", [409], "Wait for its end.";
    /// As many messages were sent to external A2A agents in the last minute as `[a2a] external_rate_per_minute` allows.
    A2A_SENT_RATE_LIMITED = "a2a_sent_rate_limited", [429], "Wait as long as `Retry-After` says, or raise the rate.";
}
