//! Limits of the Model Context Protocol.

agentsvc_components::limits! {
    pub const ALL;
    /// Messages of one batch of MCP clients. More: 400.
    pub const MCP_BATCH_MAX: usize = 64;
    /// Bytes of the answers of one batch after which its further requests fail.
    pub const MCP_BATCH_ANSWER_BYTES_MAX: usize = 1 << 20;
    /// Agents on one page of the tools that MCP clients list. More: further pages.
    pub const MCP_AGENTS_PAGE_MAX: usize = 500;
    /// Seconds over which the calls of one public tool by clients without the API key are joined into one audit entry, after an
    /// entry for the first.
    pub const ANONYMOUS_CALLS_SECS: u64 = 60;
    /// Addresses that such an entry names; calls from further ones are only counted.
    pub const ANONYMOUS_CALLS_PEERS_MAX: usize = 16;
    /// Bytes of one message of an MCP server. More: the server is restarted.
    pub const MCP_MESSAGE_BYTES_MAX: usize = 16 << 20;
    /// Tools of one MCP server. More: the first ones are offered.
    pub const MCP_SERVER_TOOLS_MAX: usize = 1_000;
    /// Requests to one MCP server that wait for their answers. More: the call fails.
    pub const MCP_SERVER_REQUESTS_MAX: usize = 64;
}
