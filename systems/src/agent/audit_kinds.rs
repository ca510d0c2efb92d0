//! Kinds of audit log entries: agents.

agentsvc_components::audit_kinds! {
    /// An agent was created.
    AGENT_SPAWNED = "agent_spawned";
    /// An agent was created as a copy of another; follows its `agent_spawned`.
    AGENT_CLONED = "agent_cloned";
    /// Fields of an agent changed that have no kind of their own.
    AGENT_UPDATED = "agent_updated";
    /// An agent's model or what belongs to it changed.
    AGENT_MODEL_CHANGED = "agent_model_changed";
    /// An agent's mode changed.
    AGENT_MODE_CHANGED = "agent_mode_changed";
    /// What tools an agent may call changed.
    AGENT_TOOLS_CHANGED = "agent_tools_changed";
    /// An agent was given to a user, or to the installation.
    AGENT_OWNER_CHANGED = "agent_owner_changed";
    /// An agent's skills changed.
    AGENT_SKILLS_CHANGED = "agent_skills_changed";
    /// An agent was started.
    AGENT_STARTED = "agent_started";
    /// An agent was stopped.
    AGENT_STOPPED = "agent_stopped";
    /// An agent was removed.
    AGENT_TERMINATED = "agent_terminated";
}
