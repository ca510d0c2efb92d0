//! The header that says when to ask again.

use std::time::{Duration, SystemTime};

use chrono::DateTime;

/// Reads a `Retry-After` header: seconds, or an HTTP date. `None` for anything else; a past date is no wait.
pub(crate) fn retry_after(value: &str, now: SystemTime) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse::<f64>() {
        // Some providers send fractions.
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let until = SystemTime::from(DateTime::parse_from_rfc2822(value).ok()?);
    Some(until.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        assert_eq!(retry_after(" 7 ", now), Some(Duration::from_secs(7)));
        assert_eq!(retry_after("0.5", now), Some(Duration::from_millis(500)));
        assert_eq!(retry_after("Sun, 06 Nov 1994 08:49:57 GMT", now), Some(Duration::from_secs(20)));
        assert_eq!(retry_after("Sun, 06 Nov 1994 08:49:17 GMT", now), Some(Duration::ZERO));
        for wrong in ["", "-1", "soon", "NaN", "inf", "1e300"] {
            assert_eq!(retry_after(wrong, now), None, "{wrong}");
        }
    }
}
