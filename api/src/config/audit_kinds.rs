//! Kinds of audit log entries: config.

agentsvc_components::audit_kinds! {
    /// A key of the configuration was set over the API.
    CONFIG_SET = "config_set";
    /// The configuration was reloaded and has changed.
    CONFIG_RELOADED = "config_reloaded";
    /// The first configuration was written over the API.
    CONFIG_INITIALIZED = "config_initialized";
}
