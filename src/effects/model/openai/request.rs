//! From the neutral prompt to the body of a chat completion request.

use std::borrow::Cow;

use agentsvc_components::message::{Block, ChatMessage, Role, ToolCall};
use serde::ser::SerializeSeq;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::effects::model::Request;
use crate::effects::tools::ToolSpec;

/// The JSON body of `request`.
pub(super) fn body(request: &Request<'_>) -> Vec<u8> {
    let (bound, old_bound) =
        if request.target.bounds_completion { (request.max_tokens, None) } else { (None, request.max_tokens) };
    let body = Body {
        model: &request.target.model,
        messages: Messages(request),
        tools: request.tools.iter().map(|spec| Tool { kind: "function", function: Function::of(spec) }).collect(),
        temperature: request.temperature,
        max_tokens: old_bound,
        max_completion_tokens: bound,
        stream: request.streaming,
        stream_options: request.streaming.then_some(StreamOptions { include_usage: true }),
    };
    let mut out = Vec::with_capacity(256 + request.prompt.estimated_tokens as usize * 5);
    // Writing plain structs into memory cannot fail; were it to, the provider would refuse the empty body.
    if serde_json::to_writer(&mut out, &body).is_err() {
        out.clear();
    }
    out
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Messages<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
struct Tool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a RawValue,
}

impl<'a> Function<'a> {
    fn of(spec: &'a ToolSpec) -> Self {
        Self { name: &spec.name, description: &spec.description, parameters: &spec.input_schema }
    }
}

/// The messages, written one by one without a list of them.
struct Messages<'a>(&'a Request<'a>);

impl Serialize for Messages<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let prompt = self.0.prompt;
        let mut list = serializer.serialize_seq(None)?;
        if !prompt.system.is_empty() {
            list.serialize_element(&Message::of("system", Cow::Borrowed(prompt.system.as_str())))?;
        }
        for message in &prompt.messages {
            write_message(&mut list, message)?;
        }
        list.end()
    }
}

fn write_message<L: SerializeSeq>(list: &mut L, message: &ChatMessage) -> Result<(), L::Error> {
    match message.role {
        Role::User => list.serialize_element(&Message::of("user", text(&message.blocks))),
        Role::Assistant => {
            let calls: Vec<Call<'_>> = message
                .blocks
                .iter()
                .filter_map(|block| if let Block::ToolCall(call) = block { Some(Call::of(call)) } else { None })
                .collect();
            let text = text(&message.blocks);
            // Only beside tool calls may the content be null, and there an empty text is refused by some.
            let content = (calls.is_empty() || !text.is_empty()).then_some(text);
            list.serialize_element(&Message { role: "assistant", content, tool_calls: calls, tool_call_id: None })
        }
        Role::Tool => {
            for block in &message.blocks {
                if let Block::ToolResult { call_id, content, .. } = block {
                    let message = Message::of("tool", Cow::Borrowed(content.as_str()));
                    list.serialize_element(&Message { tool_call_id: Some(call_id), ..message })?;
                }
            }
            Ok(())
        }
    }
}

/// All text of a message; copied only when it stands in several blocks.
fn text(blocks: &[Block]) -> Cow<'_, str> {
    let mut joined = Cow::Borrowed("");
    for block in blocks {
        if let Block::Text { text } = block {
            joined += text.as_str();
        }
    }
    joined
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Call<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
}

impl<'a> Message<'a> {
    const fn of(role: &'static str, content: Cow<'a, str>) -> Self {
        Self { role, content: Some(content), tool_calls: Vec::new(), tool_call_id: None }
    }
}

#[derive(Serialize)]
struct Call<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    function: CalledFunction<'a>,
}

#[derive(Serialize)]
struct CalledFunction<'a> {
    name: &'a str,
    arguments: &'a str,
}

impl<'a> Call<'a> {
    fn of(call: &'a ToolCall) -> Self {
        // Some servers parse the arguments of past calls and refuse the whole request when one is malformed. What was
        // wrong with them stands in the call's result.
        let is_object =
            call.input.trim_start().starts_with('{') && serde_json::from_str::<&RawValue>(&call.input).is_ok();
        let arguments = if is_object { call.input.as_str() } else { "{}" };
        Self { id: &call.id, kind: "function", function: CalledFunction { name: &call.name, arguments } }
    }
}

#[cfg(test)]
mod tests {
    use agentsvc_components::TurnId;
    use agentsvc_components::effect::Attempt;
    use agentsvc_components::message::{Block, ChatMessage, Role, ToolCall};
    use agentsvc_systems::prompt::Prompt;
    use serde_json::{Value, json};

    use super::body;
    use crate::effects::model::Request;
    use crate::effects::model::provider::{DriverKind, Target};
    use crate::effects::tools;

    fn target(bounds_completion: bool) -> Target {
        Target {
            provider: "p".into(),
            model: "m".into(),
            driver: DriverKind::OpenAi,
            base_url: "http://h/v1".into(),
            key: None,
            context_tokens: 1_000,
            bounds_completion,
        }
    }

    fn written(target: &Target, prompt: &Prompt, streaming: bool, with_tools: bool) -> Value {
        let tools = if with_tools { tools::offered_to_all() } else { Vec::new() };
        let request = Request {
            attempt: Attempt { turn: TurnId(uuid::Uuid::nil()), number: 1 },
            target,
            temperature: Some(0.25),
            max_tokens: Some(9),
            prompt,
            tools: &tools,
            streaming,
        };
        serde_json::from_slice(&body(&request)).unwrap()
    }

    #[test]
    fn every_kind_of_message() {
        let call = |id: &str, input: &str| {
            Block::ToolCall(ToolCall { id: id.to_owned(), name: "t".to_owned(), input: input.to_owned() })
        };
        let result = |id: &str| Block::ToolResult {
            call_id: id.to_owned(),
            name: "t".to_owned(),
            content: format!("result of {id}"),
            is_error: false,
        };
        let text = |text: &str| Block::Text { text: text.to_owned() };
        let prompt = Prompt {
            system: "be brief".to_owned(),
            messages: vec![
                ChatMessage { role: Role::User, blocks: vec![text("a"), text("b")] },
                ChatMessage { role: Role::Assistant, blocks: vec![call("1", "{\"x\":1}"), call("2", "{broken")] },
                ChatMessage { role: Role::Tool, blocks: vec![result("1"), result("2")] },
                ChatMessage { role: Role::Assistant, blocks: vec![text("c")] },
            ],
            estimated_tokens: 0,
        };
        let call = |id: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": "t", "arguments": arguments}});
        let expected = json!({
            "model": "m",
            "messages": [
                {"role": "system", "content": "be brief"},
                {"role": "user", "content": "ab"},
                {"role": "assistant", "content": null, "tool_calls": [call("1", "{\"x\":1}"), call("2", "{}")]},
                {"role": "tool", "content": "result of 1", "tool_call_id": "1"},
                {"role": "tool", "content": "result of 2", "tool_call_id": "2"},
                {"role": "assistant", "content": "c"},
            ],
            "temperature": 0.25,
            "max_tokens": 9,
            "stream": false,
        });
        assert_eq!(written(&target(false), &prompt, false, false), expected);
    }

    #[test]
    fn streams_ask_for_usage_and_tools_are_offered() {
        let prompt = Prompt::default();
        let body = written(&target(true), &prompt, true, true);
        assert_eq!(body["stream_options"], json!({"include_usage": true}));
        assert_eq!((&body["max_completion_tokens"], &body["max_tokens"]), (&json!(9), &Value::Null));
        assert_eq!(body["tools"][0]["type"], "function");
        assert!(body["tools"].to_string().contains("\"system_time\""));
        assert_eq!(body["tools"][0]["function"]["parameters"]["type"], "object");
    }
}
