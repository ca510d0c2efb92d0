//! What models cost.

use std::collections::BTreeMap;

use agentsvc_components::usage::price::Price;
use serde::{Deserialize, Serialize};

/// The model that costs nothing.
const BUILTIN: &str = "builtin";
/// Stands for every model of a provider that has no price of its own.
const ANY: &str = "*";

/// The prices of models, by provider and model. A model without one costs nothing; calls of such are counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prices(BTreeMap<Box<str>, BTreeMap<Box<str>, Price>>);

impl Prices {
    /// Sets the price of a model; `*` is every model of the provider that has none of its own.
    pub fn set(&mut self, provider: &str, model: &str, price: Price) {
        self.0.entry(provider.into()).or_default().insert(model.into(), price);
    }

    /// The price of a model; `None` when it is not known.
    #[must_use]
    pub fn of(&self, provider: &str, model: &str) -> Option<Price> {
        let known = self.0.get(provider);
        let found = known.and_then(|models| models.get(model).or_else(|| models.get(ANY))).copied();
        found.or_else(|| (provider == BUILTIN).then(Price::default))
    }

    /// The price of a model, or a price that is no less where the model is not named. `None` when nothing is known.
    #[must_use]
    pub fn at_most(&self, provider: &str, model: &str) -> Option<Price> {
        if !model.is_empty() {
            return self.of(provider, model);
        }
        let models = self.0.get(provider).into_iter().flat_map(BTreeMap::values);
        let dearest = models.copied().reduce(|a, b| Price {
            input_per_m: a.dearest_input().max(b.dearest_input()),
            output_per_m: a.output_per_m.max(b.output_per_m),
            ..Price::default()
        });
        dearest.or_else(|| self.of(provider, model))
    }
}

#[cfg(test)]
mod tests {
    use agentsvc_components::Micros;

    use super::*;

    #[test]
    fn a_model_has_its_own_price_or_its_providers() {
        let price = |micros| Price { input_per_m: Micros(micros), ..Price::default() };
        let mut prices = Prices::default();
        prices.set("openai", "*", price(5));
        prices.set("openai", "small", price(1));
        assert_eq!(prices.of("openai", "small"), Some(price(1)));
        assert_eq!(prices.of("openai", "other"), Some(price(5)));
        assert_eq!(prices.of("groq", "small"), None);
        assert_eq!(prices.of("builtin", "builtin"), Some(Price::default()));
        assert_eq!(prices.at_most("openai", ""), Some(price(5)));
    }
}
