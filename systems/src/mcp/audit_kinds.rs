//! Kinds of audit log entries: MCP servers.

agentsvc_components::audit_kinds! {
    /// An MCP server was added over the API.
    MCP_SERVER_CREATED = "mcp_server_created";
    /// An MCP server that was added over the API changed.
    MCP_SERVER_UPDATED = "mcp_server_updated";
    /// An MCP server that was added over the API was removed.
    MCP_SERVER_REMOVED = "mcp_server_removed";
}
