//! Aliases: short names that stand for a model of a provider (spec 2, Model catalog). The table comes from outside; here is
//! what a choice of a model means with it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use agentsvc_components::manifest::ModelChoice;
use serde::{Deserialize, Serialize};

/// A model by its full name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelName {
    /// Whose model.
    pub provider: Box<str>,
    /// Its id, as the provider takes it.
    pub model: Box<str>,
}

/// What each alias stands for. An alias never stands for another one, so that there are no loops.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Aliases(BTreeMap<Box<str>, ModelName>);

impl Aliases {
    /// Lets `alias` stand for a model from here on.
    pub fn set(&mut self, alias: &str, name: ModelName) {
        self.0.insert(alias.into(), name);
    }

    /// What `alias` stands for.
    #[must_use]
    pub fn get(&self, alias: &str) -> Option<&ModelName> {
        self.0.get(alias)
    }

    /// Every alias, in the order of the alphabet.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &ModelName)> {
        self.0.iter().map(|(alias, name)| (&**alias, name))
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Is there none?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The model that `choice` names by an alias; `None` when what it names is no alias.
    ///
    /// A choice that names a provider as well means an alias of that provider's models alone, and one that brings an endpoint
    /// of its own without a provider is taken as it stands: whoever answers there has its own names.
    #[must_use]
    pub fn of(&self, choice: &ModelChoice) -> Option<&ModelName> {
        let name = self.0.get(&choice.model)?;
        let is_meant =
            if choice.provider.is_empty() { choice.base_url.is_none() } else { choice.provider == name.provider };
        is_meant.then_some(name)
    }

    /// A fallback model as it is asked: its alias resolved, and the provider, endpoint and key of `own` in their empty places
    /// when it names no provider.
    #[must_use]
    pub fn fallback<'a>(&self, own: &ModelChoice, choice: &'a ModelChoice) -> Cow<'a, ModelChoice> {
        let named = self.of(choice);
        if named.is_none() && !choice.provider.is_empty() {
            return Cow::Borrowed(choice);
        }
        let mut asked = choice.clone();
        if let Some(name) = named {
            (asked.provider, asked.model) = (name.provider.clone(), name.model.clone());
        }
        if asked.provider.is_empty() {
            asked.provider = own.provider.clone();
        }
        if choice.provider.is_empty() && asked.provider == own.provider {
            asked.base_url = asked.base_url.or_else(|| own.base_url.clone());
            asked.api_key_env = asked.api_key_env.or_else(|| own.api_key_env.clone());
        }
        Cow::Owned(asked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(provider: &str, model: &str) -> ModelChoice {
        ModelChoice { provider: provider.into(), model: model.into(), ..ModelChoice::default() }
    }

    fn aliases() -> Aliases {
        let mut aliases = Aliases::default();
        aliases.set("quick", ModelName { provider: "groq".into(), model: "llama".into() });
        aliases
    }

    #[test]
    fn an_alias_is_meant_without_a_provider_or_with_its_own() {
        let aliases = aliases();
        let model = |choice: &ModelChoice| aliases.of(choice).map(|name| name.model.to_string());
        assert_eq!(model(&choice("", "quick")).as_deref(), Some("llama"));
        assert_eq!(model(&choice("groq", "quick")).as_deref(), Some("llama"));
        assert_eq!(model(&choice("openai", "quick")), None);
        assert_eq!(model(&ModelChoice { base_url: Some("http://h".into()), ..choice("", "quick") }), None);
        assert_eq!(model(&choice("", "llama")), None);
    }

    #[test]
    fn a_fallback_takes_from_the_first_model_only_what_is_of_its_provider() {
        let (aliases, place) = (aliases(), Some(Box::from("http://h")));
        let own = ModelChoice { base_url: place.clone(), ..choice("openai", "gpt") };
        let asked = |own: &ModelChoice, choice: &ModelChoice| aliases.fallback(own, choice).into_owned();
        assert_eq!(
            asked(&own, &choice("", "mini")),
            ModelChoice { base_url: place.clone(), ..choice("openai", "mini") }
        );
        assert_eq!(asked(&own, &choice("", "quick")), choice("groq", "llama"));
        assert_eq!(asked(&own, &choice("openai", "mini")), choice("openai", "mini"));
        let own = ModelChoice { base_url: place.clone(), ..choice("groq", "gpt") };
        assert_eq!(asked(&own, &choice("", "quick")), ModelChoice { base_url: place, ..choice("groq", "llama") });
    }
}
