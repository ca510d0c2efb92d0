//! Limits of the Model Context Protocol.

agentsvc_components::limits! {
    pub const ALL;
    /// Messages of one batch of MCP clients. More: 400.
    pub const MCP_BATCH_MAX: usize = 64;
    /// Agents on one page of the tools that MCP clients list. More: further pages.
    pub const MCP_AGENTS_PAGE_MAX: usize = 500;
}
