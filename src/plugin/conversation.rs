//! Messages as hooks read and write them: `{role, content}` with lower-case roles. The content of a message with tool calls or
//! results is a list of blocks; else it is its text.

use std::collections::{HashMap, HashSet};

use agentsvc_components::session::message::{Block, ChatMessage, Role};
use serde_json::{Map, Value, json};

/// Characters of a message that `after_turn` is told.
const TOLD_CHARS_MAX: usize = 500;
/// Messages that a hook may give.
const MESSAGES_MAX: usize = 2_000;

const fn role(role: Role) -> &'static str {
    match role {
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    }
}

/// A message for `after_turn`: its text, cut.
pub(super) fn told(message_role: Role, blocks: &[Block]) -> Value {
    let mut text = String::new();
    for block in blocks {
        let part = match block {
            Block::Text { text } => text.as_str(),
            Block::ToolResult { content, .. } => content.as_str(),
            Block::ToolCall(_) | Block::Image { .. } | Block::Reasoning(_) => continue,
        };
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(part);
    }
    let text: String = text.chars().take(TOLD_CHARS_MAX).collect();
    json!({ "role": role(message_role), "content": text, "pinned": false })
}

/// A message whole.
pub(crate) fn shown(message: &ChatMessage) -> Value {
    let content = match message.blocks.as_slice() {
        [Block::Text { text }] => Value::from(text.as_str()),
        blocks => blocks.iter().filter_map(block).collect(),
    };
    json!({ "role": role(message.role), "content": content })
}

fn block(block: &Block) -> Option<Value> {
    Some(match block {
        Block::Text { text } => json!({ "type": "text", "text": text }),
        Block::ToolCall(call) => {
            let input = serde_json::from_str(&call.input).unwrap_or_else(|_| Value::from(call.input.as_str()));
            json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": input })
        }
        Block::ToolResult { call_id, name, content, is_error } => {
            json!({ "type": "tool_result", "tool_use_id": call_id, "name": name, "content": content, "is_error": is_error })
        }
        Block::Image { media_type, .. } => json!({ "type": "image", "media_type": media_type }),
        Block::Reasoning(_) => return None,
    })
}

/// What a hook has made of messages.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Assembled {
    /// The messages.
    pub(crate) messages: Vec<ChatMessage>,
    /// Some of the text is the hook's own.
    pub(crate) is_changed: bool,
}

/// Messages that a hook gives in the place of `originals`. Those that are as they were are the originals, with all that hooks
/// are not shown; others are text.
///
/// # Errors
/// A sentence: they are none, they are in an order that models refuse, or a tool call stands without its result.
pub(crate) fn assembled(given: &Value, originals: &[ChatMessage]) -> Result<Assembled, String> {
    let list = given.as_array().ok_or("messages: must be a list")?;
    if list.is_empty() || list.len() > MESSAGES_MAX {
        return Err(format!("messages: must be 1 to {MESSAGES_MAX}"));
    }
    let mut known: HashMap<String, Vec<usize>> = HashMap::new();
    for (at, message) in originals.iter().enumerate().rev() {
        known.entry(shown(message).to_string()).or_default().push(at);
    }
    let (mut messages, mut is_changed) = (Vec::with_capacity(list.len()), false);
    for item in list {
        let plain = json!({ "role": item["role"], "content": item["content"] });
        match known.get_mut(&plain.to_string()).and_then(Vec::pop) {
            Some(at) => messages.push(originals[at].clone()),
            None => {
                is_changed = true;
                messages.push(written(item)?);
            }
        }
    }
    check(&messages)?;
    if messages.last().map(|last| last.role) == Some(Role::Assistant) {
        return Err("messages: the last one must be what the model is to answer".to_owned());
    }
    Ok(Assembled { messages, is_changed })
}

/// A message of a hook's own.
fn written(item: &Value) -> Result<ChatMessage, String> {
    let said = item["role"].as_str().unwrap_or_default().to_ascii_lowercase();
    let role = match &*said {
        "user" | "system" => Role::User,
        "assistant" => Role::Assistant,
        "tool" => Role::Tool,
        _ => return Err("messages: `role` must be user, assistant, tool or system".to_owned()),
    };
    let blocks = match &item["content"] {
        Value::String(text) => vec![Block::Text { text: text.clone() }],
        Value::Array(list) => list.iter().map(written_block).collect::<Result<_, _>>()?,
        _ => return Err("messages: `content` must be a text or a list of blocks".to_owned()),
    };
    if blocks.is_empty() {
        return Err("messages: `content` must not be empty".to_owned());
    }
    Ok(ChatMessage { role, blocks })
}

fn written_block(block: &Value) -> Result<Block, String> {
    let text = |key: &str| block[key].as_str().map(str::to_owned);
    let missing = |key: &str| format!("messages: a block has no `{key}`");
    match block["type"].as_str() {
        Some("text") => Ok(Block::Text { text: text("text").ok_or_else(|| missing("text"))? }),
        // A result may be changed; calls are the model's, and images are not shown.
        Some("tool_result") => Ok(Block::ToolResult {
            call_id: text("tool_use_id").ok_or_else(|| missing("tool_use_id"))?,
            name: text("name").unwrap_or_default(),
            content: text("content").ok_or_else(|| missing("content"))?,
            is_error: block["is_error"].as_bool().unwrap_or(false),
        }),
        Some("tool_use") => Err("messages: a tool call was changed".to_owned()),
        Some("image") => Err("messages: a message with an image was changed".to_owned()),
        _ => Err("messages: a block has an unknown `type`".to_owned()),
    }
}

/// Does every tool call stand before its results, and every result behind its call?
fn check(messages: &[ChatMessage]) -> Result<(), String> {
    if messages.first().map(|first| first.role) != Some(Role::User) {
        return Err("messages: the first one must be a user's".to_owned());
    }
    let broken = || "messages: a tool call was separated from its result".to_owned();
    let mut open: HashSet<&str> = HashSet::new();
    for message in messages {
        if message.role != Role::Tool && !open.is_empty() {
            return Err(broken());
        }
        for block in &message.blocks {
            match block {
                Block::ToolCall(call) => {
                    open.insert(&call.id);
                }
                Block::ToolResult { call_id, .. } if message.role == Role::Tool && open.remove(call_id.as_str()) => {}
                Block::ToolResult { .. } => return Err(broken()),
                Block::Text { .. } if message.role == Role::Tool => return Err(broken()),
                _ => {}
            }
        }
    }
    if open.is_empty() { Ok(()) } else { Err(broken()) }
}

/// What `compact` gives, as the text that stands for the older messages.
///
/// # Errors
/// As [`assembled`].
pub(super) fn compacted(given: &Value, originals: &[ChatMessage]) -> Result<String, String> {
    let list = given.as_array().filter(|list| !list.is_empty() && list.len() <= MESSAGES_MAX);
    let list = list.ok_or_else(|| format!("messages: must be a list of 1 to {MESSAGES_MAX}"))?;
    let shapes: HashMap<String, &ChatMessage> = originals.iter().map(|one| (shown(one).to_string(), one)).collect();
    let mut messages = Vec::with_capacity(list.len());
    for item in list {
        let plain: Map<_, _> = [("role", &item["role"]), ("content", &item["content"])]
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value.clone()))
            .collect();
        let known = shapes.get(&Value::Object(plain).to_string()).map(|one| (*one).clone());
        messages.push(known.map_or_else(|| written(item), Ok)?);
    }
    let mut open: HashSet<String> = HashSet::new();
    let mut text = String::new();
    for message in &messages {
        for block in &message.blocks {
            let line = match block {
                Block::Text { text } => format!("{}: {text}", role(message.role)),
                Block::ToolCall(call) => {
                    open.insert(call.id.clone());
                    format!("[the assistant calls {}: {}]", call.name, call.input)
                }
                Block::ToolResult { call_id, name, content, is_error } => {
                    if !open.remove(call_id) {
                        return Err("messages: a tool call was separated from its result".to_owned());
                    }
                    format!("[{name} {}: {content}]", if *is_error { "fails" } else { "gives" })
                }
                Block::Image { .. } => "[an image]".to_owned(),
                Block::Reasoning(_) => continue,
            };
            text.push_str(&line);
            text.push('\n');
        }
    }
    if !open.is_empty() {
        return Err("messages: a tool call was separated from its result".to_owned());
    }
    if text.trim().is_empty() { Err("messages: there is no text in them".to_owned()) } else { Ok(text) }
}

#[cfg(test)]
mod tests {
    use agentsvc_components::FileId;
    use agentsvc_components::session::message::ToolCall;

    use super::*;

    fn conversation() -> Vec<ChatMessage> {
        let call = ToolCall { id: "1".to_owned(), name: "look".to_owned(), input: "{\"at\":\"x\"}".to_owned() };
        let result = Block::ToolResult {
            call_id: "1".to_owned(),
            name: "look".to_owned(),
            content: "seen".to_owned(),
            is_error: false,
        };
        let file = FileId(uuid::Uuid::nil());
        let image = Block::Image { media_type: "image/png".to_owned(), file, bytes: 3 };
        vec![
            ChatMessage::text(Role::User, "old"),
            ChatMessage::text(Role::Assistant, "answer"),
            ChatMessage { role: Role::User, blocks: vec![Block::Text { text: "see".to_owned() }, image] },
            ChatMessage { role: Role::Assistant, blocks: vec![Block::ToolCall(call)] },
            ChatMessage { role: Role::Tool, blocks: vec![result] },
        ]
    }

    fn without(at: &[usize]) -> Value {
        let all = conversation();
        let kept = all.iter().enumerate().filter(|(index, _)| !at.contains(index));
        kept.map(|(_, message)| shown(message)).collect()
    }

    #[test]
    fn what_is_left_as_it_was_is_the_original() {
        let all = conversation();
        assert_eq!(assembled(&without(&[]), &all), Ok(Assembled { messages: all.clone(), is_changed: false }));
        let fewer = assembled(&without(&[0, 1]), &all).unwrap();
        assert_eq!((fewer.messages, fewer.is_changed), (all[2..].to_vec(), false));
        let mut more = without(&[0, 1]);
        let note = json!({ "role": "system", "content": "note" });
        more.as_array_mut().unwrap().insert(0, note);
        let more = assembled(&more, &all).unwrap();
        assert!(more.is_changed && more.messages[0] == ChatMessage::text(Role::User, "note"));
        let mut changed = without(&[]);
        changed[4]["content"][0]["content"] = "short".into();
        assert!(assembled(&changed, &all).unwrap().is_changed);
    }

    #[test]
    fn calls_and_results_stay_together() {
        let all = conversation();
        for broken in [without(&[3]), without(&[4])] {
            assert!(assembled(&broken, &all).unwrap_err().contains("separated"), "{broken}");
            assert!(compacted(&broken, &all).unwrap_err().contains("separated"), "{broken}");
        }
        let mut swapped = without(&[]);
        swapped.as_array_mut().unwrap().swap(3, 4);
        assert!(assembled(&swapped, &all).is_err());
        let mut between = without(&[]);
        between.as_array_mut().unwrap().insert(4, json!({ "role": "user", "content": "x" }));
        assert!(assembled(&between, &all).unwrap_err().contains("separated"));
        let mut changed = without(&[]);
        changed[3]["content"][0]["input"] = json!({ "at": "elsewhere" });
        assert!(assembled(&changed, &all).unwrap_err().contains("call was changed"));
    }

    #[test]
    fn what_is_no_conversation_is_refused() {
        let all = conversation();
        for wrong in [
            json!(null),
            json!([]),
            json!([3]),
            json!([{ "role": "user" }]),
            json!([{ "role": "nobody", "content": "x" }]),
            json!([{ "role": "assistant", "content": "x" }]),
            json!([{ "role": "user", "content": "x" }, { "role": "assistant", "content": "x" }]),
            json!([{ "role": "user", "content": [{ "type": "audio" }] }]),
            json!([{ "role": "user", "content": [] }]),
        ] {
            assert!(assembled(&wrong, &all).is_err(), "{wrong}");
        }
    }

    #[test]
    fn older_messages_become_a_text() {
        let text = compacted(&without(&[0]), &conversation()).unwrap();
        assert!(text.starts_with("assistant: answer\n") && text.contains("[look gives: seen]"), "{text}");
        assert!(compacted(&json!([{ "role": "user", "content": " " }]), &[]).is_ok());
        assert!(compacted(&json!([]), &[]).is_err());
    }

    #[test]
    fn what_is_told_of_a_turn_is_cut() {
        let told = told(Role::User, &[Block::Text { text: "é".repeat(1_000) }]);
        assert_eq!((told["content"].as_str().unwrap().chars().count(), &told["role"]), (500, &json!("user")));
        assert_eq!(told["pinned"], false);
    }
}
