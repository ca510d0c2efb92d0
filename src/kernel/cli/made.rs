//! What is said of an item that was created or changed: one sentence with what comes next.

use chrono::{DateTime, NaiveDate, Utc};
use chrono_tz::Tz;
use serde_json::Value;

use super::output::{clean, field};

/// The keys of an answer that name the new item, in the order of their rank.
const NAMES: [&str; 4] = ["name", "title", "label", "event_type"];

/// `Created schedule news; next run tomorrow 08:00 Europe/Berlin`. `typed` is what a person called the item, which else goes by
/// the name or the id in `answer`; `None` if it has neither.
pub(super) fn sentence(
    done: &str,
    noun: &str,
    typed: Option<&str>,
    answer: &Value,
    now: DateTime<Utc>,
) -> Option<String> {
    let named = || NAMES.iter().find_map(|key| answer[*key].as_str()).filter(|name| !name.is_empty());
    let name = match typed.or_else(named) {
        Some(name) => name.to_owned(),
        None => {
            let agent = field(answer, "/agent");
            let of = if agent.is_empty() { String::new() } else { format!(" of {agent}") };
            format!("{}{of}", id_of(answer)?)
        }
    };
    let next = match answer["next_run"].as_str() {
        _ if answer["enabled"] == false => "; disabled".to_owned(),
        Some(next) => format!("; next run {}", run_at(next, answer["timezone"].as_str(), now)),
        None => String::new(),
    };
    Some(format!("{done} {noun} {}{next}\n", clean(&name)))
}

/// The id of what was made: `id`, or that of its kind, such as `trigger_id`.
fn id_of(answer: &Value) -> Option<&str> {
    let keys = answer.as_object()?;
    let is_own = |key: &str| key == "id" || key.ends_with("_id") && key != "agent_id";
    keys.iter().find(|(key, _)| is_own(key)).and_then(|(_, id)| id.as_str())
}

/// A moment in its time zone: `tomorrow 08:00 Europe/Berlin`. A text that is no moment stays.
fn run_at(text: &str, zone: Option<&str>, now: DateTime<Utc>) -> String {
    let Ok(at) = DateTime::parse_from_rfc3339(text) else { return text.to_owned() };
    let zone: Tz = zone.and_then(|zone| zone.parse().ok()).unwrap_or(Tz::UTC);
    let (at, now) = (at.with_timezone(&zone), now.with_timezone(&zone));
    format!("{} {} {}", day(at.date_naive(), now.date_naive()), at.format("%H:%M"), zone.name())
}

/// `today`, `tomorrow`, or the day of the week and of the month.
fn day(date: NaiveDate, today: NaiveDate) -> String {
    match date.signed_duration_since(today).num_days() {
        0 => "today".to_owned(),
        1 => "tomorrow".to_owned(),
        _ => date.format("%A, %-d %B").to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn said(typed: Option<&str>, answer: &Value) -> Option<String> {
        sentence("Created", "schedule", typed, answer, "2026-11-27T22:30:00Z".parse().unwrap())
    }

    #[test]
    fn a_schedule_says_when_it_runs_next() {
        let next = |at: &str, zone: &str| {
            said(None, &json!({ "id": "1", "name": "news", "next_run": at, "timezone": zone })).unwrap()
        };
        let berlin = "Created schedule news; next run today 23:45 Europe/Berlin\n";
        assert_eq!(next("2026-11-27T22:45:00.000Z", "Europe/Berlin"), berlin);
        assert_eq!(next("2026-11-28T08:00:00Z", "UTC"), "Created schedule news; next run tomorrow 08:00 UTC\n");
        // In Berlin it is the next day half an hour later.
        let far = "Created schedule news; next run Monday, 30 November 00:00 Europe/Berlin\n";
        assert_eq!(next("2026-11-29T23:00:00Z", "Europe/Berlin"), far);
        assert_eq!(next("x", "Nowhere"), "Created schedule news; next run x\n");
        let disabled = said(None, &json!({ "id": "1", "name": "news", "next_run": null, "enabled": false }));
        assert_eq!(disabled.unwrap(), "Created schedule news; disabled\n");
    }

    #[test]
    fn an_item_goes_by_what_was_typed_by_its_name_or_by_its_id() {
        let named = json!({ "id": "1", "title": "a\u{1b}" });
        assert_eq!(said(Some("b"), &named).unwrap(), "Created schedule b\n");
        assert_eq!(said(None, &named).unwrap(), "Created schedule a\n");
        let trigger = json!({ "agent": "scout", "trigger_id": "7" });
        assert_eq!(said(None, &trigger).unwrap(), "Created schedule 7 of scout\n");
        assert_eq!(said(None, &json!({ "status": "ok" })), None);
    }
}
