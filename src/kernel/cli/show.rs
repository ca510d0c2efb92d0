//! What an answer of the API looks like for people.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};

use super::output::{clean, field};
use super::screen::Screen;
use super::table::{Shown, Table};
use super::words::{self, label, said};

/// Columns of a table whose columns nobody has named.
const COLUMNS_MAX: usize = 6;
/// The keys that say most, in the order in which they are shown.
const FIRST: [&str; 16] = [
    "id",
    "name",
    "title",
    "label",
    "kind",
    "type",
    "event_type",
    "status",
    "state",
    "enabled",
    "agent",
    "cron",
    "next_run",
    "message_count",
    "timestamp",
    "created_at",
];
/// Keys that say how far a list goes, beside the list.
const PAGING: [&str; 5] = ["total", "next_cursor", "next_before", "limit", "offset"];

/// Headings and JSON pointers of the columns of a list.
pub(crate) type Columns = &'static [(&'static str, &'static str)];

/// What the items of a list are, and what to do where there are none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Items {
    /// What they are called, such as `schedules`; empty: as the answer says.
    pub(crate) noun: String,
    /// Only some were asked for: there may be others.
    pub(crate) is_narrowed: bool,
    /// How to make the first.
    pub(crate) hint: String,
    /// Which of them are shown; `None`: all.
    pub(crate) rows: Option<IsShown>,
}

/// Is an item of a list shown to people?
pub(crate) type IsShown = fn(&Value) -> bool;

/// An answer for people: a list as a table, an object by its keys.
pub(crate) fn answer(answer: &Value, columns: Columns, items: &Items) -> Shown {
    let now = Screen::of_stdout().now;
    let list = match answer {
        Value::Array(list) => Some(("items".to_owned(), list)),
        Value::Object(keys) => the_list(keys),
        _ => None,
    };
    let Some((noun, list)) = list else { return keys_of(answer, now) };
    let noun = if items.noun.is_empty() { noun } else { items.noun.clone() };
    let noun = if items.is_narrowed { format!("matching {noun}") } else { noun };
    let list: Vec<&Value> = list.iter().filter(|item| items.rows.is_none_or(|is_shown| is_shown(item))).collect();
    let shown = Shown::from(table(&list, columns, &noun, now).hint(items.hint.clone()));
    match answer.get("next_cursor").and_then(Value::as_str) {
        Some(cursor) => Shown { note: Some(format!("There are more: add `--cursor {}`.", clean(cursor))), ..shown },
        None => shown,
    }
}

/// The list of an answer that is nothing but one, with its size and the cursor of the next page.
fn the_list(keys: &Map<String, Value>) -> Option<(String, &Vec<Value>)> {
    let mut lists = keys.iter().filter(|(key, _)| !PAGING.contains(&key.as_str()));
    match (lists.next()?, lists.next()) {
        ((key, Value::Array(list)), None) => Some((label(key), list)),
        _ => None,
    }
}

fn table(list: &[&Value], columns: Columns, noun: &str, now: Option<DateTime<Utc>>) -> Table {
    let columns: Vec<(String, String)> = if columns.is_empty() {
        found(list)
    } else {
        columns.iter().map(|(heading, pointer)| ((*heading).to_owned(), (*pointer).to_owned())).collect()
    };
    let headings = columns.iter().map(|(heading, _)| heading.clone()).collect();
    let mut table = Table::with(noun, headings);
    for item in list {
        table.push(columns.iter().map(|(_, pointer)| said(item, pointer, now)));
    }
    table
}

/// The place of a key among those that say most.
fn rank(key: &str) -> usize {
    FIRST.iter().position(|first| *first == key).unwrap_or(FIRST.len())
}

/// The columns of items: the keys that say most, then others. Those that are always empty or only for programs are left out.
fn found(items: &[&Value]) -> Vec<(String, String)> {
    let mut keys: BTreeMap<(usize, usize), &str> = BTreeMap::new();
    for (at, (key, value)) in items.iter().filter_map(|item| item.as_object()).flatten().enumerate() {
        let place = rank(key);
        let is_plain = !value.is_object() && !value.is_array() && !field(value, "").is_empty();
        if is_plain && !key.ends_with("hash") && !keys.values().any(|known| known == key) {
            keys.insert((place, at), key);
        }
    }
    if keys.is_empty() {
        return vec![("NAME".to_owned(), String::new())];
    }
    let shown = keys.into_values().take(COLUMNS_MAX);
    shown.map(|key| (label(key).to_uppercase(), format!("/{}", key.replace('~', "~0").replace('/', "~1")))).collect()
}

/// Keys and values, one in a line; those of an object in it stand behind its key, and lists of objects are tables below.
fn keys_of(answer: &Value, now: Option<DateTime<Utc>>) -> Shown {
    let Some(keys) = answer.as_object() else { return format!("{}\n", field(answer, "")).into() };
    let mut keys: Vec<(&String, &Value)> = keys.iter().collect();
    keys.sort_by_key(|(key, _)| rank(key));
    let mut table = Table::pairs();
    let mut below = Vec::new();
    for (key, value) in keys {
        match value {
            // The same id by a longer name, as in `task_id`.
            Value::String(_) if key.ends_with("_id") && answer["id"] == *value => {}
            Value::Object(inner) if are_counts(inner) => row(&mut table, &label(key), counts(inner)),
            Value::Object(inner) => {
                for (last, value) in inner {
                    row(&mut table, &format!("{} {}", label(key), label(last)), words::of(last, value, now));
                }
            }
            Value::Array(list) if list.iter().any(Value::is_object) => below.push((label(key), list)),
            _ => row(&mut table, &label(key), words::of(key, value, now)),
        }
    }
    let shown = if table.is_empty() { Shown::default() } else { table.into() };
    below.into_iter().fold(shown, |shown, (name, list)| {
        let gap = if shown.text.is_empty() { "" } else { "\n" };
        let list: Vec<&Value> = list.iter().collect();
        shown.and(format!("{gap}{name}:\n")).and(self::table(&list, &[], &name, now))
    })
}

/// Is it how often each of several things happened?
fn are_counts(keys: &Map<String, Value>) -> bool {
    keys.len() > 1 && keys.iter().all(|(key, value)| value.is_u64() && words::label(key) == key.replace('_', " "))
}

/// What happened, and how often: `3 fired, 1 failed`.
fn counts(keys: &Map<String, Value>) -> String {
    let happened = keys.iter().filter(|(_, count)| count.as_u64() != Some(0));
    let counts: Vec<String> = happened.map(|(key, count)| format!("{count} {}", label(key))).collect();
    if counts.is_empty() { "none".to_owned() } else { counts.join(", ") }
}

fn row(table: &mut Table, name: &str, text: String) {
    if !text.is_empty() {
        table.row([name, &text]);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(value: &Value, columns: Columns) -> String {
        let Shown { text, note } = answer(value, columns, &Items::default());
        text + &note.map(|note| format!("({note})")).unwrap_or_default()
    }

    #[test]
    fn a_list_is_a_table_of_what_says_most() {
        let list = json!({"goals": [{"x": {"y": 1}, "created_at": "2026-11-27T00:00:00.000Z", "title": "a", "id": "i", "cost_usd": 0.5}], "total": 1, "next_cursor": "c"});
        let row = "ID  TITLE  CREATED AT                 COST\ni   a      2026-11-27T00:00:00.000Z  $0.50\n";
        assert_eq!(shown(&list, &[]), format!("{row}(There are more: add `--cursor c`.)"));
        assert_eq!(shown(&list, &[("Y", "/x/y")]), "Y\n1\n(There are more: add `--cursor c`.)");
        assert_eq!(
            (shown(&json!([]), &[]), shown(&json!({"open_tasks": []}), &[])),
            ("(No items.)".into(), "(No open tasks.)".into())
        );
        let schedules =
            Items { noun: "schedules".to_owned(), hint: "Create one.".to_owned(), is_narrowed: false, rows: None };
        assert_eq!(answer(&json!([]), &[], &schedules).note.as_deref(), Some("No schedules. Create one."));
        let narrowed = Items { is_narrowed: true, ..Items::default() };
        assert_eq!(answer(&json!({"goals": []}), &[], &narrowed).note.as_deref(), Some("No matching goals."));
        assert_eq!(shown(&json!(["a"]), &[]), "NAME\na\n");
        let even = Items { rows: Some(|item| item["n"].as_u64().is_some_and(|n| n % 2 == 0)), ..Items::default() };
        assert_eq!(answer(&json!([{ "n": 1 }, { "n": 2 }]), &[("N", "/n")], &even).text, "N\n2\n");
        let now = "2026-11-27T00:03:10Z".parse().ok();
        let goals: Vec<&Value> = list["goals"].as_array().unwrap().iter().collect();
        let table = table(&goals, &[("CREATED", "/created_at")], "goals", now);
        assert_eq!(table.render(), "CREATED\n3 min ago\n");
    }

    #[test]
    fn an_object_is_shown_by_its_keys() {
        let value = json!({"a_b": 1, "none": null, "list": [1], "of": [2]});
        assert_eq!(shown(&value, &[]), "a b   1\nlist  1\nof    2\n");
        assert_eq!(shown(&json!({"today": {"cost_usd": 0.5, "none": null}}), &[]), "today cost  $0.50\n");
        let budget = json!({"daily_limit_usd": 0.0, "spent_usd": 0.00251, "enabled": true});
        assert_eq!(shown(&budget, &[]), "enabled      yes\ndaily limit  no limit\nspent        $0.00251\n");
        assert_eq!(shown(&json!("x\u{1b}"), &[]), "x\n");
    }

    #[test]
    fn counters_are_one_line_and_ids_are_said_once() {
        let schedule = json!({"id": "1", "schedule_id": "1", "agent_id": "2", "outcomes": {"fired": 3, "failed": 0, "over_budget": 1}, "of": {"a": 0, "b": 0}});
        assert_eq!(
            shown(&schedule, &[]),
            "id        1\nagent id  2\nof        none\noutcomes  3 fired, 1 over budget\n"
        );
        assert_eq!(shown(&json!({"today": {"calls": 2, "cost_usd": 1}}), &[]), "today calls  2\ntoday cost   $1.00\n");
    }

    #[test]
    fn lists_in_an_object_are_tables_below() {
        let workflow = json!({"name": "nightly", "steps": [{"name": "draft", "agent": "scout"}], "tags": ["a"]});
        assert_eq!(shown(&workflow, &[]), "name  nightly\ntags  a\n\nsteps:\nNAME   AGENT\ndraft  scout\n");
        assert_eq!(shown(&json!({"steps": [{"name": "a"}], "n": null, "m": 1}), &[]), "m  1\n\nsteps:\nNAME\na\n");
    }
}
