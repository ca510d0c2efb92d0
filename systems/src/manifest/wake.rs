//! `schedule`, `[autonomous]` and `max_iterations`: when an agent acts by itself, and how much one turn of it does.

use agentsvc_components::kernel::limit;
use agentsvc_components::manifest::{Autonomous, Manifest, ManifestTrigger, QuietHours, Wake};
use serde_json::json;
use toml::de::DeValue;
use toml_edit::{InlineTable, Item, Table as EditTable, Value as EditValue};

use super::error::Error;
use super::read::{Path, Table, mismatch, wrong};
use crate::event::{parse_pattern, render_pattern};

/// Seconds between two turns of `continuous` when the manifest does not say.
const CHECK_INTERVAL_SECS: u32 = 300;
/// Seconds between two turns of `continuous` at least: each turn costs money.
const CHECK_INTERVAL_SECS_MIN: u32 = 10;
/// Turns that may fail one after the other where `[autonomous] max_restarts` does not say otherwise.
const FAILURES_MAX: u32 = 10;
/// Conditions of `proactive`: each becomes a trigger.
const CONDITIONS_MAX: usize = limit::MANIFEST_TRIGGERS_MAX;
/// What such a trigger says to the agent.
const PROACTIVE: &str = "An event that you wait for has happened. Decide what it asks of you, do it, and report briefly. \
    Do nothing if it does not concern you.\n\n{{event}}";

/// Reads `schedule`.
pub(super) fn schedule(root: &Table<'_>) -> Result<Wake, Error> {
    let Some(value) = root.entries.get("schedule") else { return Ok(Wake::Reactive) };
    let path = Path::Key(root.path, "schedule");
    match value.get_ref() {
        DeValue::String(word) => match word.as_ref() {
            "reactive" | "" => Ok(Wake::Reactive),
            "continuous" => Ok(Wake::Continuous(CHECK_INTERVAL_SECS)),
            _ => Err(root.wrong("schedule", FORMS)),
        },
        DeValue::Table(entries) => of_table(&Table { text: root.text, path: &path, entries }),
        _ => Err(mismatch(root.text, &path, value, "a string or a table")),
    }
}

const FORMS: &str = "expected `reactive`, or a table with one of `continuous`, `periodic` and `proactive`";

fn of_table(table: &Table<'_>) -> Result<Wake, Error> {
    let mut known = ["continuous", "periodic", "proactive"].into_iter().filter(|key| table.entries.contains_key(*key));
    match (known.next(), known.next()) {
        (None, _) => Ok(Wake::Reactive),
        (Some(_), Some(second)) => Err(table.wrong(second, FORMS)),
        (Some("continuous"), None) => table.table("continuous", |own| {
            let secs = own.whole_number("check_interval_secs")?.unwrap_or(CHECK_INTERVAL_SECS);
            own.must("check_interval_secs", Some(interval(secs, CHECK_INTERVAL_SECS_MIN)))?;
            Ok(Wake::Continuous(secs))
        }),
        (Some("periodic"), None) => table.table("periodic", |own| match own.string("cron")? {
            Some(rule) if !rule.trim().is_empty() && rule.len() <= limit::SCHEDULE_RULE_BYTES_MAX => {
                Ok(Wake::Periodic(rule.into()))
            }
            _ => Err(own.wrong("cron", "expected a cron expression or an interval, such as `every 5m`")),
        }),
        (Some(_), None) => table.table("proactive", |own| {
            let conditions = own.items("conditions", |path, item| match item.get_ref() {
                DeValue::String(text) if has_key_pattern(text) => Err(wrong(table.text, path, item, NO_KEY_PATTERN)),
                DeValue::String(text) if condition(text).is_some() => Ok(Box::from(text.as_ref())),
                DeValue::String(_) => Err(wrong(table.text, path, item, CONDITION)),
                _ => Err(mismatch(table.text, path, item, "a string")),
            })?;
            if conditions.len() > CONDITIONS_MAX {
                let text = format!("{} conditions; the limit is {CONDITIONS_MAX}", conditions.len());
                return Err(own.wrong("conditions", text));
            }
            Ok(Wake::Proactive(conditions))
        }),
    }
}

const CONDITION: &str = "expected `all`, `event:<kind>`, `memory:*`, or up to 256 bytes of text that an event has";
const NO_KEY_PATTERN: &str = "events of memory have no filter for keys; expected `memory:*`, which is every change of \
    an entry, or `event:memory_updated:<agent name pattern>`";

/// The word of a condition, and what stands behind it.
fn parts(text: &str) -> (&str, &str) {
    text.split_once(':').unwrap_or((text, ""))
}

/// Does it ask for changes of some keys of memory only? No trigger can tell keys apart: it would fire for all.
fn has_key_pattern(text: &str) -> bool {
    let (word, rest) = parts(text.trim());
    word == "memory" && !matches!(rest, "" | "*")
}

/// The pattern, as it is stored, of a condition: `all`; `event:<kind>` or `event:<kind>:<filter>`; `memory:*`; else a text
/// that the event has.
fn condition(text: &str) -> Option<Box<str>> {
    let text = text.trim();
    let (word, rest) = parts(text);
    let pattern = match word {
        "all" if rest.is_empty() => json!({ "all": {} }),
        "event" => {
            let (kind, filter) = rest.split_once(':').unwrap_or((rest, ""));
            let kind = if kind == "memory_update" { "memory_updated" } else { kind };
            match filter {
                "" => json!({ kind: {} }),
                filter => {
                    let keys = ["name_pattern", "event_type", "assignee_match"];
                    let mut found = keys.into_iter().map(|key| json!({ kind: { key: filter } }));
                    found.find(|pattern| parse_pattern(pattern).is_ok())?
                }
            }
        }
        "memory" if has_key_pattern(text) => return None,
        "memory" => json!({ "memory_updated": {} }),
        _ => json!({ "content_match": { "substring": text } }),
    };
    parse_pattern(&pattern).ok().map(|pattern| render_pattern(&pattern).to_string().into())
}

/// The triggers of a manifest with those that `proactive` stands for.
pub(crate) fn triggers(manifest: &Manifest) -> Vec<ManifestTrigger> {
    let mut all = manifest.triggers.clone();
    if let Wake::Proactive(conditions) = &manifest.wake {
        let patterns = conditions.iter().filter_map(|text| condition(text));
        all.extend(patterns.map(|pattern| ManifestTrigger {
            pattern,
            prompt_template: PROACTIVE.into(),
            enabled: true,
            max_fires: 0,
            cooldown_secs: None,
            session_mode: None,
            target_agent_id: None,
        }));
    }
    all
}

/// A schedule that a manifest asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ManifestWake {
    /// What it is called.
    pub(crate) name: &'static str,
    /// The key of the manifest that its rule is from.
    pub(crate) field: &'static str,
    /// Its rule: cron or interval syntax.
    pub(crate) rule: Box<str>,
    /// What the agent is told.
    pub(crate) prompt: &'static str,
    /// Does the newest slot fire that was missed?
    pub(crate) catches_up: bool,
    /// Time of the day in which it has no slots.
    pub(crate) quiet: Option<QuietHours>,
    /// Turns that may fail one after the other.
    pub(crate) failures_max: Option<u32>,
}

/// What the agent is told at each turn of `schedule` and `[autonomous]`.
const BY_ITSELF: &str = "This turn was started by your schedule, not by a message. Read your stored state, do what is due, \
    store what you did, and stop when nothing is due.";

/// The schedules that a manifest asks for.
pub(crate) fn schedules(manifest: &Manifest) -> Vec<ManifestWake> {
    let every = |secs: u32| format!("every {secs}s").into_boxed_str();
    let own = manifest.autonomous.as_ref();
    let quiet = own.and_then(|own| own.quiet_hours);
    let failures_max = Some(own.map_or(FAILURES_MAX, |own| own.max_restarts));
    let wake = |name, field, rule, catches_up| ManifestWake {
        name,
        field,
        rule,
        prompt: BY_ITSELF,
        catches_up,
        quiet,
        failures_max,
    };
    let mut all = Vec::new();
    match &manifest.wake {
        Wake::Reactive | Wake::Proactive(_) => {}
        Wake::Continuous(secs) => {
            all.push(wake("schedule", "schedule.continuous.check_interval_secs", every(*secs), false));
        }
        Wake::Periodic(rule) => all.push(wake("schedule", "schedule.periodic.cron", rule.clone(), true)),
    }
    if let Some(own) = own {
        let rule = every(own.heartbeat_interval_secs);
        all.push(wake("autonomous", "autonomous.heartbeat_interval_secs", rule, false));
    }
    all
}

fn interval(secs: u32, least: u32) -> Result<(), String> {
    if (u64::from(least)..=limit::SCHEDULE_SPAN_SECS_MAX).contains(&u64::from(secs)) {
        Ok(())
    } else {
        Err(format!("expected {least} to {} seconds", limit::SCHEDULE_SPAN_SECS_MAX))
    }
}

/// Reads `[autonomous]`; `enabled = false` is as if it were not there.
pub(super) fn autonomous(root: &Table<'_>) -> Result<Option<Autonomous>, Error> {
    if !root.entries.contains_key("autonomous") {
        return Ok(None);
    }
    root.table("autonomous", |own| {
        let default = Autonomous::default();
        let heartbeat = own.whole_number("heartbeat_interval_secs")?.unwrap_or(default.heartbeat_interval_secs);
        own.must("heartbeat_interval_secs", Some(interval(heartbeat, 1)))?;
        let quiet = own.string("quiet_hours")?.map(str::trim).filter(|text| !text.is_empty() && *text != "none");
        let quiet = quiet.map(|text| quiet_hours(text).ok_or_else(|| own.wrong("quiet_hours", QUIET_HOURS)));
        let read = Autonomous {
            heartbeat_interval_secs: heartbeat,
            max_iterations: own.whole_number("max_iterations")?.unwrap_or(default.max_iterations),
            quiet_hours: quiet.transpose()?,
            max_restarts: own.whole_number("max_restarts")?.unwrap_or(default.max_restarts),
        };
        Ok((own.boolean("enabled")? != Some(false)).then_some(read))
    })
}

const QUIET_HOURS: &str = "expected a span of the day in UTC, such as `22:00-07:00`";

/// `22:00-07:00`, `22-7`, or two daily cron expressions with `-` or `to` between them.
fn quiet_hours(text: &str) -> Option<QuietHours> {
    let (from, to) = text.split_once(" to ").or_else(|| text.split_once('-'))?;
    let (from, to) = (minute(from.trim())?, minute(to.trim())?);
    (from != to).then_some(QuietHours { from, to })
}

/// A minute of the day.
fn minute(text: &str) -> Option<u16> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let (hour, minute) = match words[..] {
        [minute, hour, "*", "*", "*"] => (hour, minute),
        [one] => one.split_once(':').unwrap_or((one, "0")),
        _ => return None,
    };
    let (hour, minute): (u16, u16) = (hour.parse().ok()?, minute.parse().ok()?);
    (hour < 24 && minute < 60).then_some(hour * 60 + minute)
}

fn quiet_text(quiet: QuietHours) -> String {
    let QuietHours { from, to } = quiet;
    format!("{:02}:{:02}-{:02}:{:02}", from / 60, from % 60, to / 60, to % 60)
}

/// Writes what differs back into the text.
pub(super) fn merge(root: &mut EditTable, was: &Manifest, now: &Manifest) {
    if was.wake != now.wake {
        match written(&now.wake) {
            Some(value) => root.insert("schedule", Item::Value(value)),
            None => root.remove("schedule"),
        };
    }
    if was.autonomous != now.autonomous {
        match &now.autonomous {
            Some(own) => root.insert("autonomous", Item::Value(autonomous_value(own))),
            None => root.remove("autonomous"),
        };
    }
    if was.max_iterations != now.max_iterations {
        match now.max_iterations {
            Some(most) => root.insert("max_iterations", Item::Value(i64::from(most).into())),
            None => root.remove("max_iterations"),
        };
    }
}

fn table<const N: usize>(keys: [(&str, EditValue); N]) -> EditValue {
    EditValue::InlineTable(InlineTable::from_iter(keys))
}

fn written(wake: &Wake) -> Option<EditValue> {
    let (key, own) = match wake {
        Wake::Reactive => return None,
        Wake::Continuous(secs) => ("continuous", table([("check_interval_secs", i64::from(*secs).into())])),
        Wake::Periodic(rule) => ("periodic", table([("cron", (&**rule).into())])),
        Wake::Proactive(conditions) => {
            let list: toml_edit::Array = conditions.iter().map(|text| &**text).collect();
            ("proactive", table([("conditions", EditValue::Array(list))]))
        }
    };
    Some(table([(key, own)]))
}

fn autonomous_value(own: &Autonomous) -> EditValue {
    let whole = |number: u32| EditValue::from(i64::from(number));
    let mut keys = vec![
        ("heartbeat_interval_secs", whole(own.heartbeat_interval_secs)),
        ("max_iterations", whole(own.max_iterations)),
        ("max_restarts", whole(own.max_restarts)),
    ];
    keys.extend(own.quiet_hours.map(|quiet| ("quiet_hours", quiet_text(quiet).into())));
    EditValue::InlineTable(InlineTable::from_iter(keys))
}

#[cfg(test)]
mod tests {
    use super::super::{parse, render};
    use super::*;

    fn read(keys: &str) -> Result<Manifest, String> {
        parse(&format!("name = 'x'\n{keys}")).map(|parsed| parsed.manifest).map_err(|error| error.to_string())
    }

    #[test]
    fn the_forms_of_a_schedule_are_read() {
        for (keys, wake) in [
            ("", Wake::Reactive),
            ("schedule = 'reactive'", Wake::Reactive),
            ("[schedule]", Wake::Reactive),
            ("[schedule]\ncontinuous = {}", Wake::Continuous(300)),
            ("schedule = { continuous = { check_interval_secs = 120 } }", Wake::Continuous(120)),
            ("[schedule]\nperiodic = { cron = 'every 5m' }", Wake::Periodic("every 5m".into())),
            ("[schedule.proactive]\nconditions = ['all', 'sale']", Wake::Proactive(vec!["all".into(), "sale".into()])),
        ] {
            assert_eq!(read(keys).unwrap().wake, wake, "{keys}");
        }
        for (keys, expected) in [
            ("schedule = 'often'", "line 2: `schedule`: expected `reactive`, or a table"),
            ("schedule = 5", "`schedule`: expected a string or a table, found a whole number"),
            ("[schedule]\ncontinuous = {}\nperiodic = {}", "`schedule.periodic`: expected `reactive`"),
            (
                "[schedule.continuous]\ncheck_interval_secs = 9",
                "`schedule.continuous.check_interval_secs`: expected 10 to",
            ),
            ("[schedule]\nperiodic = { cron = ' ' }", "`schedule.periodic.cron`: expected a cron expression"),
            (
                "[schedule.proactive]\nconditions = ['event:birth']",
                "`schedule.proactive.conditions[0]`: expected `all`",
            ),
            (
                "[schedule.proactive]\nconditions = ['memory:orders.*']",
                "`schedule.proactive.conditions[0]`: events of memory have no filter for keys",
            ),
        ] {
            let error = read(keys).unwrap_err();
            assert!(error.contains(expected), "{keys}: {error}");
        }
    }

    #[test]
    fn an_autonomous_table_is_read_and_may_be_off() {
        assert_eq!(read("[autonomous]").unwrap().autonomous, Some(Autonomous::default()));
        assert_eq!(read("[autonomous]\nenabled = false").unwrap().autonomous, None);
        for text in ["22:00-07:30", "22 - 7:30", "0 22 * * * to 30 7 * * *"] {
            let own = read(&format!("[autonomous]\nquiet_hours = '{text}'\nmax_restarts = 2")).unwrap().autonomous;
            let own = own.unwrap();
            let quiet = QuietHours { from: 22 * 60, to: 7 * 60 + 30 };
            assert_eq!((own.quiet_hours, own.max_restarts), (Some(quiet), 2), "{text}");
        }
        for (keys, expected) in [
            ("quiet_hours = 'at night'", "`autonomous.quiet_hours`: expected a span of the day"),
            ("quiet_hours = '7-7'", "`autonomous.quiet_hours`: expected a span of the day"),
            ("heartbeat_interval_secs = 0", "`autonomous.heartbeat_interval_secs`: expected 1"),
            ("max_iterations = 'x'", "`autonomous.max_iterations`: expected a whole number"),
        ] {
            let error = read(&format!("[autonomous]\n{keys}")).unwrap_err();
            assert!(error.contains(expected), "{keys}: {error}");
        }
    }

    #[test]
    fn a_cap_alone_wakes_no_agent() {
        let manifest = read("max_iterations = 7").unwrap();
        assert_eq!(
            (manifest.iterations_max(), &manifest.wake, &manifest.autonomous),
            (Some(7), &Wake::Reactive, &None)
        );
        assert_eq!(read("[autonomous]").unwrap().iterations_max(), Some(50));
        assert_eq!(read("").unwrap().iterations_max(), None);
    }

    #[test]
    fn every_schedule_stops_after_some_failures() {
        let most = |keys: &str| -> Vec<_> {
            schedules(&read(keys).unwrap()).into_iter().map(|wake| (wake.name, wake.failures_max)).collect()
        };
        assert_eq!(most("schedule = 'continuous'"), [("schedule", Some(10))]);
        assert_eq!(most("[schedule]\nperiodic = { cron = 'every 5m' }"), [("schedule", Some(10))]);
        let both = "schedule = 'continuous'\n[autonomous]\nmax_restarts = 2";
        assert_eq!(most(both), [("schedule", Some(2)), ("autonomous", Some(2))]);
    }

    #[test]
    fn conditions_become_triggers() {
        let keys = "[schedule.proactive]\nconditions = ['all', 'event:agent_spawned:scout*', 'memory:*', 'big sale']";
        let made = triggers(&read(keys).unwrap());
        let patterns: Vec<&str> = made.iter().map(|trigger| &*trigger.pattern).collect();
        let named = r#"{"agent_spawned":{"name_pattern":"scout*"}}"#;
        let content = r#"{"content_match":{"substring":"big sale"}}"#;
        assert_eq!(patterns, [r#"{"all":{}}"#, named, r#"{"memory_updated":{}}"#, content]);
        assert!(triggers(&read("").unwrap()).is_empty());
    }

    #[test]
    fn the_keys_are_written_back() {
        let texts = [
            "",
            "max_iterations = 3",
            "schedule = { continuous = { check_interval_secs = 90 } }",
            "[schedule]\nperiodic = { cron = '0 9 * * *' }",
            "[schedule.proactive]\nconditions = ['all']",
            "[autonomous]\nquiet_hours = '1:05-2'\nheartbeat_interval_secs = 60",
        ];
        for was in texts {
            for now in texts {
                let (text, now) = (format!("name = 'x'\n{was}"), read(now).unwrap());
                let written = render(&text, "x", &now);
                assert_eq!(parse(&written).unwrap().manifest, now, "{written}");
            }
        }
    }
}
