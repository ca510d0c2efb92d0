//! The Model Context Protocol (spec 3, MCP servers): the servers that clients added over the API.
//!
//! | rule | why |
//! |---|---|
//! | no two stored servers have a name that tools cannot tell apart | names of tools are made of it |
//! | values of variables and headers are sealed before they come here | no record, input log or backup has them in clear |
//! | an update keeps the values that it leaves out | clients never read them |
//! | the tools of a server are kept as they were accepted, by their hashes | a server can change at any time what models read of it |
//! | what starts servers reads the list after each change and after each start of a world | the world knows no processes |

pub mod audit_kinds;
mod change;
pub mod error_codes;
mod index;
pub mod limits;
mod list;
mod pins;
#[cfg(test)]
mod tests;
mod transport;

use agentsvc_components::mcp::{McpPin, McpPinId, McpServer, McpServerId};
use bevy_ecs::prelude::World;

pub use change::{CreateMcpServer, McpServerFields, RemoveMcpServer, UpdateMcpServer};
pub use index::{TOOL_PREFIX, tool_prefix};
pub use list::McpServerView;
pub use pins::{
    AcceptMcpTools, FindMcpPin, ForgetMcpTools, FoundPin, ListMcpPins, ListedTool, NoteMcpTools, ToolChanges,
};
pub use transport::{
    CompatHeader, CompatMethod, CompatTool, GivenTransport, McpOauth, McpTransport, RequestMode, ResponseMode,
};

use crate::kernel::check::Faults;
use crate::kernel::domain::{Domain, Phase};
use crate::kernel::entities;
use crate::kernel::footprint::{Measure, entries, of};
use crate::kernel::inputs::table::CommandDef;
use crate::kernel::record::{Kind, restore_components};

/// What this domain brings.
pub(crate) const DOMAIN: Domain = Domain {
    uses: &["audit", "config"],
    kinds: &[Kind::component::<McpServer>(), Kind::component::<McpPin>()],
    restore: &[(Phase::Owned, restore_components::<McpServer>), (Phase::Owned, restore_components::<McpPin>)],
    install,
    measures: &[
        Measure::of::<McpServerId>("mcp_servers", |world, at| of(world, at, McpServer::bytes), entries(32, 2)),
        Measure::of::<McpPinId>("mcp_pins", |world, at| of(world, at, McpPin::bytes), entries(32, 2)),
    ],
    check,
    commands: &[
        CommandDef::of::<CreateMcpServer>(),
        CommandDef::of::<UpdateMcpServer>(),
        CommandDef::of::<RemoveMcpServer>(),
        CommandDef::of::<NoteMcpTools>(),
        CommandDef::of::<AcceptMcpTools>(),
        CommandDef::of::<ForgetMcpTools>(),
    ],
    error_codes: error_codes::ALL,
    audit_kinds: audit_kinds::ALL,
    limits: limits::ALL,
    ..Domain::named("mcp")
};

fn install(world: &mut World) {
    entities::install::<McpServer>(world);
    entities::install::<McpPin>(world);
}

fn check(world: &mut World, faults: &mut Faults) {
    index::check(world, faults);
    pins::check(world, faults);
}
