//! Tests of what Gemini is sent.

use agentsvc_components::FileId;
use agentsvc_components::session::message::{Block, Reasoning, Role};
use agentsvc_components::turn::TurnRequest;
use agentsvc_systems::prompt::Prompt;
use serde_json::{Value, json};

use crate::model::gemini::Gemini;
use crate::model::images::{GONE, Images};
use crate::model::provider::{DriverKind, Target};
use crate::model::testing;
use crate::model::testing::{With, call, posted, prompt, result, text};
use crate::tool::toolset::built_in;

fn target(model: &str, reasons: bool) -> Target {
    Target { model: model.into(), reasons, ..testing::target(DriverKind::Gemini, "https://h") }
}

fn sent(model: &str, prompt: &Prompt, with: &With<'_>) -> Value {
    posted(&Gemini, &target(model, true), prompt, with).unwrap().1
}

fn thought(model: &str, said: &str, raw: &str) -> Block {
    let (wire, model) = ("gemini".to_owned(), model.to_owned());
    Block::Reasoning(Reasoning { wire, model, text: said.to_owned(), raw: raw.to_owned() })
}

#[test]
fn every_kind_of_message() {
    let prompt = prompt(vec![
        (Role::User, vec![text("a"), text("b")]),
        (Role::Assistant, vec![text("c"), call("call_1_0", "{\"x\":1}"), call("theirs", "{broken")]),
        (Role::Tool, vec![result("theirs", "no", true), result("call_1_0", "{\"n\":12345678901234567890}", false)]),
        (Role::Assistant, vec![text("")]),
        (Role::User, vec![text("d")]),
    ]);
    let called = |value: Value| json!({"functionCall": value});
    let response = |value: Value| json!({"functionResponse": value});
    let expected = json!([
        {"role": "user", "parts": [{"text": "a"}, {"text": "b"}]},
        {"role": "model", "parts": [
            {"text": "c"},
            called(json!({"name": "t", "args": {"x": 1}})),
            called(json!({"id": "theirs", "name": "t", "args": {}})),
        ]},
        {"role": "user", "parts": [
            response(json!({"name": "t", "response": {"result": "{\"n\":12345678901234567890}"}})),
            response(json!({"id": "theirs", "name": "t", "response": {"error": "no"}})),
        ]},
        {"role": "user", "parts": [{"text": "d"}]},
    ]);
    let body = sent("gemini-2.5-pro", &prompt, &With::default());
    assert_eq!(body["contents"], expected);
    assert_eq!(body["systemInstruction"], json!({"parts": [{"text": "be brief"}]}));
    assert_eq!((&body["tools"], &body["generationConfig"]), (&Value::Null, &Value::Null));
}

#[test]
fn signatures_go_back_on_their_parts() {
    let m = "gemini-3-pro-preview";
    let prompt = prompt(vec![
        (Role::User, vec![text("q")]),
        (
            Role::Assistant,
            vec![
                thought(m, "Hm.", r#"{"thoughtSignature":"of call"}"#),
                call("1", "{}"),
                call("2", "{}"),
                thought("another", "x", r#"{"thoughtSignature":"foreign"}"#),
            ],
        ),
        (Role::Tool, vec![result("1", "r", false), result("2", "r", false)]),
        (
            Role::Assistant,
            vec![
                thought(m, "Well.", r#"{"thought":true,"thoughtSignature":"of thought"}"#),
                text("said"),
                thought(m, "", r#"{"thoughtSignature":"alone"}"#),
            ],
        ),
    ]);
    let body = sent(m, &prompt, &With::default());
    assert_eq!(body["contents"][1]["parts"][0]["thoughtSignature"], "of call");
    assert_eq!(body["contents"][1]["parts"][1].get("thoughtSignature"), None);
    assert_eq!(body["contents"][1]["parts"].as_array().unwrap().len(), 2);
    let last = json!([
        {"text": "Well.", "thought": true, "thoughtSignature": "of thought"},
        {"text": "said"},
        {"text": "", "thoughtSignature": "alone"},
    ]);
    assert_eq!(body["contents"][3]["parts"], last);
}

#[test]
fn calls_of_other_models_pass_in_the_running_turn_only() {
    let messages = || {
        vec![
            (Role::User, vec![text("q")]),
            (Role::Assistant, vec![call("1", "{}")]),
            (Role::Tool, vec![result("1", "r", false)]),
            (Role::User, vec![text("q")]),
            (Role::Assistant, vec![call("2", "{}"), call("3", "{}")]),
            (Role::Tool, vec![result("2", "r", false), result("3", "r", false)]),
        ]
    };
    let signatures = |model: &str| {
        let body = sent(model, &prompt(messages()), &With::default());
        let of = |content: usize, part: usize| body["contents"][content]["parts"][part]["thoughtSignature"].clone();
        [of(1, 0), of(4, 0), of(4, 1)]
    };
    let standing = json!("skip_thought_signature_validator");
    assert_eq!(signatures("gemini-3-flash-preview"), [Value::Null, standing, Value::Null]);
    assert_eq!(signatures("gemini-2.5-flash"), [Value::Null, Value::Null, Value::Null]);
}

#[test]
fn images_are_inline() {
    let file = |n| FileId(uuid::Uuid::from_u128(n));
    let image = |n| Block::Image { media_type: "image/png".to_owned(), file: file(n), bytes: 3 };
    let prompt = prompt(vec![(Role::User, vec![text("a"), image(1), image(2)])]);
    let images = Images::of(&prompt, &|id, _| (id == file(1)).then(|| b"abc".to_vec()));
    let body = sent("gemini-2.5-pro", &prompt, &With { images, ..With::default() });
    let inline = json!({"inlineData": {"mimeType": "image/png", "data": "YWJj"}});
    assert_eq!(body["contents"][0]["parts"], json!([{"text": "a"}, inline, {"text": GONE}]));
}

#[test]
fn tools_and_settings() {
    let parameters = json!({
        "top_p": 0.5, "stop": ["x"], "seed": 7, "logit_bias": {},
        "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema":
            {"type": "object", "properties": {"a": {"const": 1}}, "$schema": "x"}}},
    });
    let asked = TurnRequest {
        tool_choice: Some(r#"{"type":"function","function":{"name":"system_time"}}"#.to_owned()),
        parameters: Some(parameters.to_string().into()),
        thinking: true,
        ..TurnRequest::default()
    };
    let with = With {
        tools: built_in().offered_to_all(),
        asked: Some(&asked),
        temperature: Some(0.25),
        max_tokens: Some(9),
        ..With::default()
    };
    let body = sent("gemini-2.5-flash", &prompt(vec![(Role::User, vec![text("q")])]), &with);
    let expected = json!({
        "temperature": 0.25, "maxOutputTokens": 9, "topP": 0.5, "stopSequences": ["x"], "seed": 7,
        "responseMimeType": "application/json",
        "responseJsonSchema": {"type": "object", "properties": {"a": {"enum": [1]}}},
        "thinkingConfig": {"includeThoughts": true, "thinkingBudget": -1},
    });
    assert_eq!(body["generationConfig"], expected);
    let config = json!({"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["system_time"]}});
    assert_eq!(body["toolConfig"], config);
    let declarations = body["tools"][0]["functionDeclarations"].as_array().unwrap();
    let time = declarations.iter().find(|declaration| declaration["name"] == "system_time").unwrap();
    assert_eq!(time["parametersJsonSchema"]["type"], "object");
}

#[test]
fn thinking_has_a_level_or_a_budget() {
    let thinking = |model: &str, reasons, effort: Option<&str>| {
        let parameters = effort.map(|effort| json!({"reasoning_effort": effort}).to_string().into());
        let asked = TurnRequest { thinking: true, parameters, ..TurnRequest::default() };
        let with = With { asked: Some(&asked), ..With::default() };
        let target = target(model, reasons);
        let body = posted(&Gemini, &target, &prompt(Vec::new()), &with).unwrap().1;
        body["generationConfig"]["thinkingConfig"].clone()
    };
    let level = |level: &str| json!({"includeThoughts": true, "thinkingLevel": level});
    assert_eq!(thinking("gemini-3-pro-preview", true, None), level("high"));
    assert_eq!(thinking("gemini-3-pro-preview", true, Some("low")), level("low"));
    assert_eq!(thinking("gemini-2.5-pro", true, Some("medium"))["thinkingBudget"], 8_192);
    assert_eq!(thinking("gemini-2.0-flash", false, None), Value::Null);
    assert_eq!(thinking("gemini-2.5-pro", true, Some("none")), Value::Null);
}
