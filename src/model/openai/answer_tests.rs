//! Tests of how chat completions are read.

use agentsvc_components::kernel::attempt::Attempt;
use agentsvc_components::kernel::id::JobId;
use agentsvc_components::session::message::{Block, Usage, text_of};
use agentsvc_components::turn::outcome::{FailureCode, ModelAnswer, StopReason};

use super::{Answer as _, Progress, State};
use crate::model::draft::Draft;
use crate::model::error::CallError;
use crate::model::frames::Frame;
use crate::model::provider::{DriverKind, Target};

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
    draft.into_answer(Attempt { job: JobId(uuid::Uuid::nil()), number: 1 }, 5, &target())
}

fn framed(data: &str) -> Frame<'_> {
    Frame { name: "", data }
}

fn whole(body: &str) -> Result<ModelAnswer, CallError> {
    let mut draft = Draft::default();
    State::default().whole(&target(), body.as_bytes(), &mut draft)?;
    Ok(answer(draft))
}

fn streamed(events: &[&str]) -> ModelAnswer {
    let (mut draft, mut state) = (Draft::default(), State::default());
    for event in events {
        assert_ne!(state.frame(&target(), framed(event), &mut draft).unwrap(), Progress::Full);
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
    let error = State::default().frame(&target(), framed("{oops"), &mut draft).unwrap_err();
    assert_eq!(error.code, FailureCode::ProviderProtocol);
    assert_eq!(State::default().frame(&target(), framed(" "), &mut draft), Ok(Progress::More));
    assert_eq!(State::default().frame(&target(), framed("[DONE]"), &mut draft), Ok(Progress::Done));
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

fn thoughts(answer: &ModelAnswer) -> Vec<(&str, &str)> {
    let thoughts = answer.blocks.iter().filter_map(|block| match block {
        Block::Reasoning(thought) => Some((thought.text.as_str(), thought.raw.as_str())),
        _ => None,
    });
    thoughts.collect()
}

#[test]
fn thoughts_under_their_many_names() {
    for key in ["reasoning_content", "reasoning"] {
        let whole = whole(&format!(r#"{{"choices":[{{"message":{{"{key}":"Hm.","content":"x"}}}}]}}"#)).unwrap();
        assert_eq!((thoughts(&whole), text_of(&whole.blocks).as_str()), (vec![("Hm.", "")], "x"), "{key}");
        let streamed = streamed(&[
            &format!(r#"{{"choices":[{{"delta":{{"{key}":"H","content":null}}}}]}}"#),
            &format!(r#"{{"choices":[{{"delta":{{"{key}":"m.","content":""}}}}]}}"#),
            &format!(r#"{{"choices":[{{"delta":{{"{key}":null,"content":"x"}},"finish_reason":"stop"}}]}}"#),
        ]);
        assert_eq!((thoughts(&streamed), text_of(&streamed.blocks).as_str()), (vec![("Hm.", "")], "x"), "{key}");
    }
    let both = r#"{"choices":[{"message":{"reasoning_content":"Hm.","reasoning":"Hm.","content":"x"}}]}"#;
    assert_eq!(thoughts(&whole(both).unwrap()), [("Hm.", "")]);
    let odd = r#"{"choices":[{"message":{"reasoning":{"effort":1},"content":"x"}}]}"#;
    assert_eq!(thoughts(&whole(odd).unwrap()), []);
    let parts = r#"{"choices":[{"message":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"Hm."}]},
        {"type":"text","text":"x"}]}}]}"#;
    let parts = whole(parts).unwrap();
    assert_eq!((thoughts(&parts), text_of(&parts.blocks).as_str()), (vec![("Hm.", "")], "x"));
}

#[test]
fn blocks_of_thoughts_are_joined_and_kept() {
    let whole = whole(
        r#"{"choices":[{"message":{"content":"x","reasoning":"Hm.","reasoning_details":[{"type":"a","data":"1"}]}}]}"#,
    );
    assert_eq!(thoughts(&whole.unwrap()), [("Hm.", ""), ("", r#"[{"data":"1","type":"a"}]"#)]);
    let delta = |delta: &str| format!(r#"{{"choices":[{{"delta":{{"reasoning_details":[{delta}]}}}}]}}"#);
    let events = [
        delta(r#"{"type":"reasoning.text","index":0,"text":"H","format":"f"}"#),
        delta(r#"{"type":"reasoning.text","index":0,"text":"m."}"#),
        delta(r#"{"type":"reasoning.text","index":0,"signature":"s"}"#),
        delta(r#"{"type":"reasoning.encrypted","index":1,"data":"d"}"#),
        r#"{"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}"#.to_owned(),
        "[DONE]".to_owned(),
    ];
    let events: Vec<&str> = events.iter().map(String::as_str).collect();
    // Nested values take more memory than text of their size.
    let nested = format!(r#"{{"type":"a","x":[{}]}}"#, vec![r#"{"":{}}"#; 5_000].join(","));
    let stop = r#"{"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}"#;
    assert_eq!(thoughts(&streamed(&[&*delta(&nested), stop])).len(), 0);
    let joined = concat!(
        r#"[{"format":"f","index":0,"signature":"s","text":"Hm.","type":"reasoning.text"},"#,
        r#"{"data":"d","index":1,"type":"reasoning.encrypted"}]"#
    );
    assert_eq!(thoughts(&streamed(&events)), [("", joined)]);
}

#[test]
fn counts_in_their_other_forms() {
    let usage = |usage: &str| {
        whole(&format!(r#"{{"choices":[{{"message":{{"content":"x"}}}}],"usage":{usage}}}"#)).unwrap().usage
    };
    let cached = Usage { cached_input_tokens: 20, ..Usage::of(30, 4) };
    assert_eq!(usage(r#"{"prompt_tokens":30,"completion_tokens":4,"prompt_cache_hit_tokens":20}"#), cached);
    assert_eq!(usage(r#"{"prompt_tokens":30,"completion_tokens":4,"cached_tokens":20,"total_tokens":34}"#), cached);
    // Thoughts that are counted apart are paid for too.
    assert_eq!(usage(r#"{"prompt_tokens":30,"completion_tokens":4,"total_tokens":50}"#), Usage::of(30, 20));
    let written = usage(
        r#"{"prompt_tokens":30,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":5,"cache_write_tokens":7}}"#,
    );
    assert_eq!((written.cached_input_tokens, written.cache_write_tokens), (5, 7));
    let late = streamed(&[
        r#"{"choices":[{"delta":{"content":"x"}}]}"#,
        r#"{"choices":[{"delta":{},"finish_reason":"stop"}],"x_groq":{"usage":{"prompt_tokens":3,"completion_tokens":4}}}"#,
    ]);
    assert_eq!(late.usage, Usage::of(3, 4));
}
