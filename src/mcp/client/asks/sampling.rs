//! Sampling: a server asks for an answer of a model. Texts only, and no tools.

use agentsvc_components::session::message::{Block, ChatMessage, Role};
use agentsvc_systems::mcp::limits::{MCP_SAMPLING_MESSAGES_MAX, MCP_SAMPLING_TEXT_BYTES_MAX};
use serde_json::Value;

use super::RpcError;

/// Texts at which an answer ends.
const STOPS_MAX: usize = 4;
/// Bytes of one of them.
const STOP_BYTES_MAX: usize = 64;

/// A request for an answer of a model.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::mcp::client) struct Sampling {
    /// What the server wants the model to be told first.
    pub(super) system: Option<String>,
    /// Begins with a message of the user and ends with one; no two of one role follow each other.
    pub(super) messages: Vec<ChatMessage>,
    /// The bound of the answer.
    pub(super) max_tokens: u32,
    pub(super) temperature: Option<f32>,
    /// Texts at which the answer ends.
    pub(super) stops: Vec<String>,
}

impl Sampling {
    pub(super) fn read(params: &Value) -> Result<Self, RpcError> {
        let is_set = |key: &str| params.get(key).is_some_and(|value| !value.is_null());
        if is_set("tools") || is_set("toolChoice") {
            return Err(RpcError::invalid("tools are not supported in sampling"));
        }
        let given =
            params["messages"].as_array().filter(|given| (1..=MCP_SAMPLING_MESSAGES_MAX).contains(&given.len()));
        let given = given.ok_or_else(|| {
            RpcError::invalid(format!("messages must be a list of 1 to {MCP_SAMPLING_MESSAGES_MAX} messages"))
        })?;
        let mut messages: Vec<ChatMessage> = Vec::new();
        for message in given {
            let role = match message["role"].as_str() {
                Some("user") => Role::User,
                Some("assistant") => Role::Assistant,
                _ => return Err(RpcError::invalid("the role of a message must be user or assistant")),
            };
            let blocks = texts(&message["content"])?;
            match messages.last_mut().filter(|last| last.role == role) {
                Some(last) => last.blocks.extend(blocks),
                None => messages.push(ChatMessage { role, blocks }),
            }
        }
        let is_user = |message: Option<&ChatMessage>| message.is_some_and(|message| message.role == Role::User);
        if !is_user(messages.first()) || !is_user(messages.last()) {
            return Err(RpcError::invalid("the first and the last message must be of the user"));
        }
        let system = match params.get("systemPrompt") {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => Some(text.clone()),
            Some(_) => return Err(RpcError::invalid("systemPrompt must be a text")),
        };
        let bytes = system.as_ref().map_or(0, String::len)
            + messages.iter().map(|message| message.plain_text().len()).sum::<usize>();
        if bytes > MCP_SAMPLING_TEXT_BYTES_MAX {
            return Err(RpcError::invalid(format!("the request has more than {MCP_SAMPLING_TEXT_BYTES_MAX} bytes")));
        }
        let max_tokens = params["maxTokens"].as_u64().filter(|most| *most > 0);
        let max_tokens = max_tokens.ok_or_else(|| RpcError::invalid("maxTokens must be a positive integer"))?;
        Ok(Self {
            system,
            messages,
            max_tokens: u32::try_from(max_tokens).unwrap_or(u32::MAX),
            temperature: temperature(&params["temperature"])?,
            stops: stops(&params["stopSequences"])?,
        })
    }
}

/// The texts of a message: one, or a list of them.
fn texts(content: &Value) -> Result<Vec<Block>, RpcError> {
    let one = std::slice::from_ref(content);
    let blocks = content.as_array().map_or(one, Vec::as_slice).iter().map(|part| match part["text"].as_str() {
        Some(text) if part["type"] == "text" => Ok(Block::Text { text: text.to_owned() }),
        _ => Err(RpcError::invalid("only texts are supported in sampling")),
    });
    let blocks = blocks.collect::<Result<Vec<_>, _>>()?;
    if blocks.is_empty() { Err(RpcError::invalid("a message has no content")) } else { Ok(blocks) }
}

fn temperature(value: &Value) -> Result<Option<f32>, RpcError> {
    match value.as_f64() {
        None if value.is_null() => Ok(None),
        Some(value) if (0.0..=2.0).contains(&value) => Ok(Some(value as f32)),
        _ => Err(RpcError::invalid("temperature must be 0 to 2")),
    }
}

fn stops(value: &Value) -> Result<Vec<String>, RpcError> {
    if value.is_null() {
        return Ok(Vec::new());
    }
    let is_stop = |text: &&str| (1..=STOP_BYTES_MAX).contains(&text.len());
    let stops = value.as_array().filter(|stops| stops.len() <= STOPS_MAX);
    let stops =
        stops.and_then(|stops| stops.iter().map(|text| text.as_str().filter(is_stop)).collect::<Option<Vec<_>>>());
    let stops = stops.ok_or_else(|| RpcError::invalid("stopSequences must be at most 4 short texts"))?;
    Ok(stops.into_iter().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn text(text: &str) -> Value {
        json!({ "type": "text", "text": text })
    }

    fn user(content: &Value) -> Value {
        json!({ "role": "user", "content": content })
    }

    #[test]
    fn requests_are_read() {
        let params = json!({
            "messages": [
                user(&text("a")), user(&json!([text("b"), text("c")])),
                { "role": "assistant", "content": text("d") }, user(&text("e")),
            ],
            "systemPrompt": "s", "maxTokens": 5, "temperature": 0.5, "stopSequences": ["."], "includeContext": "none",
            "modelPreferences": { "hints": [{ "name": "x" }] },
        });
        let read = Sampling::read(&params).unwrap();
        let roles: Vec<_> = read.messages.iter().map(|message| (message.role, message.blocks.len())).collect();
        assert_eq!(roles, [(Role::User, 3), (Role::Assistant, 1), (Role::User, 1)]);
        assert_eq!((read.system.as_deref(), read.max_tokens, read.stops), (Some("s"), 5, vec![".".to_owned()]));
    }

    #[test]
    fn what_is_not_supported_is_refused() {
        let with = |key: &str, value: Value| {
            let mut params = json!({ "messages": [user(&text("a"))], "maxTokens": 5 });
            params[key] = value;
            params
        };
        let long = "x".repeat(MCP_SAMPLING_TEXT_BYTES_MAX);
        assert!(Sampling::read(&with("x", json!(1))).is_ok());
        for wrong in [
            with("tools", json!([])),
            with("toolChoice", json!({})),
            with("maxTokens", json!(0)),
            with("maxTokens", json!("5")),
            with("systemPrompt", json!(7)),
            with("systemPrompt", json!(long)),
            with("temperature", json!(3)),
            with("temperature", json!("hot")),
            with("stopSequences", json!([""])),
            with("stopSequences", json!(["a", "b", "c", "d", "e"])),
            with("messages", json!([])),
            with("messages", json!(vec![user(&text("a")); MCP_SAMPLING_MESSAGES_MAX + 1])),
            with("messages", json!([user(&json!([]))])),
            with("messages", json!([user(&json!({ "type": "image", "data": "", "mimeType": "image/png" }))])),
            with("messages", json!([{ "role": "system", "content": text("a") }])),
            with("messages", json!([{ "role": "assistant", "content": text("a") }])),
            with("messages", json!([user(&text("a")), { "role": "assistant", "content": text("b") }])),
            json!(null),
        ] {
            assert!(Sampling::read(&wrong).is_err(), "{wrong}");
        }
    }
}
