//! Error codes of sessions.

agentsvc_components::error_codes! {
    /// The limit for sessions of the agent, or of all agents, is reached.
    SESSIONS_FULL = "sessions_full", [429], "Delete sessions, for example those that were not used for long.";
    /// The sessions of the agent's family, or of the user whom it belongs to, take as much of the store as they may.
    SESSION_STORAGE_FULL = "session_storage_full", [429], "Delete sessions or clear histories, or raise `[sessions] family_max_bytes` or `user_max_bytes`.";
    /// Another session of the agent has this label.
    LABEL_TAKEN = "label_taken", [409], "Choose another label.";
    /// The session, its history or its agent was deleted meanwhile.
    SESSION_REMOVED = "session_removed", [409], "Use another session.";
}
