//! `[auto_dream]`: when agents consolidate their memory, and what that may cost.

use agentsvc_api::auto_dream::settings::DreamSettings;
use agentsvc_systems::config::auto_dream::AutoDreamSettings;

use crate::kernel::config::table;
use crate::kernel::settings::Settings;
use crate::usage::config::{DOLLARS, micros};

table! {
    /// `[auto_dream]`.
    pub struct AutoDream {
        /// Let agents that are idle consolidate their memory. Agents take part whose manifest has `auto_dream_enabled = true`, or
        /// that were switched on over the API.
        enabled: bool = false => flag().writable(),
        /// Hours between two runs of an agent, 1 to 8760.
        min_hours: u32 = 24 => integer(1..=8_760).writable(),
        /// Number of sessions that start between two runs of an agent, 0 to 100000.
        min_sessions: u32 = 5 => integer(0..=100_000).writable(),
        /// Seconds after which an agent that did not run, or whose run failed, is looked at again, 60 to 604800.
        check_interval_secs: u32 = 86_400 => integer(60..=604_800).writable(),
        /// Seconds that a run can take, 1 to 86400.
        timeout_secs: u32 = 600 => integer(1..=86_400).writable(),
        /// Maximum number of runs at once, of all agents, 1 to 100.
        max_concurrent: u32 = 2 => integer(1..=100).writable(),
        /// Maximum number of model calls of a run, 1 to 1000.
        max_calls_per_run: u32 = 20 => integer(1..=1_000).writable(),
        /// Tokens after which a run makes no further model call, 1000 to 100000000.
        max_tokens_per_run: u64 = 200_000 => integer(1_000..=100_000_000).writable(),
        /// Dollars after which a run makes no further model call; 0 means unlimited.
        max_cost_per_run_usd: f64 = 0.5 => number(DOLLARS).writable(),
    }
}

impl AutoDream {
    /// The same for the world.
    pub fn settings(&self) -> AutoDreamSettings {
        AutoDreamSettings {
            enabled: self.enabled,
            min_hours: self.min_hours,
            min_sessions: self.min_sessions,
            check_interval_secs: self.check_interval_secs,
            timeout_secs: self.timeout_secs,
            max_concurrent: self.max_concurrent,
            max_calls_per_run: self.max_calls_per_run,
            max_tokens_per_run: self.max_tokens_per_run,
            max_cost_per_run: micros(self.max_cost_per_run_usd),
        }
    }
}

/// What is in force, for the API.
pub(super) struct InForce(pub(super) Settings);

impl DreamSettings for InForce {
    fn now(&self) -> AutoDreamSettings {
        self.0.get::<AutoDream>().settings()
    }
}

#[cfg(test)]
mod tests {
    use agentsvc_systems::config::auto_dream::AutoDreamSettings;

    use super::AutoDream;
    use crate::kernel::config::read_table;

    #[test]
    fn keys_are_read_and_checked() {
        let parse = |text: &str| read_table::<AutoDream>("auto_dream", text);
        assert_eq!(parse("").unwrap().config.settings(), AutoDreamSettings::default());
        let read = parse("[auto_dream]\nenabled = true\nmin_hours = 2\nmax_cost_per_run_usd = 0.25\n").unwrap();
        let settings = read.config.settings();
        assert_eq!((settings.enabled, settings.min_hours, settings.max_cost_per_run.0), (true, 2, 250_000));
        for (line, message) in [
            ("min_hours = 8761", "auto_dream.min_hours: must be 1 to 8760"),
            ("check_interval_secs = 1", "auto_dream.check_interval_secs: must be 60 to 604800"),
            ("timeout_secs = 0", "auto_dream.timeout_secs: must be 1 to 86400"),
            ("max_concurrent = 0", "auto_dream.max_concurrent: must be 1 to 100"),
        ] {
            let error = parse(&format!("[auto_dream]\n{line}\n")).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
    }
}
