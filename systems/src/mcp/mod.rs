//! The Model Context Protocol (spec 3, MCP servers): the servers that clients added over the API.
//!
//! | rule | why |
//! |---|---|
//! | no two stored servers have a name that tools cannot tell apart | names of tools are made of it |
//! | values of variables and headers are sealed before they come here | no record, input log or backup has them in clear |
//! | an update keeps the values that it leaves out | clients never read them |
//! | what starts servers reads the list after each change and after each start of a world | the world knows no processes |

pub mod audit_kinds;
mod change;
pub mod error_codes;
mod index;
pub mod limits;
mod list;
#[cfg(test)]
mod tests;
mod transport;

use agentsvc_components::mcp::{McpServer, McpServerId};

pub use change::{CreateMcpServer, McpServerFields, RemoveMcpServer, UpdateMcpServer};
pub use index::tool_prefix;
pub use list::McpServerView;
pub use transport::{
    CompatHeader, CompatMethod, CompatTool, GivenTransport, McpOauth, McpTransport, RequestMode, ResponseMode,
};

use crate::kernel::domain::{Domain, Phase};
use crate::kernel::entities;
use crate::kernel::footprint::{Measure, entries, of};
use crate::kernel::inputs::table::CommandDef;
use crate::kernel::record::{Kind, restore_components};

/// What this domain brings.
pub(crate) const DOMAIN: Domain = Domain {
    uses: &["audit"],
    kinds: &[Kind::component::<McpServer>()],
    restore: &[(Phase::Owned, restore_components::<McpServer>)],
    install: entities::install::<McpServer>,
    measures: &[Measure::of::<McpServerId>("mcp_servers", |world, at| of(world, at, McpServer::bytes), entries(32, 2))],
    check: index::check,
    commands: &[
        CommandDef::of::<CreateMcpServer>(),
        CommandDef::of::<UpdateMcpServer>(),
        CommandDef::of::<RemoveMcpServer>(),
    ],
    error_codes: error_codes::ALL,
    audit_kinds: audit_kinds::ALL,
    limits: limits::ALL,
    ..Domain::named("mcp")
};
