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
        /// Dollars per UTC day for all agents; 0 means unlimited.
        daily_limit_usd: f64 => number(DOLLARS).writable(),
        /// Dollars per calendar month; 0 means unlimited.
        monthly_limit_usd: f64 => number(DOLLARS).writable(),
        /// Tokens per clock hour for all agents; 0 means unlimited.
        hourly_token_limit: u64 => integer(TOKENS).writable(),
        /// Dollars per UTC day for each agent; 0 means unlimited.
        agent_daily_limit_usd: f64 => number(DOLLARS).writable(),
        /// Dollars per calendar month; 0 means unlimited.
        agent_monthly_limit_usd: f64 => number(DOLLARS).writable(),
        /// Tokens per clock hour for each agent; 0 means unlimited.
        agent_hourly_token_limit: u64 => integer(TOKENS).writable(),
        /// Dollars per UTC day for all agents of each user; 0 means unlimited.
        user_daily_limit_usd: f64 => number(DOLLARS).writable(),
        /// Dollars per calendar month; 0 means unlimited.
        user_monthly_limit_usd: f64 => number(DOLLARS).writable(),
        /// Tokens per clock hour for all agents of each user; 0 means unlimited.
        user_hourly_token_limit: u64 => integer(TOKENS).writable(),
        /// Dollars per million tokens of a model without a price. With 0 a money limit refuses such models.
        unknown_price_per_m: f64 => number(DOLLARS).writable(),
        /// Default limit of output tokens if a budget is set, 1 to 1000000.
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
            user: limits(self.user_daily_limit_usd, self.user_monthly_limit_usd, self.user_hourly_token_limit),
            unknown_price_per_m: micros(self.unknown_price_per_m),
            answer_tokens_max: self.answer_tokens_max,
        }
    }
}
