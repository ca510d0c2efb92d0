//! What tools need from the rest of the daemon.

use std::sync::Arc;

use agentsvc_api::http::bridge::Bridge;
use agentsvc_api::knowledge::store::KnowledgeStore;
use agentsvc_api::memory::store::MemoryStore;
use agentsvc_api::proactive_memory::store::EntryStore;
use agentsvc_api::session::content::Content;
use agentsvc_systems::injection::InjectionPolicy;

use super::ToolSet;
use crate::kernel::egress::Web;
use crate::kernel::sandbox::{Commands, Workspaces};
use crate::kernel::settings::Settings;

/// What tools need from the rest of the daemon.
#[derive(Clone)]
pub struct ToolParts {
    /// The tools that there are.
    pub set: ToolSet,
    /// The door of the world.
    pub bridge: Bridge,
    /// The agents' workspaces.
    pub workspaces: Workspaces,
    /// The way to the web.
    pub web: Web,
    /// Runs their commands.
    pub commands: Commands,
    /// Settings of the domains that bring tools.
    pub settings: Settings,
    /// What becomes of results that look like prompt injections.
    pub injection: InjectionPolicy,
}

/// What tools read of the store.
#[derive(Clone)]
pub struct ToolStores {
    /// The logs of sessions.
    pub content: Arc<dyn Content>,
    /// The memory of agents.
    pub memory: Arc<dyn MemoryStore>,
    /// The memory entries of agents.
    pub entries: Arc<dyn EntryStore>,
    /// The knowledge of agents.
    pub knowledge: Arc<dyn KnowledgeStore>,
}
