//! Error codes of goals.

agentsvc_components::error_codes! {
    /// The limit for the number of goals, or for the bytes of their texts, is reached.
    GOALS_FULL = "goals_full", [429], "Delete goals.";
}
