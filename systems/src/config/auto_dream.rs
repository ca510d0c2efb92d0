//! When agents consolidate their memory, and what that may cost.

use serde::{Deserialize, Serialize};

use agentsvc_components::Micros;

/// The part of the configuration that consolidation runs depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AutoDreamSettings {
    /// Are there any? Agents have to be switched on besides.
    pub enabled: bool,
    /// Hours between two runs of an agent.
    pub min_hours: u32,
    /// Sessions that start between two runs of an agent.
    pub min_sessions: u32,
    /// Seconds after which an agent that did not run is looked at again, at the latest.
    pub check_interval_secs: u32,
    /// Seconds that a run can take.
    pub timeout_secs: u32,
    /// Runs at once, of all agents.
    pub max_concurrent: u32,
    /// Model calls of one run.
    pub max_calls_per_run: u32,
    /// Tokens of one run.
    pub max_tokens_per_run: u64,
    /// What one run can cost; zero is without bound.
    pub max_cost_per_run: Micros,
}

impl Default for AutoDreamSettings {
    fn default() -> Self {
        Self {
            enabled: false,
            min_hours: 24,
            min_sessions: 5,
            check_interval_secs: 86_400,
            timeout_secs: 600,
            max_concurrent: 2,
            max_calls_per_run: 20,
            max_tokens_per_run: 200_000,
            max_cost_per_run: Micros(500_000),
        }
    }
}
