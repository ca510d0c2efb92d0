//! Error codes of triggers.

agentsvc_components::error_codes! {
    /// The limit for triggers, or for the bytes of their texts, is reached.
    TRIGGERS_FULL = "triggers_full", [429], "Delete triggers.";
}
