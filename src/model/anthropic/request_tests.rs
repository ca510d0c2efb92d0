//! Tests of the body of a Messages request.

use agentsvc_components::session::message::{Block, Reasoning, Role};
use agentsvc_components::turn::TurnRequest;
use serde_json::{Value, json};

use crate::model::anthropic::Anthropic;
use crate::model::provider::{DriverKind, Target};
use crate::model::testing::{With, call, posted, prompt, result, target, text};
use crate::tool::toolset::built_in;

fn claude(model: &str) -> Target {
    Target { model: model.into(), context_tokens: 200_000, ..target(DriverKind::Anthropic, "http://h/v1") }
}

fn question() -> Vec<(Role, Vec<Block>)> {
    vec![(Role::User, vec![text("a")])]
}

fn body(target: &Target, messages: Vec<(Role, Vec<Block>)>, with: &With<'_>) -> Value {
    posted(&Anthropic, target, &prompt(messages), with).unwrap().1
}

fn asked(parameters: &str, thinking: bool) -> TurnRequest {
    TurnRequest { parameters: Some(parameters.into()), thinking, ..TurnRequest::default() }
}

#[test]
fn the_smallest_request() {
    let (post, body) = posted(&Anthropic, &claude("m"), &prompt(question()), &With::default()).unwrap();
    assert_eq!(post.url.as_str(), "http://h/v1/messages");
    assert!(post.headers["x-api-key"] == "secret-key" && post.headers["x-api-key"].is_sensitive());
    let here = json!({"type": "ephemeral"});
    let expected = json!({
        "model": "m",
        "max_tokens": 8192,
        "system": [{"type": "text", "text": "be brief", "cache_control": here}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": "a", "cache_control": here}]}],
        "stream": false,
    });
    assert_eq!(body, expected);
}

#[test]
fn a_turn_under_way() {
    let raw = "{\"type\":\"thinking\",\"thinking\":\"t\",\"signature\":\"s\"}";
    let thought = Reasoning { wire: "anthropic".into(), model: "m".into(), text: "t".into(), raw: raw.into() };
    let messages = vec![
        (Role::User, vec![text("a")]),
        (Role::Assistant, vec![Block::Reasoning(thought), call("1", "{ \"x\": 1 }"), call("2", "")]),
        (Role::Tool, vec![result("1", "rain", false), result("2", "no", true)]),
        (Role::User, vec![text("b")]),
    ];
    let with = With { tools: built_in().offered_to_all(), ..With::default() };
    let body = body(&claude("m"), messages, &with);
    let expected = json!([
        {"type": "thinking", "thinking": "t", "signature": "s"},
        {"type": "tool_use", "id": "1", "name": "t", "input": {"x": 1}},
        {"type": "tool_use", "id": "2", "name": "t", "input": {}},
    ]);
    assert_eq!(body["messages"][1]["content"], expected);
    let expected = json!([
        {"type": "tool_result", "tool_use_id": "1", "content": "rain"},
        {"type": "tool_result", "tool_use_id": "2", "content": "no", "is_error": true},
        {"type": "text", "text": "b", "cache_control": {"type": "ephemeral"}},
    ]);
    assert_eq!(body["messages"][2]["content"], expected);
    assert_eq!(body.to_string().matches("cache_control").count(), 4, "tools, system, two messages");
    let offered = body["tools"].as_array().unwrap();
    assert!(offered.last().unwrap()["cache_control"].is_object() && offered[0]["cache_control"].is_null());
    assert!(offered.iter().all(|tool| tool["input_schema"]["type"] == "object"));
}

#[test]
fn thinking_follows_the_model() {
    let asked = asked("{}", true);
    let with = |max_tokens| With { asked: Some(&asked), temperature: Some(0.5), max_tokens, ..With::default() };
    let of = |model: &str, max_tokens| {
        let body = body(&claude(model), question(), &with(max_tokens));
        (body["thinking"].clone(), body["temperature"].clone())
    };
    let budget = |tokens: u32| json!({"type": "enabled", "budget_tokens": tokens});
    assert_eq!(of("claude-sonnet-4-5", None), (budget(4096), Value::Null));
    assert_eq!(of("claude-sonnet-4-5", Some(1500)), (budget(1024), Value::Null));
    assert_eq!(of("claude-sonnet-4-5", Some(100_000)), (budget(16_384), Value::Null));
    assert_eq!(of("claude-sonnet-4-5", Some(1024)), (Value::Null, json!(0.5)));
    assert_eq!(of("claude-3-5-haiku-latest", None), (Value::Null, json!(0.5)));
    assert_eq!(of("claude-opus-4-6", None), (json!({"type": "adaptive"}), Value::Null));
    assert_eq!(of("MiniMax", None), (Value::Null, json!(0.5)), "the catalog does not say that it thinks");
}

#[test]
fn thinking_waits_where_another_model_began_the_turn() {
    let asked = asked("{}", true);
    let with = With { asked: Some(&asked), tools: built_in().offered_to_all(), ..With::default() };
    let mut messages = question();
    messages.push((Role::Assistant, vec![text("so"), call("1", "{}")]));
    messages.push((Role::Tool, vec![result("1", "x", false)]));
    assert_eq!(body(&claude("claude-sonnet-4-5"), messages.clone(), &with)["thinking"], Value::Null);
    assert_eq!(body(&claude("claude-opus-4-6"), messages, &with)["thinking"]["type"], "adaptive");
}

#[test]
fn a_forced_call_is_made_without_thinking() {
    let choice = Some("\"required\"".to_owned());
    let asked = TurnRequest { tool_choice: choice, parallel_tool_calls: Some(false), ..asked("{}", true) };
    let with = With { asked: Some(&asked), tools: built_in().offered_to_all(), ..With::default() };
    let body = body(&claude("claude-sonnet-4-5"), question(), &with);
    assert_eq!(body["tool_choice"], json!({"type": "any", "disable_parallel_tool_use": true}));
    assert_eq!(body["thinking"], Value::Null);
}

#[test]
fn answers_in_a_form() {
    let format = r#"{"response_format":{"type":"json_schema","json_schema":{"schema":{"type":"object"}}}}"#;
    let schema = asked(format, false);
    let with = With { asked: Some(&schema), ..With::default() };
    let new = body(&claude("claude-sonnet-4-5"), question(), &with);
    let closed = json!({"type": "object", "additionalProperties": false});
    assert_eq!(new["output_config"], json!({"format": {"type": "json_schema", "schema": closed}}));
    let old = body(&claude("claude-sonnet-4-0"), question(), &with);
    assert!(old["output_config"].is_null());
    assert!(old["system"][1]["text"].as_str().unwrap().contains("{\"type\":\"object\"}"));
    let json = asked(r#"{"response_format":{"type":"json_object"}}"#, false);
    let told = body(&claude("claude-sonnet-4-5"), question(), &With { asked: Some(&json), ..With::default() });
    assert!(told["system"][1]["text"].as_str().unwrap().contains("one JSON object"));
}

#[test]
fn what_a_model_refuses_is_left_out() {
    let asked = asked(r#"{"top_p":0.5,"stop":[" ","END"]}"#, false);
    let with = |temperature| With { asked: Some(&asked), temperature, ..With::default() };
    let of = |model: &str, temperature| {
        let body = body(&claude(model), question(), &with(temperature));
        assert_eq!(body["stop_sequences"], json!(["END"]));
        (body["temperature"].clone(), body["top_p"].clone())
    };
    assert_eq!(of("claude-opus-4-6", Some(1.5)), (json!(1.0), Value::Null));
    assert_eq!(of("claude-opus-4-6", None), (Value::Null, json!(0.5)));
    assert_eq!(of("claude-opus-4-7", Some(0.5)), (Value::Null, Value::Null));
}

#[test]
fn the_bound_of_an_answer() {
    let of = |answer_tokens_max, context_tokens, max_tokens| {
        let target = Target { answer_tokens_max, context_tokens, ..claude("m") };
        body(&target, question(), &With { max_tokens, ..With::default() })["max_tokens"].as_u64().unwrap()
    };
    assert_eq!(of(None, 200_000, None), 8_192);
    assert_eq!(of(Some(64_000), 200_000, None), 64_000);
    assert_eq!(of(Some(64_000), 20_000, None), 18_000);
    assert_eq!(of(Some(64_000), 10, None), 1_024);
    assert_eq!(of(Some(64_000), 200_000, Some(70_000)), 64_000);
    assert_eq!(of(None, 200_000, Some(50)), 50);
}
