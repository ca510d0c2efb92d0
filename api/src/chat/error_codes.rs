//! Error codes of key and event bindings.

agentsvc_components::error_codes! {
    /// The key or event has a binding.
    BINDING_EXISTS = "binding_exists", [409], "Delete the other binding first.";
    /// The limit of 100 bindings is reached.
    BINDINGS_FULL = "bindings_full", [409], "Delete a binding.";
}
