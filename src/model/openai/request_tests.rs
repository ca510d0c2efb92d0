//! Tests of what is sent for chat completions.

use agentsvc_components::FileId;
use agentsvc_components::kernel::attempt::Attempt;
use agentsvc_components::kernel::id::JobId;
use agentsvc_components::session::message::{Block, ChatMessage, Reasoning, Role, ToolCall};
use agentsvc_components::turn::TurnRequest;
use agentsvc_systems::prompt::Prompt;
use serde_json::{Value, json};

use super::body;
use crate::model::images::Images;
use crate::model::names;
use crate::model::openai::OpenAi;
use crate::model::provider::{DriverKind, Target};
use crate::model::testing;
use crate::model::testing::{With, posted};
use crate::model::{Purpose, Request};
use crate::tool::toolset::built_in;

fn target(bounds_completion: bool) -> Target {
    Target {
        provider: "p".into(),
        model: "m".into(),
        driver: DriverKind::OpenAi,
        base_url: "http://h/v1".into(),
        context_tokens: 1_000,
        bounds_completion,
        ..Target::default()
    }
}

fn written(target: &Target, prompt: &Prompt, streaming: bool, with_tools: bool) -> Value {
    written_with(target, prompt, &Images::default(), streaming, with_tools)
}

fn written_with(target: &Target, prompt: &Prompt, images: &Images, streaming: bool, with_tools: bool) -> Value {
    let tools = if with_tools { built_in().offered_to_all() } else { Vec::new() };
    let request = Request {
        attempt: Attempt { job: JobId(uuid::Uuid::nil()), number: 1 },
        target,
        purpose: Purpose::Turn,
        temperature: Some(0.25),
        max_tokens: Some(9),
        prompt,
        images,
        tools: &tools,
        asked: None,
        streaming,
    };
    serde_json::from_slice(&body(&request)).unwrap()
}

#[test]
fn every_kind_of_message() {
    let call = |id: &str, input: &str| {
        Block::ToolCall(ToolCall { id: id.to_owned(), name: "t".to_owned(), input: input.to_owned() })
    };
    let result = |id: &str| Block::ToolResult {
        call_id: id.to_owned(),
        name: "t".to_owned(),
        content: format!("result of {id}"),
        is_error: false,
    };
    let text = |text: &str| Block::Text { text: text.to_owned() };
    let prompt = Prompt {
        system: "be brief".to_owned(),
        messages: vec![
            ChatMessage { role: Role::User, blocks: vec![text("a"), text("b")] },
            ChatMessage { role: Role::Assistant, blocks: vec![call("1", "{\"x\":1}"), call("2", "{broken")] },
            ChatMessage { role: Role::Tool, blocks: vec![result("1"), result("2")] },
            ChatMessage { role: Role::Assistant, blocks: vec![text("c")] },
        ],
        estimated_tokens: 0,
        is_cut: false,
    };
    let call = |id: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": "t", "arguments": arguments}});
    let expected = json!({
        "model": "m",
        "messages": [
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": "a\n\nb"},
            {"role": "assistant", "content": null, "tool_calls": [call("1", "{\"x\":1}"), call("2", "{}")]},
            {"role": "tool", "content": "result of 1", "tool_call_id": "1"},
            {"role": "tool", "content": "result of 2", "tool_call_id": "2"},
            {"role": "assistant", "content": "c"},
        ],
        "temperature": 0.25,
        "max_tokens": 9,
        "stream": false,
    });
    assert_eq!(written(&target(false), &prompt, false, false), expected);
}

#[test]
fn images_are_parts_and_what_is_missing_is_a_text() {
    let file = |n| FileId(uuid::Uuid::from_u128(n));
    let image = |n| Block::Image { media_type: "image/png".to_owned(), file: file(n), bytes: 3 };
    let text = |text: &str| Block::Text { text: text.to_owned() };
    let asked = |blocks: Vec<Block>| {
        let messages = vec![ChatMessage { role: Role::User, blocks }];
        let prompt = Prompt { messages, ..Prompt::default() };
        let read = |id, _| (id == file(1)).then(|| b"abc".to_vec());
        let images = Images::of(&prompt, &read);
        written_with(&target(false), &prompt, &images, false, false)["messages"][0]["content"].clone()
    };
    let url = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,YWJj"}});
    let part = |text: &str| json!({"type": "text", "text": text});
    let gone = crate::model::images::GONE;
    assert_eq!(asked(vec![text("a"), image(1), text("b")]), json!([part("a"), url, part("b")]));
    assert_eq!(asked(vec![image(1)]), json!([url]));
    assert_eq!(asked(vec![text("a"), image(2), image(1)]), json!([part(&format!("a\n\n{gone}")), url]));
    assert_eq!(asked(vec![text("a"), image(2)]), json!(format!("a\n\n{gone}")));
}

#[test]
fn streams_ask_for_usage_and_tools_are_offered() {
    let prompt = Prompt::default();
    let body = written(&target(true), &prompt, true, true);
    assert_eq!(body["stream_options"], json!({"include_usage": true}));
    assert_eq!((&body["max_completion_tokens"], &body["max_tokens"]), (&json!(9), &Value::Null));
    assert_eq!(body["tools"][0]["type"], "function");
    assert!(body["tools"].to_string().contains("\"system_time\""));
    assert_eq!(body["tools"][0]["function"]["parameters"]["type"], "object");
}

fn sent(base_url: &str, model: &str, prompt: &Prompt, asked: &TurnRequest) -> Value {
    let base = crate::model::testing::target(DriverKind::OpenAi, base_url);
    let target = Target { model: model.into(), reasons: true, ..base };
    let with =
        With { asked: Some(asked), temperature: Some(0.25), max_tokens: Some(9), streaming: true, ..With::default() };
    posted(&OpenAi, &target, prompt, &with).unwrap().1
}

fn thought(model: &str, said: &str, raw: &str) -> Block {
    let (wire, model) = ("openai".to_owned(), model.to_owned());
    Block::Reasoning(Reasoning { wire, model, text: said.to_owned(), raw: raw.to_owned() })
}

#[test]
fn thoughts_go_back_where_they_are_wanted() {
    let details = r#"[{"type":"reasoning.encrypted","data":"x"}]"#;
    let call = |id: &str| Block::ToolCall(ToolCall { id: id.into(), name: "a.b".into(), input: "{}".into() });
    let prompt = testing::prompt(vec![
        (Role::Assistant, vec![call("call_0_0")]),
        (Role::User, vec![testing::text("q")]),
        (Role::Assistant, vec![thought("m", "Hm.", ""), call("call_1_0"), thought("m", "", details)]),
        (Role::Tool, vec![testing::result("call_1_0", "r", false)]),
        (Role::Assistant, vec![thought("another", "foreign", "[]"), testing::text("a")]),
    ]);
    let messages = |base: &str| sent(base, "m", &prompt, &TurnRequest::default())["messages"].clone();
    let plain = messages("http://h/v1");
    assert!(!plain.to_string().contains("reasoning"), "{plain}");
    assert_eq!(plain[3]["tool_calls"][0]["function"]["name"], json!(names::fitting("a.b")));
    let deepseek = messages("https://api.deepseek.com/v1");
    assert_eq!((&deepseek[1]["reasoning_content"], &deepseek[3]["reasoning_content"]), (&json!(""), &json!("Hm.")));
    assert_eq!(deepseek[5].get("reasoning_content"), None);
    let zai = messages("https://api.z.ai/api/paas/v4");
    assert_eq!((zai[1].get("reasoning_content"), &zai[3]["reasoning_content"]), (None, &json!("Hm.")));
    let router = messages("https://openrouter.ai/api/v1");
    let expected: Value = serde_json::from_str(details).unwrap();
    assert_eq!((&router[3]["reasoning_details"], router[5].get("reasoning_details")), (&expected, None));
    let mistral = messages("https://api.mistral.ai/v1");
    let id = mistral[3]["tool_calls"][0]["id"].as_str().unwrap();
    assert_eq!((id.len(), &mistral[4]["tool_call_id"]), (9, &json!(id)));
}

#[test]
fn thinking_is_asked_for_in_the_providers_words() {
    let thinks = TurnRequest { thinking: true, ..TurnRequest::default() };
    let prompt = testing::prompt(vec![(Role::User, vec![testing::text("q")])]);
    let body = |base: &str, model: &str| sent(base, model, &prompt, &thinks);
    assert_eq!(body("http://h/v1", "m")["reasoning_effort"], "high");
    assert_eq!(body("https://openrouter.ai/api/v1", "m")["reasoning"], json!({"effort": "high"}));
    assert_eq!(body("https://api.deepseek.com/v1", "m")["thinking"], json!({"type": "enabled"}));
    assert_eq!(body("https://api.groq.com/openai/v1", "qwen/qwen3-32b")["reasoning_format"], "parsed");
    for (base, model) in [("https://api.mistral.ai/v1", "magistral"), ("https://api.x.ai/v1", "grok-4")] {
        let body = body(base, model);
        assert!(body.get("reasoning_effort").is_none() && body.get("thinking").is_none(), "{body}");
    }
    let parameters = Some(r#"{"reasoning_effort":"low"}"#.into());
    let said = TurnRequest { thinking: true, parameters, ..TurnRequest::default() };
    assert_eq!(sent("http://h/v1", "m", &prompt, &said)["reasoning_effort"], "low");
    let not = sent("http://h/v1", "m", &prompt, &TurnRequest::default());
    assert_eq!(not.get("reasoning_effort"), None);
}

#[test]
fn models_that_think_bound_their_completion_and_take_no_temperature() {
    let prompt = testing::prompt(Vec::new());
    let asked = TurnRequest { parameters: Some(r#"{"top_p":0.5,"seed":7}"#.into()), ..TurnRequest::default() };
    let body = |base: &str, model: &str| sent(base, model, &prompt, &asked);
    let thinker = body("http://h/v1", "gpt-5-mini");
    assert_eq!((&thinker["max_completion_tokens"], thinker.get("max_tokens")), (&json!(9), None));
    assert_eq!((thinker.get("temperature"), thinker.get("top_p")), (None, None));
    let plain = body("http://h/v1", "gpt-4o");
    assert_eq!((&plain["max_tokens"], &plain["temperature"], &plain["top_p"]), (&json!(9), &json!(0.25), &json!(0.5)));
    assert_eq!((&plain["seed"], plain.get("prompt_cache_key")), (&json!(7), None));
    assert!(body("https://api.openai.com/v1", "gpt-4o")["prompt_cache_key"].is_string());
    let mistral = body("https://api.mistral.ai/v1", "m");
    assert_eq!((mistral.get("seed"), &mistral["random_seed"]), (None, &json!(7)));
    assert_eq!(mistral.get("stream_options"), None);
}
