//! Error codes of webhooks.

agentsvc_components::error_codes! {
    /// The limit for the number of webhooks, or for the bytes of their texts, is reached.
    WEBHOOKS_FULL = "webhooks_full", [429], "Delete webhooks.";
}
