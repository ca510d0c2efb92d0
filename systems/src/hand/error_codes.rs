//! Error codes of hands.

agentsvc_components::error_codes! {
    /// The limit for hands or their instances is reached.
    HANDS_FULL = "hands_full", [429], "Remove hands or instances.";
    /// The instance is in a state that forbids it.
    HAND_STATE = "hand_state", [409], "Look at the state of the instance.";
    /// The instance changed meanwhile.
    HAND_CHANGED = "hand_changed", [409], "Read the instance and try again.";
}
