//! The body of a chat completion request, and what of it goes to the model beside the conversation.

use std::collections::BTreeMap;

use agentsvc_components::kernel::limit;
use agentsvc_components::turn::{ClientTool, TurnRequest};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::message::WireMessage;
use crate::http::error::Error;

/// The schema of a tool that takes nothing.
const NO_PARAMETERS: &str = r#"{"type":"object","properties":{}}"#;
/// Bytes of a tool's name, as OpenAI has it.
const TOOL_NAME_BYTES_MAX: usize = 64;

/// A chat completion request.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct ChatBody {
    /// `agentsvc:<name>`, an agent's id or name; any other value selects the first agent.
    pub(crate) model: String,
    /// The conversation, oldest first.
    pub(crate) messages: Vec<WireMessage>,
    /// Stream the response as server-sent events.
    #[serde(default)]
    pub(crate) stream: Option<bool>,
    /// Accepted; the last chunk always contains the usage.
    #[serde(default, rename = "stream_options")]
    _stream_options: Option<StreamOptions>,
    /// Sampling temperature, 0 to 2.
    temperature: Option<f64>,
    /// Maximum output tokens.
    max_tokens: Option<u32>,
    /// The same; overrides `max_tokens`.
    max_completion_tokens: Option<u32>,
    /// Tools that the client runs itself.
    tools: Option<Vec<WireTool>>,
    /// `none`, `auto`, `required`, or one function.
    #[schemars(with = "Option<serde_json::Value>")]
    tool_choice: Option<Box<RawValue>>,
    /// Whether a response can contain several tool calls.
    parallel_tool_calls: Option<bool>,
    /// Number of choices; must be 1.
    n: Option<u32>,
    /// User id; requests with the same user continue one conversation.
    pub(crate) user: Option<String>,
    /// Passed to the model unchanged, like the fields below.
    #[schemars(with = "Option<f64>")]
    top_p: Option<Box<RawValue>>,
    #[schemars(with = "Option<serde_json::Value>")]
    stop: Option<Box<RawValue>>,
    #[schemars(with = "Option<f64>")]
    presence_penalty: Option<Box<RawValue>>,
    #[schemars(with = "Option<f64>")]
    frequency_penalty: Option<Box<RawValue>>,
    #[schemars(with = "Option<i64>")]
    seed: Option<Box<RawValue>>,
    #[schemars(with = "Option<serde_json::Value>")]
    response_format: Option<Box<RawValue>>,
    #[schemars(with = "Option<serde_json::Value>")]
    logit_bias: Option<Box<RawValue>>,
    #[schemars(with = "Option<String>")]
    reasoning_effort: Option<Box<RawValue>>,
    #[schemars(with = "Option<String>")]
    verbosity: Option<Box<RawValue>>,
}

/// How to stream.
#[derive(Deserialize, JsonSchema)]
struct StreamOptions {
    #[serde(rename = "include_usage")]
    _include_usage: Option<bool>,
    #[serde(rename = "include_obfuscation")]
    _include_obfuscation: Option<bool>,
}

/// A tool that the client runs.
#[derive(Deserialize, JsonSchema)]
struct WireTool {
    /// `function`.
    #[serde(rename = "type")]
    kind: String,
    function: Option<WireFunction>,
}

/// Description for the model.
#[derive(Deserialize, JsonSchema)]
struct WireFunction {
    name: String,
    description: Option<String>,
    /// The JSON schema of its arguments.
    #[schemars(with = "Option<serde_json::Value>")]
    parameters: Option<Box<RawValue>>,
    strict: Option<bool>,
}

impl ChatBody {
    /// What goes to the model beside the conversation; `system` is what the request's system messages say.
    ///
    /// # Errors
    /// 400 naming the key.
    pub(crate) fn turn_request(&self, system: Option<String>) -> Result<TurnRequest, Error> {
        if self.n.is_some_and(|n| n != 1) {
            return Err(Error::bad_field("n", "n: must be 1"));
        }
        if self.temperature.is_some_and(|value| !(0.0..=2.0).contains(&value)) {
            return Err(Error::bad_field("temperature", "temperature: expected a number from 0 to 2"));
        }
        for (key, value) in [("max_tokens", self.max_tokens), ("max_completion_tokens", self.max_completion_tokens)] {
            if value == Some(0) {
                return Err(Error::bad_field(key, format!("{key}: must be at least 1")));
            }
        }
        let tools = self.client_tools()?;
        let tool_choice = self.tool_choice.as_ref().map(|choice| checked_choice(choice)).transpose()?;
        Ok(TurnRequest {
            system,
            temperature: self.temperature.map(|value| value as f32),
            max_tokens: self.max_completion_tokens.or(self.max_tokens),
            tools,
            tool_choice,
            parallel_tool_calls: self.parallel_tool_calls,
            parameters: self.parameters(),
            ..TurnRequest::default()
        })
    }

    fn client_tools(&self) -> Result<Vec<ClientTool>, Error> {
        let wire = self.tools.as_deref().unwrap_or_default();
        if wire.len() > limit::CLIENT_TOOLS_MAX {
            let most = limit::CLIENT_TOOLS_MAX;
            return Err(Error::bad_field("tools", format!("tools: the limit is {most}")));
        }
        let mut tools: Vec<ClientTool> = Vec::with_capacity(wire.len());
        for (at, tool) in wire.iter().enumerate() {
            let made = tool.checked(&format!("tools[{at}]"))?;
            if tools.iter().any(|other| other.name == made.name) {
                let field = format!("tools[{at}].function.name");
                return Err(Error::bad_field(&field, format!("{field}: duplicate tool name {:?}", made.name)));
            }
            tools.push(made);
        }
        Ok(tools)
    }

    /// The keys that are given to the model as they are, as the text of a JSON object.
    fn parameters(&self) -> Option<Box<str>> {
        let all = [
            ("top_p", &self.top_p),
            ("stop", &self.stop),
            ("presence_penalty", &self.presence_penalty),
            ("frequency_penalty", &self.frequency_penalty),
            ("seed", &self.seed),
            ("response_format", &self.response_format),
            ("logit_bias", &self.logit_bias),
            ("reasoning_effort", &self.reasoning_effort),
            ("verbosity", &self.verbosity),
        ];
        let given: BTreeMap<&str, &RawValue> =
            all.iter().filter_map(|(key, value)| Some((*key, value.as_deref()?))).collect();
        // Raw JSON under plain keys is always written.
        (!given.is_empty()).then(|| serde_json::to_string(&given).unwrap_or_default().into())
    }
}

impl WireTool {
    fn checked(&self, at: &str) -> Result<ClientTool, Error> {
        let bad = |key: &str, why: &str| Err(Error::bad_field(&format!("{at}.{key}"), format!("{at}.{key}: {why}")));
        if self.kind != "function" {
            return bad("type", "only tools of type \"function\" are supported");
        }
        let Some(function) = &self.function else { return bad("function", "missing field `function`") };
        let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
        if function.name.is_empty() || function.name.len() > TOOL_NAME_BYTES_MAX || !function.name.bytes().all(plain) {
            return bad("function.name", "must be 1 to 64 letters, digits, underscores and dashes");
        }
        let parameters = function.parameters.as_ref().map_or(NO_PARAMETERS, |parameters| parameters.get());
        if !parameters.starts_with('{') {
            return bad("function.parameters", "must be a JSON schema object");
        }
        Ok(ClientTool {
            name: function.name.as_str().into(),
            description: function.description.as_deref().unwrap_or_default().into(),
            input_schema: parameters.into(),
            strict: function.strict,
        })
    }
}

/// What may be chosen.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Chosen {
    /// This function.
    Function {
        #[serde(rename = "function")]
        _function: Named,
    },
}

#[derive(Deserialize)]
struct Named {
    #[serde(rename = "name")]
    _name: String,
}

/// The text of a tool choice that makes sense.
fn checked_choice(choice: &RawValue) -> Result<String, Error> {
    let text = choice.get();
    let known =
        ["\"none\"", "\"auto\"", "\"required\""].contains(&text) || serde_json::from_str::<Chosen>(text).is_ok();
    if known {
        return Ok(text.to_owned());
    }
    let wanted = "\"none\", \"auto\", \"required\" or {\"type\": \"function\", \"function\": {\"name\": ...}}";
    Err(Error::bad_field("tool_choice", format!("tool_choice: expected {wanted}")))
}
