//! What a model costs.

use serde::{Deserialize, Serialize};

use crate::kernel::money::Micros;
use crate::session::message::Usage;

/// What a model costs, in micro-dollars for each million tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Price {
    /// Tokens of the prompt.
    pub input_per_m: Micros,
    /// Output tokens.
    pub output_per_m: Micros,
    /// Tokens of the prompt that the provider had in its cache; `None` costs as much as the others.
    pub cached_input_per_m: Option<Micros>,
    /// Tokens of the prompt that the provider wrote into its cache; `None` costs as much as the others.
    pub cache_write_per_m: Option<Micros>,
}

impl Price {
    /// What the tokens of a call cost, rounded up to a whole micro-dollar. Cached tokens are among those of the prompt.
    #[must_use]
    pub fn cost(&self, usage: Usage) -> Micros {
        let Usage { input_tokens, output_tokens, cached_input_tokens, cache_write_tokens, .. } = usage;
        let cached = cached_input_tokens.min(input_tokens);
        let written = cache_write_tokens.min(input_tokens - cached);
        let of =
            |tokens: u64, per_m: Option<Micros>| u128::from(tokens) * u128::from(per_m.unwrap_or(self.input_per_m).0);
        let sum = of(input_tokens - cached - written, None)
            + of(cached, self.cached_input_per_m)
            + of(written, self.cache_write_per_m)
            + of(output_tokens, Some(self.output_per_m));
        Micros(u64::try_from(sum.div_ceil(1_000_000)).unwrap_or(u64::MAX))
    }

    /// The most that a call can cost whose prompt and answer have at most so many tokens.
    #[must_use]
    pub fn worst(&self, input: u64, output: u64) -> Micros {
        let dearest = Self { input_per_m: self.dearest_input(), ..*self };
        dearest.cost(Usage::of(input, output))
    }

    /// The most that a token of the prompt can cost.
    #[must_use]
    pub fn dearest_input(&self) -> Micros {
        let cached = self.cached_input_per_m.unwrap_or_default().max(self.cache_write_per_m.unwrap_or_default());
        self.input_per_m.max(cached)
    }

    /// Is every token free?
    #[must_use]
    pub fn is_free(&self) -> bool {
        self.input_per_m.is_zero()
            && self.output_per_m.is_zero()
            && [self.cached_input_per_m, self.cache_write_per_m].into_iter().flatten().all(|price| price.is_zero())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_costs_its_tokens_rounded_up() {
        let price = Price {
            input_per_m: Micros(150_000),
            output_per_m: Micros(600_000),
            cached_input_per_m: Some(Micros(75_000)),
            cache_write_per_m: Some(Micros(300_000)),
        };
        let usage = |input, cached, written, output| Usage {
            cached_input_tokens: cached,
            cache_write_tokens: written,
            ..Usage::of(input, output)
        };
        assert_eq!(price.cost(usage(10, 0, 0, 0)), Micros(2), "1.5 micro-dollars");
        assert_eq!(price.cost(usage(1_000_000, 0, 0, 1_000_000)), Micros(750_000));
        assert_eq!(price.cost(usage(1_000_000, 400_000, 0, 0)), Micros(120_000));
        assert_eq!(price.cost(usage(1_000_000, 400_000, 100_000, 0)), Micros(135_000));
        assert_eq!(price.cost(usage(5, 9, 9, 0)), Micros(1), "no more are cached than there are");
        assert!(price.worst(100, 100) >= price.cost(usage(100, 0, 100, 100)));
        assert!(!price.is_free() && Price::default().is_free());
    }
}
