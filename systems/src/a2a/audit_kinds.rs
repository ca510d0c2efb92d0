//! Kinds of audit log entries: A2A.

agentsvc_components::audit_kinds! {
    /// An A2A client sent a task to an agent.
    A2A_TASK_SENT = "a2a_task_sent";
    /// An A2A client cancelled a task.
    A2A_TASK_CANCELLED = "a2a_task_cancelled";
    /// An external A2A agent was discovered, or discovered again.
    A2A_AGENT_DISCOVERED = "a2a_agent_discovered";
    /// An external A2A agent was removed.
    A2A_AGENT_REMOVED = "a2a_agent_removed";
    /// A message was sent to an external A2A agent.
    A2A_MESSAGE_SENT = "a2a_message_sent";
}
