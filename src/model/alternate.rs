//! A conversation in which two take turns: for protocols that know only the user and the model, and want their messages
//! one after the other.
//!
//! Messages of the same side become one. Results of tools are the user's and come first. Text of nothing but white
//! space is left out, for it is refused. Where no tools are offered, past calls and results are told as text: providers
//! refuse them otherwise.

use std::borrow::Cow;

use agentsvc_components::session::message::{Block, Role};
use serde_json::value::RawValue;

use super::Request;
use super::asked::object_text;

/// What stands for an empty result, which is refused.
const NO_OUTPUT: &str = "(no output)";
/// Media types that providers take, and the words for them.
const FORMATS: [(&str, &str); 5] =
    [("image/png", "png"), ("image/jpeg", "jpeg"), ("image/jpg", "jpeg"), ("image/gif", "gif"), ("image/webp", "webp")];

/// What one side says at a time.
#[derive(Debug, Default)]
pub(crate) struct Said<'a> {
    /// The user's side.
    pub(crate) is_user: bool,
    /// Never empty.
    pub(crate) parts: Vec<Part<'a>>,
}

/// A piece of it.
#[derive(Debug)]
pub(crate) enum Part<'a> {
    /// Text; more than white space.
    Text(Cow<'a, str>),
    /// A picture.
    Image {
        /// `png`, `jpeg`, `gif` or `webp`.
        format: &'static str,
        /// Its bytes.
        base64: &'a str,
    },
    /// A call.
    Call {
        /// Its id, as it was made.
        id: &'a str,
        /// The tool, as it is really called.
        name: &'a str,
        /// The arguments: always an object.
        input: &'a RawValue,
    },
    /// What the tool gave back.
    Result {
        /// The call's id.
        id: &'a str,
        /// More than white space.
        content: &'a str,
        /// The tool failed.
        is_error: bool,
    },
    /// What the model that is asked thought itself: its provider's own block.
    Thought(&'a RawValue),
}

/// The conversation of `request`; `with_tools`: it offers tools.
pub(crate) fn alternating<'a>(request: &Request<'a>, with_tools: bool) -> Vec<Said<'a>> {
    let mut all: Vec<Said<'a>> = Vec::with_capacity(request.prompt.messages.len());
    for message in &request.prompt.messages {
        let is_user = message.role != Role::Assistant;
        let parts = message.blocks.iter().filter_map(|block| part(request, block, with_tools));
        let mut parts = parts.peekable();
        match all.last_mut() {
            _ if parts.peek().is_none() => {}
            Some(last) if last.is_user == is_user => last.parts.extend(parts),
            _ => all.push(Said { is_user, parts: parts.collect() }),
        }
    }
    for said in &mut all {
        // Stable: results come first, and everything keeps its order.
        said.parts.sort_by_key(|part| said.is_user && !matches!(part, Part::Result { .. }));
    }
    all
}

fn part<'a>(request: &Request<'a>, block: &'a Block, with_tools: bool) -> Option<Part<'a>> {
    Some(match block {
        Block::Text { text } if text.trim().is_empty() => return None,
        Block::Text { text } => Part::Text(Cow::Borrowed(text)),
        Block::ToolCall(call) if with_tools => {
            Part::Call { id: &call.id, name: &call.name, input: object(&call.input) }
        }
        Block::ToolCall(call) => Part::Text(format!("[I called {} with {}]", call.name, call.input).into()),
        Block::ToolResult { call_id, content, is_error, .. } if with_tools => {
            let content = if content.trim().is_empty() { NO_OUTPUT } else { content };
            Part::Result { id: call_id, content, is_error: *is_error }
        }
        Block::ToolResult { name, content, .. } => Part::Text(format!("[{name} gave: {content}]").into()),
        Block::Image { media_type, file, .. } => match request.images.base64(*file) {
            Ok((_, base64)) => match FORMATS.iter().find(|(kind, _)| kind == media_type) {
                Some((_, format)) => Part::Image { format, base64 },
                None => Part::Text(format!("[image: {media_type} cannot be shown to this model]").into()),
            },
            Err(note) => Part::Text(Cow::Borrowed(note)),
        },
        Block::Reasoning(thought) if request.is_own(thought) => Part::Thought(serde_json::from_str(&thought.raw).ok()?),
        Block::Reasoning(_) => return None,
    })
}

/// The arguments of a past call as an object.
fn object(input: &str) -> &RawValue {
    // What `object_text` gives is an object, so nothing becomes null.
    serde_json::from_str(object_text(input)).unwrap_or(RawValue::NULL)
}

#[cfg(test)]
mod tests {
    use agentsvc_components::session::message::Reasoning;

    use super::*;
    use crate::model::images::Images;
    use crate::model::provider::DriverKind;
    use crate::model::testing::{ATTEMPT, call, prompt, result, target, text};
    use crate::model::{Purpose, Request};

    fn lines(messages: Vec<(Role, Vec<Block>)>, with_tools: bool) -> Vec<String> {
        let (target, images, prompt) = (target(DriverKind::Anthropic, "http://h"), Images::default(), prompt(messages));
        let request = Request {
            attempt: ATTEMPT,
            target: &target,
            purpose: Purpose::Turn,
            temperature: None,
            max_tokens: None,
            prompt: &prompt,
            images: &images,
            tools: &[],
            asked: None,
            streaming: false,
        };
        let part = |part: &Part<'_>| match part {
            Part::Text(text) => text.to_string(),
            Part::Call { id, input, .. } => format!("call {id} {input}"),
            Part::Result { id, content, .. } => format!("result {id} {content}"),
            Part::Thought(raw) => format!("thought {raw}"),
            Part::Image { .. } => "image".to_owned(),
        };
        let said = alternating(&request, with_tools);
        let side = |said: &Said<'_>| if said.is_user { "user" } else { "model" };
        let line = |said: &Said<'_>| {
            format!("{}: {}", side(said), said.parts.iter().map(part).collect::<Vec<_>>().join(" | "))
        };
        said.iter().map(line).collect()
    }

    fn thought(model: &str) -> Block {
        let (wire, raw) = ("anthropic".to_owned(), "{\"t\":1}".to_owned());
        Block::Reasoning(Reasoning { wire, model: model.to_owned(), text: String::new(), raw })
    }

    #[test]
    fn two_take_turns() {
        let messages = || {
            vec![
                (Role::User, vec![text("a"), text(" \n")]),
                (Role::Assistant, vec![text("")]),
                (Role::User, vec![text("b")]),
                (Role::Assistant, vec![thought("m"), thought("other"), text("c"), call("1", "{broken")]),
                (Role::Assistant, vec![call("2", "{\"x\":1}")]),
                (Role::Tool, vec![result("1", " ", true), result("2", "rain", false)]),
                (Role::User, vec![text("d")]),
            ]
        };
        let expected = [
            "user: a | b",
            "model: thought {\"t\":1} | c | call 1 {} | call 2 {\"x\":1}",
            "user: result 1 (no output) | result 2 rain | d",
        ];
        assert_eq!(lines(messages(), true), expected);
        let expected = [
            "user: a | b",
            "model: thought {\"t\":1} | c | [I called t with {broken] | [I called t with {\"x\":1}]",
            "user: [t gave:  ] | [t gave: rain] | d",
        ];
        assert_eq!(lines(messages(), false), expected);
    }
}
