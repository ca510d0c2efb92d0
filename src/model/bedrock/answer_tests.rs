//! Tests of reading Converse answers and their streams.

use agentsvc_components::session::message::{Block, Usage, calls_of, text_of};
use agentsvc_components::turn::outcome::{FailureCode, ModelAnswer, StopReason};

use crate::model::bedrock::Bedrock;
use crate::model::error::CallError;
use crate::model::provider::DriverKind;
use crate::model::testing::{streamed, target, whole};

fn answered(body: &str) -> Result<ModelAnswer, CallError> {
    whole(&Bedrock::default(), &target(DriverKind::Bedrock, "http://h"), body)
}

fn told(frames: &[(&str, &str)]) -> Result<ModelAnswer, CallError> {
    streamed(&Bedrock::default(), &target(DriverKind::Bedrock, "http://h"), frames)
}

fn raws(answer: &ModelAnswer) -> Vec<&str> {
    fn raw(block: &Block) -> Option<&str> {
        if let Block::Reasoning(thought) = block { Some(&thought.raw) } else { None }
    }
    answer.blocks.iter().filter_map(raw).collect()
}

#[test]
fn blocks_are_kept_as_they_came() {
    let body = r#"{"output":{"message":{"role":"assistant","content":[
        {"reasoningContent":{"reasoningText":{"text":"hm","signature":"s"}}},
        {"reasoningContent":{"redactedContent":"enp6"}},
        {"text":"a"},
        {"toolUse":{"toolUseId":"1","name":"t","input":{"z":1, "a":2}}},
        {"citationsContent":{}}]}},
        "stopReason":"tool_use","metrics":{"latencyMs":1},
        "usage":{"inputTokens":3,"outputTokens":4,"totalTokens":18,
        "cacheReadInputTokens":5,"cacheWriteInputTokens":6}}"#;
    let answer = answered(body).unwrap();
    let expected = [
        r#"{"reasoningContent":{"reasoningText":{"text":"hm","signature":"s"}}}"#,
        r#"{"reasoningContent":{"redactedContent":"enp6"}}"#,
    ];
    assert_eq!(raws(&answer), expected);
    assert_eq!(calls_of(&answer.blocks)[0].input, r#"{"z":1, "a":2}"#);
    let usage = Usage { cached_input_tokens: 5, cache_write_tokens: 6, ..Usage::of(14, 4) };
    assert_eq!((answer.usage, answer.stop, answer.blocks.len()), (usage, StopReason::ToolUse, 4));
}

#[test]
fn thoughts_in_a_stream() {
    let answer = told(&[
        ("messageStart", r#"{"role":"assistant","p":"abc"}"#),
        ("contentBlockDelta", r#"{"contentBlockIndex":0,"delta":{"reasoningContent":{"redactedContent":"enp6"}}}"#),
        ("contentBlockStop", r#"{"contentBlockIndex":0}"#),
        ("contentBlockDelta", r#"{"contentBlockIndex":1,"delta":{"reasoningContent":{"text":"open"}}}"#),
        ("contentBlockStop", r#"{"contentBlockIndex":1}"#),
        ("contentBlockDelta", r#"{"contentBlockIndex":2,"delta":{"text":"said"}}"#),
        ("contentBlockStop", r#"{"contentBlockIndex":2}"#),
        ("contentBlockStart", r#"{"contentBlockIndex":3,"start":{"toolUse":{"toolUseId":"1","name":"t"}}}"#),
        ("contentBlockStop", r#"{"contentBlockIndex":3}"#),
        ("messageStop", r#"{"stopReason":"tool_use"}"#),
        ("metadata", r#"{"usage":{"inputTokens":1,"outputTokens":2,"totalTokens":3},"metrics":{"latencyMs":9}}"#),
    ]);
    let answer = answer.unwrap();
    let expected = [
        r#"{"reasoningContent":{"redactedContent":"enp6"}}"#,
        r#"{"reasoningContent":{"reasoningText":{"text":"open"}}}"#,
    ];
    assert_eq!(raws(&answer), expected);
    assert_eq!((text_of(&answer.blocks).as_str(), calls_of(&answer.blocks)[0].input.as_str()), ("said", "{}"));
    assert_eq!(answer.usage, Usage::of(1, 2));
}

#[test]
fn exceptions_by_their_name() {
    for (name, code, passes) in [
        ("throttlingException", FailureCode::ProviderRateLimited, true),
        ("modelStreamErrorException", FailureCode::ProviderError, true),
        ("modelTimeoutException", FailureCode::ProviderTimeout, true),
        ("serviceUnavailableException", FailureCode::ProviderError, true),
        ("internalServerException", FailureCode::ProviderError, true),
        ("validationException", FailureCode::ProviderRefused, false),
    ] {
        let error = told(&[(&format!("exception/{name}"), r#"{"message":"no"}"#)]).unwrap_err();
        assert_eq!((error.code, error.retryable), (code, passes), "{error:?}");
        assert!(error.message.ends_with(": no"), "{error:?}");
    }
    let unreadable = told(&[("exception/x", "")]).unwrap_err();
    assert!(unreadable.message.ends_with(": x"), "{unreadable:?}");
}

#[test]
fn reasons_to_stop() {
    let of = |word: &str| {
        answered(&format!(r#"{{"output":{{"message":{{"content":[{{"text":"x"}}]}}}},"stopReason":"{word}"}}"#))
    };
    for (word, stop) in [
        ("end_turn", StopReason::End),
        ("stop_sequence", StopReason::End),
        ("max_tokens", StopReason::Length),
        ("model_context_window_exceeded", StopReason::Length),
        ("guardrail_intervened", StopReason::Filtered),
        ("content_filtered", StopReason::Filtered),
    ] {
        assert_eq!(of(word).unwrap().stop, stop, "{word}");
    }
    let error = of("malformed_tool_use").unwrap_err();
    assert_eq!((error.code, error.retryable), (FailureCode::ProviderProtocol, true));
}

#[test]
fn a_thought_without_end_cuts_the_answer() {
    let piece = "s".repeat(1 << 20);
    for key in ["text", "signature", "redactedContent"] {
        let delta = format!(r#"{{"delta":{{"reasoningContent":{{"{key}":"{piece}"}}}}}}"#);
        let answer = told(&[("contentBlockDelta", &*delta); 6]).unwrap();
        assert_eq!(answer.stop, StopReason::Length, "{key}");
    }
}
