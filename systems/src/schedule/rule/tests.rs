//! Rules against croner where the definitions agree, the syntax, and where errors point.

use std::str::FromStr;

use chrono::{DateTime, TimeZone, Utc};
use proptest::prelude::*;

use super::*;

fn at(text: &str) -> Timestamp {
    Timestamp(DateTime::parse_from_rfc3339(text).expect("a moment").timestamp_millis())
}

fn shown(slots: &[Timestamp]) -> Vec<String> {
    slots.iter().map(|slot| slot.to_string().replace(":00.000Z", "").replace(".000Z", "")).collect()
}

/// The first slots of a rule after a moment, in UTC.
fn slots(rule: &str, after: &str, count: usize) -> Vec<String> {
    let rule = Rule::parse(rule).unwrap_or_else(|error| panic!("{rule}: {error}"));
    shown(&rule.preview(Tz::UTC, at(after), at(after), count))
}

/// One item of a field whose values go from `low` to `high`.
fn item(low: u32, high: u32) -> impl Strategy<Value = String> {
    let value = low..=high;
    let step = 1..=(high - low).max(1);
    prop_oneof![
        4 => value.clone().prop_map(|value| value.to_string()),
        2 => (value.clone(), value.clone()).prop_map(|(a, b)| format!("{}-{}", a.min(b), a.max(b))),
        1 => (value.clone(), value, step).prop_map(|(a, b, step)| format!("{}-{}/{step}", a.min(b), a.max(b))),
    ]
}

fn list(low: u32, high: u32) -> impl Strategy<Value = String> {
    proptest::collection::vec(item(low, high), 1..4).prop_map(|items| items.join(","))
}

/// A field of seconds, minutes, hours or months.
fn field(low: u32, high: u32) -> impl Strategy<Value = String> {
    let steps = (1..=(high - low)).prop_map(|step| format!("*/{step}"));
    prop_oneof![3 => Just("*".to_owned()), 4 => list(low, high), 2 => steps]
}

/// A field of days: no `*/2`, which croner takes for a restriction.
fn days(low: u32, high: u32) -> impl Strategy<Value = String> {
    prop_oneof![2 => Just("*".to_owned()), 1 => list(low, high)]
}

fn months() -> impl Strategy<Value = String> {
    prop_oneof![field(1, 12), Just("FEB".to_owned()), Just("jan-Mar,dec".to_owned())]
}

fn weekdays() -> impl Strategy<Value = String> {
    prop_oneof![days(0, 6), Just("7".to_owned()), Just("MON-FRI".to_owned()), Just("sun,wed".to_owned())]
}

/// An expression of six fields; the last word of `days` may be `L`.
fn expression() -> impl Strategy<Value = String> {
    let day = prop_oneof![6 => days(1, 31), 1 => Just("L".to_owned())];
    (field(0, 59), field(0, 59), field(0, 23), day, months(), weekdays()).prop_map(
        |(second, minute, hour, day, month, weekday)| format!("{second} {minute} {hour} {day} {month} {weekday}"),
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn slots_are_those_of_croner(text in expression(), from in 0_i64..4_102_444_800) {
        let theirs = croner::Cron::from_str(&text).expect("croner reads it");
        let Ok(ours) = Rule::parse(&text) else {
            // Only a day that never comes is refused.
            let begin = Utc.timestamp_opt(from, 0).unwrap();
            prop_assert!(theirs.find_next_occurrence(&begin, false).is_err(), "{text}");
            return Ok(());
        };
        let mut after = Timestamp(from * 1_000);
        let mut begin = Utc.timestamp_opt(from, 0).unwrap();
        for _ in 0..5 {
            let expected = theirs.find_next_occurrence(&begin, false).expect("croner finds one");
            let found = ours.next(Tz::UTC, Timestamp(0), after).expect("a slot");
            prop_assert_eq!(found.0, expected.timestamp_millis(), "{} after {}", text, begin);
            (after, begin) = (found, expected);
        }
    }

    #[test]
    fn no_text_makes_the_parser_panic_and_errors_point_into_the_text(text in "[ -~äß*/,0-9LA-Z-]{0,30}") {
        if let Err(error) = Rule::parse(&text) {
            prop_assert!(error.column >= 1 && error.column <= text.chars().count() + 1, "{text:?}: {error}");
        }
    }

    #[test]
    fn every_is_a_walk_by_arithmetic(secs in 1_u64..1_000_000, anchor in 0_i64..1 << 40, after in 0_i64..1 << 41) {
        let rule = Rule::Every(secs * 1_000);
        let slot = rule.next(Tz::UTC, Timestamp(anchor), Timestamp(after)).unwrap().0;
        let ms = i64::try_from(secs).unwrap() * 1_000;
        prop_assert!(slot > after && slot > anchor);
        prop_assert_eq!((slot - anchor) % ms, 0);
        prop_assert!(slot - ms <= after.max(anchor));
    }
}

#[test]
fn the_syntax_of_cron() {
    let day = "2026-03-01T00:00:00Z";
    for (rule, expected) in [
        ("30 9 * * *", vec!["2026-03-01T09:30", "2026-03-02T09:30"]),
        ("15 30 9 * * *", vec!["2026-03-01T09:30:15", "2026-03-02T09:30:15"]),
        ("  0   0,12  *  *  * ", vec!["2026-03-01T12:00", "2026-03-02T00:00"]),
        ("*/20 * * * *", vec!["2026-03-01T00:20", "2026-03-01T00:40", "2026-03-01T01:00"]),
        ("50/5 0 * * *", vec!["2026-03-01T00:50", "2026-03-01T00:55", "2026-03-02T00:50"]),
        ("0 0 * * 7", vec!["2026-03-08T00:00", "2026-03-15T00:00"]),
        ("0 0 * * SUN", vec!["2026-03-08T00:00"]),
        ("0 0 * * Fri-Sun", vec!["2026-03-06T00:00", "2026-03-07T00:00", "2026-03-08T00:00", "2026-03-13T00:00"]),
        ("0 0 1 feb-apr/2 ?", vec!["2026-04-01T00:00", "2027-02-01T00:00"]),
        ("0 0 29 2 *", vec!["2028-02-29T00:00", "2032-02-29T00:00"]),
        ("0 0 L * *", vec!["2026-03-31T00:00", "2026-04-30T00:00"]),
        // Both restrict: either is enough. A field that begins with a star restricts nothing.
        ("0 0 13 * FRI", vec!["2026-03-06T00:00", "2026-03-13T00:00", "2026-03-20T00:00", "2026-03-27T00:00"]),
        ("0 0 */2 * MON", vec!["2026-03-09T00:00", "2026-03-23T00:00", "2026-04-13T00:00"]),
        ("@hourly", vec!["2026-03-01T01:00", "2026-03-01T02:00"]),
        ("@daily", vec!["2026-03-02T00:00"]),
        ("@MIDNIGHT", vec!["2026-03-02T00:00"]),
        ("@weekly", vec!["2026-03-08T00:00"]),
        ("@monthly", vec!["2026-04-01T00:00"]),
        ("@yearly", vec!["2027-01-01T00:00"]),
        ("@annually", vec!["2027-01-01T00:00"]),
    ] {
        assert_eq!(slots(rule, day, expected.len()), expected, "{rule}");
    }
}

#[test]
fn the_syntax_of_intervals() {
    let day = "2026-03-01T00:00:00Z";
    for (rule, expected) in [
        ("every 15m", vec!["2026-03-01T00:15", "2026-03-01T00:30"]),
        ("Every 1s", vec!["2026-03-01T00:00:01", "2026-03-01T00:00:02"]),
        ("every 2h", vec!["2026-03-01T02:00"]),
        ("every 1d", vec!["2026-03-02T00:00"]),
        ("every 1h30m", vec!["2026-03-01T01:30", "2026-03-01T03:00"]),
        ("every 5 minutes", vec!["2026-03-01T00:05"]),
        ("every 1 week", vec!["2026-03-08T00:00"]),
        ("@every 10sec", vec!["2026-03-01T00:00:10"]),
        ("in 2h", vec!["2026-03-01T02:00"]),
        ("at 2026-12-01T09:00Z", vec!["2026-12-01T09:00"]),
        ("at 2026-12-01T09:00:30+01:00", vec!["2026-12-01T08:00:30"]),
        ("at 2026-12-01T09:00-02:30", vec!["2026-12-01T11:30"]),
    ] {
        assert_eq!(slots(rule, day, expected.len()), expected, "{rule}");
    }
    assert_eq!(slots("in 2h", day, 5).len(), 1, "once");
    assert_eq!(slots("at 2026-02-01T09:00Z", day, 5), [""; 0], "passed");
}

#[test]
fn errors_name_the_column_and_the_field() {
    for (rule, column, part) in [
        ("", 1, "expression"),
        ("   ", 1, "expression"),
        ("* * * *", 7, "expression"),
        ("* * * * * * *", 13, "expression"),
        ("@noon", 1, "expression"),
        ("60 * * * *", 1, "minute"),
        ("0 24 * * *", 3, "hour"),
        ("0 0 0 * *", 5, "day of month"),
        ("0 0 1 13 *", 7, "month"),
        ("0 0 * * 8", 9, "day of week"),
        ("0 0 * * MON-FRX", 9, "day of week"),
        ("61 0 0 * * *", 1, "second"),
        ("0 5,x * * *", 5, "hour"),
        ("0 1x * * *", 3, "hour"),
        ("0 1,,2 * * *", 5, "hour"),
        ("0 5-2 * * *", 3, "hour"),
        ("*/0 * * * *", 1, "minute"),
        ("*/ * * * *", 1, "minute"),
        ("1-5/99 * * * *", 1, "minute"),
        ("0 0 30 2 *", 5, "day of month"),
        ("0 0 31 2,4,6,9,11 *", 5, "day of month"),
        ("0 ? * * *", 3, "hour"),
        ("every", 6, "interval"),
        ("every x", 7, "interval"),
        ("every 5", 7, "interval"),
        ("every 5y", 8, "interval"),
        ("every 0s", 7, "interval"),
        ("in 99999999999999999999d", 4, "interval"),
        ("in 3651d", 4, "interval"),
        ("every 1h 5 5m", 10, "interval"),
        ("at", 3, "moment"),
        ("at noon", 4, "moment"),
        ("at 2026-12-01", 4, "moment"),
        ("at 2026-12-01T09:00Z now", 22, "moment"),
        ("ü 0 * * x", 1, "minute"),
        ("0 0 * * ü", 9, "day of week"),
    ] {
        let error = Rule::parse(rule).expect_err(rule);
        assert_eq!((error.column, error.part), (column, part), "{rule:?}: {error}");
    }
    assert!(Rule::parse(&"1,".repeat(200)).is_err());
}

/// The crate reads words that run into each other, blanks within items, more words and other weekdays: none of that may
/// come through.
#[test]
fn what_only_the_crate_would_read_is_refused() {
    for rule in [
        "1* * * * *",
        "*1 0 * * *",
        "0 1 -5 * *",
        "0 1- 5 * *",
        "0 1 ,5 * *",
        "0 1, 5 * *",
        "0 1 /5 * * *",
        "0 0 1 1 1*",
        "0 0 1 january *",
        "0 0 * * Monday",
        "0 0 * * tues",
        "0 0 * * +3",
        "0 0 * * 8-9",
        "0 0 * * */8",
        "0 0 * * 23",
        "0 0 1 1 * 2030 *",
        "@Hourl",
    ] {
        assert!(Rule::parse(rule).is_err(), "{rule}");
    }
    for (rule, same) in [
        ("0 0 * * MON/2", "0 0 * * 1,3,5,7"),
        ("0 0 * * FRI-0", "0 0 * * 5-7"),
        ("0 0 * * 6-00", "0 0 * * 6,7"),
        ("0 0 * * ?/3", "0 0 * * 0,3,6"),
        ("0 0 * JAN/5 *", "0 0 * 1,6,11 *"),
        ("0 0 * 2-apr *", "0 0 * 2,3,4 *"),
        ("0 0 ?/10 * ?", "0 0 */10 * *"),
    ] {
        let from = "2026-03-01T00:00:00Z";
        assert_eq!(slots(rule, from, 20), slots(same, from, 20), "{rule}");
    }
}

#[test]
fn at_the_ends_of_time_no_slot_comes_back() {
    let moments = [i64::MIN, i64::MIN + 1, -1, 0, 8_210_266_876_799_000, i64::MAX - 1_000, i64::MAX - 1, i64::MAX];
    for text in ["every 1h", "every 1s", "in 5m", "* * * * * *", "@yearly", "0 0 29 2 *"] {
        let rule = Rule::parse(text).unwrap();
        for (anchor, after) in moments.iter().flat_map(|anchor| moments.map(|after| (*anchor, after))) {
            for zone in [Tz::UTC, Tz::Europe__Berlin] {
                let next = rule.next(zone, Timestamp(anchor), Timestamp(after));
                assert!(next.is_none_or(|next| next.0 > after), "{text} {anchor} {after} {next:?}");
            }
        }
    }
}
