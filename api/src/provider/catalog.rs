//! What the front may know of providers: names and whether there is a key, never the key. Implemented where providers
//! are known.

use agentsvc_components::Refusal;
use agentsvc_components::manifest::Manifest;

use crate::http::api::Api;

agentsvc_components::enum_words! {
    /// Whether a provider can be asked.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum KeyStatus [as_str] {
        /// It wants no key.
        NotNeeded = "no key required",
        /// Its key is there.
        Set = "key set",
        /// Its key is missing.
        Missing = "key not set",
    }
}

/// One provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderLine {
    /// Its name in manifests.
    pub name: String,
    /// Whether it can be asked.
    pub key: KeyStatus,
    /// The models that are known of it; it may have more.
    pub models: Vec<String>,
}

/// Knows the providers.
pub trait Catalog: Send + Sync + 'static {
    /// Every provider as it is now, by name. Must not block.
    fn providers(&self) -> Vec<ProviderLine>;

    /// May a new manifest name the environment variables that it names for its models?
    ///
    /// # Errors
    /// 400 naming the field in the manifest.
    fn check_variables(&self, manifest: &Manifest) -> Result<(), Refusal>;
}

/// Every provider as it is now; none while nobody knows.
pub(crate) fn providers(api: &Api) -> Vec<ProviderLine> {
    api.services.get::<dyn Catalog>().map(|catalog| catalog.providers()).unwrap_or_default()
}
