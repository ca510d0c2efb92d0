//! Limits of the Model Context Protocol.

agentsvc_components::limits! {
    pub const ALL;
    /// Messages of one batch of MCP clients. More: 400.
    pub const MCP_BATCH_MAX: usize = 64;
    /// Bytes of the answers of one batch after which its further requests fail.
    pub const MCP_BATCH_ANSWER_BYTES_MAX: usize = 1 << 20;
    /// Agents on one page of the tools that MCP clients list. More: further pages.
    pub const MCP_AGENTS_PAGE_MAX: usize = 500;
    /// Bytes of one message of an MCP server. More: a program is restarted; over HTTP the request fails.
    pub const MCP_MESSAGE_BYTES_MAX: usize = 16 << 20;
    /// Bytes of the answers of one MCP server over HTTP that are not complete yet. More: the request fails.
    pub const MCP_SERVER_BYTES_MAX: usize = 48 << 20;
    /// Bytes of memory that one message of an MCP server may take once it is read. More: as too many bytes of it.
    pub const MCP_MESSAGE_MEMORY_BYTES_MAX: usize = 48 << 20;
    /// Bytes of memory that a list of an MCP server may take. More: its first entries are used.
    pub const MCP_SERVER_LIST_BYTES_MAX: usize = 16 << 20;
    /// Tools of one MCP server. More: the first ones are offered.
    pub const MCP_SERVER_TOOLS_MAX: usize = 1_000;
    /// Requests to one MCP server that wait for their answers. More: the call fails.
    pub const MCP_SERVER_REQUESTS_MAX: usize = 64;
}
