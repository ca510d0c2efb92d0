//! From a message, whole or in stream events, to the draft.

use std::collections::BTreeMap;

use agentsvc_components::session::message::Usage;
use agentsvc_components::turn::outcome::StopReason;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use crate::model::draft::{CallPiece, Draft};
use crate::model::error::CallError;
use crate::model::failure;
use crate::model::frames::Frame;
use crate::model::provider::Target;
use crate::model::reading;
use crate::model::wire::{Answer, Progress};

/// What is remembered from event to event.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    open: Open,
    usage: WireUsage,
}

/// A block of a thought as it began: what its keys hold is passed on as it came.
type ThoughtBlock = BTreeMap<String, Box<RawValue>>;

/// The block that is being written. One is whole before the next begins.
#[derive(Debug, Default)]
enum Open {
    /// None, or one that nobody reads.
    #[default]
    Other,
    /// A call; whether any of its arguments have come.
    Call { has_arguments: bool },
    /// A thought, as the provider will want it back.
    Thought { block: ThoughtBlock, thinking: String, signature: String },
}

impl Answer for Blocks {
    fn frame(&mut self, target: &Target, frame: Frame<'_>, draft: &mut Draft) -> Result<Progress, CallError> {
        let event: Event = reading::event(target, frame.data)?;
        let index = event.index;
        match &*event.kind {
            "error" => return Err(error(target, &event.error.unwrap_or_default())),
            "message_start" => {
                if let Some(usage) = event.message.and_then(|message| message.usage) {
                    self.usage.take(usage);
                    draft.set_prompt_usage(self.usage.counted());
                }
            }
            "content_block_start" => {
                if let Some(block) = event.content_block {
                    self.open = begin(target, &block, index, draft)?;
                }
            }
            "content_block_delta" => {
                if let Some(delta) = event.delta {
                    go_on(&mut self.open, delta, index, draft);
                }
            }
            "content_block_stop" => end(std::mem::take(&mut self.open), index, draft),
            "message_delta" => {
                if let Some(usage) = event.usage {
                    self.usage.take(usage);
                    draft.set_usage(self.usage.counted());
                }
                if let Some(reason) = event.delta.and_then(|delta| delta.stop_reason) {
                    draft.set_stop(stop_reason(&reason));
                }
            }
            "message_stop" => return Ok(Progress::Done),
            // `ping`, and events of later versions.
            _ => {}
        }
        Ok(Progress::of(draft))
    }

    fn whole(&mut self, target: &Target, body: &[u8], draft: &mut Draft) -> Result<(), CallError> {
        let message: Message = reading::whole(target, body, "not a message")?;
        if let Some(wrong) = message.error {
            return Err(error(target, &wrong));
        }
        let content = message.content.ok_or_else(|| failure::protocol(target, "no content"))?;
        for block in content {
            let open = begin(target, &block, None, draft)?;
            end(open, None, draft);
        }
        if let Some(usage) = message.usage {
            draft.set_usage(usage.counted());
        }
        if let Some(reason) = message.stop_reason {
            draft.set_stop(stop_reason(&reason));
        }
        Ok(())
    }
}

/// A block begins; in a whole message it is whole.
fn begin(target: &Target, raw: &RawValue, index: Option<u32>, draft: &mut Draft) -> Result<Open, CallError> {
    let malformed = |_| failure::protocol(target, "a content block cannot be read");
    let block: Block = serde_json::from_str(raw.get()).map_err(malformed)?;
    match &*block.kind {
        "text" => draft.push_text(block.text.as_deref().unwrap_or_default()),
        "tool_use" => {
            let input = block.input.as_deref().map(RawValue::get).filter(|input| !is_empty(input)).unwrap_or_default();
            let (id, name) = (block.id.as_deref().unwrap_or_default(), block.name.as_deref().unwrap_or_default());
            draft.push_call(CallPiece { index, id, name, arguments: input });
            return Ok(Open::Call { has_arguments: !input.is_empty() });
        }
        "thinking" if index.is_some() => {
            if !draft.keep(raw.get().len()) {
                return Ok(Open::Other);
            }
            let block = serde_json::from_str(raw.get()).map_err(malformed)?;
            return Ok(Open::Thought { block, thinking: String::new(), signature: String::new() });
        }
        "thinking" => {
            draft.push_thought(block.thinking.as_deref().unwrap_or_default());
            draft.close_thought(raw.get());
        }
        "redacted_thinking" => draft.close_thought(raw.get()),
        // Blocks of tools that run at the provider, which are not asked for.
        _ => {}
    }
    Ok(Open::Other)
}

fn is_empty(object: &str) -> bool {
    object.chars().filter(|c| !c.is_ascii_whitespace()).eq("{}".chars())
}

fn go_on(open: &mut Open, delta: Delta, index: Option<u32>, draft: &mut Draft) {
    if let Some(text) = delta.text {
        draft.push_text(&text);
    }
    if let (Some(piece), Open::Call { has_arguments }) = (delta.partial_json, &mut *open) {
        *has_arguments |= !piece.is_empty();
        draft.push_call(CallPiece { index, arguments: &piece, ..CallPiece::default() });
    }
    if let Open::Thought { thinking, signature, .. } = open {
        if let Some(piece) = delta.thinking {
            draft.push_thought(&piece);
            keep(&piece, thinking, draft);
        }
        keep(&delta.signature.unwrap_or_default(), signature, draft);
    }
}

/// Adds a piece to what goes into the block of a thought.
fn keep(piece: &str, kept: &mut String, draft: &mut Draft) {
    if draft.keep(piece.len()) {
        kept.push_str(piece);
    }
}

fn end(open: Open, index: Option<u32>, draft: &mut Draft) {
    match open {
        Open::Other | Open::Call { has_arguments: true } => {}
        Open::Call { has_arguments: false } => {
            draft.push_call(CallPiece { index, arguments: "{}", ..CallPiece::default() });
        }
        Open::Thought { mut block, thinking, signature } => {
            for (key, text) in [("thinking", thinking), ("signature", signature)] {
                // A text is always JSON.
                if let (false, Ok(text)) = (text.is_empty(), to_raw_value(&text)) {
                    block.insert(key.to_owned(), text);
                }
            }
            draft.close_thought(&serde_json::to_string(&block).unwrap_or_default());
        }
    }
}

fn stop_reason(word: &str) -> StopReason {
    match word {
        "tool_use" => StopReason::ToolUse,
        "max_tokens" | "model_context_window_exceeded" => StopReason::Length,
        "refusal" => StopReason::Filtered,
        // `end_turn`, `stop_sequence`, `pause_turn` (only with tools that run at the provider) and later ones.
        _ => StopReason::End,
    }
}

/// An error in place of an answer or in the middle of it: its type stands for the status it would have had.
fn error(target: &Target, error: &Value) -> CallError {
    let status = match error.get("type").and_then(Value::as_str).unwrap_or_default() {
        "invalid_request_error" => 400,
        "authentication_error" => 401,
        "billing_error" => 402,
        "permission_error" => 403,
        "not_found_error" => 404,
        "request_too_large" => 413,
        "rate_limit_error" => 429,
        "timeout_error" => 504,
        "overloaded_error" => 529,
        _ => 500,
    };
    failure::as_status(target, status, error)
}

#[derive(Deserialize)]
struct Event {
    #[serde(rename = "type")]
    kind: String,
    index: Option<u32>,
    message: Option<Started>,
    content_block: Option<Box<RawValue>>,
    delta: Option<Delta>,
    #[serde(default, deserialize_with = "crate::model::reading::counts")]
    usage: Option<WireUsage>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Started {
    #[serde(default, deserialize_with = "crate::model::reading::counts")]
    usage: Option<WireUsage>,
}

#[derive(Deserialize)]
struct Delta {
    text: Option<String>,
    partial_json: Option<String>,
    thinking: Option<String>,
    signature: Option<String>,
    stop_reason: Option<String>,
}

#[derive(Deserialize)]
struct Message {
    content: Option<Vec<Box<RawValue>>>,
    stop_reason: Option<String>,
    #[serde(default, deserialize_with = "crate::model::reading::counts")]
    usage: Option<WireUsage>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Block {
    #[serde(rename = "type")]
    kind: String,
    text: Option<String>,
    thinking: Option<String>,
    id: Option<String>,
    name: Option<String>,
    input: Option<Box<RawValue>>,
}

/// The counts. What was read from the cache and what was written to it stand beside the rest of the prompt.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
struct WireUsage {
    input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    output_tokens: Option<u64>,
}

impl WireUsage {
    /// Takes what `newer` says; counts grow while the answer is written.
    fn take(&mut self, newer: Self) {
        self.input_tokens = newer.input_tokens.or(self.input_tokens);
        self.cache_read_input_tokens = newer.cache_read_input_tokens.or(self.cache_read_input_tokens);
        self.cache_creation_input_tokens = newer.cache_creation_input_tokens.or(self.cache_creation_input_tokens);
        self.output_tokens = newer.output_tokens.or(self.output_tokens);
    }

    fn counted(self) -> Usage {
        let (cached, written) = (self.cache_read_input_tokens, self.cache_creation_input_tokens);
        reading::beside_the_cache(self.input_tokens, cached, written, self.output_tokens)
    }
}

#[cfg(test)]
#[path = "answer_tests.rs"]
mod tests;
