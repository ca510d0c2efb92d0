//! Tests of the body of a Converse request.

use agentsvc_components::session::message::{Block, Reasoning, Role};
use agentsvc_components::turn::TurnRequest;
use serde_json::{Value, json};

use crate::model::bedrock::Bedrock;
use crate::model::provider::{DriverKind, Target};
use crate::model::testing::{With, call, posted, prompt, result, target, text};
use crate::tool::toolset::built_in;

const HAIKU: &str = "us.anthropic.claude-haiku-4-5-20251001-v1:0";

fn model(model: &str) -> Target {
    Target { model: model.into(), context_tokens: 200_000, ..target(DriverKind::Bedrock, "http://127.0.0.1:1") }
}

fn body(target: &Target, messages: Vec<(Role, Vec<Block>)>, with: &With<'_>) -> Value {
    posted(&Bedrock::default(), target, &prompt(messages), with).unwrap().1
}

fn question() -> Vec<(Role, Vec<Block>)> {
    vec![(Role::User, vec![text("a")])]
}

#[test]
fn the_smallest_request() {
    let expected = json!({
        "messages": [{"role": "user", "content": [{"text": "a"}]}],
        "system": [{"text": "be brief"}],
        "inferenceConfig": {"maxTokens": 8192},
    });
    assert_eq!(body(&model("meta.llama3-1-8b-instruct-v1:0"), question(), &With::default()), expected);
}

#[test]
fn a_turn_under_way() {
    let raw = "{\"reasoningContent\":{\"reasoningText\":{\"text\":\"t\",\"signature\":\"s\"}}}";
    let thought = Reasoning { wire: "bedrock".into(), model: HAIKU.into(), text: "t".into(), raw: raw.into() };
    let messages = vec![
        (Role::User, vec![text("a")]),
        (Role::Assistant, vec![Block::Reasoning(thought), call("1", "{ \"x\": 1 }"), call("2", "")]),
        (Role::Tool, vec![result("1", "rain", false), result("2", "", true)]),
    ];
    let asked = TurnRequest { tool_choice: Some("\"auto\"".to_owned()), thinking: true, ..TurnRequest::default() };
    let with =
        With { tools: built_in().offered_to_all(), asked: Some(&asked), temperature: Some(0.5), ..With::default() };
    let of_claude = body(&model(HAIKU), messages.clone(), &with);
    let point = json!({"cachePoint": {"type": "default"}});
    assert_eq!(of_claude["system"], json!([{"text": "be brief"}, point]));
    let expected = json!([
        {"role": "user", "content": [{"text": "a"}, point]},
        {"role": "assistant", "content": [
            {"reasoningContent": {"reasoningText": {"text": "t", "signature": "s"}}},
            {"toolUse": {"toolUseId": "1", "name": "t", "input": {"x": 1}}},
            {"toolUse": {"toolUseId": "2", "name": "t", "input": {}}}]},
        {"role": "user", "content": [
            {"toolResult": {"toolUseId": "1", "content": [{"text": "rain"}]}},
            {"toolResult": {"toolUseId": "2", "content": [{"text": "(no output)"}], "status": "error"}},
            point]},
    ]);
    assert_eq!(of_claude["messages"], expected);
    assert_eq!(of_claude["toolConfig"]["toolChoice"], json!({"auto": {}}));
    assert_eq!(of_claude["toolConfig"]["tools"].as_array().unwrap().last(), Some(&point));
    assert_eq!(
        of_claude["additionalModelRequestFields"]["thinking"],
        json!({"type": "enabled", "budget_tokens": 4096})
    );
    assert_eq!(of_claude["inferenceConfig"], json!({"maxTokens": 8192}));

    let of_llama = body(&model("meta.llama3-1-8b-instruct-v1:0"), messages.clone(), &with);
    assert!(!of_llama.to_string().contains("cachePoint") && of_llama["additionalModelRequestFields"].is_null());
    assert!(!of_llama["messages"].to_string().contains("\"status\""));
    let of_nova = body(&model("amazon.nova-pro-v1:0"), messages, &with);
    let tools = of_nova["toolConfig"]["tools"].to_string();
    assert!(of_nova["system"].to_string().contains("cachePoint") && !tools.contains("cachePoint"));
}

#[test]
fn without_tools_past_calls_are_text() {
    let none = TurnRequest { tool_choice: Some("\"none\"".to_owned()), ..TurnRequest::default() };
    let messages = vec![
        (Role::User, vec![text("a")]),
        (Role::Assistant, vec![call("1", "{}")]),
        (Role::Tool, vec![result("1", "rain", false)]),
    ];
    let with = With { tools: built_in().offered_to_all(), asked: Some(&none), ..With::default() };
    let body = body(&model(HAIKU), messages, &with);
    assert!(body["toolConfig"].is_null());
    assert_eq!(body["messages"][2]["content"][0], json!({"text": "[t gave: rain]"}));
}

#[test]
fn answers_in_a_form() {
    let format =
        r#"{"response_format":{"type":"json_schema","json_schema":{"name":"a b","schema":{"type":"object"}}}}"#;
    let asked = TurnRequest { parameters: Some(format.into()), ..TurnRequest::default() };
    let with = With { asked: Some(&asked), ..With::default() };
    let new = body(&model(HAIKU), question(), &with);
    let schema = &new["outputConfig"]["textFormat"]["structure"]["jsonSchema"];
    assert_eq!(schema["schema"], "{\"additionalProperties\":false,\"type\":\"object\"}");
    assert!(schema["name"].as_str().unwrap().starts_with("a_b_"));
    assert_eq!(new["outputConfig"]["textFormat"]["type"], "json_schema");
    let other = body(&model("amazon.nova-pro-v1:0"), question(), &with);
    assert!(other["outputConfig"].is_null() && other["system"].to_string().contains("fits this JSON schema"));
}
