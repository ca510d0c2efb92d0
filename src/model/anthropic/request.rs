//! From the neutral prompt to the body of a Messages request.

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

/// The JSON body of `request`.
pub(super) fn body(request: &Request<'_>) -> Vec<u8> {
    let parameters = request.parameters();
    let claude = Claude::of(&request.target.model);
    let choice = asked::tool_choice(request);
    let messages = alternating(request, !request.tools.is_empty());
    let max_tokens = thinking::answer_tokens(request);
    let thinking = thinking::thinking(request, &parameters, &messages, max_tokens);
    let form = asked::answer_form(&parameters);
    let (schema, instruction) = answer_form(claude, form);
    let is_sampled = claude.is_none_or(Claude::is_sampled) && thinking == Thinking::Off;
    // Newer models take one of the two.
    let temperature = request.temperature.map(|given| given.clamp(0.0, 1.0)).filter(|_| is_sampled);
    let top_p = parameters.get("top_p").and_then(Value::as_f64).filter(|_| is_sampled && temperature.is_none());
    let caches = request.purpose == Purpose::Turn;
    let effort = if thinking == Thinking::Adaptive { asked::effort(request, &parameters) } else { None };
    let body = Body {
        model: &request.target.model,
        max_tokens,
        system: system(&request.prompt.system, instruction.as_deref(), caches),
        tools: tools(request, caches),
        messages: written(&messages, caches),
        tool_choice: tool_choice(request, choice.as_ref()),
        temperature,
        top_p,
        stop_sequences: stops(&parameters),
        thinking: match thinking {
            Thinking::Off => None,
            Thinking::Adaptive => Some(json!({"type": "adaptive"})),
            Thinking::Budget(tokens) => Some(json!({"type": "enabled", "budget_tokens": tokens})),
        },
        output_config: output_config(schema, effort),
        stream: request.streaming,
    };
    request.written(&body)
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    max_tokens: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Marked<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    messages: Vec<Message<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stop_sequences: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Value>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    output_config: Map<String, Value>,
    stream: bool,
}

/// A place up to which the provider keeps the prompt for the next call, for five minutes. There may be four.
#[derive(Clone, Copy, Serialize)]
struct CacheControl {
    #[serde(rename = "type")]
    kind: &'static str,
}

const HERE: CacheControl = CacheControl { kind: "ephemeral" };

/// A block, with a mark of the cache behind it or not.
#[derive(Serialize)]
struct Marked<'a> {
    #[serde(flatten)]
    block: Block<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block<'a> {
    Text {
        text: &'a str,
    },
    Image {
        source: Source<'a>,
    },
    ToolResult {
        tool_use_id: Cow<'a, str>,
        content: &'a str,
        #[serde(skip_serializing_if = "is_false")]
        is_error: bool,
    },
}

#[derive(Serialize)]
struct Source<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    media_type: String,
    data: &'a str,
}

/// A call that the model made.
#[derive(Serialize)]
struct ToolUse<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    id: Cow<'a, str>,
    name: Cow<'a, str>,
    input: &'a RawValue,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Marked(Marked<'a>),
    ToolUse(ToolUse<'a>),
    Thought(&'a RawValue),
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: Vec<Content<'a>>,
}

#[derive(Serialize)]
struct Tool<'a> {
    name: Cow<'a, str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    input_schema: Cow<'a, RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    strict: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde asks for")]
const fn is_false(value: &bool) -> bool {
    !*value
}

/// The system text, marked, and what is said about the answer's form behind it.
fn system<'a>(text: &'a str, instruction: Option<&'a str>, caches: bool) -> Vec<Marked<'a>> {
    let text = Some(text).filter(|text| !text.trim().is_empty());
    let marked = text.map(|text| Marked { block: Block::Text { text }, cache_control: caches.then_some(HERE) });
    let instruction = instruction.map(|text| Marked { block: Block::Text { text }, cache_control: None });
    marked.into_iter().chain(instruction).collect()
}

/// The tools, the last one marked: they seldom change, even where the system text does.
fn tools<'a>(request: &Request<'a>, caches: bool) -> Vec<Tool<'a>> {
    let takes_strict = Claude::of(&request.target.model).is_some_and(Claude::fits_schemas);
    let tool = |spec: &'a crate::tool::toolset::ToolSpec| Tool {
        name: fitting(&spec.name),
        description: &spec.description,
        input_schema: schema::of_input(&spec.input_schema),
        strict: spec.strict.filter(|strict| *strict && takes_strict),
        cache_control: None,
    };
    let mut tools: Vec<Tool<'_>> = request.tools.iter().map(tool).collect();
    if let Some(last) = tools.last_mut().filter(|_| caches) {
        last.cache_control = Some(HERE);
    }
    tools
}

/// The conversation. The last message of the user is marked, where the next call goes on, and the one before, where
/// this one does.
fn written<'a>(messages: &'a [Said<'a>], caches: bool) -> Vec<Message<'a>> {
    let asked = messages.iter().enumerate().rev().filter(|(_, said)| said.is_user);
    let marks: Vec<usize> = asked.map(|(at, _)| at).take(if caches { 2 } else { 0 }).collect();
    let message = |(at, said): (usize, &'a Said<'a>)| {
        let mut content: Vec<Content<'a>> = said.parts.iter().map(content).collect();
        if let Some(Content::Marked(last)) = content.last_mut().filter(|_| marks.contains(&at)) {
            last.cache_control = Some(HERE);
        }
        Message { role: if said.is_user { "user" } else { "assistant" }, content }
    };
    messages.iter().enumerate().map(message).collect()
}

fn content<'a>(part: &'a Part<'a>) -> Content<'a> {
    let block = match part {
        Part::Text(text) => Block::Text { text },
        Part::Image { format, base64 } => {
            Block::Image { source: Source { kind: "base64", media_type: format!("image/{format}"), data: base64 } }
        }
        Part::Result { id, content, is_error } => {
            Block::ToolResult { tool_use_id: fitting(id), content, is_error: *is_error }
        }
        Part::Call { id, name, input } => {
            return Content::ToolUse(ToolUse { kind: "tool_use", id: fitting(id), name: fitting(name), input });
        }
        Part::Thought(raw) => return Content::Thought(raw),
    };
    Content::Marked(Marked { block, cache_control: None })
}

fn tool_choice(request: &Request<'_>, choice: Option<&ToolChoice>) -> Option<Value> {
    if request.tools.is_empty() {
        return None;
    }
    let alone = request.asked.and_then(|asked| asked.parallel_tool_calls) == Some(false);
    let mut said = match choice {
        Some(ToolChoice::None) => return Some(json!({"type": "none"})),
        Some(ToolChoice::Required) => json!({"type": "any"}),
        Some(ToolChoice::Function(name)) => json!({"type": "tool", "name": fitting(name)}),
        Some(ToolChoice::Auto) => json!({"type": "auto"}),
        None if alone => json!({"type": "auto"}),
        None => return None,
    };
    if alone {
        said["disable_parallel_tool_use"] = true.into();
    }
    Some(said)
}

/// What stops the answer; texts of nothing but white space are refused.
fn stops(parameters: &Map<String, Value>) -> Vec<String> {
    asked::stops(parameters).into_iter().filter(|stop| !stop.trim().is_empty()).collect()
}

/// The schema that holds the answer, or for models without that what they are told of it.
fn answer_form(claude: Option<Claude>, form: Option<AnswerForm>) -> (Option<Value>, Option<String>) {
    match form {
        Some(AnswerForm::Schema { schema, .. }) if claude.is_some_and(Claude::fits_schemas) => {
            (Some(schema::closed(schema)), None)
        }
        form => (None, form.as_ref().map(thinking::instruction)),
    }
}

fn output_config(schema: Option<Value>, effort: Option<String>) -> Map<String, Value> {
    let schema = schema.map(|schema| ("format".to_owned(), json!({"type": "json_schema", "schema": schema})));
    let effort = effort.map(|effort| ("effort".to_owned(), Value::from(effort)));
    schema.into_iter().chain(effort).collect()
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
