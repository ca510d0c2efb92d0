//! `[budget]`: what may be spent (spec 3, Budget), and `[prices."<provider>/<model>"]`: what models cost.

use agentsvc_components::Micros;
use agentsvc_components::usage::Limits;
use agentsvc_components::usage::price::Price as ModelPrice;
use agentsvc_systems::budget::BudgetSettings;
use serde::Serialize;

use super::key::{Key, Table};
use super::reader::Reader;

/// Dollars of a limit or a price.
const DOLLARS: std::ops::RangeInclusive<f64> = 0.0..=1e12;
/// Tokens of an hour.
const TOKENS: std::ops::RangeInclusive<u64> = 0..=i64::MAX as u64;

/// `[budget]`. Limits that the API sets take the place of these.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Budget {
    /// Dollars that everybody together may spend in a day; 0 is no limit.
    pub daily_limit_usd: f64,
    /// The same for a month.
    pub monthly_limit_usd: f64,
    /// Tokens that everybody together may use in an hour; 0 is no limit.
    pub hourly_token_limit: u64,
    /// Dollars that each agent may spend in a day; 0 is no limit.
    pub agent_daily_limit_usd: f64,
    /// The same for a month.
    pub agent_monthly_limit_usd: f64,
    /// Tokens that each agent may use in an hour; 0 is no limit.
    pub agent_hourly_token_limit: u64,
    /// Dollars that are reserved for a million tokens of a model without a price.
    pub unknown_price_per_m: f64,
    /// The bound of an answer that has none of its own, where a budget is in force.
    pub answer_tokens_max: u32,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            daily_limit_usd: 0.0,
            monthly_limit_usd: 0.0,
            hourly_token_limit: 0,
            agent_daily_limit_usd: 0.0,
            agent_monthly_limit_usd: 0.0,
            agent_hourly_token_limit: 0,
            unknown_price_per_m: 0.0,
            answer_tokens_max: BudgetSettings::default().answer_tokens_max,
        }
    }
}

impl Table for Budget {
    const KEYS: &'static [Key] = &[
        Key::number(
            "daily_limit_usd",
            DOLLARS,
            "0.0",
            "Dollars that all agents together may spend in a UTC day; 0: no limit.",
        )
        .writable(),
        Key::number("monthly_limit_usd", DOLLARS, "0.0", "The same for a calendar month.").writable(),
        Key::integer(
            "hourly_token_limit",
            TOKENS,
            "0",
            "Tokens that all agents together may use in a clock hour; 0: no limit.",
        )
        .writable(),
        Key::number(
            "agent_daily_limit_usd",
            DOLLARS,
            "0.0",
            "Dollars that each agent may spend in a UTC day; 0: no limit.",
        )
        .writable(),
        Key::number("agent_monthly_limit_usd", DOLLARS, "0.0", "The same for a calendar month.").writable(),
        Key::integer(
            "agent_hourly_token_limit",
            TOKENS,
            "0",
            "Tokens that each agent may use in a clock hour; 0: no limit.",
        )
        .writable(),
        Key::number(
            "unknown_price_per_m",
            DOLLARS,
            "0.0",
            "Dollars reserved for a million tokens of a model without a price; such calls are recorded as free.",
        )
        .writable(),
        Key::integer(
            "answer_tokens_max",
            1..=1_000_000,
            "4096",
            "Bound of an answer that neither request nor manifest bounds, where a budget is in force, 1 to 1000000.",
        )
        .writable(),
    ];

    fn read(reader: &mut Reader<'_, '_>) -> Self {
        let default = Self::default();
        let mut dollars = |key| reader.number(key).unwrap_or(0.0);
        let (daily_limit_usd, monthly_limit_usd) = (dollars("daily_limit_usd"), dollars("monthly_limit_usd"));
        let (agent_daily_limit_usd, agent_monthly_limit_usd) =
            (dollars("agent_daily_limit_usd"), dollars("agent_monthly_limit_usd"));
        let unknown_price_per_m = dollars("unknown_price_per_m");
        Self {
            daily_limit_usd,
            monthly_limit_usd,
            hourly_token_limit: reader.integer("hourly_token_limit").unwrap_or(0),
            agent_daily_limit_usd,
            agent_monthly_limit_usd,
            agent_hourly_token_limit: reader.integer("agent_hourly_token_limit").unwrap_or(0),
            unknown_price_per_m,
            answer_tokens_max: reader.integer("answer_tokens_max").unwrap_or(default.answer_tokens_max),
        }
    }
}

fn micros(usd: f64) -> Micros {
    // Every value was read within the range of amounts.
    Micros::from_usd(usd).unwrap_or_default()
}

impl Budget {
    /// The same for the world.
    #[must_use]
    pub fn settings(&self) -> BudgetSettings {
        let limits = |daily, monthly, tokens| Limits {
            daily: Some(micros(daily)),
            monthly: Some(micros(monthly)),
            hourly_tokens: Some(tokens),
        };
        BudgetSettings {
            global: limits(self.daily_limit_usd, self.monthly_limit_usd, self.hourly_token_limit),
            agent: limits(self.agent_daily_limit_usd, self.agent_monthly_limit_usd, self.agent_hourly_token_limit),
            unknown_price_per_m: micros(self.unknown_price_per_m),
            answer_tokens_max: self.answer_tokens_max,
        }
    }
}

/// `[prices."<provider>/<model>"]`, in dollars for each million tokens. `*` as model is every other one of the provider.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Price {
    /// Tokens of the prompt.
    pub input_per_m: f64,
    /// Tokens of the answer.
    pub output_per_m: f64,
    /// Tokens of the prompt that the provider had in its cache; not given: as the others.
    pub cached_input_per_m: Option<f64>,
    /// Tokens of the prompt that the provider wrote into its cache; not given: as the others.
    pub cache_write_per_m: Option<f64>,
}

impl Table for Price {
    const KEYS: &'static [Key] = &[
        Key::number("input_per_m", DOLLARS, "0.15", "Dollars for a million tokens of prompts.").example().writable(),
        Key::number("output_per_m", DOLLARS, "0.6", "Dollars for a million tokens of answers.").example().writable(),
        Key::number(
            "cached_input_per_m",
            DOLLARS,
            "0.075",
            "Dollars for a million cached tokens of prompts. Default: as input_per_m.",
        )
        .example()
        .writable(),
        Key::number(
            "cache_write_per_m",
            DOLLARS,
            "0.1875",
            "Dollars for a million tokens of prompts that are written into the cache. Default: as input_per_m.",
        )
        .example()
        .writable(),
    ];

    fn read(reader: &mut Reader<'_, '_>) -> Self {
        Self {
            input_per_m: reader.number("input_per_m").unwrap_or(0.0),
            output_per_m: reader.number("output_per_m").unwrap_or(0.0),
            cached_input_per_m: reader.number("cached_input_per_m"),
            cache_write_per_m: reader.number("cache_write_per_m"),
        }
    }
}

impl Price {
    /// The same for the world.
    #[must_use]
    pub fn price(&self) -> ModelPrice {
        ModelPrice {
            input_per_m: micros(self.input_per_m),
            output_per_m: micros(self.output_per_m),
            cached_input_per_m: self.cached_input_per_m.map(micros),
            cache_write_per_m: self.cache_write_per_m.map(micros),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use agentsvc_components::Micros;

    use crate::config::parse;

    #[test]
    fn limits_and_prices_become_micro_dollars() {
        let text = "[budget]\ndaily_limit_usd = 10\nagent_monthly_limit_usd = 0.1\nhourly_token_limit = 5\n\
                    [prices.\"openai/gpt-4o\"]\ninput_per_m = 2.5\noutput_per_m = 10.0\n[prices.\"x/*\"]\n";
        let config = parse(text, Path::new("c")).unwrap().config;
        let settings = config.budget.settings();
        assert_eq!(settings.global.in_force().daily, Some(Micros(10_000_000)));
        assert_eq!((settings.global.in_force().monthly, settings.global.hourly_tokens), (None, Some(5)));
        assert_eq!(settings.agent.monthly, Some(Micros(100_000)));
        assert_eq!(config.prices["openai/gpt-4o"].price().input_per_m, Micros(2_500_000));
        assert!(config.prices["x/*"].price().is_free());
    }

    #[test]
    fn what_is_no_amount_is_refused() {
        let text = "[budget]\ndaily_limit_usd = -1\nmonthly_limit_usd = \"ten\"\n[prices.gpt]\ninput_per_m = nan\n";
        let error = parse(text, Path::new("c")).unwrap_err().to_string();
        assert!(error.contains("c:2:19: budget.daily_limit_usd: must be 0 to 1000000000000"), "{error}");
        assert!(error.contains("c:3:21: budget.monthly_limit_usd: must be a number, not a string"), "{error}");
        assert!(error.contains("prices.gpt.input_per_m: must be 0 to 1000000000000"), "{error}");
        assert!(error.contains("prices.gpt: must be named \"<provider>/<model>\""), "{error}");
    }
}
