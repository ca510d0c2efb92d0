//! From the neutral prompt to the body of a Converse request.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::super::names::fitting;
use super::super::schema;
use crate::model::alternate::{Part, Said, alternating};
use crate::model::asked;
use crate::model::asked::{AnswerForm, ToolChoice};
use crate::model::claude::Claude;
use crate::model::thinking;
use crate::model::thinking::Thinking;
use crate::model::{Purpose, Request};

/// What a family of models takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Family {
    claude: Option<Claude>,
    /// It takes marks of the cache behind the system text and messages.
    caches: bool,
    /// It takes one behind the tools.
    caches_tools: bool,
    /// It takes the status of a tool's result.
    takes_status: bool,
}

impl Family {
    fn of(model: &str) -> Self {
        let claude = Claude::of(model);
        let is_nova = model.contains("amazon.nova");
        // Of the older ones the small 3.5 alone.
        let caches_tools = claude.is_some_and(|claude| claude.thinks() || model.contains("claude-3-5-haiku"));
        Self { claude, caches: caches_tools || is_nova, caches_tools, takes_status: claude.is_some() || is_nova }
    }
}

/// The JSON body of `request`.
pub(super) fn body(request: &Request<'_>) -> Vec<u8> {
    let parameters = request.parameters();
    let family = Family::of(&request.target.model);
    let caches = request.purpose == Purpose::Turn && family.caches;
    let choice = asked::tool_choice(request);
    // The protocol cannot forbid calls but by offering no tools.
    let has_tools = !request.tools.is_empty() && choice != Some(ToolChoice::None);
    let messages = alternating(request, has_tools);
    let max_tokens = thinking::answer_tokens(request);
    let thinking = match family.claude {
        Some(_) => thinking::thinking(request, &parameters, &messages, max_tokens),
        None => Thinking::Off,
    };
    let (schema, instruction) = answer_form(family.claude, asked::answer_form(&parameters));
    let is_sampled = family.claude.is_none_or(Claude::is_sampled) && thinking == Thinking::Off;
    let temperature = request.temperature.map(|given| given.clamp(0.0, 1.0)).filter(|_| is_sampled);
    let takes_both = family.claude.is_none() || temperature.is_none();
    let body = Body {
        messages: written(&messages, family, caches),
        system: system(&request.prompt.system, instruction, caches),
        inference_config: Inference {
            max_tokens,
            temperature,
            top_p: parameters.get("top_p").and_then(Value::as_f64).filter(|_| is_sampled && takes_both),
            stop_sequences: asked::stops(&parameters).into_iter().filter(|stop| !stop.trim().is_empty()).collect(),
        },
        tool_config: has_tools.then(|| tool_config(request, choice.as_ref(), caches && family.caches_tools)),
        additional_model_request_fields: more_fields(thinking),
        output_config: schema.map(|(name, schema)| output_config(&name, &schema)),
    };
    request.written(&body)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    messages: Vec<Message<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Value>,
    inference_config: Inference,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_config: Option<ToolConfig<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    additional_model_request_fields: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<Value>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Inference {
    max_tokens: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stop_sequences: Vec<String>,
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: Vec<Content<'a>>,
}

/// A block. Thoughts are written as they came.
#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Block(Block<'a>),
    Thought(&'a RawValue),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum Block<'a> {
    Text(&'a str),
    Image(Image<'a>),
    ToolUse(ToolUse<'a>),
    ToolResult(ToolResult<'a>),
    CachePoint(CachePoint),
}

#[derive(Serialize)]
struct Image<'a> {
    format: &'static str,
    source: Source<'a>,
}

#[derive(Serialize)]
struct Source<'a> {
    bytes: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolUse<'a> {
    tool_use_id: Cow<'a, str>,
    name: Cow<'a, str>,
    input: &'a RawValue,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolResult<'a> {
    tool_use_id: Cow<'a, str>,
    content: [ResultText<'a>; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'static str>,
}

#[derive(Serialize)]
struct ResultText<'a> {
    text: &'a str,
}

/// A place up to which the provider keeps the prompt for the next call.
#[derive(Serialize)]
struct CachePoint {
    #[serde(rename = "type")]
    kind: &'static str,
}

const HERE: CachePoint = CachePoint { kind: "default" };

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolConfig<'a> {
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Value>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum Tool<'a> {
    ToolSpec(Spec<'a>),
    CachePoint(CachePoint),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Spec<'a> {
    name: Cow<'a, str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    input_schema: Schema<'a>,
}

#[derive(Serialize)]
struct Schema<'a> {
    json: Cow<'a, RawValue>,
}

fn system(text: &str, instruction: Option<String>, caches: bool) -> Vec<Value> {
    let mut blocks = Vec::with_capacity(3);
    if !text.trim().is_empty() {
        blocks.push(json!({"text": text}));
        if caches {
            blocks.push(json!({"cachePoint": HERE}));
        }
    }
    blocks.extend(instruction.map(|instruction| json!({"text": instruction})));
    blocks
}

/// The conversation, with marks behind the last two messages of the user: where the next call goes on, and where this
/// one does.
fn written<'a>(messages: &'a [Said<'a>], family: Family, caches: bool) -> Vec<Message<'a>> {
    let asked = messages.iter().enumerate().rev().filter(|(_, said)| said.is_user);
    let marks: Vec<usize> = asked.map(|(at, _)| at).take(if caches { 2 } else { 0 }).collect();
    let message = |(at, said): (usize, &'a Said<'a>)| {
        let mut content: Vec<Content<'a>> = said.parts.iter().map(|part| content(part, family)).collect();
        if marks.contains(&at) {
            content.push(Content::Block(Block::CachePoint(HERE)));
        }
        Message { role: if said.is_user { "user" } else { "assistant" }, content }
    };
    messages.iter().enumerate().map(message).collect()
}

fn content<'a>(part: &'a Part<'a>, family: Family) -> Content<'a> {
    Content::Block(match part {
        Part::Text(text) => Block::Text(text),
        Part::Image { format, base64 } => Block::Image(Image { format, source: Source { bytes: base64 } }),
        Part::Call { id, name, input } => {
            Block::ToolUse(ToolUse { tool_use_id: fitting(id), name: fitting(name), input })
        }
        Part::Result { id, content, is_error } => Block::ToolResult(ToolResult {
            tool_use_id: fitting(id),
            content: [ResultText { text: content }],
            status: (*is_error && family.takes_status).then_some("error"),
        }),
        Part::Thought(raw) => return Content::Thought(raw),
    })
}

fn tool_config<'a>(request: &Request<'a>, choice: Option<&ToolChoice>, caches: bool) -> ToolConfig<'a> {
    let spec = |spec: &'a crate::tool::toolset::ToolSpec| {
        Tool::ToolSpec(Spec {
            name: fitting(&spec.name),
            description: &spec.description,
            input_schema: Schema { json: schema::of_input(&spec.input_schema) },
        })
    };
    let mut tools: Vec<Tool<'a>> = request.tools.iter().map(spec).collect();
    if caches {
        tools.push(Tool::CachePoint(HERE));
    }
    let tool_choice = choice.and_then(|choice| match choice {
        ToolChoice::None => None,
        ToolChoice::Auto => Some(json!({"auto": {}})),
        ToolChoice::Required => Some(json!({"any": {}})),
        ToolChoice::Function(name) => Some(json!({"tool": {"name": fitting(name)}})),
    });
    ToolConfig { tools, tool_choice }
}

/// The name and schema that hold the answer, or for models without that what they are told of it.
fn answer_form(claude: Option<Claude>, form: Option<AnswerForm>) -> (Option<(String, Value)>, Option<String>) {
    match form {
        Some(AnswerForm::Schema { name, schema, .. }) if claude.is_some_and(Claude::fits_schemas) => {
            (Some((name, schema::closed(schema))), None)
        }
        form => (None, form.as_ref().map(thinking::instruction)),
    }
}

fn output_config(name: &str, schema: &Value) -> Value {
    let schema = json!({"name": fitting(name), "schema": schema.to_string()});
    json!({"textFormat": {"type": "json_schema", "structure": {"jsonSchema": schema}}})
}

/// What Claude takes beside the common fields.
fn more_fields(thinking: Thinking) -> Option<Value> {
    let mut fields = Map::new();
    let thinking = match thinking {
        Thinking::Off => return None,
        Thinking::Adaptive => json!({"type": "adaptive"}),
        Thinking::Budget(tokens) => json!({"type": "enabled", "budget_tokens": tokens}),
    };
    fields.insert("thinking".to_owned(), thinking);
    Some(fields.into())
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
