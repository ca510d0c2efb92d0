//! Error codes of MCP servers.

agentsvc_components::error_codes! {
    /// The limit for the number of MCP servers, or for the bytes of their configuration, is reached.
    MCP_SERVERS_FULL = "mcp_servers_full", [429], "Remove MCP servers.";
    /// The limit for the accepted tools of all MCP servers is reached.
    MCP_PINS_FULL = "mcp_pins_full", [429], "Remove MCP servers.";
    /// An MCP server of this name exists, or one whose tools would have the same names.
    MCP_SERVER_EXISTS = "mcp_server_exists", [409], "Choose another name, or remove the other server first.";
}
