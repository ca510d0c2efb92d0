//! What tools need from the rest of the house.

use agentsvc_api::bridge::Bridge;

use crate::effects::sandbox::{Commands, Workspaces};
use crate::effects::web::Web;

/// What tools need from the rest of the house.
#[derive(Clone)]
pub struct ToolParts {
    /// The door of the world.
    pub bridge: Bridge,
    /// The agents' workspaces.
    pub workspaces: Workspaces,
    /// The way to the web.
    pub web: Web,
    /// Runs their commands.
    pub commands: Commands,
}
