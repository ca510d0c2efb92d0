//! `[usage]`: usage events (spec 3, Usage), and `[prices."<provider>/<model>"]`: what models cost.

use std::collections::BTreeMap;

use agentsvc_components::Micros;
use agentsvc_components::usage::price::Price as ModelPrice;

use crate::kernel::config::{Reader, table};

/// Dollars of a limit or a price.
pub(crate) const DOLLARS: std::ops::RangeInclusive<f64> = 0.0..=1e12;

table! {
    /// `[usage]`.
    pub struct Usage {
        /// Days to keep usage events and daily totals, 1 to 36500.
        retention_days: u32 = 90 => integer(1..=36_500).writable(),
    }
}

/// An amount that was read within the range of amounts.
pub(crate) fn micros(usd: f64) -> Micros {
    Micros::from_usd(usd).unwrap_or_default()
}

table! {
    /// `[prices."<provider>/<model>"]`. `*` as model is every other one of the provider.
    pub struct Price {
        /// Price of one million prompt tokens in dollars.
        input_per_m: f64 => number(DOLLARS).example("0.15").writable(),
        /// Price of one million output tokens in dollars.
        output_per_m: f64 => number(DOLLARS).example("0.6").writable(),
        /// Price of one million cached prompt tokens in dollars. Default: input_per_m.
        cached_input_per_m: Option<f64> => number(DOLLARS).example("0.075").writable(),
        /// Price of one million prompt tokens written to the cache in dollars. Default: input_per_m.
        cache_write_per_m: Option<f64> => number(DOLLARS).example("0.1875").writable(),
    }
}

impl Price {
    /// The same for the world.
    pub fn price(&self) -> ModelPrice {
        ModelPrice {
            input_per_m: micros(self.input_per_m),
            output_per_m: micros(self.output_per_m),
            cached_input_per_m: self.cached_input_per_m.map(micros),
            cache_write_per_m: self.cache_write_per_m.map(micros),
        }
    }
}

/// Notes prices that no model can have.
pub(crate) fn note_prices(prices: &BTreeMap<Box<str>, Price>, reader: &mut Reader<'_, '_>) {
    for name in prices.keys() {
        if !matches!(name.split_once('/'), Some((provider, model)) if !provider.is_empty() && !model.is_empty()) {
            let message = "must be named \"<provider>/<model>\", such as \"openai/gpt-4o\" or \"openai/*\"";
            reader.problem_at(&["prices", name], message.to_owned());
        }
    }
}
