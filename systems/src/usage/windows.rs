//! The hours, days and months that a scope counts in, and clocks that jump.
//!
//! A window that has counted never opens anew. A clock that is set back by up to [`limit::BUDGET_CLOCK_BACK_DAYS`] opens no
//! earlier one: what was reached stays in force until the clock has caught up. One that jumps farther was, or is, wrong: the
//! windows that it leaves are kept, and count again when it comes back.

use agentsvc_components::Timestamp;
use agentsvc_components::kernel::limit;
use agentsvc_components::usage::Period;
use agentsvc_components::usage::record::{ScopeUseRecord, Windows};

use super::calendar;

/// Left windows that a scope keeps.
const AWAY_MAX: usize = 3;

/// The moment that counts at `now`, when `latest` was reached.
pub(super) fn moment(latest: Timestamp, now: Timestamp) -> Timestamp {
    if is_far(calendar::day(latest), now) { now } else { latest.max(now) }
}

const fn is_far(day: i64, at: Timestamp) -> bool {
    calendar::day(at).abs_diff(day) > limit::BUDGET_CLOCK_BACK_DAYS
}

/// Which period is counted at `at`, and what was spent in it.
pub(super) fn of(stored: &ScopeUseRecord, period: Period, at: Timestamp) -> (i64, u64) {
    let newest = stored.windows();
    let mut all = std::iter::once(&newest).chain(&stored.away);
    let windows = all.find(|windows| !is_far(windows.day, at)).copied().unwrap_or(Windows::NONE);
    match period {
        Period::Hourly => (windows.hour, windows.hour_tokens),
        Period::Daily => (windows.day, windows.day_cost.0),
        Period::Monthly => (windows.month, windows.month_cost.0),
    }
}

/// Counts where the clock is: after a far jump, in the windows that were left there, if there are any.
pub(super) fn turn_to(stored: &mut ScopeUseRecord, at: Timestamp) {
    if stored.day == i64::MIN || !is_far(stored.day, at) {
        return;
    }
    let there = stored.away.iter().position(|windows| !is_far(windows.day, at));
    let windows = there.map_or(Windows::NONE, |place| stored.away.remove(place));
    if stored.away.len() == AWAY_MAX {
        stored.away.remove(0);
    }
    let left = stored.turn_to(windows);
    stored.away.push(left);
}
