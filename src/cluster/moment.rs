//! The time since the machine was started, which goes on while it sleeps and while this process is stopped.

use rustix::time::{ClockId, clock_gettime};

/// Milliseconds since the machine was started.
pub(crate) fn boot_time() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    let ms = now.tv_sec.saturating_mul(1_000).saturating_add(now.tv_nsec / 1_000_000);
    u64::try_from(ms).unwrap_or_default()
}
