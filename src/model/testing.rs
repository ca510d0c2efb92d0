//! What the tests of all drivers share.

use agentsvc_components::kernel::attempt::Attempt;
use agentsvc_components::kernel::id::JobId;
use agentsvc_components::session::message::{Block, ChatMessage, Role, ToolCall};
use agentsvc_components::turn::TurnRequest;
use agentsvc_components::turn::outcome::ModelAnswer;
use agentsvc_systems::prompt::Prompt;
use serde_json::Value;

use super::draft::Draft;
use super::error::CallError;
use super::failure;
use super::frames::Frame;
use super::images::Images;
use super::provider::{DriverKind, Secret, Target};
use super::wire::{Answer as _, Post, Progress, Wire};
use super::{Purpose, Request};
use crate::tool::toolset::ToolSpec;

/// The first attempt of a turn.
pub(crate) const ATTEMPT: Attempt = Attempt { job: JobId(uuid::Uuid::nil()), number: 1 };

/// Model `m` of provider `p`, with a key.
pub(crate) fn target(driver: DriverKind, base_url: &str) -> Target {
    Target {
        provider: "p".into(),
        model: "m".into(),
        driver,
        base_url: base_url.into(),
        key: Some(Secret::new("secret-key")),
        context_tokens: 1_000,
        ..Target::default()
    }
}

/// A text block.
pub(crate) fn text(text: &str) -> Block {
    Block::Text { text: text.to_owned() }
}

/// A call of tool `t`.
pub(crate) fn call(id: &str, input: &str) -> Block {
    Block::ToolCall(ToolCall { id: id.to_owned(), name: "t".to_owned(), input: input.to_owned() })
}

/// A result of tool `t`.
pub(crate) fn result(id: &str, content: &str, is_error: bool) -> Block {
    Block::ToolResult { call_id: id.to_owned(), name: "t".to_owned(), content: content.to_owned(), is_error }
}

/// A prompt of these messages, with `be brief` as its system text.
pub(crate) fn prompt(messages: Vec<(Role, Vec<Block>)>) -> Prompt {
    let messages = messages.into_iter().map(|(role, blocks)| ChatMessage { role, blocks }).collect();
    Prompt { system: "be brief".to_owned(), messages, ..Prompt::default() }
}

/// What a request is made of beside its prompt.
#[derive(Debug, Default)]
pub(crate) struct With<'a> {
    pub(crate) images: Images,
    pub(crate) tools: Vec<ToolSpec>,
    pub(crate) asked: Option<&'a TurnRequest>,
    pub(crate) streaming: bool,
    pub(crate) temperature: Option<f32>,
    pub(crate) max_tokens: Option<u32>,
}

/// What `wire` sends.
pub(crate) fn posted<W: Wire>(
    wire: &W,
    target: &Target,
    prompt: &Prompt,
    with: &With<'_>,
) -> Result<(Post, Value), CallError> {
    let post = wire.post(&Request {
        attempt: ATTEMPT,
        target,
        purpose: Purpose::Turn,
        temperature: with.temperature,
        max_tokens: with.max_tokens,
        prompt,
        images: &with.images,
        tools: &with.tools,
        asked: with.asked,
        streaming: with.streaming,
    })?;
    let body = serde_json::from_slice(&post.body).expect("a JSON body");
    Ok((post, body))
}

/// What becomes of a whole answer.
pub(crate) fn whole<W: Wire>(_: &W, target: &Target, body: &str) -> Result<ModelAnswer, CallError> {
    let mut draft = Draft::default();
    W::Answer::default().whole(target, body.as_bytes(), &mut draft)?;
    Ok(draft.into_answer(ATTEMPT, 5, target))
}

/// What becomes of a streamed answer: frames as name (or nothing) and data.
pub(crate) fn streamed<W: Wire>(_: &W, target: &Target, frames: &[(&str, &str)]) -> Result<ModelAnswer, CallError> {
    let (mut draft, mut answer) = (Draft::default(), W::Answer::default());
    for (name, data) in frames {
        if answer.frame(target, Frame { name, data }, &mut draft)? != Progress::More {
            return Ok(draft.into_answer(ATTEMPT, 5, target));
        }
    }
    if draft.has_stopped() { Ok(draft.into_answer(ATTEMPT, 5, target)) } else { Err(failure::broken_off(target)) }
}
