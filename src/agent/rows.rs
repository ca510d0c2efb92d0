//! Reads the manifests of agents.

use agentsvc_api::agent::texts::ManifestTexts;
use agentsvc_api::http::error::ContentError;
use agentsvc_components::AgentId;
use agentsvc_systems::kernel::record::manifest_text_key;

use crate::kernel::store::Store;
use crate::kernel::store::deferred::DeferredStore;

impl ManifestTexts for Store {
    fn manifest_text(&self, agent: AgentId) -> Result<Option<String>, ContentError> {
        self.text(&manifest_text_key(agent))
    }
}

impl ManifestTexts for DeferredStore {
    fn manifest_text(&self, agent: AgentId) -> Result<Option<String>, ContentError> {
        self.store()?.manifest_text(agent)
    }
}
