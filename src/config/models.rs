//! What `[providers]` and `[default_model]` come to with the known providers, their catalog and the keys in the environment.

use std::sync::Arc;

use agentsvc_components::manifest::ModelChoice;

use super::Config;
use crate::kernel::config::{Reader, nearest};
use crate::model::catalog::ModelCatalog;
use crate::model::provider::{self, Provider, ProviderSettings, Providers};
use crate::provider::config::Provider as Written;
use crate::provider::oauth::DeviceFlow;

impl Config {
    /// The providers of the configuration over the known ones, and the default model in effect with the keys
    /// that are in the environment now.
    ///
    /// # Errors
    /// The first provider that makes no sense. A configuration that was read has none.
    pub fn models(&self) -> Result<(Providers, ModelChoice), provider::Error> {
        self.models_with(Arc::new(ModelCatalog::embedded()))
    }

    /// The same with the models and aliases of `catalog`.
    pub fn models_with(&self, catalog: Arc<ModelCatalog>) -> Result<(Providers, ModelChoice), provider::Error> {
        let settings = self.providers.iter().map(|(name, written)| settings_of(name, written));
        let providers = Providers::new(settings.collect())?.with_catalog(catalog);
        let mut providers = providers.naming(&self.security.manifest_key_envs, self.default_model.choice());
        if let Some(base_url) = &self.default_model.base_url {
            providers = providers.trusting(base_url);
        }
        let default = self.default_of(&providers);
        Ok((providers, default))
    }

    /// The default model in effect with `providers`, their catalog and the keys that are in the environment now.
    pub fn default_of(&self, providers: &Providers) -> ModelChoice {
        providers.default_model(&self.default_model.choice())
    }

    /// Notes providers without an endpoint, and a default model that no provider can answer for.
    pub(super) fn note_models(&self, reader: &mut Reader<'_, '_>) {
        let mut sound = true;
        for (name, written) in &self.providers {
            if let Err(error) = Providers::new(vec![settings_of(name, written)]) {
                sound = false;
                if !reader.is_wrong_below(&["providers", name]) {
                    reader.problem_at(&["providers", name], error.to_string());
                }
            }
            if let Err(error) = DeviceFlow::of(name, &written.device_flow()) {
                reader.problem_at(&["providers", name], error);
            }
        }
        if let Ok((providers, default)) = self.models()
            && sound
        {
            self.note_default_model(reader, &providers, &default);
        }
    }

    fn note_default_model(&self, reader: &mut Reader<'_, '_>, providers: &Providers, default: &ModelChoice) {
        let path = ["default_model", "provider"];
        if providers.get(&default.provider).is_none() && default.base_url.is_none() {
            let near = nearest(&default.provider, providers.iter().map(|provider| provider.name.as_ref()));
            let hint = near.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default();
            reader.problem_at(&path, format!("unknown provider without a `base_url`{hint}"));
        } else if providers.get(&default.provider).is_some_and(Provider::has_no_place) && default.base_url.is_none() {
            let name = &default.provider;
            let message = format!("needs `[providers.{name}] base_url`: each account has its own endpoint");
            reader.problem_at(&path, message);
        } else if default.model.is_empty() {
            reader.problem_at(&path, "needs `model`: this provider has no default model".to_owned());
        }
    }
}

fn settings_of(name: &str, written: &Written) -> ProviderSettings {
    ProviderSettings {
        name: name.to_owned(),
        base_url: written.base_url.as_deref().map(str::to_owned),
        driver: written.driver,
        api_key_env: written.api_key_env.as_deref().map(str::to_owned),
        context_tokens: written.context_tokens,
        ..ProviderSettings::default()
    }
}
