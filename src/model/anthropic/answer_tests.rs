//! Tests of reading messages and their events.

use agentsvc_components::session::message::{Block, Usage, text_of};
use agentsvc_components::turn::outcome::{FailureCode, ModelAnswer, StopReason};

use super::super::Anthropic;
use crate::model::error::CallError;
use crate::model::provider::DriverKind;
use crate::model::testing::{streamed, target, whole};

fn answered(body: &str) -> Result<ModelAnswer, CallError> {
    whole(&Anthropic, &target(DriverKind::Anthropic, "http://h/v1"), body)
}

fn told(events: &[&str]) -> Result<ModelAnswer, CallError> {
    let frames: Vec<(&str, &str)> = events.iter().map(|event| ("x", *event)).collect();
    streamed(&Anthropic, &target(DriverKind::Anthropic, "http://h/v1"), &frames)
}

fn raws(answer: &ModelAnswer) -> Vec<&str> {
    fn raw(block: &Block) -> Option<&str> {
        if let Block::Reasoning(thought) = block { Some(&thought.raw) } else { None }
    }
    answer.blocks.iter().filter_map(raw).collect()
}

#[test]
fn blocks_are_kept_as_they_came() {
    let body = r#"{"type":"message","content":[
        {"type":"thinking","thinking":"hm","signature":"s","later":[1]},
        {"type":"redacted_thinking","data":"zzz"},
        {"type":"server_tool_use","id":"x","name":"web_search","input":{}},
        {"type":"text","text":"a"},
        {"type":"tool_use","id":"1","name":"t","input":{"z":1, "a":2}},
        {"type":"tool_use","id":"2","name":"t","input":{ }}],
        "stop_reason":"tool_use","usage":{"input_tokens":3,"output_tokens":4,"cache_read_input_tokens":5,
        "cache_creation_input_tokens":6}}"#;
    let answer = answered(body).unwrap();
    let expected = [
        r#"{"type":"thinking","thinking":"hm","signature":"s","later":[1]}"#,
        r#"{"type":"redacted_thinking","data":"zzz"}"#,
    ];
    assert_eq!(raws(&answer), expected);
    let calls = agentsvc_components::session::message::calls_of(&answer.blocks);
    assert_eq!((calls[0].input.as_str(), calls[1].input.as_str()), (r#"{"z":1, "a":2}"#, "{}"));
    let usage = Usage { cached_input_tokens: 5, cache_write_tokens: 6, ..Usage::of(14, 4) };
    assert_eq!((answer.usage, answer.stop, answer.blocks.len()), (usage, StopReason::ToolUse, 5));
}

#[test]
fn a_redacted_thought_in_a_stream() {
    let answer = told(&[
        r#"{"type":"message_start","message":{"usage":{"input_tokens":10,"output_tokens":1}}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"redacted_thinking","data":"zzz"}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"signature_delta","signature":"s"}}"#,
        r#"{"type":"content_block_stop","index":1}"#,
        r#"{"type":"content_block_start","index":2,"content_block":{"type":"text","text":"be"}}"#,
        r#"{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"gun"}}"#,
        r#"{"type":"content_block_delta","index":2,"delta":{"type":"citations_delta","citation":{}}}"#,
        r#"{"type":"an_event_of_later","index":"odd"}"#.replace("\"odd\"", "9").as_str(),
        r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9}}"#,
        r#"{"type":"message_stop"}"#,
    ]);
    let answer = answer.unwrap();
    let hidden = r#"{"signature":"s","thinking":"","type":"thinking"}"#;
    assert_eq!(raws(&answer), [r#"{"type":"redacted_thinking","data":"zzz"}"#, hidden]);
    assert_eq!((text_of(&answer.blocks).as_str(), answer.usage), ("begun", Usage::of(10, 9)));
}

#[test]
fn errors_by_their_type() {
    for (kind, code, passes) in [
        ("overloaded_error", FailureCode::ProviderError, true),
        ("api_error", FailureCode::ProviderError, true),
        ("timeout_error", FailureCode::ProviderError, true),
        ("rate_limit_error", FailureCode::ProviderRateLimited, true),
        ("invalid_request_error", FailureCode::ProviderRefused, false),
        ("authentication_error", FailureCode::ProviderAuth, false),
        ("billing_error", FailureCode::ProviderRefused, false),
    ] {
        let event = format!(r#"{{"type":"error","error":{{"type":"{kind}","message":"no"}}}}"#);
        for error in [told(&[&event]).unwrap_err(), answered(&event).unwrap_err()] {
            assert_eq!((error.code, error.retryable), (code, passes), "{kind}: {error:?}");
            assert!(error.message.ends_with(": no"), "{error:?}");
        }
    }
}

#[test]
fn reasons_to_stop() {
    for (word, stop) in [
        ("end_turn", StopReason::End),
        ("stop_sequence", StopReason::End),
        ("pause_turn", StopReason::End),
        ("max_tokens", StopReason::Length),
        ("model_context_window_exceeded", StopReason::Length),
        ("refusal", StopReason::Filtered),
    ] {
        let body = format!(r#"{{"content":[{{"type":"text","text":"x"}}],"stop_reason":"{word}"}}"#);
        assert_eq!(answered(&body).unwrap().stop, stop, "{word}");
    }
}

#[test]
fn a_thought_without_end_cuts_the_answer() {
    let begin =
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#;
    let piece = "s".repeat(1 << 20);
    for delta in [
        format!(r#"{{"type":"content_block_delta","index":0,"delta":{{"signature":"{piece}"}}}}"#),
        format!(r#"{{"type":"content_block_delta","index":0,"delta":{{"thinking":"{piece}"}}}}"#),
    ] {
        let mut events = vec![begin];
        events.extend(std::iter::repeat_n(&*delta, 5));
        let answer = told(&events).unwrap();
        assert_eq!(answer.stop, StopReason::Length);
    }
    // A block that begins with all of it, again and again.
    let begin = format!(
        r#"{{"type":"content_block_start","index":0,"content_block":{{"type":"thinking","thinking":"","later":"{piece}"}}}}"#
    );
    let answer = told(&[&*begin; 5]).unwrap();
    assert_eq!((answer.stop, answer.blocks.len()), (StopReason::Length, 0));
}
