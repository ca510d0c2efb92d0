//! From a chat completion, whole or in stream events, to the draft.
//!
//! Lenient where providers differ: content as text or as a list of parts, arguments as text or as an object, calls
//! without index, usage in any event, an `error` in place of choices.

use std::borrow::Cow;
use std::fmt;

use agentsvc_components::message::Usage;
use agentsvc_components::outcome::StopReason;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer};
use serde_json::Value;

use crate::effects::model::draft::{CallPiece, Draft};
use crate::effects::model::error::CallError;
use crate::effects::model::failure;
use crate::effects::model::provider::Target;
use crate::effects::model::wire::Progress;

/// The data of the event that ends a stream.
const DONE: &str = "[DONE]";

/// Takes one event of a stream.
pub(super) fn read_event(target: &Target, event: &str, draft: &mut Draft) -> Result<Progress, CallError> {
    let event = event.trim();
    if event.is_empty() {
        return Ok(Progress::More);
    }
    if event == DONE {
        return Ok(Progress::Done);
    }
    let completion: Completion<'_> =
        serde_json::from_str(event).map_err(|_| failure::protocol(target, "an event holds malformed JSON"))?;
    apply(target, completion, draft)?;
    Ok(Progress::of(draft))
}

/// Takes a whole answer.
pub(super) fn read_whole(target: &Target, body: &[u8], draft: &mut Draft) -> Result<(), CallError> {
    let completion: Completion<'_> =
        serde_json::from_slice(body).map_err(|_| failure::protocol(target, "it is no chat completion"))?;
    if !apply(target, completion, draft)? {
        return Err(failure::protocol(target, "it holds no choices"));
    }
    Ok(())
}

/// Applies what one JSON document says; true when it held the choice that we read.
fn apply(target: &Target, completion: Completion<'_>, draft: &mut Draft) -> Result<bool, CallError> {
    if let Some(error) = &completion.error {
        return Err(failure::in_answer(target, error));
    }
    if let Some(usage) = completion.usage.and_then(WireUsage::counted) {
        draft.set_usage(usage);
    }
    let choice = completion.choices.unwrap_or_default().into_iter().find(|choice| choice.index.unwrap_or(0) == 0);
    let Some(choice) = choice else { return Ok(false) };
    if let Some(message) = choice.delta.or(choice.message) {
        apply_message(message, draft);
    }
    if let Some(reason) = choice.finish_reason.as_deref().filter(|reason| !reason.is_empty()) {
        draft.set_stop(stop_reason(reason));
    }
    Ok(true)
}

fn apply_message(message: Message<'_>, draft: &mut Draft) {
    if let Some(content) = message.content {
        draft.push_text(&content.0);
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

fn stop_reason(word: &str) -> StopReason {
    match word {
        "tool_calls" | "function_call" | "tool_use" => StopReason::ToolUse,
        "length" | "max_tokens" | "model_length" => StopReason::Length,
        "content_filter" | "safety" => StopReason::Filtered,
        // `stop`, `eos`, `end_turn` and whatever else a provider calls its ordinary end.
        _ => StopReason::End,
    }
}

#[derive(Deserialize)]
struct Completion<'a> {
    #[serde(borrow)]
    choices: Option<Vec<Choice<'a>>>,
    usage: Option<WireUsage>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    index: Option<u32>,
    /// In stream events.
    #[serde(borrow)]
    delta: Option<Message<'a>>,
    /// In whole answers.
    #[serde(borrow)]
    message: Option<Message<'a>>,
    #[serde(borrow)]
    finish_reason: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    content: Option<Text<'a>>,
    refusal: Option<String>,
    #[serde(borrow)]
    tool_calls: Option<Vec<WireCall<'a>>>,
}

#[derive(Deserialize)]
struct WireCall<'a> {
    index: Option<u32>,
    #[serde(borrow)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    function: Option<WireFunction<'a>>,
}

#[derive(Default, Deserialize)]
struct WireFunction<'a> {
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    arguments: Option<Arguments<'a>>,
}

#[derive(Clone, Copy, Deserialize)]
struct WireUsage {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    prompt_tokens_details: Option<WireDetails>,
}

#[derive(Clone, Copy, Deserialize)]
struct WireDetails {
    cached_tokens: Option<u64>,
}

impl WireUsage {
    /// The counts, unless the provider leaves them open (some send zeros until the last event).
    fn counted(self) -> Option<Usage> {
        let input_tokens = self.prompt_tokens.unwrap_or(0);
        let output_tokens = self.completion_tokens.unwrap_or(0);
        let cached = self.prompt_tokens_details.and_then(|details| details.cached_tokens).unwrap_or(0);
        let cached_input_tokens = cached.min(input_tokens);
        let usage = Usage { cached_input_tokens, ..Usage::of(input_tokens, output_tokens) };
        (input_tokens.saturating_add(output_tokens) > 0).then_some(usage)
    }
}

/// Content: a text, or a list of parts of which the texts count.
struct Text<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;

        impl<'de> Visitor<'de> for TextVisitor {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a list of parts")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Self::Value, A::Error> {
                let mut joined = String::new();
                while let Some(part) = parts.next_element::<Part>()? {
                    joined.push_str(part.text.as_deref().unwrap_or_default());
                }
                Ok(Text(Cow::Owned(joined)))
            }
        }

        deserializer.deserialize_any(TextVisitor)
    }
}

#[derive(Deserialize)]
struct Part {
    text: Option<String>,
}

/// Arguments: JSON as a text (or a piece of it), or, from some servers, the object itself.
struct Arguments<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Arguments<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ArgumentsVisitor;

        impl<'de> Visitor<'de> for ArgumentsVisitor {
            type Value = Arguments<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("arguments as text or object")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Arguments(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Arguments(Cow::Owned(text.to_owned())))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                let value = Value::deserialize(MapAccessDeserializer::new(map)).map_err(A::Error::custom)?;
                Ok(Arguments(Cow::Owned(value.to_string())))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                while list.next_element::<IgnoredAny>()?.is_some() {}
                // No tool takes a list; the tool will say so.
                Ok(Arguments(Cow::Borrowed("[]")))
            }
        }

        deserializer.deserialize_any(ArgumentsVisitor)
    }
}

#[cfg(test)]
mod tests {
    use agentsvc_components::TurnId;
    use agentsvc_components::effect::Attempt;
    use agentsvc_components::message::{Block, Usage, text_of};
    use agentsvc_components::outcome::{FailureCode, ModelAnswer, StopReason};

    use super::{Progress, read_event, read_whole};
    use crate::effects::model::draft::Draft;
    use crate::effects::model::error::CallError;
    use crate::effects::model::provider::{DriverKind, Target};

    fn target() -> Target {
        Target {
            provider: "p".into(),
            model: "m".into(),
            driver: DriverKind::OpenAi,
            base_url: "http://h/v1".into(),
            context_tokens: 1_000,
            ..Target::default()
        }
    }

    fn answer(draft: Draft) -> ModelAnswer {
        draft.into_answer(Attempt { turn: TurnId(uuid::Uuid::nil()), number: 1 }, 5, &target())
    }

    fn whole(body: &str) -> Result<ModelAnswer, CallError> {
        let mut draft = Draft::default();
        read_whole(&target(), body.as_bytes(), &mut draft)?;
        Ok(answer(draft))
    }

    fn streamed(events: &[&str]) -> ModelAnswer {
        let mut draft = Draft::default();
        for event in events {
            assert_ne!(read_event(&target(), event, &mut draft).unwrap(), Progress::Full);
        }
        answer(draft)
    }

    fn inputs(answer: &ModelAnswer) -> Vec<&str> {
        let calls = answer.blocks.iter().filter_map(|block| match block {
            Block::ToolCall(call) => Some(call.input.as_str()),
            _ => None,
        });
        calls.collect()
    }

    #[test]
    fn a_plain_answer() {
        let answer = whole(
            r#"{"id":"x","choices":[{"index":0,"message":{"role":"assistant","content":"Hi \"you\""},
            "finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}"#,
        );
        let answer = answer.unwrap();
        assert_eq!(text_of(&answer.blocks), "Hi \"you\"");
        assert_eq!(answer.usage, Usage::of(3, 4));
        assert_eq!(answer.stop, StopReason::End);
    }

    #[test]
    fn cached_tokens_are_part_of_the_prompt() {
        let cached = |details: &str| {
            let usage = format!(r#"{{"prompt_tokens":30,"completion_tokens":4,"prompt_tokens_details":{details}}}"#);
            let body = format!(r#"{{"choices":[{{"message":{{"content":"x"}}}}],"usage":{usage}}}"#);
            whole(&body).unwrap().usage
        };
        assert_eq!(cached(r#"{"cached_tokens":20}"#), Usage { cached_input_tokens: 20, ..Usage::of(30, 4) });
        assert_eq!(cached(r#"{"cached_tokens":99}"#).cached_input_tokens, 30);
        assert_eq!((cached("null"), cached("{}")), (Usage::of(30, 4), Usage::of(30, 4)));
    }

    #[test]
    fn contents_and_arguments_in_their_other_forms() {
        let parts = r#"{"choices":[{"message":{"content":[{"type":"text","text":"a"},{"type":"x"},{"text":"b"}]}}]}"#;
        assert_eq!(text_of(&whole(parts).unwrap().blocks), "ab");
        let object = r#"{"choices":[{"message":{"content":null,"tool_calls":[
            {"function":{"name":"t","arguments":{"x":[1]}}},{"function":{"name":"t","arguments":[1]}}]}}]}"#;
        assert_eq!(inputs(&whole(object).unwrap()), ["{\"x\":[1]}", "[]"]);
        let refusal = r#"{"choices":[{"message":{"content":null,"refusal":"No."},"finish_reason":"stop"}]}"#;
        let refused = whole(refusal).unwrap();
        assert_eq!((text_of(&refused.blocks).as_str(), refused.stop), ("No.", StopReason::Filtered));
    }

    #[test]
    fn finish_reasons() {
        for (word, reason) in [
            ("stop", StopReason::End),
            ("length", StopReason::Length),
            ("content_filter", StopReason::Filtered),
            ("eos", StopReason::End),
            ("tool_calls", StopReason::End),
        ] {
            let body = format!(r#"{{"choices":[{{"message":{{"content":"x"}},"finish_reason":"{word}"}}]}}"#);
            assert_eq!(whole(&body).unwrap().stop, reason, "{word}");
        }
    }

    #[test]
    fn a_stream_with_parallel_calls_and_late_usage() {
        let answer = streamed(&[
            r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}],"usage":null}"#,
            r#"{"choices":[{"index":0,"delta":{"content":"Let "}}]}"#,
            r#"{"choices":[{"index":1,"delta":{"content":"another choice"}}]}"#,
            r#"{"choices":[{"index":0,"delta":{"content":"me see."}}]}"#,
            r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"t","arguments":""}}]}}]}"#,
            r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"b","function":{"name":"u","arguments":"{}"}},{"index":0,"function":{"arguments":"{\"x\":"}}]}}]}"#,
            r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"1}"}}]}}]}"#,
            r#"{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#,
            r#"{"choices":[],"usage":{"prompt_tokens":8,"completion_tokens":9}}"#,
            "[DONE]",
        ]);
        assert_eq!(text_of(&answer.blocks), "Let me see.");
        assert_eq!(inputs(&answer), ["{\"x\":1}", "{}"]);
        assert_eq!((answer.stop, answer.usage), (StopReason::ToolUse, Usage::of(8, 9)));
    }

    #[test]
    fn what_cannot_be_read() {
        for body in ["", "<html>", "[]", "{}", r#"{"choices":[]}"#, r#"{"choices":7}"#] {
            assert_eq!(whole(body).unwrap_err().code, FailureCode::ProviderProtocol, "{body}");
        }
        let mut draft = Draft::default();
        let error = read_event(&target(), "{oops", &mut draft).unwrap_err();
        assert_eq!(error.code, FailureCode::ProviderProtocol);
        assert_eq!(read_event(&target(), " ", &mut draft), Ok(Progress::More));
        assert_eq!(read_event(&target(), "[DONE]", &mut draft), Ok(Progress::Done));
    }

    #[test]
    fn an_error_in_place_of_an_answer() {
        let overloaded = whole(r#"{"error":{"message":"Overloaded, sorry","code":503}}"#).unwrap_err();
        assert_eq!((overloaded.code, overloaded.retryable), (FailureCode::ProviderError, true));
        assert!(overloaded.message.contains("Overloaded, sorry"), "{}", overloaded.message);
        let limited = whole(r#"{"error":{"message":"slow down","code":429}}"#).unwrap_err();
        assert_eq!((limited.code, limited.retryable), (FailureCode::ProviderRateLimited, true));
        let plain = whole(r#"{"error":"boom"}"#).unwrap_err();
        assert_eq!((plain.code, plain.retryable), (FailureCode::ProviderError, false));
    }
}
