//! Tests of how responses are read.

use agentsvc_components::session::message::{Block, Usage};
use agentsvc_components::turn::outcome::{FailureCode, ModelAnswer, StopReason};

use crate::model::error::CallError;
use crate::model::provider::{DriverKind, Target};
use crate::model::responses::Responses;
use crate::model::testing;

fn target() -> Target {
    testing::target(DriverKind::OpenAiResponses, "https://h/v1")
}

fn whole(body: &str) -> Result<ModelAnswer, CallError> {
    testing::whole(&Responses, &target(), body)
}

fn streamed(events: &[&str]) -> Result<ModelAnswer, CallError> {
    let frames: Vec<(&str, &str)> = events.iter().map(|event| ("", *event)).collect();
    testing::streamed(&Responses, &target(), &frames)
}

fn shown(answer: &ModelAnswer) -> Vec<String> {
    let shown = |block: &Block| match block {
        Block::Text { text } => text.clone(),
        Block::ToolCall(call) => format!("{} {} {}", call.id, call.name, call.input),
        Block::Reasoning(thought) => format!("({}) {}", thought.text, thought.raw),
        other => format!("{other:?}"),
    };
    answer.blocks.iter().map(shown).collect()
}

const SEALED: &str = r#"{"id":"rs_1","type":"reasoning","encrypted_content":"gA==","summary":[{"type":"summary_text","text":"One."},{"type":"summary_text","text":"Two."}]}"#;

#[test]
fn a_whole_answer() {
    let body = format!(
        r#"{{"id":"resp_1","object":"response","status":"completed","error":null,"incomplete_details":null,"output":[{SEALED},
        {{"id":"msg_1","type":"message","role":"assistant","content":[{{"type":"output_text","text":"Hi ","annotations":[]}},{{"type":"output_text","text":"there"}}]}},
        {{"id":"fc_1","type":"function_call","call_id":"call_a","name":"t","arguments":"{{\"x\":1}}"}},
        {{"id":"ws_1","type":"web_search_call","status":"completed"}}],
        "usage":{{"input_tokens":30,"input_tokens_details":{{"cached_tokens":20}},"output_tokens":9,"output_tokens_details":{{"reasoning_tokens":4}},"total_tokens":39}}}}"#
    );
    let answer = whole(&body).unwrap();
    assert_eq!(shown(&answer), [&format!("(One.\n\nTwo.) {SEALED}"), "Hi there", "call_a t {\"x\":1}"]);
    assert_eq!(answer.usage, Usage { cached_input_tokens: 20, ..Usage::of(30, 9) });
    assert_eq!(answer.stop, StopReason::ToolUse);
}

#[test]
fn a_stream_with_thoughts_and_interleaved_calls() {
    let done = format!(r#"{{"type":"response.output_item.done","output_index":0,"item":{SEALED}}}"#);
    let answer = streamed(&[
        r#"{"type":"response.created","response":{"id":"resp_1","status":"in_progress","output":[],"error":null}}"#,
        r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[]}}"#,
        r#"{"type":"response.reasoning_summary_part.added","output_index":0,"summary_index":0,"part":{"type":"summary_text","text":""}}"#,
        r#"{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":0,"delta":"One."}"#,
        r#"{"type":"response.reasoning_summary_part.added","output_index":0,"summary_index":1,"part":{}}"#,
        r#"{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":1,"delta":"Two."}"#,
        &done,
        r#"{"type":"response.output_item.added","output_index":1,"item":{"id":"msg_1","type":"message","content":[]}}"#,
        r#"{"type":"response.content_part.added","output_index":1,"part":{"type":"output_text","text":""}}"#,
        r#"{"type":"response.output_text.delta","output_index":1,"delta":"Hi "}"#,
        r#"{"type":"response.output_text.delta","output_index":1,"delta":"you"}"#,
        r#"{"type":"response.output_text.done","output_index":1,"text":"Hi you"}"#,
        r#"{"type":"response.output_item.done","output_index":1,"item":{"type":"message","content":[{"type":"output_text","text":"Hi you"}]}}"#,
        r#"{"type":"response.output_item.added","output_index":2,"item":{"type":"function_call","call_id":"a","name":"t","arguments":""}}"#,
        r#"{"type":"response.output_item.added","output_index":3,"item":{"type":"function_call","call_id":"b","name":"u","arguments":""}}"#,
        r#"{"type":"response.function_call_arguments.delta","output_index":2,"item_id":"fc_1","delta":"{\"x\":"}"#,
        r#"{"type":"response.function_call_arguments.done","output_index":3,"arguments":"{}"}"#,
        r#"{"type":"response.function_call_arguments.delta","output_index":2,"item_id":"fc_1","delta":"1}"}"#,
        r#"{"type":"response.function_call_arguments.done","output_index":2,"arguments":"{\"x\":1}"}"#,
        r#"{"type":"response.output_item.done","output_index":2,"item":{"type":"function_call","call_id":"a","name":"t","arguments":"{\"x\":1}"}}"#,
        r#"{"type":"response.output_item.done","output_index":3,"item":{"type":"function_call","call_id":"b","name":"u","arguments":"{}"}}"#,
        r#"{"type":"response.completed","response":{"status":"completed","output":[],"usage":{"input_tokens":8,"output_tokens":9}}}"#,
        "{never read",
    ])
    .unwrap();
    let expected = [&format!("(One.\n\nTwo.) {SEALED}"), "Hi you", "a t {\"x\":1}", "b u {}"];
    assert_eq!(shown(&answer), expected);
    assert_eq!((answer.stop, answer.usage), (StopReason::ToolUse, Usage::of(8, 9)));
}

#[test]
fn a_stream_of_whole_items_only() {
    let answer = streamed(&[
        r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"Hm."}]}}"#,
        r#"{"type":"response.output_item.done","output_index":1,"item":{"type":"message","content":[{"type":"output_text","text":"Hi"}]}}"#,
        r#"{"type":"response.output_item.done","output_index":2,"item":{"type":"function_call","call_id":"a","name":"t","arguments":"{}"}}"#,
        r#"{"type":"response.completed","response":{"status":"completed"}}"#,
    ])
    .unwrap();
    assert_eq!(shown(&answer), ["(Hm.) ", "Hi", "a t {}"]);
}

#[test]
fn refusals_and_answers_that_are_cut() {
    let refused = streamed(&[
        r#"{"type":"response.refusal.delta","output_index":0,"delta":"No."}"#,
        r#"{"type":"response.completed","response":{"status":"completed"}}"#,
    ])
    .unwrap();
    assert_eq!((shown(&refused), refused.stop), (vec!["No.".to_owned()], StopReason::Filtered));
    let refused =
        whole(r#"{"status":"completed","output":[{"type":"message","content":[{"type":"refusal","refusal":"No."}]}]}"#)
            .unwrap();
    assert_eq!((shown(&refused), refused.stop), (vec!["No.".to_owned()], StopReason::Filtered));
    for (reason, stop) in [("max_output_tokens", StopReason::Length), ("content_filter", StopReason::Filtered)] {
        let response = format!(r#"{{"status":"incomplete","incomplete_details":{{"reason":"{reason}"}},"output":[]}}"#);
        assert_eq!(whole(&response).unwrap().stop, stop);
        let event = format!(r#"{{"type":"response.incomplete","response":{response}}}"#);
        assert_eq!(streamed(&[&event]).unwrap().stop, stop);
    }
}

#[test]
fn failures_in_place_of_answers() {
    let of = |code: &str| {
        let error = format!(r#"{{"code":"{code}","message":"oops"}}"#);
        let failed = format!(r#"{{"type":"response.failed","response":{{"status":"failed","error":{error}}}}}"#);
        let plain = format!(r#"{{"type":"error","code":"{code}","message":"oops","param":null}}"#);
        let nested = format!(r#"{{"type":"error","error":{error}}}"#);
        let body = format!(r#"{{"status":"failed","output":[],"error":{error}}}"#);
        let all = [streamed(&[&failed]), streamed(&[&plain]), streamed(&[&nested]), whole(&body)];
        let all = all.map(|ended| ended.map_err(|error| (error.code, error.retryable, error.message)));
        assert!(all.iter().all(|ended| *ended == all[0]), "{all:?}");
        let (code, retryable, message) = all[0].clone().unwrap_err();
        assert!(message.ends_with("oops"), "{message}");
        (code, retryable)
    };
    assert_eq!(of("server_error"), (FailureCode::ProviderError, true));
    assert_eq!(of("rate_limit_exceeded"), (FailureCode::ProviderRateLimited, true));
    assert_eq!(of("insufficient_quota"), (FailureCode::ProviderRateLimited, false));
    assert_eq!(of("invalid_prompt"), (FailureCode::ProviderRefused, false));
}

#[test]
fn what_cannot_be_read() {
    for body in ["", "<html>", "[]", "{}", r#"{"output":7}"#, r#"{"output":[7]}"#] {
        assert_eq!(whole(body).unwrap_err().code, FailureCode::ProviderProtocol, "{body}");
    }
    assert_eq!(streamed(&["{oops"]).unwrap_err().code, FailureCode::ProviderProtocol);
    let cut = streamed(&[r#"{"type":"response.output_text.delta","delta":"half"}"#]).unwrap_err();
    assert!(cut.message.contains("closed the connection") && cut.retryable, "{}", cut.message);
}
