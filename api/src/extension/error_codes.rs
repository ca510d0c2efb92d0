//! Error codes of extensions.

agentsvc_components::error_codes! {
    /// The extension is installed.
    EXTENSION_INSTALLED = "extension_installed", [409], "Uninstall it first, or change its MCP server.";
    /// The limit for the number of templates that were installed from a path is reached.
    EXTENSIONS_FULL = "extensions_full", [429], "Uninstall extensions that were installed from a path.";
    /// The template of an installed extension cannot be used, or stored.
    EXTENSION_TEMPLATE = "extension_template", [409], "`error` describes the problem; correct the file, or uninstall the extension.";
}
