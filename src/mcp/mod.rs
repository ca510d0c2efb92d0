//! The Model Context Protocol (spec 3, MCP servers).

pub(crate) mod catalog;
pub(crate) mod cli;
pub mod client;
pub mod config;
pub(crate) mod oauth;

use std::sync::Arc;

use agentsvc_api::mcp::public_tools::PublicTools;

use crate::kernel::cli::{Example, Group, Subcommand};
use crate::kernel::domain::Domain;
use crate::kernel::settings::Settings;
use config::McpServer;

/// What this domain brings.
pub const DOMAIN: Domain = Domain {
    name: "mcp",
    uses: &[
        "approval",
        "audit",
        "budget",
        "injection",
        "manifest",
        "model",
        "prompt",
        "session",
        "tool",
        "turn",
        "usage",
    ],
    commands: &[Subcommand::new::<cli::Mcp>(
        22,
        "mcp",
        "Serve MCP over standard input and output, or manage MCP servers",
    )
    .examples(&[
        Example::new("mcp catalog", "List the servers that are known"),
        Example::new("mcp add github --env GITHUB_TOKEN", "Add one of them"),
        Example::new("mcp add files -- npx -y @modelcontextprotocol/server-filesystem /data", "Add a program"),
        Example::new("mcp --agent assistant", "Serve the tools of an agent to an MCP client"),
    ])
    .under(Group::Connections)],
    open: |opening| {
        opening.provide::<dyn PublicTools>(Arc::new(Listed(opening.settings.clone())));
        Ok(())
    },
    ..Domain::EMPTY
};

/// What the configuration in force makes public.
struct Listed(Settings);

impl PublicTools for Listed {
    fn is_public(&self, name: &str) -> bool {
        self.0.get::<McpServer>().public_tools.iter().any(|public| **public == *name)
    }
}
