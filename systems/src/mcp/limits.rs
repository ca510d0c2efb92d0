//! Limits of the Model Context Protocol.

agentsvc_components::limits! {
    pub const ALL;
    /// Messages of one batch of MCP clients. More: 400.
    pub const MCP_BATCH_MAX: usize = 64;
}
