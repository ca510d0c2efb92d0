//! From the neutral prompt to the body of a Responses request.

use std::borrow::Cow;

use agentsvc_components::session::message::{Block, ChatMessage, Role};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::model::Request;
use crate::model::asked;
use crate::model::asked::{AnswerForm, ToolChoice};
use crate::model::images::Images;
use crate::model::names;
use crate::model::openai;
use crate::tool::toolset::ToolSpec;

/// What the answer must hold beside itself for a model that thinks: its sealed thoughts.
const SEALED_THOUGHTS: &str = "reasoning.encrypted_content";

/// The JSON body of `request`.
pub(super) fn body(request: &Request<'_>) -> Vec<u8> {
    let (prompt, parameters) = (request.prompt, request.parameters());
    let reasons = openai::reasons(request.target);
    let is_thinker = openai::is_thinking_family(&request.target.model);
    let body = Body {
        model: &request.target.model,
        instructions: (!prompt.system.is_empty()).then_some(&prompt.system),
        input: input(request),
        tools: request.tools.iter().map(Tool::of).collect(),
        tool_choice: tool_choice(request),
        parallel_tool_calls: request
            .asked
            .filter(|_| !request.tools.is_empty())
            .and_then(|asked| asked.parallel_tool_calls),
        // OpenAI's models that think refuse both.
        temperature: request.temperature.filter(|_| !is_thinker),
        top_p: parameters.get("top_p").filter(|value| value.is_number() && !is_thinker).cloned(),
        max_output_tokens: request.max_tokens,
        reasoning: reasoning(request, &parameters, reasons),
        text: text(&parameters),
        store: false,
        include: if reasons { vec![SEALED_THOUGHTS] } else { Vec::new() },
        prompt_cache_key: openai::cache_key(request),
        stream: request.streaming,
    };
    request.written(&body)
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<&'a String>,
    input: Vec<Item<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parallel_tool_calls: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Value>,
    store: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    include: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_cache_key: Option<String>,
    stream: bool,
}

/// One item of the conversation.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Item<'a> {
    Message {
        role: &'static str,
        content: Vec<Part<'a>>,
    },
    FunctionCall {
        call_id: &'a str,
        name: Cow<'a, str>,
        arguments: &'a str,
    },
    FunctionCallOutput {
        call_id: &'a str,
        output: &'a str,
    },
    /// As it came.
    #[serde(untagged)]
    Kept(&'a RawValue),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part<'a> {
    InputText { text: Cow<'a, str> },
    OutputText { text: Cow<'a, str> },
    InputImage { image_url: &'a str },
}

#[derive(Serialize)]
struct Tool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    name: Cow<'a, str>,
    description: &'a str,
    parameters: &'a RawValue,
    /// Always said: by default this protocol is strict, which most schemas do not allow.
    strict: bool,
}

impl<'a> Tool<'a> {
    fn of(spec: &'a ToolSpec) -> Self {
        Self {
            kind: "function",
            name: names::fitting(&spec.name),
            description: &spec.description,
            parameters: &spec.input_schema,
            strict: spec.strict.unwrap_or(false),
        }
    }
}

fn input<'a>(request: &Request<'a>) -> Vec<Item<'a>> {
    let mut items = Vec::with_capacity(request.prompt.messages.len());
    for message in &request.prompt.messages {
        match message.role {
            Role::User => {
                let content = user_parts(&message.blocks, request.images);
                items.push(Item::Message { role: "user", content });
            }
            Role::Assistant => assistant_items(request, message, &mut items),
            Role::Tool => items.extend(message.blocks.iter().filter_map(|block| match block {
                Block::ToolResult { call_id, content, .. } => {
                    Some(Item::FunctionCallOutput { call_id, output: content })
                }
                _ => None,
            })),
        }
    }
    items
}

fn user_parts<'a>(blocks: &'a [Block], images: &'a Images) -> Vec<Part<'a>> {
    let parts = blocks.iter().filter_map(|block| match block {
        Block::Text { text } => Some(Part::InputText { text: Cow::Borrowed(text) }),
        Block::Image { file, .. } => Some(match images.url(*file) {
            Ok(image_url) => Part::InputImage { image_url },
            Err(note) => Part::InputText { text: Cow::Borrowed(note) },
        }),
        _ => None,
    });
    parts.collect()
}

/// What the model said, called and thought, in its order: a thought must stand before the item that it led to.
fn assistant_items<'a>(request: &Request<'a>, message: &'a ChatMessage, items: &mut Vec<Item<'a>>) {
    // A thought behind which nothing came, as in an answer that was stopped, would be refused.
    let last_said = message.blocks.iter().rposition(|block| !matches!(block, Block::Reasoning(_)));
    for (at, block) in message.blocks.iter().enumerate() {
        match block {
            Block::Text { text } if !text.is_empty() => {
                let content = vec![Part::OutputText { text: Cow::Borrowed(text) }];
                items.push(Item::Message { role: "assistant", content });
            }
            Block::ToolCall(call) => {
                let arguments = asked::object_text(&call.input);
                items.push(Item::FunctionCall { call_id: &call.id, name: names::fitting(&call.name), arguments });
            }
            Block::Reasoning(thought) if request.is_own(thought) && last_said.is_some_and(|last| at < last) => {
                items.extend(serde_json::from_str(&thought.raw).ok().map(Item::Kept));
            }
            _ => {}
        }
    }
}

/// The flat form of a tool choice.
fn tool_choice(request: &Request<'_>) -> Option<Value> {
    Some(match asked::tool_choice(request)? {
        ToolChoice::None => json!("none"),
        ToolChoice::Auto => json!("auto"),
        ToolChoice::Required => json!("required"),
        ToolChoice::Function(name) => json!({"type": "function", "name": names::fitting(&name)}),
    })
}

fn reasoning(request: &Request<'_>, parameters: &Map<String, Value>, reasons: bool) -> Option<Value> {
    let effort = asked::effort(request, parameters).filter(|_| reasons)?;
    Some(json!({"effort": effort, "summary": "auto"}))
}

fn text(parameters: &Map<String, Value>) -> Option<Value> {
    let mut text = Map::new();
    match asked::answer_form(parameters) {
        Some(AnswerForm::Json) => drop(text.insert("format".to_owned(), json!({"type": "json_object"}))),
        Some(AnswerForm::Schema { name, schema, strict }) => {
            let strict = strict.unwrap_or(false);
            let format = json!({"type": "json_schema", "name": name, "schema": schema, "strict": strict});
            text.insert("format".to_owned(), format);
        }
        None => {}
    }
    if let Some(verbosity) = parameters.get("verbosity") {
        text.insert("verbosity".to_owned(), verbosity.clone());
    }
    (!text.is_empty()).then_some(Value::Object(text))
}

#[cfg(test)]
mod tests {
    use agentsvc_components::FileId;
    use agentsvc_components::session::message::{Block, Reasoning, Role};
    use agentsvc_components::turn::TurnRequest;
    use agentsvc_systems::prompt::Prompt;
    use serde_json::{Value, json};

    use crate::model::images::Images;
    use crate::model::provider::{DriverKind, Target};
    use crate::model::responses::Responses;
    use crate::model::testing;
    use crate::model::testing::{With, call, posted, prompt, result, text};
    use crate::tool::toolset::built_in;

    fn sent(model: &str, prompt: &Prompt, with: &With<'_>) -> Value {
        let target = testing::target(DriverKind::OpenAiResponses, "https://api.openai.com/v1");
        posted(&Responses, &Target { model: model.into(), ..target }, prompt, with).unwrap().1
    }

    fn thought(model: &str, raw: &str) -> Block {
        let (wire, model) = ("openai-responses".to_owned(), model.to_owned());
        Block::Reasoning(Reasoning { wire, model, text: "t".to_owned(), raw: raw.to_owned() })
    }

    #[test]
    fn every_kind_of_item() {
        let sealed = r#"{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"gA=="}"#;
        let file = FileId(uuid::Uuid::from_u128(1));
        let image = Block::Image { media_type: "image/png".to_owned(), file, bytes: 3 };
        let prompt = prompt(vec![
            (Role::User, vec![text("a"), image]),
            (Role::Assistant, vec![thought("gpt-5", sealed), text("b"), call("1", "{\"x\":1}"), call("2", "{")]),
            (Role::Tool, vec![result("1", "one", false), result("2", "two", true)]),
            (Role::Assistant, vec![thought("o3", sealed), text("c"), thought("gpt-5", sealed)]),
        ]);
        let images = Images::of(&prompt, &|_, _| Some(b"abc".to_vec()));
        let body = sent("gpt-5", &prompt, &With { images, ..With::default() });
        let called = |id: &str, arguments: &str| json!({"type": "function_call", "call_id": id, "name": "t", "arguments": arguments});
        let output = |id: &str, output: &str| json!({"type": "function_call_output", "call_id": id, "output": output});
        let said = |text: &str| json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]});
        let expected = json!([
            {"type": "message", "role": "user", "content": [
                {"type": "input_text", "text": "a"},
                {"type": "input_image", "image_url": "data:image/png;base64,YWJj"},
            ]},
            {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "gA=="},
            said("b"),
            called("1", "{\"x\":1}"),
            called("2", "{}"),
            output("1", "one"),
            output("2", "two"),
            said("c"),
        ]);
        assert_eq!(body["input"], expected);
        assert_eq!((&body["instructions"], &body["store"]), (&json!("be brief"), &json!(false)));
        assert_eq!(body["include"], json!(["reasoning.encrypted_content"]));
        assert_eq!(body["prompt_cache_key"].as_str().map(str::len), Some(32));
    }

    #[test]
    fn settings_of_models_that_think_and_of_others() {
        let parameters = json!({"top_p": 0.5, "verbosity": "low", "seed": 7, "response_format":
            {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}, "strict": true}}});
        let asked = TurnRequest {
            parameters: Some(parameters.to_string().into()),
            tool_choice: Some(r#"{"type":"function","function":{"name":"system_time"}}"#.to_owned()),
            parallel_tool_calls: Some(false),
            thinking: true,
            ..TurnRequest::default()
        };
        let with = || With {
            tools: built_in().offered_to_all(),
            asked: Some(&asked),
            temperature: Some(0.25),
            max_tokens: Some(9),
            streaming: true,
            ..With::default()
        };
        let prompt = prompt(vec![(Role::User, vec![text("q")])]);
        let plain = sent("gpt-4.1", &prompt, &with());
        assert_eq!((&plain["temperature"], &plain["top_p"]), (&json!(0.25), &json!(0.5)));
        assert_eq!((&plain["reasoning"], &plain["include"]), (&Value::Null, &Value::Null));
        assert_eq!((&plain["max_output_tokens"], &plain["stream"]), (&json!(9), &json!(true)));
        assert_eq!(plain["tool_choice"], json!({"type": "function", "name": "system_time"}));
        assert_eq!(plain["parallel_tool_calls"], false);
        let format = json!({"type": "json_schema", "name": "n", "schema": {"type": "object"}, "strict": true});
        assert_eq!(plain["text"], json!({"format": format, "verbosity": "low"}));
        assert_eq!((&plain["tools"][0]["type"], &plain["tools"][0]["strict"]), (&json!("function"), &json!(false)));
        assert_eq!(plain.get("seed"), None);

        let thinking = sent("o4-mini", &prompt, &with());
        assert_eq!((&thinking["temperature"], &thinking["top_p"]), (&Value::Null, &Value::Null));
        assert_eq!(thinking["reasoning"], json!({"effort": "high", "summary": "auto"}));
    }
}
