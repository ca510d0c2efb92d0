//! Slots across changes of the clocks: a table for five zones, and a walk minute by minute with croner as the judge of
//! what fits.

use std::str::FromStr;

use chrono::{DateTime, NaiveDateTime, TimeDelta};
use proptest::prelude::*;

use super::zone::{Place, local, place};
use super::*;

/// A moment by the zone's clock, with its offset: `2026-03-08 03:00 -0400`.
fn shown(zone: Tz, slot: Timestamp) -> String {
    let moment = DateTime::from_timestamp_millis(slot.0).expect("a moment").with_timezone(&zone);
    moment.format("%Y-%m-%d %H:%M %z").to_string()
}

/// The zone, the rule, midnight of the day before (UTC), and the slots.
const TABLE: &[(&str, &str, &str, &[&str])] = &[
    // New York, 2026-03-08: 02:00 to 03:00 does not exist.
    ("America/New_York", "30 2 * * *", "2026-03-07T12:00:00Z", &["2026-03-08 03:00 -0400", "2026-03-09 02:30 -0400"]),
    (
        "America/New_York",
        "*/20 2,3 * * *",
        "2026-03-08T05:00:00Z",
        &["2026-03-08 03:00 -0400", "2026-03-08 03:20 -0400", "2026-03-08 03:40 -0400", "2026-03-09 02:00 -0400"],
    ),
    (
        "America/New_York",
        "30 * * * *",
        "2026-03-08T06:00:00Z",
        &["2026-03-08 01:30 -0500", "2026-03-08 03:30 -0400", "2026-03-08 04:30 -0400"],
    ),
    (
        "America/New_York",
        "0 */2 * * *",
        "2026-03-08T04:00:00Z",
        &["2026-03-08 00:00 -0500", "2026-03-08 04:00 -0400", "2026-03-08 06:00 -0400"],
    ),
    // New York, 2026-11-01: 01:00 to 02:00 comes twice.
    ("America/New_York", "30 1 * * *", "2026-10-31T12:00:00Z", &["2026-11-01 01:30 -0400", "2026-11-02 01:30 -0500"]),
    (
        "America/New_York",
        "30 * * * *",
        "2026-11-01T04:45:00Z",
        &["2026-11-01 01:30 -0400", "2026-11-01 01:30 -0500", "2026-11-01 02:30 -0500"],
    ),
    ("America/New_York", "* 1 * * *", "2026-11-01T05:58:00Z", &["2026-11-01 01:59 -0400", "2026-11-02 01:00 -0500"]),
    // Berlin, 2026-03-29 and 2026-10-25.
    ("Europe/Berlin", "0 2 * * *", "2026-03-28T12:00:00Z", &["2026-03-29 03:00 +0200", "2026-03-30 02:00 +0200"]),
    ("Europe/Berlin", "0 2 * * *", "2026-10-24T12:00:00Z", &["2026-10-25 02:00 +0200", "2026-10-26 02:00 +0100"]),
    (
        "Europe/Berlin",
        "0 * * * *",
        "2026-10-24T23:30:00Z",
        &["2026-10-25 02:00 +0200", "2026-10-25 02:00 +0100", "2026-10-25 03:00 +0100"],
    ),
    ("Europe/Berlin", "0 3 29 3 *", "2026-03-01T00:00:00Z", &["2026-03-29 03:00 +0200", "2027-03-29 03:00 +0200"]),
    // Lord Howe changes by half an hour: 2026-10-04 02:00 to 02:30, 2026-04-05 01:30 to 02:00.
    (
        "Australia/Lord_Howe",
        "15 2 * * *",
        "2026-10-02T20:00:00Z",
        &["2026-10-04 02:30 +1100", "2026-10-05 02:15 +1100"],
    ),
    (
        "Australia/Lord_Howe",
        "*/15 * * * *",
        "2026-10-03T15:10:00Z",
        &["2026-10-04 01:45 +1030", "2026-10-04 02:30 +1100", "2026-10-04 02:45 +1100"],
    ),
    (
        "Australia/Lord_Howe",
        "45 1 * * *",
        "2026-04-04T02:00:00Z",
        &["2026-04-05 01:45 +1100", "2026-04-06 01:45 +1030"],
    ),
    (
        "Australia/Lord_Howe",
        "*/15 * * * *",
        "2026-04-04T14:25:00Z",
        &[
            "2026-04-05 01:30 +1100",
            "2026-04-05 01:45 +1100",
            "2026-04-05 01:30 +1030",
            "2026-04-05 01:45 +1030",
            "2026-04-05 02:00 +1030",
        ],
    ),
    // São Paulo had its gap at midnight: 2018-11-04 began at 01:00. 2018-02-17 had 23:00 twice.
    ("America/Sao_Paulo", "0 0 * * *", "2018-11-03T12:00:00Z", &["2018-11-04 01:00 -0200", "2018-11-05 00:00 -0200"]),
    ("America/Sao_Paulo", "@daily", "2018-11-03T12:00:00Z", &["2018-11-04 01:00 -0200", "2018-11-05 00:00 -0200"]),
    ("America/Sao_Paulo", "30 23 * * *", "2018-02-17T12:00:00Z", &["2018-02-17 23:30 -0200", "2018-02-18 23:30 -0300"]),
    ("America/Sao_Paulo", "0 0 * * *", "2026-11-03T12:00:00Z", &["2026-11-04 00:00 -0300", "2026-11-05 00:00 -0300"]),
    // Casablanca goes back for Ramadan: 2026-02-15 03:00 becomes 02:00, 2026-03-22 02:00 becomes 03:00.
    ("Africa/Casablanca", "30 2 * * *", "2026-02-14T12:00:00Z", &["2026-02-15 02:30 +0100", "2026-02-16 02:30 +0000"]),
    ("Africa/Casablanca", "30 2 * * *", "2026-03-21T12:00:00Z", &["2026-03-22 03:00 +0100", "2026-03-23 02:30 +0100"]),
    // Kolkata never changes; its offset has half an hour.
    ("Asia/Kolkata", "0 9 * * MON", "2026-03-01T00:00:00Z", &["2026-03-02 09:00 +0530", "2026-03-09 09:00 +0530"]),
    // Samoa left out 2011-12-30.
    ("Pacific/Apia", "0 9 * * *", "2011-12-29T12:00:00Z", &["2011-12-29 09:00 -1000", "2011-12-31 00:00 +1400"]),
    ("Pacific/Apia", "0 */12 * * *", "2011-12-29T23:00:00Z", &["2011-12-31 00:00 +1400", "2011-12-31 12:00 +1400"]),
];

#[test]
fn the_table_of_zones() {
    for (zone, rule, after, expected) in TABLE {
        let tz = Tz::from_str(zone).expect("a zone");
        let after = Timestamp(DateTime::parse_from_rfc3339(after).expect("a moment").timestamp_millis());
        let slots = Rule::parse(rule).expect(rule).preview(tz, after, after, expected.len());
        let slots: Vec<String> = slots.into_iter().map(|slot| shown(tz, slot)).collect();
        assert_eq!(slots, *expected, "{rule} in {zone}");
    }
}

#[test]
fn a_rare_job_with_a_wild_hour_passes_many_changes() {
    let tz = Tz::Europe__Berlin;
    let rule = Rule::parse("0 */6 29 2 *").unwrap();
    let after = Timestamp(DateTime::parse_from_rfc3339("2096-03-01T00:00:00Z").unwrap().timestamp_millis());
    assert_eq!(shown(tz, rule.next(tz, after, after).unwrap()), "2104-02-29 00:00 +0100");
}

const ZONES: &[Tz] = &[
    Tz::America__New_York,
    Tz::Europe__Berlin,
    Tz::Australia__Lord_Howe,
    Tz::America__Sao_Paulo,
    Tz::Africa__Casablanca,
    Tz::Pacific__Apia,
    Tz::Asia__Kolkata,
];

/// Minutes of one walk.
const WALK_MINUTES: i64 = 4 * 24 * 60;

fn fits(cron: &croner::Cron, time: NaiveDateTime) -> bool {
    cron.is_time_matching(&time.and_utc()).expect("croner can tell")
}

/// The slots of four days by walking every minute of real time.
fn walked_in_real_time(cron: &croner::Cron, zone: Tz, from: i64) -> Vec<i64> {
    (1..=WALK_MINUTES).map(|minute| from + minute * 60).filter(|at| fits(cron, local(zone, *at))).collect()
}

/// The same by walking every minute of the wall clock.
fn walked_by_the_wall_clock(cron: &croner::Cron, zone: Tz, from: i64) -> Vec<i64> {
    let begin = local(zone, from) - TimeDelta::days(2);
    let minutes = (0..WALK_MINUTES + 4 * 24 * 60).map(|minute| begin + TimeDelta::minutes(minute));
    let slots = minutes.filter(|time| fits(cron, *time)).map(|time| match place(zone, time) {
        Place::Once(slot) | Place::Twice(slot, _) | Place::Never(slot) => slot,
    });
    let end = from + WALK_MINUTES * 60;
    let slots: std::collections::BTreeSet<i64> = slots.filter(|slot| *slot > from && *slot <= end).collect();
    slots.into_iter().collect()
}

fn found(rule: &Rule, zone: Tz, from: i64) -> Vec<i64> {
    let mut slots = Vec::new();
    let mut after = Timestamp(from * 1_000);
    while let Some(slot) = rule.next(zone, after, after).filter(|slot| slot.0 <= (from + WALK_MINUTES * 60) * 1_000) {
        slots.push(slot.0 / 1_000);
        after = slot;
    }
    slots
}

fn minutes() -> impl Strategy<Value = String> {
    prop_oneof![(0..60_u32).prop_map(|m| m.to_string()), Just("*/10".to_owned()), Just("15,45".to_owned())]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    /// Half of the walks begin shortly before a change of some year.
    #[test]
    fn slots_are_those_of_a_walk_minute_by_minute(
        zone in proptest::sample::select(ZONES),
        year in 2010_i64..2030,
        season in proptest::sample::select(&[60_i64, 80, 86, 92, 270, 276, 297, 304, 308, 362][..]),
        hour in 0_i64..24,
        minute in minutes(),
        fixed in proptest::collection::btree_set(0_u32..5, 1..4),
        step in 1_u32..5,
    ) {
        let from = (year - 1970) * 31_556_952 / 60 * 60 + season * 86_400 + hour * 3_600;
        let hours: Vec<String> = fixed.iter().map(u32::to_string).collect();
        let by_numbers = format!("{minute} {} * * *", hours.join(","));
        let cron = croner::Cron::from_str(&by_numbers).expect("croner reads it");
        let expected = walked_by_the_wall_clock(&cron, zone, from);
        prop_assert_eq!(found(&Rule::parse(&by_numbers).expect("ours"), zone, from), expected, "{} {}", zone, by_numbers);
        let stepped = format!("{minute} */{step} * * *");
        let cron = croner::Cron::from_str(&stepped).expect("croner reads it");
        let expected = walked_in_real_time(&cron, zone, from);
        prop_assert_eq!(found(&Rule::parse(&stepped).expect("ours"), zone, from), expected, "{} {}", zone, stepped);
    }
}
