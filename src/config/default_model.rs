//! `[default_model]`: who answers for agents whose manifest names no model.

use std::sync::Arc;

use agentsvc_components::manifest::ModelChoice;
use serde::Serialize;

use super::Config;
use super::key::{Key, Table};
use super::problem::nearest;
use super::providers::{provider_url, variable};
use super::reader::Reader;
use crate::model::catalog::ModelCatalog;
use crate::model::provider;
use crate::model::provider::{Provider, ProviderSettings, Providers};
use crate::provider::oauth::DeviceFlow;

/// `[default_model]`, as written; [`Config::models`] says what it comes to.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DefaultModel {
    /// The provider's name.
    pub provider: Option<Box<str>>,
    /// The model's id.
    pub model: Option<Box<str>>,
    /// The environment variable that holds the key, when not the provider's own.
    pub api_key_env: Option<Box<str>>,
    /// Another endpoint than the provider's own.
    pub base_url: Option<Box<str>>,
}

impl Table for DefaultModel {
    const KEYS: &'static [Key] = &[
        Key::text(
            "provider",
            "\"openai\"",
            "Default: the first known provider whose key is in the environment, such as openai with OPENAI_API_KEY; \
             else builtin, the offline model that needs no key.",
        )
        .example()
        .writable(),
        Key::text("model", "\"gpt-4o-mini\"", "The model's id. Default: the provider's own.").example().writable(),
        Key::variable("api_key_env", "\"OPENAI_API_KEY\"", "The environment variable that holds the key.").example(),
        Key::url("base_url", "\"https://api.openai.com/v1\"", "Another endpoint than the provider's own.").example(),
    ];

    fn read(reader: &mut Reader<'_, '_>) -> Self {
        let name = |text: &str| {
            let text = text.trim();
            if text.is_empty() { Err("must not be empty".to_owned()) } else { Ok(Box::from(text)) }
        };
        Self {
            provider: reader.parsed("provider", name),
            model: reader.parsed("model", name),
            api_key_env: reader.parsed("api_key_env", variable),
            base_url: reader.parsed("base_url", provider_url),
        }
    }
}

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
    ///
    /// # Errors
    /// As [`models`](Self::models).
    pub fn models_with(&self, catalog: Arc<ModelCatalog>) -> Result<(Providers, ModelChoice), provider::Error> {
        let settings = self.providers.iter().map(|(name, written)| settings_of(name, written));
        let mut providers = Providers::new(settings.collect())?.with_catalog(catalog);
        if let Some(base_url) = &self.default_model.base_url {
            providers = providers.trusting(base_url);
        }
        let default = self.default_of(&providers);
        Ok((providers, default))
    }

    /// The default model in effect with `providers`, their catalog and the keys that are in the environment now.
    #[must_use]
    pub fn default_of(&self, providers: &Providers) -> ModelChoice {
        providers.default_model(&self.default_model.choice())
    }

    /// Notes providers without an endpoint, and a default model that no provider can answer for.
    pub(crate) fn note_models(&self, reader: &mut Reader<'_, '_>) {
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
            reader.problem_at(&path, format!("is not a known provider and has no `base_url`{hint}"));
        } else if providers.get(&default.provider).is_some_and(Provider::has_no_place) && default.base_url.is_none() {
            let name = &default.provider;
            let message =
                format!("needs `[providers.{name}] base_url`: every account of it has an endpoint of its own");
            reader.problem_at(&path, message);
        } else if default.model.is_empty() {
            reader.problem_at(&path, "needs `model` beside it: this provider has no default model".to_owned());
        }
    }
}

impl DefaultModel {
    fn choice(&self) -> ModelChoice {
        ModelChoice {
            provider: self.provider.clone().unwrap_or_default(),
            model: self.model.clone().unwrap_or_default(),
            base_url: self.base_url.clone(),
            api_key_env: self.api_key_env.clone(),
            ..ModelChoice::default()
        }
    }
}

fn settings_of(name: &str, written: &super::Provider) -> ProviderSettings {
    ProviderSettings {
        name: name.to_owned(),
        base_url: written.base_url.as_deref().map(str::to_owned),
        driver: written.driver,
        api_key_env: written.api_key_env.as_deref().map(str::to_owned),
        context_tokens: written.context_tokens,
        ..ProviderSettings::default()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::config::parse;

    fn default_model(text: &str) -> Result<String, String> {
        let loaded = parse(text, Path::new("c")).map_err(|error| error.to_string())?;
        let (_, model) = loaded.config.models().unwrap();
        Ok(format!("{}/{}", model.provider, model.model))
    }

    #[test]
    fn gaps_are_filled_by_the_provider() {
        let table = |text: &str| default_model(&format!("[default_model]\n{text}"));
        assert_eq!(table("provider = \"builtin\"").unwrap(), "builtin/builtin");
        assert_eq!(table("provider = \"openai\"").unwrap(), "openai/gpt-4o-mini");
        assert_eq!(table("base_url = \"http://127.0.0.1:1/v1\"\nmodel = \"m\"").unwrap(), "openai/m");
        assert_eq!(table("provider = \"mine\"\nbase_url = \"http://h/v1\"\nmodel = \"m\"").unwrap(), "mine/m");
    }

    #[test]
    fn a_provider_that_cannot_answer_is_a_problem() {
        let error = default_model("[default_model]\nprovider = \"opnai\"\n").unwrap_err();
        let expected = "is not a known provider and has no `base_url`; did you mean `openai`?";
        assert_eq!(error, format!("c:2:12: default_model.provider: {expected}"));
        let error = default_model("[default_model]\nprovider = \"ollama\"\n").unwrap_err();
        assert!(error.starts_with("c:2:12: default_model.provider: needs `model`"), "{error}");
        let error = default_model("[world]\n[providers.mine]\napi_key_env = \"X\"\n").unwrap_err();
        assert!(error.starts_with("c:2:1: providers.mine: provider mine is not a known one"), "{error}");
        let known =
            "[providers.mine]\nbase_url = \"http://h/v1\"\n[default_model]\nprovider = \"mine\"\nmodel = \"m\"\n";
        assert_eq!(default_model(known).unwrap(), "mine/m");
    }
}
