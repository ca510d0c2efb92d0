//! Stored MCP servers are read and listed.

use agentsvc_components::mcp::{McpServer, McpServerId};
use bevy_ecs::prelude::{Entity, World};

use crate::kernel::command::Place;
use crate::kernel::entities::{List, View};
use crate::kernel::index::id_of;

/// What the world knows of a stored server. Its values are sealed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpServerView {
    /// Its id.
    pub id: McpServerId,
    /// Its configuration.
    pub server: McpServer,
}

impl View for McpServerView {
    type Kind = McpServer;
    type Filter = ();
    const NAMES: [&'static str; 2] = ["get_mcp_server", "list_mcp_servers"];
    const PLACE: Place<List<Self>> = Place::Root;

    fn of(world: &World, at: Entity) -> Option<Self> {
        Some(Self { id: id_of(world, at), server: world.get::<McpServer>(at)?.clone() })
    }
}
