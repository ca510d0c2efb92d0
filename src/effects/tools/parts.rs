//! What tools need from the rest of the house.

use std::sync::Arc;

use agentsvc_api::bridge::Bridge;

/// What tools need from the rest of the house.
#[derive(Clone)]
pub struct ToolParts {
    /// The door of the world.
    pub bridge: Bridge,
    /// Where the agents' workspaces are: `{home}/workspaces`.
    pub workspaces: Arc<std::path::Path>,
}
