//! What the measuring programs share: tables of results and the goals behind them, raw HTTP/1.1 loops that cost the
//! client little, and a look at a process from outside.

#![allow(dead_code, unused_imports, reason = "every program uses its own part")]

pub(crate) mod goals;
pub(crate) mod process;
pub(crate) mod rows;
pub(crate) mod slope;
pub(crate) mod start;
pub(crate) mod wire;

use std::time::Duration;

pub(crate) use process::{Profile, bytes_below, cpu_seconds, metric, resident_bytes};
pub(crate) use rows::{Row, head, is_quick, is_wanted, size};
pub(crate) use wire::{Connection, Run, drive, get, post};

/// The value below which `part` (0 to 1) of the sorted `values` lie.
pub(crate) fn percentile(sorted: &[Duration], part: f64) -> Duration {
    let at = (sorted.len() as f64 * part) as usize;
    sorted.get(at.min(sorted.len().saturating_sub(1))).copied().unwrap_or_default()
}

/// Milliseconds with two digits behind the point.
pub(crate) fn ms(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1e3)
}

/// The value in the middle.
pub(crate) fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// Configuration lines of a daemon that limits nobody.
pub(crate) const UNLIMITED: &str = "rate_limit_per_second = 10000000\nlog_level = \"warn\"\n";

/// Configuration lines that make the model server at `base_url` the default model.
pub(crate) fn default_model(base_url: &str) -> String {
    format!(
        "[default_model]\nprovider = \"openai\"\nmodel = \"m\"\nbase_url = \"{base_url}\"\n\
         api_key_env = \"TEST_MODEL_KEY\"\n"
    )
}
