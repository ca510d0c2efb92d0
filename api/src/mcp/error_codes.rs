//! Error codes of MCP over HTTP. Errors of single messages have those of JSON-RPC.

agentsvc_components::error_codes! {
    /// The body is not JSON.
    MCP_PARSE = "mcp_parse", [400], "Send one JSON-RPC 2.0 message.";
    /// The body is no JSON-RPC 2.0 message, or a batch that the protocol version or the limit does not allow.
    MCP_MESSAGE = "mcp_message", [400], "Send one JSON-RPC 2.0 message with `jsonrpc`, `method` and, for a request, `id`.";
    /// The `MCP-Protocol-Version` header names an unknown version. `supported` lists the known ones.
    MCP_VERSION = "mcp_version", [400], "Send a version of `supported`, or initialize again.";
    /// The `Accept` header takes neither JSON nor server-sent events.
    MCP_ACCEPT = "mcp_accept", [406], "Send `Accept: application/json, text/event-stream`.";
    /// The MCP server is defined in config.toml.
    MCP_SERVER_CONFIGURED = "mcp_server_configured", [409], "Change `[mcp_servers]` in config.toml.";
    /// The tools of the MCP server that wait to be accepted are not those of the hash, or none wait.
    MCP_TOOLS_DIFFER = "mcp_tools_differ", [409], "Read `tools_review` of the server again, and send its `hash`.";
    /// The MCP server could not be started or reached.
    MCP_SERVER_UNREACHABLE = "mcp_server_unreachable", [502], "`error` says why; see also `/api/mcp/servers/{id}/logs`.";
    /// The MCP server has no sign-in: it is not reached over HTTP, has an `Authorization` header, or does not ask for one.
    MCP_SIGN_IN_UNSUPPORTED = "mcp_sign_in_unsupported", [409], "`error` says why; no sign-in may be needed.";
    /// The sign-in at an MCP server is unknown, was completed before, or has expired.
    MCP_SIGN_IN_STATE = "mcp_sign_in_state", [400], "Start the sign-in again.";
    /// The sign-in at an MCP server was declined.
    MCP_SIGN_IN_DECLINED = "mcp_sign_in_declined", [400], "Start the sign-in again, and accept it.";
    /// The MCP server or its authorization server failed, or describes a sign-in that cannot be used.
    MCP_SIGN_IN_FAILED = "mcp_sign_in_failed", [502], "`error` says why; correct it there, or set `oauth` of the server.";
    /// The file of an entry of the MCP catalog cannot be used.
    MCP_TEMPLATE = "mcp_template", [409], "Correct the file in `mcp/catalog`; `error` describes the problem.";
}
