//! The manifests of agents as they were written. Implemented where the disk is known.

use agentsvc_components::AgentId;

use crate::http::error::ContentError;

/// Reads the texts of manifests. The calls may touch the disk: on a tokio worker use `spawn_blocking`.
pub trait ManifestTexts: Send + Sync + 'static {
    /// The manifest of an agent as it was written; `None` when there is none.
    fn manifest_text(&self, agent: AgentId) -> Result<Option<String>, ContentError>;
}
