//! From a response, whole or in stream events, to the draft.
//!
//! A stream says most things more than once: as deltas, when an item is done, and in the response at its end. Deltas
//! count; what is done counts where no delta came, as from servers that send none.

use std::collections::HashSet;

use agentsvc_components::kernel::limit;
use agentsvc_components::session::message::Usage;
use agentsvc_components::turn::outcome::{FailureCode, StopReason};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::model::draft::{CallPiece, Draft};
use crate::model::error::{CallError, provider_words};
use crate::model::failure;
use crate::model::frames::Frame;
use crate::model::provider::{Secret, Target};
use crate::model::reading;
use crate::model::reading::Said;
use crate::model::wire::{Answer, Progress};

/// Items of one response that are told apart; an answer has no more pieces. Beyond it the answer is cut.
const ITEMS_MAX: usize = limit::ANSWER_BYTES_MAX / 64;
/// What stands between two parts of a summary.
const PARTS_APART: &str = "\n\n";

/// What is remembered from event to event.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// Output indexes of calls that have begun.
    called: HashSet<u32>,
    /// Output indexes of items of which deltas came.
    told: HashSet<u32>,
}

impl Answer for State {
    fn frame(&mut self, target: &Target, frame: Frame<'_>, draft: &mut Draft) -> Result<Progress, CallError> {
        let event: Event = match reading::said(target, frame.data)? {
            Said::Nothing => return Ok(Progress::More),
            Said::Done => return Ok(Progress::Done),
            Said::Event(event) => event,
        };
        let kind = event.kind.as_deref().unwrap_or(frame.name);
        let at = event.output_index.unwrap_or(0);
        let delta = event.delta.as_deref().unwrap_or_default();
        if self.told.len() + self.called.len() > ITEMS_MAX {
            return Ok(Progress::Full);
        }
        match kind {
            "response.output_text.delta" => {
                self.told.insert(at);
                draft.push_text(delta);
            }
            "response.refusal.delta" => {
                self.told.insert(at);
                draft.push_text(delta);
                draft.set_stop(StopReason::Filtered);
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.told.insert(at);
                draft.push_thought(delta);
            }
            "response.reasoning_summary_part.added" if event.summary_index.unwrap_or(0) > 0 => {
                draft.push_thought(PARTS_APART);
            }
            "response.function_call_arguments.delta" => {
                self.told.insert(at);
                draft.push_call(CallPiece { index: Some(at), arguments: delta, ..CallPiece::default() });
            }
            "response.function_call_arguments.done" if self.told.insert(at) => {
                let arguments = event.arguments.as_deref().unwrap_or_default();
                draft.push_call(CallPiece { index: Some(at), arguments, ..CallPiece::default() });
            }
            "response.output_item.added" => begin_item(target, event.item.as_deref(), at, self, draft)?,
            "response.output_item.done" => end_item(target, event.item.as_deref(), at, self, draft)?,
            "response.completed" | "response.incomplete" | "response.failed" => {
                let response = event.response.ok_or_else(|| {
                    failure::protocol(
                        target,
                        "the final event has no \
                    response",
                    )
                })?;
                conclude(target, response, draft)?;
                return Ok(Progress::Done);
            }
            "error" => {
                let inner = event.error.unwrap_or_default();
                let code = inner["code"].as_str().or(event.code.as_deref());
                let message = inner["message"].as_str().or(event.message.as_deref());
                return Err(failed(target, code, message));
            }
            // Whatever else is told has been told, or will be.
            _ => {}
        }
        Ok(Progress::of(draft))
    }

    fn whole(&mut self, target: &Target, body: &[u8], draft: &mut Draft) -> Result<(), CallError> {
        let response: Response = reading::whole(target, body, "not a response")?;
        if response.error.is_none() && response.output.is_none() {
            return Err(failure::protocol(target, "no output"));
        }
        for (at, raw) in (0..).zip(response.output.iter().flatten()) {
            end_item(target, Some(raw), at, self, draft)?;
        }
        conclude(target, response, draft)
    }
}

/// An item begins: a call has its name now, everything else comes later.
fn begin_item(
    target: &Target,
    raw: Option<&RawValue>,
    at: u32,
    state: &mut State,
    draft: &mut Draft,
) -> Result<(), CallError> {
    let item = item(target, raw)?;
    if item.kind == "function_call" && state.called.insert(at) {
        draft.push_call(CallPiece { index: Some(at), id: item.call_id(), name: item.name(), arguments: "" });
    }
    Ok(())
}

/// An item is whole.
fn end_item(
    target: &Target,
    raw: Option<&RawValue>,
    at: u32,
    state: &mut State,
    draft: &mut Draft,
) -> Result<(), CallError> {
    let item = item(target, raw)?;
    let is_told = state.told.contains(&at);
    match item.kind.as_ref() {
        "function_call" => {
            let (id, name) = if state.called.insert(at) { (item.call_id(), item.name()) } else { ("", "") };
            let arguments = if is_told { "" } else { item.arguments.as_deref().unwrap_or_default() };
            draft.push_call(CallPiece { index: Some(at), id, name, arguments });
        }
        "reasoning" => {
            let parts = if is_told { Vec::new() } else { item.thoughts() };
            draft.push_thought(&parts.join(PARTS_APART));
            // Without its seal the provider would not know it again: nothing is stored there.
            let is_sealed = item.encrypted_content.as_deref().is_some_and(|seal| !seal.is_empty());
            draft.close_thought(raw.filter(|_| is_sealed).map_or("", RawValue::get));
        }
        "message" if !is_told => {
            for part in item.content.iter().flatten() {
                match part.kind.as_ref() {
                    "refusal" => {
                        draft.push_text(part.refusal.as_deref().unwrap_or_default());
                        draft.set_stop(StopReason::Filtered);
                    }
                    _ => draft.push_text(part.text.as_deref().unwrap_or_default()),
                }
            }
        }
        _ => {}
    }
    Ok(())
}

/// The response is over.
fn conclude(target: &Target, response: Response, draft: &mut Draft) -> Result<(), CallError> {
    if let Some(usage) = response.usage.and_then(WireUsage::counted) {
        draft.set_usage(usage);
    }
    if let Some(error) = &response.error {
        return Err(failed(target, error["code"].as_str(), error["message"].as_str().or(error.as_str())));
    }
    let status = response.status.as_deref().unwrap_or("completed");
    let reason = response.incomplete_details.and_then(|details| details.reason);
    match (status, reason.as_deref()) {
        ("failed" | "cancelled", _) => return Err(failed(target, None, None)),
        ("incomplete", Some("content_filter")) => draft.set_stop(StopReason::Filtered),
        ("incomplete", _) => draft.set_stop(StopReason::Length),
        _ => draft.set_stop(StopReason::End),
    }
    Ok(())
}

/// The response failed after it had begun; the provider says why in a word.
fn failed(target: &Target, code: Option<&str>, message: Option<&str>) -> CallError {
    let words = provider_words(message.unwrap_or_default(), target.key.as_ref().map(Secret::expose));
    let behind = if words.is_empty() { ".".to_owned() } else { format!(": {words}") };
    let message = format!("Provider {} failed during its response{behind}", target.provider);
    match code.unwrap_or("server_error") {
        "rate_limit_exceeded" => CallError::passing(FailureCode::ProviderRateLimited, message),
        "insufficient_quota" => CallError::last(FailureCode::ProviderRateLimited, message),
        "server_error" | "internal_error" | "overloaded" | "server_overloaded" | "timeout" => {
            CallError::passing(FailureCode::ProviderError, message)
        }
        _ => CallError::last(FailureCode::ProviderRefused, message),
    }
}

fn item(target: &Target, raw: Option<&RawValue>) -> Result<Item, CallError> {
    let raw = raw.map_or("{}", RawValue::get);
    serde_json::from_str(raw).map_err(|_| failure::protocol(target, "an item of its output is malformed"))
}

#[derive(Deserialize)]
struct Event {
    #[serde(rename = "type")]
    kind: Option<String>,
    output_index: Option<u32>,
    summary_index: Option<u32>,
    delta: Option<String>,
    arguments: Option<String>,
    item: Option<Box<RawValue>>,
    response: Option<Response>,
    code: Option<String>,
    message: Option<String>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Response {
    status: Option<String>,
    output: Option<Vec<Box<RawValue>>>,
    #[serde(default, deserialize_with = "crate::model::reading::counts")]
    usage: Option<WireUsage>,
    error: Option<Value>,
    incomplete_details: Option<Incomplete>,
}

#[derive(Deserialize)]
struct Incomplete {
    reason: Option<String>,
}

#[derive(Deserialize)]
struct Item {
    #[serde(default, rename = "type")]
    kind: String,
    id: Option<String>,
    call_id: Option<String>,
    name: Option<String>,
    arguments: Option<String>,
    encrypted_content: Option<String>,
    summary: Option<Vec<Part>>,
    content: Option<Vec<Part>>,
}

impl Item {
    fn call_id(&self) -> &str {
        self.call_id.as_deref().or(self.id.as_deref()).unwrap_or_default()
    }

    fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }

    /// The parts of a thought that can be read: its summary, or the thought itself from open models.
    fn thoughts(&self) -> Vec<&str> {
        let parts = |parts: &'_ Option<Vec<Part>>| parts.as_ref().is_some_and(|parts| !parts.is_empty());
        let shown = if parts(&self.summary) { &self.summary } else { &self.content };
        shown.iter().flatten().filter_map(|part| part.text.as_deref()).collect()
    }
}

#[derive(Deserialize)]
struct Part {
    #[serde(default, rename = "type")]
    kind: String,
    text: Option<String>,
    refusal: Option<String>,
}

#[derive(Clone, Copy, Deserialize)]
struct WireUsage {
    input_tokens: Option<u64>,
    input_tokens_details: Option<WireDetails>,
    /// Those of thoughts included.
    output_tokens: Option<u64>,
}

#[derive(Clone, Copy, Deserialize)]
struct WireDetails {
    cached_tokens: Option<u64>,
}

impl WireUsage {
    fn counted(self) -> Option<Usage> {
        let (input, output) = (self.input_tokens.unwrap_or(0), self.output_tokens.unwrap_or(0));
        let cached = self.input_tokens_details.and_then(|details| details.cached_tokens).unwrap_or(0);
        let cached_input_tokens = cached.min(input);
        (input.saturating_add(output) > 0).then_some(Usage { cached_input_tokens, ..Usage::of(input, output) })
    }
}

#[cfg(test)]
#[path = "answer_tests.rs"]
mod tests;
