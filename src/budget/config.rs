//! `[budget]`: what may be spent (spec 3, Budget).

use agentsvc_components::usage::Limits;
use agentsvc_systems::config::budget::BudgetSettings;

use crate::kernel::config::table;
use crate::usage::config::{DOLLARS, micros};

/// Tokens of an hour.
const TOKENS: std::ops::RangeInclusive<u64> = 0..=i64::MAX as u64;

table! {
    /// `[budget]`. Limits that the API sets take the place of these.
    pub struct Budget {
        /// Dollars that all agents together may spend in a UTC day; 0: no limit.
        daily_limit_usd: f64 => number(DOLLARS).writable(),
        /// The same for a calendar month.
        monthly_limit_usd: f64 => number(DOLLARS).writable(),
        /// Tokens that all agents together may use in a clock hour; 0: no limit.
        hourly_token_limit: u64 => integer(TOKENS).writable(),
        /// Dollars that each agent may spend in a UTC day; 0: no limit.
        agent_daily_limit_usd: f64 => number(DOLLARS).writable(),
        /// The same for a calendar month.
        agent_monthly_limit_usd: f64 => number(DOLLARS).writable(),
        /// Tokens that each agent may use in a clock hour; 0: no limit.
        agent_hourly_token_limit: u64 => integer(TOKENS).writable(),
        /// Dollars reserved for a million tokens of a model without a price; such calls are recorded as free.
        unknown_price_per_m: f64 => number(DOLLARS).writable(),
        /// Bound of an answer that neither request nor manifest bounds, where a budget is in force, 1 to 1000000.
        answer_tokens_max: u32 = BudgetSettings::default().answer_tokens_max => integer(1..=1_000_000).writable(),
    }
}

impl Budget {
    /// The same for the world.
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
