//! Conversations as other programs keep them: one JSON object a line.

use std::collections::HashMap;
use std::path::Path;

use agentsvc_api::http::json::memory_bytes;
use agentsvc_api::migration::source::History;
use agentsvc_components::Timestamp;
use agentsvc_components::kernel::limit;
use agentsvc_components::session::message::{Block, Role, ToolCall};
use agentsvc_systems::session::{ImportedMessage, block_bytes};
use chrono::DateTime;
use serde_json::Value;

use super::tree::Tree;
use crate::kernel::text_formats::word;

/// Bytes of memory that the entries of one conversation may take.
const MEMORY_BYTES_MAX: usize = 256 << 20;

/// What a line of a conversation looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lines {
    /// Entries of a tree, each naming the one before it; `message` entries hold what was said.
    Tree,
    /// One message each: `role`, `content`, `timestamp`.
    Flat,
}

/// Reads a conversation. One that is too long is cut to its end.
pub(super) fn read(tree: &Tree, file: &Path, lines: Lines) -> Result<History, String> {
    let (bytes, is_cut) = tree.tail(file, limit::MIGRATION_HISTORY_BYTES_MAX)?;
    let text = String::from_utf8_lossy(&bytes);
    let mut history = History::default();
    let stem = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    history.title = stem.to_owned();
    let (mut unreadable, mut memory) = (0, 0_usize);
    let mut entries: Vec<Value> = Vec::new();
    // The first line of a file that is cut is a piece of one.
    let lines_kept: Vec<&str> = text.lines().skip(usize::from(is_cut)).filter(|line| !line.trim().is_empty()).collect();
    let mut is_too_large = false;
    for line in lines_kept.iter().rev() {
        // A few bytes of JSON can take a hundred times as much memory.
        memory = memory.saturating_add(memory_bytes(line.as_bytes()));
        if memory > MEMORY_BYTES_MAX {
            is_too_large = true;
            break;
        }
        match serde_json::from_str::<Value>(line) {
            Ok(entry) if entry.is_object() => entries.push(entry),
            _ => unreadable += 1,
        }
    }
    entries.reverse();
    if unreadable > 0 {
        history.warnings.push(format!("{unreadable} lines of {} could not be read", file.display()));
    }
    history.messages = match lines {
        Lines::Flat => entries.iter().filter_map(|entry| message(entry, entry)).collect(),
        Lines::Tree => {
            let branch = branch(&entries).into_iter();
            branch.filter_map(|entry| message(entry.get("message")?, entry)).collect()
        }
    };
    if fit(&mut history.messages) || is_cut || is_too_large {
        history.warnings.push(format!("{} is too long; only its newest messages are imported", file.display()));
    }
    Ok(history)
}

/// The entries from the first to the last one, along the chain of those that come before.
fn branch(entries: &[Value]) -> Vec<&Value> {
    let id = |entry: &Value, key: &str| entry.get(key).and_then(Value::as_str).map(str::to_owned);
    let has_chain = entries.iter().any(|entry| entry.get("parentId").is_some_and(Value::is_string));
    if !has_chain {
        return entries.iter().collect();
    }
    let places: HashMap<String, usize> =
        entries.iter().enumerate().filter_map(|(at, entry)| Some((id(entry, "id")?, at))).collect();
    let mut branch = Vec::new();
    let mut at = entries.iter().rposition(|entry| entry.get("id").is_some());
    // A chain that goes forward would never end.
    while let Some(place) = at {
        branch.push(&entries[place]);
        let before = id(&entries[place], "parentId").and_then(|parent| places.get(&parent).copied());
        at = before.filter(|before| *before < place);
    }
    branch.reverse();
    branch
}

/// What a message says; `None` when it is none that a conversation holds.
fn message(message: &Value, entry: &Value) -> Option<ImportedMessage> {
    let role = match message.get("role")?.as_str()? {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "toolResult" | "tool" | "tool_result" => Role::Tool,
        _ => return None,
    };
    let content = message.get("content").unwrap_or(&Value::Null);
    let mut blocks = match role {
        Role::Tool => vec![Block::ToolResult {
            call_id: word(message, &["toolCallId", "tool_call_id", "tool_use_id"])?.to_owned(),
            name: word(message, &["toolName", "name"]).unwrap_or_default().to_owned(),
            content: text_of(content),
            is_error: message.get("isError").and_then(Value::as_bool).unwrap_or(false),
        }],
        Role::User | Role::Assistant => blocks(content),
    };
    if role == Role::Assistant {
        blocks.extend(message.get("tool_use").and_then(Value::as_array).into_iter().flatten().filter_map(call));
    }
    let model = word(message, &["model"]).map(|model| {
        word(message, &["provider"]).map_or_else(|| model.to_owned(), |provider| format!("{provider}/{model}")).into()
    });
    let at = when(entry.get("timestamp")).or_else(|| when(message.get("timestamp"))).unwrap_or_default();
    (!blocks.is_empty()).then_some(ImportedMessage { role, blocks, at, model })
}

fn blocks(content: &Value) -> Vec<Block> {
    let text = |text: &str| (!text.trim().is_empty()).then(|| Block::Text { text: text.to_owned() });
    match content {
        Value::String(said) => text(said).into_iter().collect(),
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| match part.get("type").and_then(Value::as_str) {
                Some("text") => text(part.get("text")?.as_str()?),
                Some("toolCall" | "tool_use") => call(part),
                Some("image" | "image_url") => text("[an image]"),
                _ => None,
            })
            .collect(),
        _ => Vec::new(),
    }
}

fn call(part: &Value) -> Option<Block> {
    let input = part.get("arguments").or_else(|| part.get("input")).cloned().unwrap_or_default();
    let input = input.as_str().map_or_else(|| input.to_string(), str::to_owned);
    let input = if input == "null" { "{}".to_owned() } else { input };
    let id = word(part, &["id", "tool_use_id"])?.to_owned();
    Some(Block::ToolCall(ToolCall { id, name: word(part, &["name"])?.to_owned(), input }))
}

fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts = parts.iter().filter_map(|part| part.get("text").and_then(Value::as_str));
            texts.collect::<Vec<_>>().join("\n")
        }
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// A moment: RFC 3339, or milliseconds since 1970.
fn when(value: Option<&Value>) -> Option<Timestamp> {
    match value? {
        Value::String(text) => DateTime::parse_from_rfc3339(text).ok().map(|at| Timestamp(at.timestamp_millis())),
        Value::Number(ms) => ms.as_i64().filter(|ms| *ms > 0).map(Timestamp),
        _ => None,
    }
}

/// Keeps the newest messages that fit, from one of a person on; true when others were left out.
fn fit(messages: &mut Vec<ImportedMessage>) -> bool {
    let (mut from, mut bytes) = (messages.len(), 0);
    while let Some(at) = from.checked_sub(1) {
        bytes += messages[at].blocks.iter().map(block_bytes).sum::<usize>();
        if messages.len() - at > limit::IMPORTED_MESSAGES_MAX || bytes > limit::IMPORTED_BYTES_MAX {
            break;
        }
        from = at;
    }
    if from == 0 {
        return false;
    }
    let begins = messages[from..].iter().position(|message| message.role == Role::User).unwrap_or(0);
    messages.drain(..from + begins);
    true
}

#[cfg(test)]
mod tests {
    use std::fs;

    use agentsvc_components::session::message::text_of;
    use serde_json::json;

    use super::*;

    fn read_lines(lines: Lines, entries: &[Value]) -> History {
        let dir = tempfile::tempdir().unwrap();
        let text: String = entries.iter().map(|entry| format!("{entry}\n")).collect();
        fs::write(dir.path().join("chat-7.jsonl"), text).unwrap();
        read(&Tree::open(dir.path()).unwrap(), Path::new("chat-7.jsonl"), lines).unwrap()
    }

    fn said(history: &History) -> Vec<(Role, String)> {
        history.messages.iter().map(|message| (message.role, text_of(&message.blocks))).collect()
    }

    #[test]
    fn a_tree_is_read_along_its_last_branch() {
        let entry = |id: &str, parent: Value, role: &str, content: Value| {
            json!({"type": "message", "id": id, "parentId": parent, "timestamp": "2026-01-02T03:04:05.006Z",
                   "message": {"role": role, "content": content, "provider": "p", "model": "m", "toolCallId": "c", "toolName": "exec"}})
        };
        let call = json!([{"type": "thinking", "thinking": "hm"}, {"type": "toolCall", "id": "c", "name": "exec", "arguments": {"x": 1}}]);
        let history = read_lines(
            Lines::Tree,
            &[
                json!({"type": "session", "version": 3, "id": "s"}),
                entry("1", Value::Null, "user", json!("hello")),
                entry("2", json!("1"), "assistant", json!([{"type": "text", "text": "left behind"}])),
                entry("3", json!("1"), "assistant", call),
                entry("4", json!("3"), "toolResult", json!([{"type": "text", "text": "done"}])),
                json!({"type": "compaction", "id": "5", "parentId": "4", "summary": "s"}),
                entry("6", json!("5"), "assistant", json!([{"type": "text", "text": "hi"}])),
            ],
        );
        let expected = [(Role::User, "hello"), (Role::Assistant, ""), (Role::Tool, ""), (Role::Assistant, "hi")];
        assert_eq!(said(&history), expected.map(|(role, text)| (role, text.to_owned())));
        assert_eq!(history.messages[0].at, Timestamp(1_767_323_045_006));
        assert_eq!(history.messages[3].model.as_deref(), Some("p/m"));
        assert!(matches!(&history.messages[1].blocks[..], [Block::ToolCall(call)] if call.input == "{\"x\":1}"));
    }

    #[test]
    fn flat_lines_and_what_is_none() {
        let history = read_lines(
            Lines::Flat,
            &[
                json!({"timestamp": "2026-01-02T03:04:05Z", "role": "user", "content": "a"}),
                json!({"role": "system", "content": "left out"}),
                json!([1]),
                json!({"role": "assistant", "content": "b", "tool_use": [{"id": "1", "name": "t", "input": {}}]}),
                json!({"role": "assistant", "content": "  "}),
            ],
        );
        assert_eq!(said(&history), [(Role::User, "a".to_owned()), (Role::Assistant, "b".to_owned())]);
        assert_eq!(history.messages[1].blocks.len(), 2);
        assert_eq!(history.warnings.len(), 1);
    }

    #[test]
    fn lines_that_take_much_more_memory_than_they_have_bytes_are_left_out() {
        // Eleven places of an object for each of the empty ones.
        let bomb = json!({"role": "user", "content": vec![json!({}); 400_000]});
        let history = read_lines(
            Lines::Flat,
            &[json!({"role": "user", "content": "old"}), bomb, json!({"role": "assistant", "content": "new"})],
        );
        assert_eq!(said(&history), [(Role::Assistant, "new".to_owned())]);
        assert!(history.warnings.iter().any(|warning| warning.contains("too long")), "{:?}", history.warnings);
    }

    #[test]
    fn a_chain_that_turns_in_a_circle_ends() {
        let entry =
            |id: &str, parent: &str| json!({"id": id, "parentId": parent, "message": {"role": "user", "content": id}});
        assert!(read_lines(Lines::Tree, &[entry("1", "2"), entry("2", "1")]).messages.len() <= 2);
    }

    #[test]
    fn the_newest_messages_that_fit_are_kept() {
        let many: Vec<Value> = (0..limit::IMPORTED_MESSAGES_MAX + 10)
            .map(|n| json!({"role": if n % 2 == 0 { "user" } else { "assistant" }, "content": n.to_string()}))
            .collect();
        let history = read_lines(Lines::Flat, &many);
        assert!(history.messages.len() <= limit::IMPORTED_MESSAGES_MAX);
        assert_eq!(history.messages[0].role, Role::User);
        assert_eq!(text_of(&history.messages.last().unwrap().blocks), (limit::IMPORTED_MESSAGES_MAX + 9).to_string());
        assert_eq!(history.warnings.len(), 1);
    }
}
