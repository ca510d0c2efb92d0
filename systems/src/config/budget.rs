//! Limits of what is spent, as the operator sets them.

use serde::{Deserialize, Serialize};

use agentsvc_components::Micros;
use agentsvc_components::usage::Limits;
use agentsvc_components::usage::price::Price;

/// The part of the configuration that budgets depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetSettings {
    /// Limits of everybody together.
    pub global: Limits,
    /// Limits of each agent that has none of its own.
    pub agent: Limits,
    /// Limits of all agents of each user that has none of its own.
    #[serde(default)]
    pub user: Limits,
    /// What a million tokens of a model without a price cost; with zero such models are refused where a limit is in force.
    pub unknown_price_per_m: Micros,
    /// The bound of an answer that has none of its own, in tokens, where a budget is in force.
    pub answer_tokens_max: u32,
}

impl BudgetSettings {
    /// The price of a model that has none.
    #[must_use]
    pub fn unknown_price(&self) -> Price {
        Price { input_per_m: self.unknown_price_per_m, output_per_m: self.unknown_price_per_m, ..Price::default() }
    }
}

impl Default for BudgetSettings {
    fn default() -> Self {
        Self {
            global: Limits::default(),
            agent: Limits::default(),
            user: Limits::default(),
            unknown_price_per_m: Micros::ZERO,
            answer_tokens_max: 4_096,
        }
    }
}
