//! What tools need from the rest of the house.

use agentsvc_api::http::bridge::Bridge;
use agentsvc_systems::injection::InjectionPolicy;

use crate::kernel::egress::Web;
use crate::kernel::sandbox::{Commands, Workspaces};

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
    /// What becomes of results that look like prompt injections.
    pub injection: InjectionPolicy,
}
