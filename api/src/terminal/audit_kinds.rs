//! Kinds of audit log entries: terminals.

agentsvc_components::audit_kinds! {
    /// A terminal was opened.
    TERMINAL_STARTED = "terminal_started";
    /// A terminal has ended.
    TERMINAL_ENDED = "terminal_ended";
}
