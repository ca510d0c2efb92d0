//! From the neutral prompt to the body of a generateContent request.

use std::borrow::Cow;

use agentsvc_components::session::message::{Block, ChatMessage, Reasoning, Role};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::answer::Signed;
use super::schema;
use crate::model::Request;
use crate::model::asked;
use crate::model::asked::{AnswerForm, ToolChoice};
use crate::model::images::Images;
use crate::model::names;
use crate::tool::toolset::ToolSpec;

/// How the ids of calls begin that the provider gave none: such are made here and mean nothing to it.
const OWN_ID: &str = "call_";
/// What stands for the signature of a call that another model made within the turn; Google names it for this purpose.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

/// The JSON body of `request`.
pub(super) fn body(request: &Request<'_>) -> Vec<u8> {
    let prompt = request.prompt;
    let declarations: Vec<Declaration<'_>> = request.tools.iter().map(Declaration::of).collect();
    let system = (!prompt.system.is_empty())
        .then(|| Content { role: None, parts: vec![Part::Text { text: Cow::Borrowed(&prompt.system) }.into()] });
    let body = Body {
        contents: contents(request),
        system_instruction: system,
        tools: if declarations.is_empty() { Vec::new() } else { vec![Tools { function_declarations: declarations }] },
        tool_config: tool_config(request),
        generation_config: generation_config(request),
    };
    request.written(&body)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    contents: Vec<Content<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<Content<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tools<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_config: Option<Value>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    generation_config: Map<String, Value>,
}

#[derive(Serialize)]
struct Content<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
    parts: Vec<SignedPart<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SignedPart<'a> {
    #[serde(flatten)]
    part: Part<'a>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    thought: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought_signature: Option<Cow<'a, str>>,
}

impl<'a> From<Part<'a>> for SignedPart<'a> {
    fn from(part: Part<'a>) -> Self {
        Self { part, thought: false, thought_signature: None }
    }
}

#[derive(Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
enum Part<'a> {
    Text { text: Cow<'a, str> },
    Image { inline_data: InlineImage<'a> },
    Call { function_call: FunctionCall<'a> },
    Result { function_response: FunctionResponse<'a> },
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InlineImage<'a> {
    mime_type: &'a str,
    data: &'a str,
}

#[derive(Serialize)]
struct FunctionCall<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    name: Cow<'a, str>,
    args: Option<&'a RawValue>,
}

#[derive(Serialize)]
struct FunctionResponse<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    name: Cow<'a, str>,
    response: ToolOutput<'a>,
}

/// The result of a tool. Always a text within an object: numbers of an object of its own would come out as floats.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum ToolOutput<'a> {
    Result(&'a str),
    Error(&'a str),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Tools<'a> {
    function_declarations: Vec<Declaration<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Declaration<'a> {
    name: Cow<'a, str>,
    description: &'a str,
    parameters_json_schema: Value,
}

impl<'a> Declaration<'a> {
    fn of(spec: &'a ToolSpec) -> Self {
        let read = serde_json::from_str(spec.input_schema.get()).unwrap_or_else(|_| json!({"type": "object"}));
        Self {
            name: names::fitting(&spec.name),
            description: &spec.description,
            parameters_json_schema: schema::accepted(&read),
        }
    }
}

/// The conversation. Calls of the running turn that carry no signature, as those of a fallback model do not, get the one
/// that stands for none where the model would refuse them.
fn contents<'a>(request: &Request<'a>) -> Vec<Content<'a>> {
    let messages = &request.prompt.messages;
    let turn_from = messages.iter().rposition(|message| message.role == Role::User).unwrap_or(0);
    let wants_signatures = wants_signatures(&request.target.model);
    let mut contents: Vec<Content<'a>> = Vec::with_capacity(messages.len());
    for (at, message) in messages.iter().enumerate() {
        let (role, mut parts) = match message.role {
            Role::User => ("user", user_parts(&message.blocks, request.images)),
            Role::Assistant => ("model", model_parts(request, &message.blocks)),
            Role::Tool => ("user", result_parts(message, at.checked_sub(1).and_then(|before| messages.get(before)))),
        };
        if wants_signatures && at > turn_from && message.role == Role::Assistant {
            sign_first_call(&mut parts);
        }
        if !parts.is_empty() {
            contents.push(Content { role: Some(role), parts });
        }
    }
    contents
}

/// From its third generation on, Gemini refuses the calls of a turn without their signature.
fn wants_signatures(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    !["gemini-1", "gemini-2", "gemma"].iter().any(|older| name.starts_with(older))
}

fn sign_first_call(parts: &mut [SignedPart<'_>]) {
    let calls = parts.iter_mut().find(|part| matches!(part.part, Part::Call { .. }));
    if let Some(first) = calls {
        first.thought_signature.get_or_insert(Cow::Borrowed(NO_SIGNATURE));
    }
}

fn user_parts<'a>(blocks: &'a [Block], images: &'a Images) -> Vec<SignedPart<'a>> {
    let parts = blocks.iter().filter_map(|block| match block {
        Block::Text { text } if !text.is_empty() => Some(Part::Text { text: Cow::Borrowed(text) }),
        Block::Image { file, .. } => Some(match images.base64(*file) {
            Ok((mime_type, data)) => Part::Image { inline_data: InlineImage { mime_type, data } },
            Err(note) => Part::Text { text: Cow::Borrowed(note) },
        }),
        _ => None,
    });
    parts.map(SignedPart::from).collect()
}

/// What the model said, each part with the signature that stands before it.
fn model_parts<'a>(request: &Request<'a>, blocks: &'a [Block]) -> Vec<SignedPart<'a>> {
    let mut parts: Vec<SignedPart<'a>> = Vec::with_capacity(blocks.len());
    let mut signature = None;
    for block in blocks {
        let part = match block {
            Block::Text { text } if !text.is_empty() => Part::Text { text: Cow::Borrowed(text) },
            Block::ToolCall(call) => {
                let args = serde_json::from_str(asked::object_text(&call.input)).ok();
                Part::Call { function_call: FunctionCall { id: id(&call.id), name: names::fitting(&call.name), args } }
            }
            Block::Reasoning(thought) if request.is_own(thought) => {
                parts.extend(signature.take().map(alone));
                match signed(thought) {
                    Some(Signed { thought: true, thought_signature }) => parts.push(SignedPart {
                        part: Part::Text { text: Cow::Borrowed(&thought.text) },
                        thought: true,
                        thought_signature: Some(Cow::Owned(thought_signature)),
                    }),
                    of_next => signature = of_next.map(|signed| signed.thought_signature),
                }
                continue;
            }
            _ => continue,
        };
        let thought_signature = signature.take().map(Cow::Owned);
        parts.push(SignedPart { part, thought: false, thought_signature });
    }
    parts.extend(signature.map(alone));
    parts
}

/// A signature that came with no part of its own, as it does at the end of a stream.
fn alone(signature: String) -> SignedPart<'static> {
    let part = Part::Text { text: Cow::Borrowed("") };
    SignedPart { part, thought: false, thought_signature: Some(Cow::Owned(signature)) }
}

fn signed(thought: &Reasoning) -> Option<Signed> {
    serde_json::from_str(&thought.raw).ok()
}

/// The results of one answer, in the order of its calls: without ids, that is what they are matched by.
fn result_parts<'a>(message: &'a ChatMessage, before: Option<&'a ChatMessage>) -> Vec<SignedPart<'a>> {
    let order = |wanted: &str| {
        let calls = before.iter().flat_map(|message| &message.blocks).filter(|b| matches!(b, Block::ToolCall(_)));
        calls.into_iter().position(|block| matches!(block, Block::ToolCall(call) if call.id == wanted))
    };
    let mut results: Vec<(Option<usize>, Part<'a>)> = Vec::with_capacity(message.blocks.len());
    for block in &message.blocks {
        let Block::ToolResult { call_id, name, content, is_error } = block else { continue };
        let response = if *is_error { ToolOutput::Error(content) } else { ToolOutput::Result(content) };
        let function_response = FunctionResponse { id: id(call_id), name: names::fitting(name), response };
        results.push((order(call_id), Part::Result { function_response }));
    }
    results.sort_by_key(|(order, _)| order.unwrap_or(usize::MAX));
    results.into_iter().map(|(_, part)| part.into()).collect()
}

fn id(id: &str) -> Option<&str> {
    Some(id).filter(|id| !id.is_empty() && !id.starts_with(OWN_ID))
}

fn tool_config(request: &Request<'_>) -> Option<Value> {
    let config = match asked::tool_choice(request)? {
        ToolChoice::None => json!({"mode": "NONE"}),
        ToolChoice::Auto => json!({"mode": "AUTO"}),
        ToolChoice::Required => json!({"mode": "ANY"}),
        ToolChoice::Function(name) => json!({"mode": "ANY", "allowedFunctionNames": [names::fitting(&name)]}),
    };
    Some(json!({"functionCallingConfig": config}))
}

fn generation_config(request: &Request<'_>) -> Map<String, Value> {
    let parameters = request.parameters();
    let mut config = Map::new();
    let mut set = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            config.insert(key.to_owned(), value);
        }
    };
    set("temperature", request.temperature.map(|value| json!(value)));
    set("maxOutputTokens", request.max_tokens.map(|value| json!(value)));
    let plain = [
        ("top_p", "topP"),
        ("seed", "seed"),
        ("presence_penalty", "presencePenalty"),
        ("frequency_penalty", "frequencyPenalty"),
    ];
    for (theirs, ours) in plain {
        set(ours, parameters.get(theirs).filter(|value| value.is_number()).cloned());
    }
    let stops = asked::stops(&parameters);
    set("stopSequences", (!stops.is_empty()).then(|| json!(stops)));
    let form = asked::answer_form(&parameters);
    set("responseMimeType", form.is_some().then(|| json!("application/json")));
    if let Some(AnswerForm::Schema { schema, .. }) = form {
        set("responseJsonSchema", Some(schema::accepted(&schema)));
    }
    set("thinkingConfig", thinking(request, &parameters));
    config
}

/// How to think: by a level from the third generation on, by a budget of tokens before it.
fn thinking(request: &Request<'_>, parameters: &Map<String, Value>) -> Option<Value> {
    if !request.target.reasons {
        return None;
    }
    let effort = asked::effort(request, parameters)?;
    let asked_for = parameters.contains_key("reasoning_effort");
    let mut config = json!({"includeThoughts": true});
    if wants_signatures(&request.target.model) {
        let is_low = matches!(effort.as_str(), "minimal" | "low");
        config["thinkingLevel"] = json!(if is_low { "low" } else { "high" });
    } else {
        config["thinkingBudget"] = json!(match effort.as_str() {
            // As much as the model finds right.
            _ if !asked_for => -1,
            "minimal" | "low" => 1_024,
            "medium" => 8_192,
            _ => 24_576,
        });
    }
    Some(config)
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
