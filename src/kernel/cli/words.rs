//! What the values of an answer say to people: sums, limits, durations, sizes, yes and no, moments, and JSON as words.

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};

use super::output::{bytes, duration, field, moment};

/// Ends of keys that name a unit: the words for a value have it, the label does not.
const UNITS: [&str; 5] = ["_usd", "_ms", "_bytes", "_seconds", "_secs"];

/// The text at `pointer` of an item. Moments are distances from `now`, if there is one.
pub(crate) fn said(item: &Value, pointer: &str, now: Option<DateTime<Utc>>) -> String {
    let key = pointer.rsplit('/').next().unwrap_or_default();
    item.pointer(pointer).map(|value| of(key, value, now)).unwrap_or_default()
}

/// What the value of a key says.
pub(crate) fn of(key: &str, value: &Value, now: Option<DateTime<Utc>>) -> String {
    of_key(key, value).unwrap_or_else(|| moment(plain(value), now))
}

/// A key for people: `next_run` is `next run`, and units stand beside the value.
pub(crate) fn label(key: &str) -> String {
    let bare = UNITS.iter().find_map(|unit| key.strip_suffix(unit)).unwrap_or(key);
    bare.replace("_ms_", "_").replace('_', " ")
}

/// What a value says where that is not itself.
fn of_key(key: &str, value: &Value) -> Option<String> {
    match value {
        Value::Bool(is_so) => Some(if *is_so { "yes" } else { "no" }.to_owned()),
        Value::Number(number) if number.as_f64() == Some(0.0) && is_limit(key) => Some("no limit".to_owned()),
        Value::Number(number) => number.as_f64().and_then(|number| in_unit(key, number)),
        _ => None,
    }
}

/// A number with the unit that its key names.
fn in_unit(key: &str, number: f64) -> Option<String> {
    if key.ends_with("_usd") {
        return Some(dollars(number));
    }
    if number < 0.0 {
        return None;
    }
    match () {
        () if key.ends_with("_ms") || key.contains("_ms_") => Some(millis(number)),
        () if key.ends_with("_bytes") => Some(bytes(number as u64)),
        () if ["_secs", "_seconds"].iter().any(|end| key.ends_with(end)) => Some(duration(number as u64)),
        () => None,
    }
}

/// Is 0 of this key no limit?
fn is_limit(key: &str) -> bool {
    ["_limit", "_limit_usd"].iter().any(|end| key.ends_with(end))
}

/// A sum of money: in cents, and as exactly as it is where there is less than one.
pub(crate) fn dollars(sum: f64) -> String {
    let (sign, size) = (if sum < 0.0 { "-" } else { "" }, sum.abs());
    if size < 0.000_000_5 {
        return "$0.00".to_owned();
    }
    if size >= 0.01 {
        return format!("{sign}${size:.2}");
    }
    let exact = format!("{size:.6}");
    format!("{sign}${}", exact.trim_end_matches('0'))
}

/// How many of something: `1 agent`, `2 agents`.
pub(crate) fn count(count: u64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// Milliseconds: `850 ms`, `1.2 s`, `2 min 5 s`.
fn millis(millis: f64) -> String {
    match millis {
        _ if millis < 10.0 && millis.fract() != 0.0 => format!("{millis:.1} ms"),
        _ if millis < 1_000.0 => format!("{millis:.0} ms"),
        _ if millis < 60_000.0 => format!("{:.1} s", millis / 1_000.0),
        _ => duration((millis / 1_000.0) as u64),
    }
}

/// A value as text: objects as words, the rest as they are.
fn plain(value: &Value) -> String {
    match value {
        Value::Object(keys) => of_object(keys),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(plain).filter(|item| !item.is_empty()).collect();
            items.join(", ")
        }
        other => field(other, ""),
    }
}

/// An object as words: `{"task_failed": {}}` is `task failed`, `{"type": "http", "url": "u"}` is `type: http, url: u`.
fn of_object(keys: &Map<String, Value>) -> String {
    let word = |(key, value): (&String, &Value)| match value {
        Value::Null => None,
        Value::Object(inner) if inner.is_empty() => Some(label(key)),
        Value::Object(inner) => Some(format!("{} ({})", label(key), of_object(inner))),
        other => {
            let text = of_key(key, other).unwrap_or_else(|| plain(other));
            (!text.is_empty()).then(|| format!("{}: {text}", label(key)))
        }
    };
    keys.iter().filter_map(word).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_have_the_unit_that_their_key_names() {
        let of = |key: &str, value: Value| of(key, &value, None);
        assert_eq!([-0.5, 0.000_000_1, 1.005].map(dollars), ["-$0.50", "$0.00", "$1.00"]);
        assert_eq!(
            (of("cost_usd", json!(0.002_51)), of("daily_limit_usd", json!(0))),
            ("$0.00251".into(), "no limit".into())
        );
        assert_eq!((of("latency_ms", json!(4.25)), of("turn_ms_p95", json!(1_240))), ("4.2 ms".into(), "1.2 s".into()));
        assert_eq!(
            (of("size_bytes", json!(2_048)), of("uptime_secs", json!(65))),
            ("2.00 KiB".into(), "1 min 5 s".into())
        );
        assert_eq!((of("took_ms", json!(125_000)), of("enabled", json!(true))), ("2 min 5 s".into(), "yes".into()));
        assert_eq!((of("rate_limited", json!(0)), of("count", json!(3))), ("0".into(), "3".into()));
        assert_eq!((count(1, "agent"), count(0, "agent")), ("1 agent".into(), "0 agents".into()));
        assert_eq!(["turn_ms_p95", "cost_usd", "next_run"].map(label), ["turn p95", "cost", "next run"]);
    }

    #[test]
    fn json_becomes_words() {
        let item = json!({ "pattern": { "task_failed": {} }, "on": { "content_match": { "text": "x" } },
            "transport": { "type": "http", "url": "u", "none": null }, "list": [{ "a": 1 }, "b", []] });
        let said = |pointer| said(&item, pointer, None);
        assert_eq!((said("/pattern"), said("/on")), ("task failed".into(), "content match (text: x)".into()));
        assert_eq!(
            (said("/transport"), said("/list"), said("/gone")),
            ("type: http, url: u".into(), "a: 1, b".into(), String::new())
        );
    }
}
