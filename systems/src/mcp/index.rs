//! Where stored MCP servers are found: by what the names of their tools begin with.

use std::collections::BTreeMap;

use agentsvc_components::mcp::{McpServer, McpServerId};
use bevy_ecs::prelude::{Entity, World};

use super::{error_codes, limits};
use crate::kernel::check::Faults;
use crate::kernel::entities::{self, Entities, Indexed, Mirrored, Put};
use crate::kernel::quota::Quota;

/// Every stored server.
pub(super) type McpServers = Entities<McpServer>;

/// What stored servers may take.
pub(super) const QUOTA: Quota = Quota {
    count: limits::MCP_SERVERS_MAX,
    bytes: limits::MCP_SERVERS_BYTES_MAX,
    what: "MCP servers",
    code: error_codes::MCP_SERVERS_FULL,
};

/// What the names of all tools of MCP servers begin with.
pub const TOOL_PREFIX: &str = "mcp_";

/// What the names of a server's tools begin with: `mcp_<server>_` in lower case, with `_` in the place of other characters
/// than letters and digits.
#[must_use]
pub fn tool_prefix(server: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
    format!("{TOOL_PREFIX}{}_", server.chars().map(plain).collect::<String>())
}

impl Indexed for McpServer {
    type Places = ServerPlaces;
    const NOUN: &'static str = "MCP server";

    fn bytes(&self) -> usize {
        Self::bytes(self)
    }
}

/// Servers by what the names of their tools begin with.
#[derive(Debug, Default, PartialEq)]
pub struct ServerPlaces(BTreeMap<String, McpServerId>);

impl ServerPlaces {
    /// The server whose tools have the same names as those of one of this name.
    pub(super) fn like(&self, name: &str) -> Option<McpServerId> {
        self.0.get(&tool_prefix(name)).copied()
    }
}

impl Mirrored<McpServer> for ServerPlaces {
    fn place(&mut self, id: McpServerId, server: &McpServer, is_in: bool) {
        self.0.put((tool_prefix(&server.name), id), is_in);
    }
}

/// The server of exactly this name.
pub(super) fn named(world: &World, name: &str) -> Option<(McpServerId, Entity)> {
    let all = world.resource::<McpServers>();
    let (id, at) = all.like(name).and_then(|id| Some((id, all.get(id)?)))?;
    world.get::<McpServer>(at).filter(|server| &*server.name == name).map(|_| (id, at))
}

/// Says which index is wrong, and which names are the same ([`check`](crate::kernel::check)).
pub(super) fn check(world: &mut World, faults: &mut Faults) {
    entities::check::<McpServer>(world, faults, |world, id, server, faults| {
        let found = world.resource::<McpServers>().like(&server.name);
        faults.that(found == Some(id), || format!("MCP server {}: its name leads to {found:?}", server.name));
    });
    QUOTA.check(world.resource::<McpServers>().used, faults);
}
