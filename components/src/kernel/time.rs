//! Moments. The world never asks a clock: `now` arrives with every step.

use std::fmt;

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Serialize};

/// A moment in milliseconds since 1970-01-01T00:00:00Z.
///
/// Shown as RFC 3339 in UTC with `Z` and milliseconds, such as `2026-11-21T10:55:00.000Z`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// This moment moved by `ms` milliseconds, saturating at the ends of time.
    #[must_use]
    pub const fn plus_ms(self, ms: i64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// Milliseconds from `earlier` to this moment; 0 when the clock went backwards.
    #[must_use]
    pub const fn ms_since(self, earlier: Self) -> u64 {
        let ms = self.0.saturating_sub(earlier.0);
        if ms < 0 { 0 } else { ms as u64 }
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let moment = DateTime::<Utc>::from_timestamp_millis(self.0).unwrap_or_default();
        f.write_str(&moment.to_rfc3339_opts(SecondsFormat::Millis, true))
    }
}
