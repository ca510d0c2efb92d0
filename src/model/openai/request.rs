//! From the neutral prompt to the body of a chat completion request.

use std::borrow::Cow;
use std::collections::BTreeMap;

use agentsvc_components::session::message::{Block, ChatMessage, Role, ToolCall};
use agentsvc_systems::prompt::SEPARATOR;
use serde::ser::SerializeSeq;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::dialect::{self, Asking, Dialect, Thoughts};
use crate::model::Request;
use crate::model::asked;
use crate::model::functions::Tool;
use crate::model::images::Images;
use crate::model::names;

/// How hard a model should think that is asked to.
const EFFORT: &str = "high";

/// The JSON body of `request`.
pub(in crate::model) fn body(request: &Request<'_>) -> Vec<u8> {
    let target = request.target;
    let dialect = Dialect::of(target);
    let is_thinker = dialect::is_thinking_family(&target.model);
    let (bound, old_bound) =
        if target.bounds_completion || is_thinker { (request.max_tokens, None) } else { (None, request.max_tokens) };
    let asking = asking(request, dialect);
    let body = Body {
        model: &target.model,
        messages: Messages { request, dialect },
        tools: request.tools.iter().map(|spec| Tool::of(spec, spec.strict)).collect(),
        // Models that think refuse it.
        temperature: request.temperature.filter(|_| !is_thinker),
        max_tokens: old_bound,
        max_completion_tokens: bound,
        tool_choice: request.tool_choice().and_then(|choice| serde_json::from_str(choice).ok()),
        parallel_tool_calls: request
            .asked
            .filter(|_| !request.tools.is_empty())
            .and_then(|asked| asked.parallel_tool_calls),
        parameters: parameters(request, dialect),
        reasoning_effort: (asking == Asking::Effort).then_some(EFFORT),
        reasoning: (asking == Asking::Reasoning).then(|| json!({"effort": EFFORT})),
        thinking: (asking == Asking::Thinking).then(|| json!({"type": "enabled"})),
        reasoning_format: dialect.parts_thoughts.then_some("parsed"),
        prompt_cache_key: dialect::cache_key(request),
        stream: request.streaming,
        stream_options: (request.streaming && dialect.takes_stream_options)
            .then_some(StreamOptions { include_usage: true }),
    };
    request.written(&body)
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
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_format: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_cache_key: Option<String>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
}

/// What the request gives to the model as it is. It was JSON when it came in.
fn parameters<'a>(request: &Request<'a>, dialect: Dialect) -> BTreeMap<&'a str, &'a RawValue> {
    let text = request.asked.and_then(|asked| asked.parameters.as_deref());
    let mut given: BTreeMap<&str, &RawValue> =
        text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    if dialect.has_short_ids
        && let Some(seed) = given.remove("seed")
    {
        given.insert("random_seed", seed);
    }
    if dialect::is_thinking_family(&request.target.model) {
        given.remove("top_p");
    }
    given
}

/// How to ask the model to think; not at all where the turn does not, the model cannot, or the request says it itself.
fn asking(request: &Request<'_>, dialect: Dialect) -> Asking {
    let is_said = request.asked.and_then(|asked| asked.parameters.as_deref()).is_some_and(|text| {
        serde_json::from_str::<BTreeMap<&str, &RawValue>>(text)
            .is_ok_and(|given| given.contains_key("reasoning_effort"))
    });
    if request.thinks() && dialect::reasons(request.target) && !is_said { dialect.asking } else { Asking::Never }
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

/// The messages, written one by one without a list of them.
struct Messages<'a> {
    request: &'a Request<'a>,
    dialect: Dialect,
}

impl Serialize for Messages<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let prompt = self.request.prompt;
        let mut list = serializer.serialize_seq(None)?;
        if !prompt.system.is_empty() {
            list.serialize_element(&Message::of("system", Cow::Borrowed(prompt.system.as_str())))?;
        }
        for message in &prompt.messages {
            self.write_message(&mut list, message)?;
        }
        list.end()
    }
}

impl Messages<'_> {
    fn write_message<L: SerializeSeq>(&self, list: &mut L, message: &ChatMessage) -> Result<(), L::Error> {
        match message.role {
            Role::User => list.serialize_element(&Message::said(content(&message.blocks, self.request.images))),
            Role::Assistant => list.serialize_element(&self.answered(&message.blocks)),
            Role::Tool => {
                for block in &message.blocks {
                    if let Block::ToolResult { call_id, content, .. } = block {
                        let message = Message::of("tool", Cow::Borrowed(content.as_str()));
                        list.serialize_element(&Message { tool_call_id: Some(self.id(call_id)), ..message })?;
                    }
                }
                Ok(())
            }
        }
    }

    /// What the model answered.
    fn answered<'a>(&self, blocks: &'a [Block]) -> Message<'a> {
        let calls: Vec<Call<'_>> = blocks
            .iter()
            .filter_map(|block| if let Block::ToolCall(call) = block { Some(self.call(call)) } else { None })
            .collect();
        let text = text(blocks);
        let (reasoning_content, reasoning_details) = self.thoughts(blocks, !calls.is_empty());
        // Only beside tool calls may the content be null, and there an empty text is refused by some.
        let content = (calls.is_empty() || !text.is_empty()).then_some(Content::Text(text));
        let message = Message { content, tool_calls: calls, ..Message::of("assistant", Cow::Borrowed("")) };
        Message { reasoning_content, reasoning_details, ..message }
    }

    /// What the model thought, in the form in which its provider wants it back.
    fn thoughts<'a>(&self, blocks: &'a [Block], has_calls: bool) -> (Option<String>, Option<&'a RawValue>) {
        let own = || {
            blocks.iter().filter_map(|block| match block {
                Block::Reasoning(thought) if self.request.is_own(thought) => Some(thought),
                _ => None,
            })
        };
        match self.dialect.thoughts {
            Thoughts::Kept => (None, None),
            Thoughts::Text { always } => {
                let text: String = own().map(|thought| thought.text.as_str()).collect();
                ((!text.is_empty() || always && has_calls).then_some(text), None)
            }
            Thoughts::Details => (None, own().find_map(|thought| serde_json::from_str(&thought.raw).ok())),
        }
    }

    fn call<'a>(&self, call: &'a ToolCall) -> Call<'a> {
        // Some servers parse the arguments of past calls and refuse the whole request when one is malformed. What was
        // wrong with them stands in the call's result.
        let arguments = asked::object_text(&call.input);
        let function = CalledFunction { name: names::fitting(&call.name), arguments };
        Call { id: self.id(&call.id), kind: "function", function }
    }

    fn id<'a>(&self, id: &'a str) -> Cow<'a, str> {
        if self.dialect.has_short_ids { Cow::Owned(dialect::short_id(id)) } else { Cow::Borrowed(id) }
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
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_details: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Call<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<Cow<'a, str>>,
}

impl<'a> Message<'a> {
    const fn said(content: Content<'a>) -> Self {
        Self {
            role: "user",
            content: Some(content),
            reasoning_content: None,
            reasoning_details: None,
            tool_calls: Vec::new(),
            tool_call_id: None,
        }
    }

    fn of(role: &'static str, content: Cow<'a, str>) -> Self {
        Self { role, ..Self::said(Content::Text(content)) }
    }
}

#[derive(Serialize)]
struct Call<'a> {
    id: Cow<'a, str>,
    #[serde(rename = "type")]
    kind: &'static str,
    function: CalledFunction<'a>,
}

#[derive(Serialize)]
struct CalledFunction<'a> {
    name: Cow<'a, str>,
    arguments: &'a str,
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
