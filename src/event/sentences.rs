//! Events as sentences, in the words of the page (`api/ui/pages/world/sentences.js`).

use serde_json::Value;

use crate::kernel::cli::output::field;
use crate::kernel::cli::words;

/// Characters of a sentence; what is cut ends with `…`.
const LENGTH_MAX: usize = 160;
/// Keys of an event that are columns of their own, or ids.
const COLUMNS: [&str; 3] = ["kind", "agent", "agent_id"];

/// An event on one line, without its agent. One of a kind that is not known is shown by its fields.
pub(super) fn of(event: &Value) -> String {
    let kind = event["kind"].as_str().unwrap_or_default();
    let words = known(kind, &Fields(event)).unwrap_or_else(|| fields(event));
    let line = words.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= LENGTH_MAX {
        return line;
    }
    let beginning: String = line.chars().take(LENGTH_MAX - 1).collect();
    format!("{}…", beginning.trim_end())
}

/// What an event says.
struct Fields<'e>(&'e Value);

impl Fields<'_> {
    fn text(&self, key: &str) -> String {
        field(self.0, &format!("/{key}"))
    }

    fn quoted(&self, key: &str) -> String {
        format!("\"{}\"", self.text(key))
    }

    /// `text` if the event has something under `key`, where `{}` is that.
    fn with(&self, key: &str, text: &str) -> String {
        let said = self.text(key);
        if said.is_empty() { String::new() } else { text.replace("{}", &said) }
    }

    fn number(&self, key: &str) -> u64 {
        self.0[key].as_u64().unwrap_or_default()
    }

    fn is(&self, key: &str) -> bool {
        self.0[key] == true
    }

    /// The time of day for which a run was planned.
    fn due(&self) -> String {
        let slot = self.text("slot");
        slot.get(11..16).map(|time| format!(" (due {time} UTC)")).unwrap_or_default()
    }

    /// ` (483 tokens, $0.02)`.
    fn usage(&self) -> String {
        let used = Fields(&self.0["usage"]);
        let tokens = used.number("input_tokens") + used.number("output_tokens");
        let cost = used.number("cost_micros");
        let tokens = (tokens > 0).then(|| words::count(tokens, "token"));
        let cost = (cost > 0).then(|| words::dollars(cost as f64 / 1_000_000.0));
        let said: Vec<String> = tokens.into_iter().chain(cost).collect();
        if said.is_empty() { String::new() } else { format!(" ({})", said.join(", ")) }
    }

    fn budget(&self) -> String {
        let whose = if self.text("scope") == "global" { "the global budget" } else { "the agent's budget" };
        format!("{} limit of {whose}", self.text("period")).trim_start().to_owned()
    }

    fn knowledge(&self) -> String {
        let entities = match self.number("entities") {
            0 => None,
            1 => Some("1 entity stored".to_owned()),
            several => Some(format!("{several} entities stored")),
        };
        let some = |count: u64, text: String| (count > 0).then_some(text);
        let relations = self.number("relations");
        let stored = some(relations, format!("{} stored", words::count(relations, "relation")));
        let deleted = some(self.number("deleted"), format!("{} deleted", self.number("deleted")));
        entities.into_iter().chain(stored).chain(deleted).collect::<Vec<_>>().join(", ")
    }

    fn payload(&self) -> String {
        let payload = self.text("payload");
        if ["", "{}", "null"].contains(&payload.as_str()) { String::new() } else { format!(": {payload}") }
    }
}

/// The sentence of a kind of event.
fn known(kind: &str, event: &Fields<'_>) -> Option<String> {
    let (text, quoted) = (|key| event.text(key), |key| event.quoted(key));
    Some(match kind {
        "agent_spawned" => format!("Created as {}{}", quoted("name"), event.with("by_turn_id", " by another agent")),
        "agent_started" => "Started".to_owned(),
        "agent_stopped" => "Stopped".to_owned(),
        "agent_updated" => "Settings changed".to_owned(),
        "agent_terminated" => format!("Deleted: {}", quoted("name")),
        "message_received" => format!("Received {}", quoted("text")),
        "turn_started" => "Started a turn".to_owned(),
        "turn_completed" => format!("Answered{}: {}", event.usage(), text("text")),
        "turn_failed" => format!("Failed: {}", text("error")),
        "session_compacted" => {
            format!("Compacted {} messages to {}", text("messages_before"), text("messages_after"))
        }
        "tool_called" => format!("Called {}{}", text("tool"), if event.is("is_error") { ", which failed" } else { "" }),
        "tool_refused" => {
            let why = if event.is("breaker") { ": the same call failed too often" } else { "" };
            format!("Tool {} was refused{why}", text("tool"))
        }
        "tool_unknown" => format!("Asked for {}; its outcome is unknown after a restart", text("tool")),
        "task_posted" => format!("Task {} posted{}", quoted("title"), event.with("assignee", " for {}")),
        "task_claimed" => format!("Claimed the task {}", quoted("title")),
        "task_completed" => format!("Completed the task {}{}", quoted("title"), event.with("result", ": {}")),
        "task_failed" => format!("Failed the task {}{}", quoted("title"), event.with("error", ": {}")),
        "schedule_fired" => format!("Schedule fired{}", event.due()),
        "cron_fired" => format!("Cron job {} fired{}", quoted("name"), event.due()),
        "workflow_started" => format!("Workflow {} started", quoted("name")),
        "workflow_completed" => format!("Workflow {} completed{}", quoted("name"), event.with("output", ": {}")),
        "workflow_failed" => format!("Workflow {} failed: {}", quoted("name"), text("error")),
        "approval_requested" => format!("Waits for approval of {}", text("tool")),
        "approval_resolved" => format!("Approval {}", text("decision")),
        "budget_warning" => format!("Most of the {} is used", event.budget()),
        "budget_exceeded" => format!("The {} is reached", event.budget()),
        "memory_updated" => {
            format!("{} the memory key {}", if event.is("deleted") { "Deleted" } else { "Stored" }, quoted("key"))
        }
        "knowledge_updated" => format!("Knowledge: {}", event.knowledge()),
        "custom" => format!("{}{}", text("event_type"), event.payload()),
        _ => return None,
    })
}

/// What an event says beside its columns and its ids.
fn fields(event: &Value) -> String {
    let says = |(key, value): (&String, &Value)| {
        let text = words::of(key, value, None);
        let is_said = !COLUMNS.contains(&key.as_str()) && !key.ends_with("_id") && !text.is_empty();
        is_said.then(|| format!("{} {text}", key.replace('_', " ")))
    };
    event.as_object().into_iter().flatten().filter_map(says).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use agentsvc_components::event::EventKind;
    use serde_json::json;

    use super::*;

    #[test]
    fn each_kind_has_a_sentence_here_and_on_the_page() {
        let page = include_str!("../../api/ui/pages/world/sentences.js");
        for kind in EventKind::ALL {
            assert!(known(kind.as_str(), &Fields(&json!({}))).is_some(), "{}", kind.as_str());
            assert!(page.contains(&format!("\n  {}: (", kind.as_str())), "{}", kind.as_str());
        }
    }

    #[test]
    fn events_are_sentences() {
        for (event, sentence) in [
            (json!({ "kind": "message_received", "text": "hello\nyou" }), "Received \"hello you\""),
            (json!({ "kind": "tool_called", "tool": "file_read", "is_error": true }), "Called file_read, which failed"),
            (
                json!({ "kind": "turn_completed", "text": "Hi", "usage": { "input_tokens": 465, "output_tokens": 18, "cost_micros": 20_000 } }),
                "Answered (483 tokens, $0.02): Hi",
            ),
            (json!({ "kind": "turn_completed", "text": "Hi", "usage": null }), "Answered: Hi"),
            (
                json!({ "kind": "task_posted", "title": "sweep", "assignee": "scout" }),
                "Task \"sweep\" posted for scout",
            ),
            (
                json!({ "kind": "cron_fired", "name": "beat", "slot": "2026-11-30T08:00:00.000Z" }),
                "Cron job \"beat\" fired (due 08:00 UTC)",
            ),
            (json!({ "kind": "schedule_fired", "slot": null }), "Schedule fired"),
            (
                json!({ "kind": "budget_exceeded", "scope": "global", "period": "daily" }),
                "The daily limit of the global budget is reached",
            ),
            (
                json!({ "kind": "knowledge_updated", "entities": 2, "relations": 1, "deleted": 0 }),
                "Knowledge: 2 entities stored, 1 relation stored",
            ),
            (json!({ "kind": "custom", "event_type": "deployed", "payload": { "v": 3 } }), "deployed: {\"v\":3}"),
            (json!({ "kind": "custom", "event_type": "deployed", "payload": "{}" }), "deployed"),
            (json!({ "kind": "new", "agent": "scout", "task_id": "1", "title": "a", "none": null }), "title a"),
        ] {
            assert_eq!(of(&event), sentence);
        }
        let long = of(&json!({ "kind": "turn_failed", "error": "x".repeat(300) }));
        assert!(long.chars().count() == LENGTH_MAX && long.ends_with('…'), "{long}");
    }
}
