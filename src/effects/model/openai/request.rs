//! From the neutral prompt to the body of a chat completion request.

use std::borrow::Cow;
use std::collections::BTreeMap;

use agentsvc_components::message::{Block, ChatMessage, Role, ToolCall};
use agentsvc_systems::prompt::SEPARATOR;
use serde::ser::SerializeSeq;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::effects::model::Request;
use crate::effects::model::images::Images;
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
        tool_choice: request.tool_choice().and_then(|choice| serde_json::from_str(choice).ok()),
        parallel_tool_calls: request
            .asked
            .filter(|_| !request.tools.is_empty())
            .and_then(|asked| asked.parallel_tool_calls),
        parameters: parameters(request),
        stream: request.streaming,
        stream_options: request.streaming.then_some(StreamOptions { include_usage: true }),
    };
    let mut out = Vec::with_capacity(256 + request.prompt.estimated_tokens as usize * 5 + request.images.bytes());
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
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parallel_tool_calls: Option<bool>,
    #[serde(flatten)]
    parameters: BTreeMap<&'a str, &'a RawValue>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
}

/// What the request gives to the model as it is. It was JSON when it came in.
fn parameters<'a>(request: &Request<'a>) -> BTreeMap<&'a str, &'a RawValue> {
    let text = request.asked.and_then(|asked| asked.parameters.as_deref());
    text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
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
    #[serde(skip_serializing_if = "Option::is_none")]
    strict: Option<bool>,
}

impl<'a> Function<'a> {
    fn of(spec: &'a ToolSpec) -> Self {
        Self { name: &spec.name, description: &spec.description, parameters: &spec.input_schema, strict: spec.strict }
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
            write_message(&mut list, message, self.0.images)?;
        }
        list.end()
    }
}

fn write_message<L: SerializeSeq>(list: &mut L, message: &ChatMessage, images: &Images) -> Result<(), L::Error> {
    match message.role {
        Role::User => list.serialize_element(&Message::said(content(&message.blocks, images))),
        Role::Assistant => {
            let calls: Vec<Call<'_>> = message
                .blocks
                .iter()
                .filter_map(|block| if let Block::ToolCall(call) = block { Some(Call::of(call)) } else { None })
                .collect();
            let text = text(&message.blocks);
            // Only beside tool calls may the content be null, and there an empty text is refused by some.
            let content = (calls.is_empty() || !text.is_empty()).then_some(Content::Text(text));
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

/// What a user says: one text, or parts when there is an image among them.
fn content<'a>(blocks: &'a [Block], images: &'a Images) -> Content<'a> {
    let mut parts: Vec<Part<'a>> = Vec::with_capacity(blocks.len());
    for block in blocks {
        let said = match block {
            Block::Text { text } => text.as_str(),
            Block::Image { file, .. } => match images.url(*file) {
                Ok(url) => {
                    parts.push(Part::ImageUrl { image_url: ImageUrl { url } });
                    continue;
                }
                Err(note) => note,
            },
            Block::ToolCall(_) | Block::ToolResult { .. } | Block::Reasoning(_) => continue,
        };
        if let Some(Part::Text { text }) = parts.last_mut() {
            *text += SEPARATOR;
            *text += said;
        } else {
            parts.push(Part::Text { text: Cow::Borrowed(said) });
        }
    }
    match parts.as_mut_slice() {
        [] => Content::Text(Cow::Borrowed("")),
        [Part::Text { text }] => Content::Text(std::mem::take(text)),
        _ => Content::Parts(parts),
    }
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<Part<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part<'a> {
    Text { text: Cow<'a, str> },
    ImageUrl { image_url: ImageUrl<'a> },
}

#[derive(Serialize)]
struct ImageUrl<'a> {
    url: &'a str,
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
    content: Option<Content<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Call<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
}

impl<'a> Message<'a> {
    const fn said(content: Content<'a>) -> Self {
        Self { role: "user", content: Some(content), tool_calls: Vec::new(), tool_call_id: None }
    }

    const fn of(role: &'static str, content: Cow<'a, str>) -> Self {
        Self { role, content: Some(Content::Text(content)), tool_calls: Vec::new(), tool_call_id: None }
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
    use agentsvc_components::effect::Attempt;
    use agentsvc_components::message::{Block, ChatMessage, Role, ToolCall};
    use agentsvc_components::{FileId, TurnId};
    use agentsvc_systems::prompt::Prompt;
    use serde_json::{Value, json};

    use super::body;
    use crate::effects::model::images::Images;
    use crate::effects::model::provider::{DriverKind, Target};
    use crate::effects::model::{Purpose, Request};
    use crate::effects::tools;

    fn target(bounds_completion: bool) -> Target {
        Target {
            provider: "p".into(),
            model: "m".into(),
            driver: DriverKind::OpenAi,
            base_url: "http://h/v1".into(),
            context_tokens: 1_000,
            bounds_completion,
            ..Target::default()
        }
    }

    fn written(target: &Target, prompt: &Prompt, streaming: bool, with_tools: bool) -> Value {
        written_with(target, prompt, &Images::default(), streaming, with_tools)
    }

    fn written_with(target: &Target, prompt: &Prompt, images: &Images, streaming: bool, with_tools: bool) -> Value {
        let tools = if with_tools { tools::offered_to_all() } else { Vec::new() };
        let request = Request {
            attempt: Attempt { turn: TurnId(uuid::Uuid::nil()), number: 1 },
            target,
            purpose: Purpose::Turn,
            temperature: Some(0.25),
            max_tokens: Some(9),
            prompt,
            images,
            tools: &tools,
            asked: None,
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
            is_cut: false,
        };
        let call = |id: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": "t", "arguments": arguments}});
        let expected = json!({
            "model": "m",
            "messages": [
                {"role": "system", "content": "be brief"},
                {"role": "user", "content": "a\n\nb"},
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
    fn images_are_parts_and_what_is_missing_is_a_text() {
        let file = |n| FileId(uuid::Uuid::from_u128(n));
        let image = |n| Block::Image { media_type: "image/png".to_owned(), file: file(n), bytes: 3 };
        let text = |text: &str| Block::Text { text: text.to_owned() };
        let asked = |blocks: Vec<Block>| {
            let messages = vec![ChatMessage { role: Role::User, blocks }];
            let prompt = Prompt { messages, ..Prompt::default() };
            let read = |id, _| (id == file(1)).then(|| b"abc".to_vec());
            let images = Images::of(&prompt, &read);
            written_with(&target(false), &prompt, &images, false, false)["messages"][0]["content"].clone()
        };
        let url = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,YWJj"}});
        let part = |text: &str| json!({"type": "text", "text": text});
        let gone = crate::effects::model::images::GONE;
        assert_eq!(asked(vec![text("a"), image(1), text("b")]), json!([part("a"), url, part("b")]));
        assert_eq!(asked(vec![image(1)]), json!([url]));
        assert_eq!(asked(vec![text("a"), image(2), image(1)]), json!([part(&format!("a\n\n{gone}")), url]));
        assert_eq!(asked(vec![text("a"), image(2)]), json!(format!("a\n\n{gone}")));
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
