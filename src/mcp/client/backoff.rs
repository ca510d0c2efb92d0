//! How long servers that fail rest.

use std::time::Duration;

/// Time until a server that ended is started again; twice as long each time.
const RESTART_AFTER: Duration = Duration::from_secs(5);

/// How long a server that failed so often rests, at most `most`.
pub(super) fn rest(failures: u32, most: Duration) -> Duration {
    RESTART_AFTER.saturating_mul(2_u32.saturating_pow(failures)).min(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rests_grow_to_a_bound() {
        let most = Duration::from_secs(300);
        let rests = [0, 1, 2, 5, 6, 99].map(|failures| rest(failures, most).as_secs());
        assert_eq!(rests, [5, 10, 20, 160, 300, 300]);
    }
}
