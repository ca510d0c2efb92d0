//! Error codes of sessions.

agentsvc_components::error_codes! {
    /// The limit for sessions of the agent, or of all agents, is reached.
    SESSIONS_FULL = "sessions_full", [429], "Delete sessions, for example those that were not used for long.";
    /// Another session of the agent has this label.
    LABEL_TAKEN = "label_taken", [409], "Choose another label.";
    /// The session, its history or its agent was deleted meanwhile.
    SESSION_REMOVED = "session_removed", [409], "Use another session.";
}
