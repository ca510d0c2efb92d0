//! What a provider still lets pass, as its headers said last: a bucket that fills steadily.
//!
//! OpenAI, Anthropic, Groq and those who do as they do say of each limit how much it is, how much of it is left, and when
//! it will be whole again; from that follows how fast it fills.

use std::time::{Duration, SystemTime};

use chrono::DateTime;
use reqwest::header::HeaderMap;
use tokio::time::Instant;

/// Numbers from here on are moments in seconds since 1970, not spans.
const EPOCH_SECS_MIN: f64 = 1e9;
/// Numbers from here on are moments in milliseconds.
const EPOCH_MS_MIN: f64 = 1e12;
/// Longest time to a whole bucket that is believed: a day, for limits of a day.
const RESET_MAX: Duration = Duration::from_secs(86_400);

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counted {
    /// Calls.
    Requests,
    /// Tokens.
    Tokens,
}

/// One limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Window {
    /// What it counts.
    pub(super) counted: Counted,
    /// How much of it there is when nothing is used.
    pub(super) limit: f64,
    /// What was left at `at`.
    left: f64,
    /// What comes back in a second.
    per_second: f64,
    at: Instant,
}

impl Window {
    /// What is left now.
    pub(super) fn left(&self, now: Instant) -> f64 {
        let secs = now.saturating_duration_since(self.at).as_secs_f64();
        secs.mul_add(self.per_second, self.left).min(self.limit)
    }

    /// How long until `need` is there, or all of it where the limit is less.
    pub(super) fn wait(&self, need: f64, now: Instant) -> Duration {
        let missing = need.min(self.limit) - self.left(now);
        if missing <= 0.0 {
            return Duration::ZERO;
        }
        Duration::try_from_secs_f64(missing / self.per_second).unwrap_or(RESET_MAX).min(RESET_MAX)
    }

    /// Takes `need` out, until the provider says what is really left.
    pub(super) fn take(&mut self, need: f64, now: Instant) {
        self.left = (self.left(now) - need).max(0.0);
        self.at = now;
    }

    /// It is whole again, and holds nothing back.
    pub(super) fn is_whole(&self, now: Instant) -> bool {
        self.left(now) >= self.limit
    }
}

/// The headers of the limits: how much, how much is left, when it is whole again.
const HEADERS: &[(Counted, &str, &str, &str)] = &[
    (Counted::Requests, "x-ratelimit-limit-requests", "x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"),
    (Counted::Tokens, "x-ratelimit-limit-tokens", "x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"),
    (
        Counted::Requests,
        "anthropic-ratelimit-requests-limit",
        "anthropic-ratelimit-requests-remaining",
        "anthropic-ratelimit-requests-reset",
    ),
    (
        Counted::Tokens,
        "anthropic-ratelimit-input-tokens-limit",
        "anthropic-ratelimit-input-tokens-remaining",
        "anthropic-ratelimit-input-tokens-reset",
    ),
    (Counted::Requests, "x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"),
];

/// The limits that a response tells of; at most one of each kind, the first that is told whole.
pub(super) fn told(headers: &HeaderMap, now: Instant, clock: SystemTime) -> Vec<Window> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let number = |name: &str| text(name)?.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
    let mut windows: Vec<Window> = Vec::new();
    for (counted, limit, left, reset) in HEADERS {
        let (Some(limit), Some(left), Some(reset)) =
            (number(limit), number(left), text(reset).and_then(|reset| until(reset, clock)))
        else {
            continue;
        };
        let used = limit - left;
        if limit < 1.0 || used <= 0.0 || reset.is_zero() || windows.iter().any(|window| window.counted == *counted) {
            continue;
        }
        let per_second = used / reset.min(RESET_MAX).as_secs_f64();
        windows.push(Window { counted: *counted, limit, left, per_second, at: now });
    }
    windows
}

/// Reads when something is over: a span (`6m0s`, `12ms`, `2m59.56s`, seconds) or a moment (RFC 3339, seconds or
/// milliseconds since 1970). A moment that is past is now.
pub(super) fn until(text: &str, clock: SystemTime) -> Option<Duration> {
    if let Ok(number) = text.parse::<f64>() {
        let since_1970 = clock.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        let secs = match number {
            _ if number >= EPOCH_MS_MIN => number / 1_000.0 - since_1970,
            _ if number >= EPOCH_SECS_MIN => number - since_1970,
            _ if number.is_nan() || number < 0.0 => return None,
            _ => number,
        };
        return Duration::try_from_secs_f64(secs.max(0.0)).ok();
    }
    if let Ok(moment) = DateTime::parse_from_rfc3339(text) {
        return Some(SystemTime::from(moment).duration_since(clock).unwrap_or_default());
    }
    span(text)
}

/// A span of numbers with units, such as `1h2m3.5s`.
fn span(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut secs = 0.0;
    while !rest.is_empty() {
        let number_end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, after) = rest.split_at(number_end);
        let unit_end = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at(unit_end);
        secs += number.parse::<f64>().ok()?
            * match unit {
                "d" => 86_400.0,
                "h" => 3_600.0,
                "m" => 60.0,
                "s" => 1.0,
                "ms" => 0.001,
                "us" | "\u{b5}s" => 1e-6,
                "ns" => 1e-9,
                _ => return None,
            };
        rest = after;
    }
    (!text.is_empty()).then(|| Duration::try_from_secs_f64(secs).ok())?
}

#[cfg(test)]
mod tests {
    use reqwest::header::{HeaderName, HeaderValue};

    use super::*;

    fn clock() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000)
    }

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn spans_and_moments() {
        let ms = |text: &str| until(text, clock()).map(|span| span.as_millis());
        for (text, expected) in [
            ("1s", 1_000),
            ("6m0s", 360_000),
            ("12ms", 12),
            ("2m59.56s", 179_560),
            ("1h2m3.5s", 3_723_500),
            ("7", 7_000),
            ("0.5", 500),
            ("2023-11-14T22:13:25Z", 5_000),
            ("2023-11-14T22:13:15Z", 0),
            ("1700000003", 3_000),
            ("1700000003500", 3_500),
        ] {
            assert_eq!(ms(text), Some(expected), "{text}");
        }
        for wrong in ["", "soon", "5x", "-1", "s", "1.2.3s", "NaN", "inf", "1e300s"] {
            assert_eq!(ms(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_limits_of_a_response() {
        let now = Instant::now();
        let of = |pairs: &[(&'static str, &'static str)]| told(&headers(pairs), now, clock());
        let open_ai = of(&[
            ("x-ratelimit-limit-requests", "60"),
            ("x-ratelimit-remaining-requests", "0"),
            ("x-ratelimit-reset-requests", "1m0s"),
            ("x-ratelimit-limit-tokens", "30000"),
            ("x-ratelimit-remaining-tokens", "15000"),
            ("x-ratelimit-reset-tokens", "30s"),
        ]);
        let seconds = |window: &Window, need: f64| window.wait(need, now).as_secs_f64().round();
        assert_eq!(
            open_ai.iter().map(|window| window.counted).collect::<Vec<_>>(),
            [Counted::Requests, Counted::Tokens]
        );
        assert_eq!((seconds(&open_ai[0], 1.0), seconds(&open_ai[1], 15_000.0)), (1.0, 0.0));
        assert_eq!((seconds(&open_ai[1], 20_000.0), seconds(&open_ai[1], 99_999.0)), (10.0, 30.0));
        let anthropic = of(&[
            ("anthropic-ratelimit-input-tokens-limit", "100"),
            ("anthropic-ratelimit-input-tokens-remaining", "0"),
            ("anthropic-ratelimit-input-tokens-reset", "2023-11-14T22:13:30Z"),
        ]);
        assert_eq!(seconds(&anthropic[0], 50.0), 5.0);
        for nothing in [
            &[("x-ratelimit-remaining-requests", "0")][..],
            &[("x-ratelimit-limit", "-1"), ("x-ratelimit-remaining", "-1"), ("x-ratelimit-reset", "0")],
            &[("x-ratelimit-limit", "5"), ("x-ratelimit-remaining", "5"), ("x-ratelimit-reset", "9")],
            &[("x-ratelimit-limit", "5"), ("x-ratelimit-remaining", "1"), ("x-ratelimit-reset", "0")],
        ] {
            assert_eq!(of(nothing), [], "{nothing:?}");
        }
    }

    #[test]
    fn it_empties_and_fills() {
        let now = Instant::now();
        let mut window = Window { counted: Counted::Requests, limit: 10.0, left: 2.0, per_second: 1.0, at: now };
        window.take(1.0, now);
        window.take(1.0, now);
        assert_eq!(window.wait(1.0, now), Duration::from_secs(1));
        let later = now + Duration::from_secs(4);
        assert_eq!(window.left(later).round(), 4.0);
        window.take(9.0, later);
        assert_eq!((window.left(later), window.is_whole(later)), (0.0, false));
        assert!(window.is_whole(later + Duration::from_secs(10)));
    }
}
