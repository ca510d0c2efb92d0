//! Kinds of audit log entries: MCP servers.

agentsvc_components::audit_kinds! {
    /// An MCP server was added over the API.
    MCP_SERVER_CREATED = "mcp_server_created";
    /// An MCP server that was added over the API changed.
    MCP_SERVER_UPDATED = "mcp_server_updated";
    /// An MCP server that was added over the API was removed.
    MCP_SERVER_REMOVED = "mcp_server_removed";
    /// An MCP server has new tools, or tools that are not as they were accepted. At most 60 an hour for each server.
    MCP_TOOLS_CHANGED = "mcp_tools_changed";
    /// The operator accepted the tools of an MCP server.
    MCP_TOOLS_ACCEPTED = "mcp_tools_accepted";
    /// A user signed in at an MCP server; its tokens are in the vault.
    MCP_SERVER_SIGNED_IN = "mcp_server_signed_in";
    /// The sign-in at an MCP server was removed.
    MCP_SERVER_SIGNED_OUT = "mcp_server_signed_out";
}
