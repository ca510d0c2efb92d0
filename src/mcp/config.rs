//! `[mcp_server]`: the daemon as an MCP server.

use crate::kernel::config::{Reader, table};
use crate::tool::config::tool_name;
use crate::tool::toolset::built_in;

table! {
    /// `[mcp_server]`.
    #[check(Self::note_unknown)]
    pub struct McpServer {
        /// Exact names of the tools that `/mcp` offers to clients without a key. They need no agent.
        public_tools: Vec<Box<str>> = vec!["system_time".into()] => list(tool_name).protected(),
    }
}

impl McpServer {
    fn note_unknown(&self, reader: &mut Reader<'_, '_>) {
        for name in self.public_tools.iter().filter(|name| built_in().find(name).is_none()) {
            reader.warning("public_tools", format!("unknown built-in tool: {name}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::McpServer;
    use crate::kernel::config::read_table;

    #[test]
    fn the_time_is_public_unless_the_list_says_otherwise() {
        let read = |text: &str| read_table::<McpServer>("mcp_server", text).map(|loaded| loaded.config.public_tools);
        assert_eq!(read("").unwrap(), ["system_time".into()]);
        assert!(read("[mcp_server]\npublic_tools = []\n").unwrap().is_empty());
        let error = read("[mcp_server]\npublic_tools = [\"web_*\"]\n").unwrap_err().to_string();
        assert!(error.contains("mcp_server.public_tools: must be the exact name of a tool"), "{error}");
    }
}
