//! From a generateContent response, whole or in stream events, to the draft.
//!
//! | finishReason | the answer |
//! |---|---|
//! | STOP | ends |
//! | MAX_TOKENS | is cut |
//! | SAFETY, RECITATION, BLOCKLIST, PROHIBITED_CONTENT, SPII, LANGUAGE, IMAGE_... | is withheld |
//! | MALFORMED_FUNCTION_CALL, UNEXPECTED_TOOL_CALL, OTHER, ... before anything was said | is an error that may pass |
//! | the same after that, and whatever else | ends |
//!
//! A prompt that is blocked has no candidate, only a `promptFeedback`: that is a refusal.

use agentsvc_components::session::message::Usage;
use agentsvc_components::turn::outcome::{FailureCode, StopReason};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

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
    /// The model has said or called something.
    has_spoken: bool,
}

/// A signature as it is kept, in the provider's own words.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Signed {
    /// It belongs to the thought itself; else to the part behind it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) thought: bool,
    /// What the model signed, opaque.
    pub(super) thought_signature: String,
}

impl Answer for State {
    fn frame(&mut self, target: &Target, frame: Frame<'_>, draft: &mut Draft) -> Result<Progress, CallError> {
        let generated: Generated = match reading::said(target, frame.data)? {
            Said::Nothing => return Ok(Progress::More),
            Said::Done => return Ok(Progress::Done),
            Said::Event(generated) => generated,
        };
        apply(target, generated, self, draft)?;
        // Nothing says that an event is the last one: the end of the body does.
        Ok(Progress::of(draft))
    }

    fn whole(&mut self, target: &Target, body: &[u8], draft: &mut Draft) -> Result<(), CallError> {
        let generated: Generated = reading::whole(target, body, "not a generateContent response")?;
        if !apply(target, generated, self, draft)? {
            return Err(failure::protocol(target, "no candidates"));
        }
        Ok(())
    }
}

/// Applies what one JSON document says; true when it held a candidate.
fn apply(target: &Target, generated: Generated, state: &mut State, draft: &mut Draft) -> Result<bool, CallError> {
    if let Some(error) = &generated.error {
        return Err(failure::in_answer(target, error));
    }
    if let Some(usage) = generated.usage_metadata.and_then(WireUsage::counted) {
        draft.set_usage(usage);
    }
    let Some(candidate) = generated.candidates.into_iter().flatten().find(|of| of.index.unwrap_or(0) == 0) else {
        let blocked = generated.prompt_feedback.and_then(|feedback| feedback.block_reason);
        return blocked.map_or(Ok(false), |reason| Err(blocked_prompt(target, &reason)));
    };
    for part in candidate.content.into_iter().flat_map(|content| content.parts).flatten() {
        apply_part(part, state, draft);
    }
    if let Some(reason) = candidate.finish_reason.as_deref().filter(|reason| !reason.is_empty()) {
        draft.set_stop(stop_reason(target, reason, state.has_spoken)?);
    }
    Ok(true)
}

fn apply_part(part: WirePart, state: &mut State, draft: &mut Draft) {
    let thought = part.thought.unwrap_or(false);
    let text = part.text.as_deref().unwrap_or_default();
    if thought {
        draft.push_thought(text);
    }
    if let Some(signature) = part.thought_signature.filter(|signature| !signature.is_empty()) {
        let signed = Signed { thought, thought_signature: signature };
        // A struct of texts is always written.
        draft.close_thought(&serde_json::to_string(&signed).unwrap_or_default());
    }
    if !thought && !text.is_empty() {
        state.has_spoken = true;
        draft.push_text(text);
    }
    if let Some(call) = part.function_call {
        state.has_spoken = true;
        draft.push_call(CallPiece {
            index: None,
            id: call.id.as_deref().unwrap_or_default(),
            name: call.name.as_deref().unwrap_or_default(),
            arguments: call.args.as_deref().map_or("{}", RawValue::get),
        });
    }
}

/// The prompt was not answered at all.
fn blocked_prompt(target: &Target, reason: &str) -> CallError {
    let message = format!("Provider {} refused the prompt: {}.", target.provider, words_of(reason));
    CallError::last(FailureCode::ProviderRefused, message)
}

fn stop_reason(target: &Target, word: &str, has_spoken: bool) -> Result<StopReason, CallError> {
    Ok(match word {
        "MAX_TOKENS" => StopReason::Length,
        "SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" | "LANGUAGE" => StopReason::Filtered,
        _ if word.starts_with("IMAGE_") => StopReason::Filtered,
        "MALFORMED_FUNCTION_CALL"
        | "UNEXPECTED_TOOL_CALL"
        | "TOO_MANY_TOOL_CALLS"
        | "MALFORMED_RESPONSE"
        | "MISSING_THOUGHT_SIGNATURE"
        | "OTHER"
            if !has_spoken =>
        {
            let message = format!("Provider {} returned no answer: {}.", target.provider, words_of(word));
            return Err(CallError::passing(FailureCode::ProviderProtocol, message));
        }
        _ => StopReason::End,
    })
}

/// `MALFORMED_FUNCTION_CALL` as `malformed function call`.
fn words_of(word: &str) -> String {
    let plain = word.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').take(60);
    plain.map(|c| if c == '_' { ' ' } else { c.to_ascii_lowercase() }).collect()
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Generated {
    candidates: Option<Vec<Candidate>>,
    prompt_feedback: Option<PromptFeedback>,
    #[serde(default, deserialize_with = "crate::model::reading::counts")]
    usage_metadata: Option<WireUsage>,
    error: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PromptFeedback {
    block_reason: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate {
    index: Option<u32>,
    content: Option<WireContent>,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct WireContent {
    parts: Option<Vec<WirePart>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WirePart {
    text: Option<String>,
    thought: Option<bool>,
    thought_signature: Option<String>,
    function_call: Option<WireCall>,
}

#[derive(Deserialize)]
struct WireCall {
    id: Option<String>,
    name: Option<String>,
    args: Option<Box<RawValue>>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireUsage {
    /// Cached ones included.
    prompt_token_count: Option<u64>,
    /// Of the results of the provider's own tools.
    tool_use_prompt_token_count: Option<u64>,
    cached_content_token_count: Option<u64>,
    candidates_token_count: Option<u64>,
    thoughts_token_count: Option<u64>,
}

impl WireUsage {
    fn counted(self) -> Option<Usage> {
        let of = |tokens: Option<u64>| tokens.unwrap_or(0);
        let input = of(self.prompt_token_count).saturating_add(of(self.tool_use_prompt_token_count));
        let output = of(self.candidates_token_count).saturating_add(of(self.thoughts_token_count));
        let cached_input_tokens = of(self.cached_content_token_count).min(input);
        (input.saturating_add(output) > 0).then_some(Usage { cached_input_tokens, ..Usage::of(input, output) })
    }
}

#[cfg(test)]
mod tests {
    use agentsvc_components::session::message::{Block, text_of};
    use agentsvc_components::turn::outcome::ModelAnswer;

    use super::*;
    use crate::model::gemini::Gemini;
    use crate::model::provider::DriverKind;
    use crate::model::testing;

    fn target() -> Target {
        testing::target(DriverKind::Gemini, "https://h")
    }

    fn whole(body: &str) -> Result<ModelAnswer, CallError> {
        testing::whole(&Gemini, &target(), body)
    }

    fn streamed(events: &[&str]) -> Result<ModelAnswer, CallError> {
        let frames: Vec<(&str, &str)> = events.iter().map(|event| ("", *event)).collect();
        testing::streamed(&Gemini, &target(), &frames)
    }

    fn shown(block: &Block) -> String {
        match block {
            Block::Text { text } => text.clone(),
            Block::ToolCall(call) => format!("{} {} {}", call.id, call.name, call.input),
            Block::Reasoning(thought) => format!("({}) {}", thought.text, thought.raw),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn a_whole_answer_with_thoughts_and_calls() {
        let answer = whole(
            r#"{"candidates":[{"content":{"role":"model","parts":[
                {"text":"Let me think.","thought":true},
                {"text":"Looking."},
                {"functionCall":{"name":"t","args":{"x":"\u00e9"}},"thoughtSignature":"c2ln"},
                {"functionCall":{"id":"abc","name":"u"}}]},"finishReason":"STOP","index":0}],
            "usageMetadata":{"promptTokenCount":30,"cachedContentTokenCount":20,"candidatesTokenCount":4,
                "thoughtsTokenCount":5,"totalTokenCount":39},"modelVersion":"m"}"#,
        )
        .unwrap();
        let expected = [
            "(Let me think.) ",
            "Looking.",
            "() {\"thoughtSignature\":\"c2ln\"}",
            "call_1_0 t {\"x\":\"\\u00e9\"}",
            "abc u {}",
        ];
        assert_eq!(answer.blocks.iter().map(shown).collect::<Vec<_>>(), expected);
        assert_eq!(answer.usage, Usage { cached_input_tokens: 20, ..Usage::of(30, 9) });
        assert_eq!(answer.stop, StopReason::ToolUse);
    }

    #[test]
    fn a_stream_ends_with_its_body_and_signs_late() {
        let part = |part: &str| format!(r#"{{"candidates":[{{"content":{{"parts":[{part}]}}}}]}}"#);
        let last = r#"{"candidates":[{"content":{"parts":[{"text":"","thoughtSignature":"late"}]},"finishReason":"STOP"}],
            "usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":2}}"#;
        let signed = part(r#"{"text":"b","thought":true,"thoughtSignature":"s"}"#);
        let events =
            [part(r#"{"text":"a","thought":true}"#), signed, part(r#"{"text":"x "}"#), part(r#"{"text":"y"}"#)];
        let events: Vec<&str> = events.iter().map(String::as_str).chain([last]).collect();
        let answer = streamed(&events).unwrap();
        let expected =
            ["(ab) {\"thought\":true,\"thoughtSignature\":\"s\"}", "x y", "() {\"thoughtSignature\":\"late\"}"];
        assert_eq!(answer.blocks.iter().map(shown).collect::<Vec<_>>(), expected);
        assert_eq!((answer.stop, answer.usage), (StopReason::End, Usage::of(3, 2)));
        let cut = streamed(&events[..4]).unwrap_err();
        assert!(cut.message.contains("closed the connection") && cut.retryable, "{}", cut.message);
    }

    #[test]
    fn finish_reasons() {
        let of = |word: &str, text: &str| {
            let parts = if text.is_empty() { String::new() } else { format!(r#"{{"text":"{text}"}}"#) };
            let body = format!(r#"{{"candidates":[{{"content":{{"parts":[{parts}]}},"finishReason":"{word}"}}]}}"#);
            whole(&body).map(|answer| answer.stop).map_err(|error| (error.code, error.retryable))
        };
        for (word, reason) in [
            ("STOP", StopReason::End),
            ("MAX_TOKENS", StopReason::Length),
            ("SAFETY", StopReason::Filtered),
            ("RECITATION", StopReason::Filtered),
            ("SPII", StopReason::Filtered),
            ("IMAGE_SAFETY", StopReason::Filtered),
            ("OTHER", StopReason::End),
            ("SOMETHING_NEW", StopReason::End),
        ] {
            assert_eq!(of(word, "x"), Ok(reason), "{word}");
        }
        assert_eq!(of("SAFETY", ""), Ok(StopReason::Filtered));
        for word in ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "OTHER"] {
            assert_eq!(of(word, ""), Err((FailureCode::ProviderProtocol, true)), "{word}");
        }
    }

    #[test]
    fn a_blocked_prompt_is_refused() {
        let body = r#"{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"usageMetadata":{"promptTokenCount":3}}"#;
        for error in [whole(body).unwrap_err(), streamed(&[body]).unwrap_err()] {
            assert_eq!((error.code, error.retryable), (FailureCode::ProviderRefused, false));
            assert!(error.message.contains("prohibited content"), "{}", error.message);
        }
    }

    #[test]
    fn errors_in_place_of_answers_and_what_cannot_be_read() {
        let busy = r#"{"error":{"code":503,"message":"overloaded","status":"UNAVAILABLE"}}"#;
        for error in [whole(busy).unwrap_err(), streamed(&[busy]).unwrap_err()] {
            assert_eq!((error.code, error.retryable), (FailureCode::ProviderError, true));
        }
        for body in ["", "<html>", "[]", "{}", r#"{"candidates":[]}"#, r#"{"candidates":7}"#] {
            assert_eq!(whole(body).unwrap_err().code, FailureCode::ProviderProtocol, "{body}");
        }
        assert_eq!(streamed(&["{oops"]).unwrap_err().code, FailureCode::ProviderProtocol);
        let empty = whole(r#"{"candidates":[{"finishReason":"STOP"}]}"#).unwrap();
        assert_eq!((text_of(&empty.blocks).as_str(), empty.stop), ("", StopReason::End));
    }
}
