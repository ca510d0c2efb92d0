//! From a chat completion, whole or in stream events, to the draft.
//!
//! Lenient where providers differ: calls without index, usage in any event, thoughts under several names, an `error` in
//! place of choices.

use agentsvc_api::http::json::memory_bytes;
use agentsvc_components::kernel::limit;
use agentsvc_components::turn::outcome::StopReason;
use serde_json::{Map, Value};

use super::completion::{Completion, Message};
use crate::model::draft::{CallPiece, Draft};
use crate::model::error::CallError;
use crate::model::failure;
use crate::model::frames::Frame;
use crate::model::provider::Target;
use crate::model::reading;
use crate::model::reading::Said;
use crate::model::wire::{Answer, Progress};

/// What is remembered from event to event.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// The blocks of thoughts (`reasoning_details`), their pieces joined.
    details: Vec<Map<String, Value>>,
    /// Bytes of them; beyond [`limit::ANSWER_BYTES_MAX`] they are given up, as half of them is of no use.
    details_bytes: usize,
}

impl Answer for State {
    fn frame(&mut self, target: &Target, frame: Frame<'_>, draft: &mut Draft) -> Result<Progress, CallError> {
        let completion: Completion = match reading::said(target, frame.data)? {
            Said::Nothing => return Ok(Progress::More),
            Said::Done => return Ok(Progress::Done),
            Said::Event(completion) => completion,
        };
        apply(target, completion, self, draft)?;
        Ok(Progress::of(draft))
    }

    fn whole(&mut self, target: &Target, body: &[u8], draft: &mut Draft) -> Result<(), CallError> {
        let completion: Completion = reading::whole(target, body, "not a chat completion")?;
        if !apply(target, completion, self, draft)? {
            return Err(failure::protocol(target, "no choices"));
        }
        Ok(())
    }
}

/// Applies what one JSON document says; true when it held the choice that we read.
fn apply(target: &Target, completion: Completion, state: &mut State, draft: &mut Draft) -> Result<bool, CallError> {
    if let Some(error) = &completion.error {
        return Err(failure::in_answer(target, error));
    }
    if let Some(usage) = completion.usage() {
        draft.set_usage(usage);
    }
    let choice = completion.choices.unwrap_or_default().into_iter().find(|choice| choice.index.unwrap_or(0) == 0);
    let Some(choice) = choice else { return Ok(false) };
    let is_whole = choice.message.is_some();
    if let Some(message) = choice.delta.or(choice.message) {
        apply_message(message, state, draft);
    }
    let reason = choice.finish_reason.as_deref().filter(|reason| !reason.is_empty());
    if let Some(reason) = reason {
        draft.set_stop(stop_reason(reason));
    }
    if reason.is_some() || is_whole {
        state.keep_details(draft);
    }
    Ok(true)
}

fn apply_message(message: Message, state: &mut State, draft: &mut Draft) {
    // Some say the same under both names.
    if let Some(thought) = message.reasoning_content.or(message.reasoning) {
        draft.push_thought(&thought.said);
    }
    for detail in message.reasoning_details.into_iter().flatten() {
        state.push_detail(detail);
    }
    if let Some(content) = message.content {
        draft.push_thought(&content.thought);
        draft.push_text(&content.said);
    }
    if let Some(refusal) = message.refusal.filter(|refusal| !refusal.is_empty()) {
        draft.push_text(&refusal);
        draft.set_stop(StopReason::Filtered);
    }
    for call in message.tool_calls.into_iter().flatten() {
        let function = call.function.unwrap_or_default();
        draft.push_call(CallPiece {
            index: call.index,
            id: call.id.as_deref().unwrap_or_default(),
            name: function.name.as_deref().unwrap_or_default(),
            arguments: function.arguments.as_ref().map_or("", |arguments| &arguments.0),
        });
    }
}

impl State {
    /// Adds a block of a thought, or more of the last one: the same index, the same type.
    fn push_detail(&mut self, detail: Value) {
        let Value::Object(detail) = detail else { return };
        self.details_bytes += detail.values().map(|value| bytes_of(value) + 16).sum::<usize>();
        if self.details_bytes > limit::ANSWER_BYTES_MAX {
            return self.details.clear();
        }
        let is_more = |last: &&mut Map<String, Value>| {
            detail.contains_key("index") && ["index", "type"].iter().all(|key| last.get(*key) == detail.get(*key))
        };
        let Some(last) = self.details.last_mut().filter(is_more) else { return self.details.push(detail) };
        for (key, value) in detail {
            match (last.get_mut(&key), value) {
                (Some(Value::String(there)), Value::String(more)) if is_text(&key) => there.push_str(&more),
                (_, Value::Null) => {}
                (_, value) => drop(last.insert(key, value)),
            }
        }
    }

    /// The answer is whole: its blocks of thoughts are kept behind it, as one.
    fn keep_details(&mut self, draft: &mut Draft) {
        let details: Vec<Value> = std::mem::take(&mut self.details).into_iter().map(Value::Object).collect();
        if !details.is_empty() {
            draft.close_thought(&Value::Array(details).to_string());
        }
    }
}

/// Bytes that a value takes, about.
fn bytes_of(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(_) | Value::Object(_) => memory_bytes(value.to_string().as_bytes()),
        _ => 16,
    }
}

/// The keys of a block whose text comes in pieces.
fn is_text(key: &str) -> bool {
    matches!(key, "text" | "summary" | "data")
}

fn stop_reason(word: &str) -> StopReason {
    match word {
        "tool_calls" | "function_call" | "tool_use" => StopReason::ToolUse,
        "length" | "max_tokens" | "model_length" => StopReason::Length,
        "content_filter" | "safety" => StopReason::Filtered,
        // `stop`, `eos`, `end_turn` and whatever else a provider calls its ordinary end.
        _ => StopReason::End,
    }
}

#[cfg(test)]
#[path = "answer_tests.rs"]
mod tests;
