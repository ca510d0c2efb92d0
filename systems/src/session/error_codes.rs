//! Error codes of sessions.

agentsvc_components::error_codes! {
    /// Another session of the agent has this label.
    LABEL_TAKEN = "label_taken", [409], "Choose another label.";
    /// The session, its history or its agent was deleted meanwhile.
    SESSION_REMOVED = "session_removed", [409], "Use another session.";
}
