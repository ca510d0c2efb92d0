//! What the world and the calls are told of the models: prices, contexts, aliases.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use agentsvc_components::usage::price::Price;
use agentsvc_systems::config::alias::Aliases;
use agentsvc_systems::config::prices::Prices;

use super::model::{Model, Origin};
use super::table::Table;
use crate::model::provider::{Provider, Providers};

/// Stands for every other model of a provider in `[prices]`.
const ANY: &str = "*";

/// What the world needs to know of models; the form is that of its settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// What models cost.
    pub prices: Prices,
    /// Tokens of the context of each provider's models.
    pub context_tokens: BTreeMap<Box<str>, u32>,
    /// The same for single models, where it is not the provider's.
    pub model_context_tokens: BTreeMap<Box<str>, BTreeMap<Box<str>, u32>>,
    /// List model aliases.
    pub aliases: Arc<Aliases>,
}

/// The facts of `table` under the configuration: `prices` is `[prices]`, and `providers` knows `[providers]`.
///
/// A price of the configuration for one model comes before that of a client's model, this before the configuration's `*` for the
/// provider, and this before the catalog.
pub fn facts(table: &Table, providers: &Providers, prices: &BTreeMap<Box<str>, Price>) -> Facts {
    let mut facts = Facts { aliases: Arc::clone(table.aliases()), ..Facts::default() };
    let written = || prices.iter().filter_map(|(name, price)| Some((name.split_once('/')?, price)));
    let replaced: BTreeSet<&str> =
        written().filter(|((_, model), _)| *model == ANY).map(|((provider, _), _)| provider).collect();
    for provider in providers.iter() {
        facts.context_tokens.insert(provider.name.clone(), provider.context_tokens);
    }
    for model in table.models() {
        if let Some(price) = model.costs.price()
            && (model.origin == Origin::Custom || !replaced.contains(&*model.provider))
        {
            model.ids().for_each(|id| facts.prices.set(&model.provider, id, price));
        }
        let Some(provider) = providers.get(&model.provider) else { continue };
        let tokens = context_tokens(Some(model), provider);
        if tokens != provider.context_tokens {
            let models = facts.model_context_tokens.entry(model.provider.clone()).or_default();
            models.extend(model.ids().map(|id| (id.into(), tokens)));
        }
    }
    for ((provider, model), price) in written() {
        facts.prices.set(provider, model, *price);
    }
    facts
}

/// Tokens of the context of a model of `provider`; `None` is one that the catalog does not know.
///
/// What an operator said counts first: of the model, then of the provider. A runtime on this machine serves the context that it
/// was started with, whatever the model could have.
pub(crate) fn context_tokens(model: Option<&Arc<Model>>, provider: &Provider) -> u32 {
    match model {
        Some(model) if model.origin == Origin::Custom => model.context_window,
        Some(_) if provider.context_is_set => provider.context_tokens,
        Some(model) if provider.is_local => model.context_window.min(provider.context_tokens),
        Some(model) => model.context_window,
        None => provider.context_tokens,
    }
}
