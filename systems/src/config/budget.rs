//! Limits of what is spent, as the operator sets them.

use serde::{Deserialize, Serialize};

use agentsvc_components::Micros;
use agentsvc_components::usage::Limits;

/// The part of the configuration that budgets depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetSettings {
    /// Limits of everybody together.
    pub global: Limits,
    /// Limits of each agent that has none of its own.
    pub agent: Limits,
    /// What is reserved for a million tokens of a model without a price.
    pub unknown_price_per_m: Micros,
    /// The bound of an answer that has none of its own, in tokens, where a budget is in force.
    pub answer_tokens_max: u32,
}

impl Default for BudgetSettings {
    fn default() -> Self {
        Self {
            global: Limits::default(),
            agent: Limits::default(),
            unknown_price_per_m: Micros::ZERO,
            answer_tokens_max: 4_096,
        }
    }
}
