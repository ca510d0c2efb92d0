//! The words of events that webhooks know, and an event as it is delivered.

use agentsvc_components::event::{Event, EventKind};
use agentsvc_components::{Refusal, Timestamp};
use serde_json::{Map, Value, json};

use super::limits;

/// Every event.
pub(super) const ALL: &str = "all";
/// A trigger began a turn: no event of its own, for triggers would match it.
pub(super) const TRIGGER_FIRED: &str = "trigger_fired";

/// The word of a kind of events.
pub(super) const fn word_of(kind: EventKind) -> &'static str {
    match kind {
        EventKind::TurnCompleted => "message_completed",
        EventKind::TurnFailed => "agent_error",
        kind => kind.as_str(),
    }
}

/// The word that a client's spelling means, such as `agent.spawned` for `agent_spawned`.
pub(super) fn parse(text: &str) -> Option<&'static str> {
    let text = text.replace('.', "_");
    let fixed = [ALL, TRIGGER_FIRED].into_iter().find(|word| *word == text);
    fixed.or_else(|| {
        let kind = EventKind::ALL.into_iter().find(|kind| word_of(*kind) == text || kind.as_str() == text)?;
        Some(word_of(kind))
    })
}

/// The events of a webhook as they are stored: as the client spelled them, each once.
pub(super) fn checked(events: &[String]) -> Result<Vec<Box<str>>, Refusal> {
    let bad = |text: String| Err(Refusal::bad_field("events", text));
    let most = limits::WEBHOOK_EVENTS_MAX;
    if events.is_empty() {
        return bad("events must name at least one event, or all".to_owned());
    }
    if events.len() > most {
        return bad(format!("events must not name more than {most} events"));
    }
    if let Some(unknown) = events.iter().find(|event| parse(event).is_none()) {
        let shown: String = unknown.chars().take(64).collect();
        let known: Vec<_> = EventKind::ALL.into_iter().map(word_of).chain([TRIGGER_FIRED, ALL]).collect();
        return bad(format!("events: unknown event {shown:?}; known events are {}", known.join(", ")));
    }
    let mut kept: Vec<Box<str>> = Vec::new();
    for event in events {
        if !kept.iter().any(|before| parse(before) == parse(event)) {
            kept.push(event.as_str().into());
        }
    }
    Ok(kept)
}

/// An event as it is delivered, but for the ids that stand before this: the rest of a JSON object. `name` is that of the
/// agent it is about.
pub(super) fn body(word: &str, at: Timestamp, mut data: Map<String, Value>, name: Option<&str>) -> String {
    data.remove("kind");
    // An agent that was removed is known by its event alone.
    let name = name.map(Value::from).or_else(|| data.get("name").filter(|_| word.starts_with("agent_")).cloned());
    if let Some(name) = name {
        data.insert("agent_name".to_owned(), name);
    }
    let (event, timestamp) = (word.replacen('_', ".", 1), at.to_string());
    let whole = json!({ "event_type": word, "event": event, "timestamp": timestamp, "data": data }).to_string();
    whole.get(1..).unwrap_or_default().to_owned()
}

/// What an event says, as an object.
pub(super) fn data_of(event: &Event) -> Map<String, Value> {
    match serde_json::to_value(event) {
        Ok(Value::Object(mut data)) => {
            // The payload of a custom event is JSON in a text.
            let payload = data.get("payload").and_then(Value::as_str).and_then(|text| serde_json::from_str(text).ok());
            data.extend(payload.map(|payload| ("payload".to_owned(), payload)));
            data
        }
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_mean_the_same_word() {
        for (text, word) in [
            ("agent_spawned", "agent_spawned"),
            ("agent.spawned", "agent_spawned"),
            ("agent.error", "agent_error"),
            ("turn_failed", "agent_error"),
            ("message.completed", "message_completed"),
            ("turn_completed", "message_completed"),
            ("trigger_fired", "trigger_fired"),
            ("approval.requested", "approval_requested"),
            ("all", "all"),
        ] {
            assert_eq!(parse(text), Some(word), "{text}");
        }
        assert!(EventKind::ALL.into_iter().all(|kind| parse(word_of(kind)) == Some(word_of(kind))));
        assert_eq!((parse("agent"), parse(""), parse("webhook_disabled")), (None, None, None));
        let kept = checked(&["agent.spawned".to_owned(), "agent_spawned".to_owned(), "all".to_owned()]).unwrap();
        assert_eq!(kept, ["agent.spawned".into(), "all".into()]);
    }
}
