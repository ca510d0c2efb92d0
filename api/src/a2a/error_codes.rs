//! Error codes of A2A over HTTP. Errors of JSON-RPC messages have those of the protocol.

agentsvc_components::error_codes! {
    /// A2A is off.
    A2A_DISABLED = "a2a_disabled", [404], "Set `[a2a] enabled = true` in the configuration.";
    /// The client, or all clients without a key together, sent more A2A tasks in a minute than `[a2a]` allows.
    A2A_RATE_LIMITED = "a2a_rate_limited", [429], "Wait as long as `Retry-After` says, or raise `[a2a] rate_per_minute`.";
    /// Too many requests of the client, or of all clients, wait for A2A tasks.
    A2A_TOO_MANY_WAIT = "a2a_too_many_wait", [429], "Send with `blocking: false` and ask for the task later.";
    /// No agent of that name is offered over A2A, or none at all.
    A2A_AGENT_UNKNOWN = "a2a_agent_unknown", [404], "`GET /a2a/agents` lists the offered agents.";
    /// A part of the message is neither text nor data.
    A2A_CONTENT_TYPE = "a2a_content_type", [400], "Send text parts.";
    /// Several agents are offered and the request names none.
    A2A_AGENT_UNNAMED = "a2a_agent_unnamed", [400], "Name the agent in `agent_id`, or set `[a2a] default_agent`.";
    /// The task takes no further message.
    A2A_TASK_CLOSED = "a2a_task_closed", [409], "Send the message without a task id, with the context id of the task.";
    /// The external A2A agent did not respond.
    A2A_AGENT_UNREACHABLE = "a2a_agent_unreachable", [502], "Check the URL and the agent; `error` says what went wrong.";
    /// What answers at the URL has no agent card that can be used.
    A2A_CARD_UNUSABLE = "a2a_card_unusable", [502], "Check that the URL is that of an A2A agent; `error` says what is missing.";
}
