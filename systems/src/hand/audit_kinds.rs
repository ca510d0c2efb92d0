//! Kinds of audit log entries: hands.

agentsvc_components::audit_kinds! {
    /// A hand was activated, with its agents.
    HAND_ACTIVATED = "hand_activated";
    /// An instance of a hand was paused.
    HAND_PAUSED = "hand_paused";
    /// An instance of a hand was resumed.
    HAND_RESUMED = "hand_resumed";
    /// Settings of an instance of a hand changed.
    HAND_SETTINGS_CHANGED = "hand_settings_changed";
    /// An instance of a hand was removed, with its agents.
    HAND_DEACTIVATED = "hand_deactivated";
}
