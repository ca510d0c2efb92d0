//! Today's use is read beside the limit of the hour (spec 3, Usage).

use agentsvc_components::Timestamp;
use agentsvc_components::usage::{Bucket, Limits, Period, Scope, UsageSum};

use super::limits;
use crate::kernel::clock::Now;
use crate::kernel::command::{Answer, command};
use crate::usage::{Rollups, calendar};

/// Today, and how far the hour's tokens are used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsageSummary {
    /// The sum of today.
    pub today: UsageSum,
    /// Everybody's tokens of an hour; 0 is no limit.
    pub hourly_token_limit: u64,
    /// Everybody's tokens of this hour.
    pub hourly_tokens_used: u64,
    /// When the hour is over.
    pub hourly_reset_at: Timestamp,
}

/// Reads how today is.
#[derive(Clone, Copy, Debug)]
pub struct GetUsageSummary;

command! {
    read "get_usage_summary" GetUsageSummary => UsageSummary, All, |_, world| {
        let now = world.resource::<Now>().0;
        let Limits { hourly_tokens, .. } = limits(world, Scope::Global);
        let rollups = world.resource::<Rollups>();
        let hour = rollups.spent(Scope::Global, Period::Hourly, now);
        Answer::read(UsageSummary {
            today: rollups.sum(&Bucket::Day(calendar::day(now))),
            hourly_token_limit: hourly_tokens.unwrap_or(0),
            hourly_tokens_used: hour.spent,
            hourly_reset_at: calendar::ends(Period::Hourly, hour.index),
        })
    }
}
