//! Kinds of audit log entries: A2A.

agentsvc_components::audit_kinds! {
    /// An A2A client sent a task to an agent.
    A2A_TASK_SENT = "a2a_task_sent";
    /// An A2A client cancelled a task.
    A2A_TASK_CANCELLED = "a2a_task_cancelled";
}
