//! `[default_model]`: who answers for agents whose manifest names no model.

use serde::Serialize;

use super::key::{Key, Table};
use super::providers::{base_url, variable};
use super::reader::Reader;

/// The provider that needs no key and no network.
const BUILTIN: &str = "builtin";
/// Providers that become the default when the environment has their key: provider, variable, model.
const BY_KEY: &[(&str, &str, &str)] = &[("openai", "OPENAI_API_KEY", "gpt-4o-mini")];

/// `[default_model]`, as written; [`DefaultModel::resolve`] says what it comes to.
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

/// The default model in effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelDefault {
    /// The provider's name.
    pub provider: Box<str>,
    /// The model's id.
    pub model: Box<str>,
}

impl DefaultModel {
    /// The model in effect. Without a provider: the first whose key is in the environment, else the built-in
    /// offline model. `has_variable` tells whether an environment variable is set and not empty.
    #[must_use]
    pub fn resolve(&self, has_variable: impl Fn(&str) -> bool) -> ModelDefault {
        let by_key = || BY_KEY.iter().find(|(_, variable, _)| has_variable(variable)).map(|(provider, ..)| *provider);
        // An endpoint of one's own speaks the OpenAI protocol; the built-in model has none.
        let by_url = self.base_url.as_ref().map(|_| "openai");
        let provider = self.provider.as_deref().or(by_url).or_else(by_key).unwrap_or(BUILTIN);
        let own = BY_KEY.iter().find(|(name, ..)| *name == provider).map_or(BUILTIN, |(_, _, model)| model);
        let model = self.model.as_deref().unwrap_or(own);
        ModelDefault { provider: provider.into(), model: model.into() }
    }
}

impl Table for DefaultModel {
    const KEYS: &'static [Key] = &[
        Key::new(
            "provider",
            "\"openai\"",
            "Default: openai when OPENAI_API_KEY is set, else builtin, the offline model that needs no key.",
        ),
        Key::new("model", "\"gpt-4o-mini\"", "The model's id."),
        Key::new("api_key_env", "\"OPENAI_API_KEY\"", "The environment variable that holds the key."),
        Key::new("base_url", "\"https://api.openai.com/v1\"", "Another endpoint than the provider's own."),
    ];

    fn read(reader: &mut Reader<'_, '_>) -> Self {
        let name = |text: &str| {
            let text = text.trim();
            if text.is_empty() { Err("must not be empty".to_owned()) } else { Ok(Box::from(text)) }
        };
        let table = Self {
            provider: reader.parsed("provider", name),
            model: reader.parsed("model", name),
            api_key_env: reader.parsed("api_key_env", variable),
            base_url: reader.parsed("base_url", base_url),
        };
        let known = |provider: &str| provider == BUILTIN || BY_KEY.iter().any(|(name, ..)| *name == provider);
        if table.model.is_none() && table.provider.as_deref().is_some_and(|provider| !known(provider)) {
            reader.problem("provider", "needs `model` beside it: this provider has no default model".to_owned());
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::DefaultModel;
    use crate::config::parse;

    fn resolved(table: &DefaultModel, key: bool) -> String {
        let model = table.resolve(|variable| key && variable == "OPENAI_API_KEY");
        format!("{}/{}", model.provider, model.model)
    }

    #[test]
    fn the_key_in_the_environment_decides_when_nothing_is_written() {
        let empty = DefaultModel::default();
        assert_eq!(resolved(&empty, false), "builtin/builtin");
        assert_eq!(resolved(&empty, true), "openai/gpt-4o-mini");
        let builtin = DefaultModel { provider: Some("builtin".into()), ..empty };
        assert_eq!(resolved(&builtin, true), "builtin/builtin");
    }

    #[test]
    fn an_endpoint_alone_means_the_openai_protocol() {
        let table = DefaultModel { base_url: Some("http://h/v1".into()), ..DefaultModel::default() };
        assert_eq!(resolved(&table, false), "openai/gpt-4o-mini");
    }

    #[test]
    fn an_unknown_provider_needs_a_model() {
        let error = parse("[default_model]\nprovider = \"groq\"\n", Path::new("c")).unwrap_err().to_string();
        assert!(error.starts_with("c:2:12: default_model.provider: needs `model`"), "{error}");
        assert!(parse("[default_model]\nprovider = \"groq\"\nmodel = \"m\"\n", Path::new("c")).is_ok());
    }
}
