//! What an answer of the API looks like for people.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};

use super::output::{Table, clean, field, moment, now};

/// Columns of a table whose columns nobody has named.
const COLUMNS_MAX: usize = 6;
/// Characters of a cell of a table.
const CELL_MAX: usize = 60;
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

/// An answer as text: a list as a table, an object by its keys.
pub(crate) fn answer(answer: &Value, columns: &[(&'static str, &'static str)]) -> String {
    render(answer, columns, now())
}

/// Moments are told as distances from `now` if there is one.
fn render(answer: &Value, columns: &[(&'static str, &'static str)], now: Option<DateTime<Utc>>) -> String {
    let list = match answer {
        Value::Array(items) => Some(items),
        Value::Object(keys) => the_list(keys),
        _ => None,
    };
    let Some(items) = list else { return keys_of(answer, now) };
    let mut text = if items.is_empty() { "none\n".to_owned() } else { table(items, columns, now) };
    if let Some(cursor) = answer.get("next_cursor").and_then(Value::as_str) {
        text.push_str(&format!("more: --cursor {}\n", clean(cursor)));
    }
    text
}

/// The list of an answer that is nothing but one, with its size and the cursor of the next page.
fn the_list(keys: &Map<String, Value>) -> Option<&Vec<Value>> {
    let mut lists = keys
        .iter()
        .filter(|(key, _)| !matches!(key.as_str(), "total" | "next_cursor" | "next_before" | "limit" | "offset"));
    match (lists.next()?, lists.next()) {
        ((_, Value::Array(items)), None) => Some(items),
        _ => None,
    }
}

fn table(items: &[Value], columns: &[(&'static str, &'static str)], now: Option<DateTime<Utc>>) -> String {
    let columns: Vec<(String, String)> = if columns.is_empty() {
        found(items)
    } else {
        columns.iter().map(|(heading, pointer)| ((*heading).to_owned(), (*pointer).to_owned())).collect()
    };
    let mut table = Table::with(columns.iter().map(|(heading, _)| heading.clone()).collect());
    for item in items {
        table.push(columns.iter().map(|(_, pointer)| cell(&said(item, pointer), now)));
    }
    table.render()
}

/// The columns of items: the keys that say most, then others. Those that are always empty or only for programs are left out.
fn found(items: &[Value]) -> Vec<(String, String)> {
    let mut keys: BTreeMap<(usize, usize), &str> = BTreeMap::new();
    for (at, (key, value)) in items.iter().filter_map(Value::as_object).flatten().enumerate() {
        let place = FIRST.iter().position(|first| first == key).unwrap_or(FIRST.len());
        let is_plain = !value.is_object() && !value.is_array() && !field(value, "").is_empty();
        if is_plain && !key.ends_with("hash") && !keys.values().any(|known| known == key) {
            keys.insert((place, at), key);
        }
    }
    if keys.is_empty() {
        return vec![("NAME".to_owned(), String::new())];
    }
    let shown = keys.into_values().take(COLUMNS_MAX);
    shown
        .map(|key| (key.replace('_', " ").to_uppercase(), format!("/{}", key.replace('~', "~0").replace('/', "~1"))))
        .collect()
}

fn cell(text: &str, now: Option<DateTime<Utc>>) -> String {
    let text = moment(text.to_owned(), now);
    if text.chars().count() <= CELL_MAX {
        return text;
    }
    text.chars().take(CELL_MAX - 3).chain("...".chars()).collect()
}

/// Keys and values, one in a line; those of an object in it stand behind its key.
fn keys_of(value: &Value, now: Option<DateTime<Utc>>) -> String {
    let Some(keys) = value.as_object() else { return format!("{}\n", clean(&field(value, ""))) };
    let mut table = Table::with(Vec::new());
    for (key, value) in keys {
        match value.as_object() {
            Some(inner) => {
                for (last, value) in inner {
                    row(&mut table, &format!("{key} {last}"), value, now);
                }
            }
            None => row(&mut table, key, value, now),
        }
    }
    table.render()
}

fn row(table: &mut Table, key: &str, value: &Value, now: Option<DateTime<Utc>>) {
    let text = of_key(key, value).unwrap_or_else(|| field(value, ""));
    if !text.is_empty() {
        let key = key.strip_suffix("_usd").unwrap_or(key);
        table.row([&key.replace('_', " "), &moment(text, now)]);
    }
}

/// The text at `pointer` of an item, for people.
fn said(item: &Value, pointer: &str) -> String {
    let key = pointer.rsplit('/').next().unwrap_or_default();
    item.pointer(pointer).and_then(|value| of_key(key, value)).unwrap_or_else(|| field(item, pointer))
}

/// What a value of a key says to people, where that is not itself: sums of money, limits that are none, and yes and no.
fn of_key(key: &str, value: &Value) -> Option<String> {
    match value {
        Value::Bool(is_so) => Some(if *is_so { "yes" } else { "no" }.to_owned()),
        Value::Number(number) if number.as_f64() == Some(0.0) && is_limit(key) => Some("no limit".to_owned()),
        Value::Number(number) if key.ends_with("_usd") => number.as_f64().map(dollars),
        _ => None,
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_list_is_a_table_of_what_says_most() {
        let list = json!({"goals": [{"x": {"y": 1}, "created_at": "2026-11-27T00:00:00.000Z", "title": "a", "id": "1"}], "total": 1, "next_cursor": "c"});
        let now = "2026-11-27T00:03:10Z".parse().ok();
        assert_eq!(render(&list, &[], now), "ID  TITLE  CREATED AT\n1   a      3 min ago\nmore: --cursor c\n");
        assert_eq!(render(&list, &[("Y", "/x/y")], None), "Y\n1\nmore: --cursor c\n");
        assert_eq!(render(&json!([]), &[], None), "none\n");
        assert_eq!(render(&json!(["a"]), &[], None), "NAME\na\n");
    }

    #[test]
    fn an_object_is_shown_by_its_keys() {
        assert_eq!(
            render(&json!({"a_b": 1, "none": null, "list": [1], "of": [2]}), &[], None),
            "a b   1\nlist  1\nof    2\n"
        );
        assert_eq!(render(&json!({"today": {"cost_usd": 0.5, "none": null}}), &[], None), "today cost  $0.50\n");
        let budget = json!({"daily_limit_usd": 0.0, "spent_usd": 0.00251, "enabled": true});
        assert_eq!(render(&budget, &[], None), "daily limit  no limit\nenabled      yes\nspent        $0.00251\n");
        assert_eq!([-0.5, 0.000_000_1, 1.005].map(dollars), ["-$0.50", "$0.00", "$1.00"]);
        assert_eq!(render(&json!({"rate_limited": 0}), &[], None), "rate limited  0\n");
        assert_eq!(render(&json!("x\u{1b}"), &[], None), "x\n");
    }
}
