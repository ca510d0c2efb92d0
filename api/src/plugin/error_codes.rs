//! Error codes of plugins.

agentsvc_components::error_codes! {
    /// No plugin has this name.
    PLUGIN_NOT_FOUND = "plugin_not_found", [404], "Choose a name from `GET /api/plugins`.";
    /// A plugin of this name is installed.
    PLUGIN_EXISTS = "plugin_exists", [409], "Uninstall the plugin first, or upgrade it.";
    /// Another change of the plugin is in progress, or there are too many plugins.
    PLUGIN_BUSY = "plugin_busy", [409], "Retry in a moment; uninstall plugins that are not needed.";
    /// The plugin is not valid; `error` says why.
    PLUGIN_INVALID = "plugin_invalid", [422], "Correct the files of the plugin; `GET /api/plugins/{name}/lint` checks them.";
}
