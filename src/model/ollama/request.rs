//! From the neutral prompt to the body of an Ollama chat.

use std::borrow::Cow;

use agentsvc_components::session::message::{Block, ChatMessage, Role, text_of};
use agentsvc_systems::prompt::SEPARATOR;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::model::Request;
use crate::model::asked;
use crate::model::asked::{AnswerForm, ToolChoice};
use crate::model::functions::Tool;
use crate::model::names;
use crate::tool::toolset::ToolSpec;

/// The JSON body of `request`; the model stays in memory for `keep_alive`, or for as long as the server is set to.
pub(super) fn body(request: &Request<'_>, keep_alive: Option<String>) -> Vec<u8> {
    let parameters = request.parameters();
    let body = Body {
        model: &request.target.model,
        messages: messages(request),
        tools: tools(request),
        stream: request.streaming,
        think: think(request, &parameters),
        format: asked::answer_form(&parameters).map(|form| match form {
            AnswerForm::Json => json!("json"),
            AnswerForm::Schema { schema, .. } => schema,
        }),
        options: options(request, &parameters),
        // A number is one of seconds, and -1 means for ever; a text has a unit.
        keep_alive: keep_alive.map(|text| text.parse::<i64>().map_or_else(|_| json!(text), |number| json!(number))),
    };
    request.written(&body)
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<Message<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    think: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<Value>,
    options: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    keep_alive: Option<Value>,
}

#[derive(Default, Serialize)]
struct Message<'a> {
    role: &'static str,
    content: Cow<'a, str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    thinking: String,
    /// Base64, without the prefix of a `data:` URL.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    images: Vec<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Call<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_name: Option<Cow<'a, str>>,
}

#[derive(Serialize)]
struct Call<'a> {
    function: CalledFunction<'a>,
}

#[derive(Serialize)]
struct CalledFunction<'a> {
    name: Cow<'a, str>,
    arguments: Option<&'a RawValue>,
}

/// The tools. The protocol knows no tool choice: none are offered where none may be called, and one that must be
/// called is offered alone.
fn tools<'a>(request: &Request<'a>) -> Vec<Tool<'a>> {
    let choice = asked::tool_choice(request);
    let is_offered = |spec: &&ToolSpec| match &choice {
        Some(ToolChoice::None) => false,
        Some(ToolChoice::Function(name)) => spec.name == *name,
        _ => true,
    };
    request.tools.iter().filter(is_offered).map(|spec| Tool::of(spec, None)).collect()
}

fn messages<'a>(request: &Request<'a>) -> Vec<Message<'a>> {
    let prompt = request.prompt;
    let mut out = Vec::with_capacity(prompt.messages.len() + 1);
    if !prompt.system.is_empty() {
        let content = Cow::Borrowed(prompt.system.as_str());
        out.push(Message { role: "system", content, ..Message::default() });
    }
    for message in &prompt.messages {
        match message.role {
            Role::User => out.push(user(request, message)),
            Role::Assistant => out.push(assistant(request, message)),
            Role::Tool => out.extend(message.blocks.iter().filter_map(|block| match block {
                Block::ToolResult { name, content, .. } => Some(Message {
                    role: "tool",
                    content: Cow::Borrowed(content),
                    tool_name: Some(names::fitting(name)),
                    ..Message::default()
                }),
                _ => None,
            })),
        }
    }
    out
}

/// What the user says: the texts in one, the images beside them.
fn user<'a>(request: &Request<'a>, message: &'a ChatMessage) -> Message<'a> {
    let mut said = Message { role: "user", ..Message::default() };
    let say = |content: &mut Cow<'a, str>, text: &'a str| {
        if !content.is_empty() {
            *content += SEPARATOR;
        }
        *content += text;
    };
    for block in &message.blocks {
        match block {
            Block::Text { text } => say(&mut said.content, text),
            Block::Image { file, .. } => match request.images.base64(*file) {
                Ok((_, content)) => said.images.push(content),
                Err(note) => say(&mut said.content, note),
            },
            Block::ToolCall(_) | Block::ToolResult { .. } | Block::Reasoning(_) => {}
        }
    }
    said
}

fn assistant<'a>(request: &Request<'a>, message: &'a ChatMessage) -> Message<'a> {
    let mut said = Message { role: "assistant", content: Cow::Owned(text_of(&message.blocks)), ..Message::default() };
    for block in &message.blocks {
        match block {
            Block::ToolCall(call) => {
                let arguments = serde_json::from_str(asked::object_text(&call.input)).ok();
                said.tool_calls.push(Call { function: CalledFunction { name: names::fitting(&call.name), arguments } });
            }
            Block::Reasoning(thought) if request.is_own(thought) => said.thinking.push_str(&thought.text),
            _ => {}
        }
    }
    said
}

/// Whether the model thinks first; OpenAI's open models want to be told how much.
fn think(request: &Request<'_>, parameters: &Map<String, Value>) -> Option<Value> {
    if !request.target.reasons {
        return None;
    }
    let wants_level = request.target.model.contains("gpt-oss");
    match asked::effort(request, parameters) {
        Some(effort) if wants_level => {
            let level = ["low", "medium"].into_iter().find(|level| *level == effort).unwrap_or("high");
            Some(json!(level))
        }
        Some(_) => Some(json!(true)),
        None if !wants_level && parameters.get("reasoning_effort").is_some_and(|effort| effort == "none") => {
            Some(json!(false))
        }
        None => None,
    }
}

/// The context is always said: the server's own is small, and it would cut the beginning of the prompt off in silence.
/// It must not change from call to call, as the model is loaded anew for each size.
fn options(request: &Request<'_>, parameters: &Map<String, Value>) -> Map<String, Value> {
    let mut options = Map::new();
    options.insert("num_ctx".to_owned(), json!(request.target.context_tokens));
    if let Some(bound) = request.max_tokens {
        options.insert("num_predict".to_owned(), json!(bound));
    }
    if let Some(temperature) = request.temperature {
        options.insert("temperature".to_owned(), json!(temperature));
    }
    for key in ["top_p", "seed", "presence_penalty", "frequency_penalty"] {
        if let Some(value) = parameters.get(key).filter(|value| value.is_number()) {
            options.insert(key.to_owned(), value.clone());
        }
    }
    let stops = asked::stops(parameters);
    if !stops.is_empty() {
        options.insert("stop".to_owned(), json!(stops));
    }
    options
}

#[cfg(test)]
mod tests {
    use agentsvc_components::FileId;
    use agentsvc_components::session::message::{Block, Reasoning, Role};
    use agentsvc_components::turn::TurnRequest;
    use agentsvc_systems::prompt::Prompt;
    use serde_json::{Value, json};

    use crate::model::images::{GONE, Images};
    use crate::model::ollama::Ollama;
    use crate::model::provider::{DriverKind, Target};
    use crate::model::testing;
    use crate::model::testing::{With, call, posted, prompt, result, text};
    use crate::tool::toolset::built_in;

    fn sent_to(model: &str, reasons: bool, prompt: &Prompt, with: &With<'_>) -> Value {
        let base = testing::target(DriverKind::Ollama, "http://127.0.0.1:11434?keep_alive=-1");
        let target = Target { model: model.into(), reasons, ..base };
        posted(&Ollama, &target, prompt, with).unwrap().1
    }

    #[test]
    fn every_kind_of_message() {
        let thought = |model: &str, said: &str| {
            let (wire, model) = ("ollama".to_owned(), model.to_owned());
            Block::Reasoning(Reasoning { wire, model, text: said.to_owned(), raw: String::new() })
        };
        let file = |n| FileId(uuid::Uuid::from_u128(n));
        let image = |n| Block::Image { media_type: "image/png".to_owned(), file: file(n), bytes: 3 };
        let prompt = prompt(vec![
            (Role::User, vec![text("a"), image(1), image(2), text("b")]),
            (
                Role::Assistant,
                vec![thought("m", "Hm."), thought("x", "foreign"), call("1", "{\"x\":1}"), call("2", "[")],
            ),
            (Role::Tool, vec![result("1", "one", false), result("2", "two", true)]),
            (Role::Assistant, vec![text("c")]),
        ]);
        let images = Images::of(&prompt, &|id, _| (id == file(1)).then(|| b"abc".to_vec()));
        let called = |arguments: Value| json!({"function": {"name": "t", "arguments": arguments}});
        let calls = json!([called(json!({"x": 1})), called(json!({}))]);
        let expected = json!({
            "model": "m",
            "messages": [
                {"role": "system", "content": "be brief"},
                {"role": "user", "content": format!("a\n\n{GONE}\n\nb"), "images": ["YWJj"]},
                {"role": "assistant", "content": "", "thinking": "Hm.", "tool_calls": calls},
                {"role": "tool", "content": "one", "tool_name": "t"},
                {"role": "tool", "content": "two", "tool_name": "t"},
                {"role": "assistant", "content": "c"},
            ],
            "stream": false,
            "options": {"num_ctx": 1_000},
            "keep_alive": -1,
        });
        assert_eq!(sent_to("m", false, &prompt, &With { images, ..With::default() }), expected);
    }

    #[test]
    fn settings() {
        let parameters = json!({"top_p": 0.5, "stop": "x", "seed": 7, "logit_bias": {},
            "response_format": {"type": "json_schema", "json_schema": {"schema": {"type": "object"}}}});
        let asked =
            TurnRequest { parameters: Some(parameters.to_string().into()), thinking: true, ..TurnRequest::default() };
        let with = With {
            asked: Some(&asked),
            temperature: Some(0.25),
            max_tokens: Some(9),
            streaming: true,
            ..With::default()
        };
        let body = sent_to("qwen3", true, &prompt(Vec::new()), &with);
        let options = json!({"num_ctx": 1_000, "num_predict": 9, "temperature": 0.25, "top_p": 0.5, "seed": 7,
            "stop": ["x"]});
        assert_eq!(body["options"], options);
        assert_eq!((&body["format"], &body["stream"]), (&json!({"type": "object"}), &json!(true)));
        assert_eq!(body["think"], true);
        assert_eq!(sent_to("gpt-oss:20b", true, &prompt(Vec::new()), &with)["think"], "high");
        assert_eq!(sent_to("llama3", false, &prompt(Vec::new()), &with)["think"], Value::Null);
    }

    #[test]
    fn a_tool_choice_decides_what_is_offered() {
        let offered = |choice: Option<&str>| {
            let asked = TurnRequest { tool_choice: choice.map(str::to_owned), ..TurnRequest::default() };
            let with = With { tools: built_in().offered_to_all(), asked: Some(&asked), ..With::default() };
            let body = sent_to("m", false, &prompt(Vec::new()), &with);
            body["tools"].as_array().map_or(0, Vec::len)
        };
        let all = built_in().offered_to_all().len();
        assert!(all > 1);
        assert_eq!((offered(None), offered(Some("\"auto\"")), offered(Some("\"none\""))), (all, all, 0));
        assert_eq!(offered(Some(r#"{"type":"function","function":{"name":"system_time"}}"#)), 1);
    }
}
