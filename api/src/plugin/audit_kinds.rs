//! Kinds of audit log entries: plugins.

agentsvc_components::audit_kinds! {
    /// A plugin passed its checks and is about to be installed, or made from a template.
    PLUGIN_INSTALLED = "plugin_installed";
    /// A plugin is about to be uninstalled.
    PLUGIN_UNINSTALLED = "plugin_uninstalled";
    /// A plugin is about to be enabled, disabled, upgraded or signed, or its dependencies installed.
    PLUGIN_CHANGED = "plugin_changed";
}
