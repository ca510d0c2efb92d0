//! Kinds of audit log entries: consolidation runs.

agentsvc_components::audit_kinds! {
    /// An agent's auto-dream was switched on or off.
    AUTO_DREAM_SET = "auto_dream_set";
    /// A consolidation run began.
    DREAM_STARTED = "dream_started";
    /// A consolidation run was told to stop.
    DREAM_ABORTED = "dream_aborted";
    /// A consolidation run ended.
    DREAM_ENDED = "dream_ended";
}
