//! What the front is told of the providers.

use agentsvc_api::provider::catalog::{Catalog, KeyStatus, ProviderLine};
use agentsvc_components::Refusal;
use agentsvc_components::manifest::Manifest;
use arc_swap::ArcSwap;
use std::sync::Arc;

use super::provider::{Provider, Providers};

/// The providers in force, as the API lists them.
pub(crate) struct ProviderCatalog(pub(crate) Arc<ArcSwap<Providers>>);

impl Catalog for ProviderCatalog {
    fn providers(&self) -> Vec<ProviderLine> {
        let providers = self.0.load();
        providers.iter().map(|provider| line(&providers, provider)).collect()
    }

    fn check_variables(&self, manifest: &Manifest) -> Result<(), Refusal> {
        self.0.load().check_variables(manifest)
    }
}

fn line(providers: &Providers, provider: &Provider) -> ProviderLine {
    let is_usable = providers.is_usable(provider) || providers.has_default_key(provider);
    let key = match (provider.needs_key, is_usable) {
        (false, _) => KeyStatus::NotNeeded,
        (true, true) => KeyStatus::Set,
        (true, false) => KeyStatus::Missing,
    };
    let table = providers.catalog().table();
    let known = table.models().iter().filter(|model| model.provider == provider.name);
    let mut models: Vec<String> = known.map(|model| model.id.to_string()).collect();
    let default = Some(&provider.default_model).filter(|model| !model.is_empty());
    models.extend(default.map(ToString::to_string).filter(|model| !models.contains(model)));
    ProviderLine { name: provider.name.to_string(), key, models }
}

#[cfg(test)]
mod tests {
    use agentsvc_components::manifest::ModelChoice;

    use super::*;

    #[test]
    fn keys_are_said_to_be_there_and_never_shown() {
        let with = |name: &str| (name == "OPENAI_API_KEY").then(|| "sk-secret".to_owned());
        let providers = ArcSwap::from_pointee(Providers::default().with_environment(with));
        let lines = ProviderCatalog(Arc::new(providers)).providers();
        let key = |name: &str| lines.iter().find(|line| line.name == name).map(|line| line.key);
        assert_eq!(key("openai"), Some(KeyStatus::Set));
        assert_eq!(key("groq"), Some(KeyStatus::Missing));
        assert_eq!(key("builtin"), Some(KeyStatus::NotNeeded));
        assert!(!format!("{lines:?}").contains("sk-secret"));
        assert!(lines.iter().any(|line| line.models.contains(&"builtin".to_owned())));
        let models = |name: &str| lines.iter().find(|line| line.name == name).map_or(0, |line| line.models.len());
        assert!(models("openai") > 10 && models("groq") > 3);
    }

    #[test]
    fn the_key_of_the_default_model_is_one_of_its_provider() {
        let with = |name: &str| (name == "MY_KEY").then(|| "sk-secret".to_owned());
        let named = |variable: &str| ModelChoice {
            provider: "groq".into(),
            api_key_env: Some(variable.into()),
            ..ModelChoice::default()
        };
        for (variable, expected) in [("MY_KEY", KeyStatus::Set), ("OTHER_KEY", KeyStatus::Missing)] {
            let providers = Providers::default().with_environment(with).naming(&[], named(variable));
            let lines = ProviderCatalog(Arc::new(ArcSwap::from_pointee(providers))).providers();
            let key = |name: &str| lines.iter().find(|line| line.name == name).map(|line| line.key);
            assert_eq!((key("groq"), key("openai")), (Some(expected), Some(KeyStatus::Missing)), "{variable}");
        }
    }
}
