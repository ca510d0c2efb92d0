//! Kinds of audit log entries: sessions.

agentsvc_components::audit_kinds! {
    /// A session was removed.
    SESSION_REMOVED = "session_removed";
    /// An agent's current session was replaced by a fresh one.
    SESSION_RESET = "session_reset";
    /// A conversation that was held elsewhere became a session.
    SESSION_IMPORTED = "session_imported";
    /// Unused sessions were removed.
    SESSIONS_CLEANED = "sessions_cleaned";
    /// The history of an agent's sessions was cleared.
    HISTORY_CLEARED = "history_cleared";
}
