//! A turn's end as a chat completion, whole or in chunks (spec 1, OpenAI-compatible endpoints).

use crate::http::shape::shape;
use agentsvc_components::TurnId;
use agentsvc_components::session::message::{ToolCall, Usage};
use agentsvc_components::turn::outcome::StopReason;
use schemars::JsonSchema;
use serde::Serialize;

/// What stands at the head of a completion and of each of its chunks.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    /// `chatcmpl-<turn id>`
    pub(crate) id: String,
    /// Unix seconds: when the turn began.
    pub(crate) created: u64,
    /// The agent's name.
    pub(crate) model: Box<str>,
}

impl Head {
    /// The head of what `turn` answers.
    pub(crate) fn of(turn: TurnId, agent_name: Box<str>) -> Self {
        // A turn's id is a UUID v7: the moment is in it.
        let created = turn.0.get_timestamp().map_or(0, |moment| moment.to_unix().0);
        Self { id: format!("chatcmpl-{}", turn.0), created, model: agent_name }
    }
}

/// A chat completion.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Completion<'a> {
    id: &'a str,
    /// `chat.completion`
    object: &'static str,
    /// Unix seconds.
    created: u64,
    /// The agent's name.
    model: &'a str,
    choices: [Choice<'a>; 1],
    usage: TokenUsage,
}

#[derive(Serialize, JsonSchema)]
struct Choice<'a> {
    index: u32,
    message: Message<'a>,
    logprobs: Option<()>,
    /// `stop`, `length`, `tool_calls` or `content_filter`.
    finish_reason: &'static str,
}

#[derive(Serialize, JsonSchema)]
struct Message<'a> {
    /// `assistant`
    role: &'static str,
    content: Option<&'a str>,
    refusal: Option<()>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<WireCall<'a>>,
}

/// A call of a tool of the client.
#[derive(Serialize, JsonSchema)]
struct WireCall<'a> {
    /// In chunks.
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<usize>,
    id: &'a str,
    /// `function`
    #[serde(rename = "type")]
    kind: &'static str,
    function: CalledFunction<'a>,
}

#[derive(Serialize, JsonSchema)]
struct CalledFunction<'a> {
    name: &'a str,
    /// JSON as text.
    arguments: &'a str,
}

impl<'a> WireCall<'a> {
    fn of(index: Option<usize>, call: &'a ToolCall) -> Self {
        let function = CalledFunction { name: &call.name, arguments: &call.input };
        Self { index, id: &call.id, kind: "function", function }
    }
}

shape! {
    /// Tokens of the whole turn.
    pub(crate) struct TokenUsage from usage: Usage {
        prompt_tokens: u64 = usage.input_tokens,
        completion_tokens: u64 = usage.output_tokens,
        total_tokens: u64 = usage.input_tokens.saturating_add(usage.output_tokens),
    }
}

impl<'a> Completion<'a> {
    /// The completion that says `text` and asks for `calls`.
    pub(crate) fn new(head: &'a Head, text: &'a str, calls: &'a [ToolCall], stop: StopReason, usage: Usage) -> Self {
        let message = Message {
            role: "assistant",
            content: (calls.is_empty() || !text.is_empty()).then_some(text),
            refusal: None,
            tool_calls: calls.iter().map(|call| WireCall::of(None, call)).collect(),
        };
        let choice = Choice { index: 0, message, logprobs: None, finish_reason: finish_reason(stop, calls) };
        Self {
            id: &head.id,
            object: "chat.completion",
            created: head.created,
            model: &head.model,
            choices: [choice],
            usage: usage.into(),
        }
    }
}

/// Why the answer ended, in OpenAI's words. A turn that was stopped has no word there: it ends like any other.
pub(crate) fn finish_reason(stop: StopReason, calls: &[ToolCall]) -> &'static str {
    match stop {
        _ if !calls.is_empty() => "tool_calls",
        StopReason::Length => "length",
        StopReason::Filtered => "content_filter",
        StopReason::End | StopReason::ToolUse => "stop",
    }
}

/// One chunk of a streamed completion.
#[derive(Serialize)]
pub(crate) struct Chunk<'a> {
    id: &'a str,
    object: &'static str,
    created: u64,
    model: &'a str,
    choices: [ChunkChoice<'a>; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<TokenUsage>,
}

#[derive(Serialize)]
struct ChunkChoice<'a> {
    index: u32,
    delta: Delta<'a>,
    finish_reason: Option<&'static str>,
}

/// What one chunk adds.
#[derive(Default, Serialize)]
pub(crate) struct Delta<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<WireCall<'a>>,
}

impl<'a> Delta<'a> {
    /// A piece of text; the first piece names the role.
    pub(crate) fn text(content: &'a str, is_first: bool) -> Self {
        Self { role: is_first.then_some("assistant"), content: Some(content), tool_calls: Vec::new() }
    }

    /// The call at `index`, whole; the first piece names the role.
    pub(crate) fn call(index: usize, call: &'a ToolCall, is_first: bool) -> Self {
        let (role, content) = if is_first { (Some("assistant"), Some("")) } else { (None, None) };
        Self { role, content, tool_calls: vec![WireCall::of(Some(index), call)] }
    }
}

impl<'a> Chunk<'a> {
    /// A chunk that adds `delta`.
    pub(crate) fn piece(head: &'a Head, delta: Delta<'a>) -> Self {
        Self::new(head, delta, None, None)
    }

    /// The last chunk: nothing more, why, and what it cost.
    pub(crate) fn last(head: &'a Head, reason: &'static str, usage: Usage) -> Self {
        Self::new(head, Delta::default(), Some(reason), Some(usage.into()))
    }

    fn new(head: &'a Head, delta: Delta<'a>, finish_reason: Option<&'static str>, usage: Option<TokenUsage>) -> Self {
        Self {
            id: &head.id,
            object: "chat.completion.chunk",
            created: head.created,
            model: &head.model,
            choices: [ChunkChoice { index: 0, delta, finish_reason }],
            usage,
        }
    }
}
