//! From a Converse answer, whole or in messages of its stream, to the draft.

use agentsvc_components::session::message::Usage;
use agentsvc_components::turn::outcome::{FailureCode, StopReason};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::model::aws_frames::EXCEPTION;
use crate::model::draft::{CallPiece, Draft};
use crate::model::error::CallError;
use crate::model::failure;
use crate::model::frames::Frame;
use crate::model::provider::Target;
use crate::model::reading;
use crate::model::wire::{Answer, Progress};

/// What is remembered from message to message: the block that is being written.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    /// It is a call; whether any of its arguments have come.
    call: Option<bool>,
    thought: Thought,
}

/// A thought, as the provider will want it back.
#[derive(Debug, Default)]
struct Thought {
    text: String,
    signature: String,
    /// In base64.
    redacted: String,
}

impl Answer for Blocks {
    fn frame(&mut self, target: &Target, frame: Frame<'_>, draft: &mut Draft) -> Result<Progress, CallError> {
        if let Some(exception) = frame.name.strip_prefix(EXCEPTION) {
            return Err(error(target, exception, frame.data));
        }
        let event: Event = reading::event(target, frame.data)?;
        match frame.name {
            "contentBlockStart" => {
                if let Some(call) = event.start.and_then(|start| start.tool_use) {
                    self.call = Some(false);
                    let index = event.content_block_index;
                    draft.push_call(CallPiece { index, id: &call.tool_use_id, name: &call.name, arguments: "" });
                }
            }
            "contentBlockDelta" => {
                if let Some(delta) = event.delta {
                    self.go_on(delta, event.content_block_index, draft);
                }
            }
            "contentBlockStop" => self.end(event.content_block_index, draft),
            "messageStop" => set_stop(target, event.stop_reason.as_deref(), draft)?,
            // The last one.
            "metadata" => {
                if let Some(usage) = event.usage {
                    draft.set_usage(usage.counted());
                }
                return Ok(Progress::Done);
            }
            // `messageStart`, and events of later versions.
            _ => {}
        }
        Ok(Progress::of(draft))
    }

    fn whole(&mut self, target: &Target, body: &[u8], draft: &mut Draft) -> Result<(), CallError> {
        let answer: Converse = reading::whole(target, body, "not a Converse response")?;
        let output = answer.output.ok_or_else(|| failure::protocol(target, "no output"))?;
        for raw in output.message.content {
            let block: Block = serde_json::from_str(raw.get())
                .map_err(|_| failure::protocol(target, "a content block cannot be read"))?;
            draft.push_text(block.text.as_deref().unwrap_or_default());
            if let Some(call) = block.tool_use {
                let arguments = call.input.as_deref().map_or("{}", RawValue::get);
                draft.push_call(CallPiece { index: None, id: &call.tool_use_id, name: &call.name, arguments });
            }
            if let Some(thought) = block.reasoning_content {
                let text = thought.reasoning_text.and_then(|reasoning| reasoning.text);
                draft.push_thought(text.as_deref().unwrap_or_default());
                draft.close_thought(raw.get());
            }
        }
        if let Some(usage) = answer.usage {
            draft.set_usage(usage.counted());
        }
        set_stop(target, answer.stop_reason.as_deref(), draft)
    }
}

impl Blocks {
    fn go_on(&mut self, delta: Delta, index: Option<u32>, draft: &mut Draft) {
        if let Some(text) = delta.text {
            draft.push_text(&text);
        }
        if let Some(call) = delta.tool_use {
            self.call = Some(self.call == Some(true) || !call.input.is_empty());
            draft.push_call(CallPiece { index, arguments: &call.input, ..CallPiece::default() });
        }
        if let Some(thought) = delta.reasoning_content {
            if let Some(text) = thought.text {
                draft.push_thought(&text);
                keep(&text, &mut self.thought.text, draft);
            }
            keep(&thought.signature.unwrap_or_default(), &mut self.thought.signature, draft);
            keep(&thought.redacted_content.unwrap_or_default(), &mut self.thought.redacted, draft);
        }
    }

    fn end(&mut self, index: Option<u32>, draft: &mut Draft) {
        if self.call.take() == Some(false) {
            draft.push_call(CallPiece { index, arguments: "{}", ..CallPiece::default() });
        }
        let Thought { text, signature, redacted } = std::mem::take(&mut self.thought);
        let content = if !redacted.is_empty() {
            json!({"redactedContent": redacted})
        } else if !signature.is_empty() {
            json!({"reasoningText": {"text": text, "signature": signature}})
        } else if !text.is_empty() {
            json!({"reasoningText": {"text": text}})
        } else {
            return;
        };
        draft.close_thought(&json!({"reasoningContent": content}).to_string());
    }
}

/// Adds a piece to what goes into the block of a thought.
fn keep(piece: &str, kept: &mut String, draft: &mut Draft) {
    if draft.keep(piece.len()) {
        kept.push_str(piece);
    }
}

fn set_stop(target: &Target, word: Option<&str>, draft: &mut Draft) -> Result<(), CallError> {
    let Some(word) = word else { return Ok(()) };
    let stop = match word {
        "tool_use" => StopReason::ToolUse,
        "max_tokens" | "model_context_window_exceeded" => StopReason::Length,
        "guardrail_intervened" | "content_filtered" => StopReason::Filtered,
        // What the model may write rightly the next time.
        "malformed_tool_use" | "malformed_model_output" => {
            let message = format!("The model of provider {} wrote malformed output ({word}).", target.provider);
            return Err(CallError::passing(FailureCode::ProviderProtocol, message));
        }
        // `end_turn`, `stop_sequence` and later ones.
        _ => StopReason::End,
    };
    draft.set_stop(stop);
    Ok(())
}

/// An exception in the middle of an answer: its name stands for the status it would have had.
fn error(target: &Target, exception: &str, payload: &str) -> CallError {
    let status = match exception {
        "validationException" => 400,
        "accessDeniedException" => 403,
        "modelTimeoutException" => 408,
        "modelStreamErrorException" => 424,
        "throttlingException" => 429,
        "serviceUnavailableException" => 503,
        _ => 500,
    };
    let error = serde_json::from_str(payload).unwrap_or_else(|_| Value::from(exception));
    failure::as_status(target, status, &error)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event {
    content_block_index: Option<u32>,
    start: Option<Start>,
    delta: Option<Delta>,
    stop_reason: Option<String>,
    #[serde(default, deserialize_with = "crate::model::reading::counts")]
    usage: Option<WireUsage>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Start {
    tool_use: Option<Call>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Call {
    tool_use_id: String,
    name: String,
    /// In whole answers.
    input: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Delta {
    text: Option<String>,
    tool_use: Option<CallDelta>,
    reasoning_content: Option<ThoughtDelta>,
}

#[derive(Deserialize)]
struct CallDelta {
    input: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ThoughtDelta {
    text: Option<String>,
    signature: Option<String>,
    redacted_content: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Converse {
    output: Option<Output>,
    stop_reason: Option<String>,
    #[serde(default, deserialize_with = "crate::model::reading::counts")]
    usage: Option<WireUsage>,
}

#[derive(Deserialize)]
struct Output {
    message: Message,
}

#[derive(Deserialize)]
struct Message {
    content: Vec<Box<RawValue>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Block {
    text: Option<String>,
    tool_use: Option<Call>,
    reasoning_content: Option<WholeThought>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WholeThought {
    reasoning_text: Option<ReasoningText>,
}

#[derive(Deserialize)]
struct ReasoningText {
    text: Option<String>,
}

/// The counts. What was read from the cache and what was written to it stand beside the rest of the prompt.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireUsage {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_write_input_tokens: Option<u64>,
}

impl WireUsage {
    fn counted(self) -> Usage {
        let (cached, written) = (self.cache_read_input_tokens, self.cache_write_input_tokens);
        reading::beside_the_cache(self.input_tokens, cached, written, self.output_tokens)
    }
}

#[cfg(test)]
#[path = "answer_tests.rs"]
mod tests;
