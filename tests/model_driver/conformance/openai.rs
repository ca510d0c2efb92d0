//! Chat completions as an OpenAI-compatible server writes them.

use agentsvc::model::provider::DriverKind;
use agentsvc_components::session::message::Usage;
use agentsvc_components::turn::outcome::StopReason;
use serde_json::{Value, json};

use super::script::{Script, Step, Whole};
use super::server::{Answer, Received};
use super::speaks::{Heard, KEY, Speaks, items, string, texts};

/// The protocol.
pub(crate) struct OpenAi;

impl Speaks for OpenAi {
    fn kind(&self) -> DriverKind {
        DriverKind::OpenAi
    }

    fn stream(&self, script: &Script) -> Vec<Vec<u8>> {
        let mut frames = vec![delta(&json!({"role": "assistant", "content": ""}))];
        frames.extend(script.steps.iter().filter_map(step));
        frames.push(event(&json!({"choices": [{"index": 0, "delta": {}, "finish_reason": finish(script.stop)}]})));
        if let Some(counts) = script.usage {
            frames.push(event(&json!({"choices": [], "usage": usage(counts)})));
        }
        frames.push(b"data: [DONE]\n\n".to_vec());
        frames
    }

    fn frames_to_stop(&self, script: &Script) -> usize {
        2 + script.steps.iter().filter_map(step).count()
    }

    fn whole(&self, script: &Script) -> Vec<u8> {
        let mut message = json!({"role": "assistant", "content": script.all_text()});
        let calls = script.joined().into_iter().filter_map(|whole| match whole {
            Whole::Call { id, name, arguments, .. } => {
                Some(json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}))
            }
            _ => None,
        });
        let calls: Vec<Value> = calls.collect();
        if !calls.is_empty() {
            message["tool_calls"] = calls.into();
        }
        let choice = json!({"index": 0, "message": message, "finish_reason": finish(script.stop)});
        let mut body = json!({"id": "chatcmpl-1", "object": "chat.completion", "choices": [choice]});
        if let Some(counts) = script.usage {
            body["usage"] = usage(counts);
        }
        body.to_string().into_bytes()
    }

    fn error(&self, status: u16, words: &str) -> Answer {
        Answer::json(status, &json!({"error": {"message": words, "type": "x", "param": null, "code": null}}))
    }

    fn error_frame(&self, words: &str) -> Option<Vec<u8>> {
        Some(event(&json!({"error": {"message": words, "code": 503}})))
    }

    fn heard(&self, received: &Received) -> Heard {
        assert_eq!(received.path, "/v1/chat/completions");
        assert_eq!(received.header("authorization"), format!("Bearer {KEY}"));
        heard(&received.json())
    }

    fn carries_thoughts(&self) -> bool {
        false
    }

    fn counts_cache(&self) -> (bool, bool) {
        (true, false)
    }
}

/// A request in neutral form.
pub(crate) fn heard(body: &Value) -> Heard {
    let choice = &body["tool_choice"];
    let named = choice["function"]["name"].as_str().or(choice.as_str());
    let mut heard = Heard {
        model: string(&body["model"]),
        streaming: body["stream"] == true,
        tools: items(&body["tools"]).iter().map(|tool| string(&tool["function"]["name"])).collect(),
        max_tokens: body["max_tokens"].as_u64(),
        temperature: body["temperature"].as_f64(),
        top_p: body["top_p"].as_f64(),
        stops: texts(&body["stop"]),
        choice: named.map(|name| if name == "required" { "any" } else { name }.to_owned()),
        schema: body["response_format"].pointer("/json_schema/schema").cloned(),
        ..Heard::default()
    };
    assert!(!heard.streaming || body["stream_options"]["include_usage"] == true);
    items(&body["messages"]).iter().for_each(|message| hear(message, &mut heard));
    heard
}

/// Adds what one message says.
pub(crate) fn hear(message: &Value, heard: &mut Heard) {
    let role = string(&message["role"]);
    let content = &message["content"];
    match role.as_str() {
        "system" => heard.system = string(content),
        "tool" => heard.said.push(format!("result {}: {}", string(&message["tool_call_id"]), string(content))),
        _ => {
            let text = string(content);
            if !text.is_empty() {
                heard.said.push(format!("{role}: {text}"));
            }
            for part in items(content) {
                heard.said.push(match part["type"].as_str() {
                    Some("text") => format!("{role}: {}", string(&part["text"])),
                    Some("image_url") => picture(&string(&part["image_url"]["url"])),
                    other => panic!("a part of type {other:?}"),
                });
            }
        }
    }
    for call in items(&message["tool_calls"]) {
        let (name, arguments) = (&call["function"]["name"], string(&call["function"]["arguments"]));
        let arguments: Value = serde_json::from_str(&arguments).expect("arguments are JSON");
        heard.said.push(format!("call {} {} {arguments}", string(&call["id"]), string(name)));
    }
}

/// The line of a picture in a `data:` URL.
pub(crate) fn picture(url: &str) -> String {
    let (kind, base64) = url.strip_prefix("data:").and_then(|url| url.split_once(";base64,")).expect("a data URL");
    format!("image {kind} {base64}")
}

fn step(step: &Step) -> Option<Vec<u8>> {
    let call = |at: usize, call: Value| {
        let mut call = call;
        call["index"] = at.into();
        delta(&json!({"tool_calls": [call]}))
    };
    match step {
        Step::Text(text) => Some(delta(&json!({"content": text}))),
        Step::Call { at, id, name } => {
            Some(call(*at, json!({"id": id, "type": "function", "function": {"name": name, "arguments": ""}})))
        }
        Step::Arguments { at, piece } => Some(call(*at, json!({"function": {"arguments": piece}}))),
        // The protocol has no thoughts; some servers send them under keys of their own.
        Step::Thought(text) => Some(delta(&json!({"reasoning_content": text}))),
        Step::EndThought(_) => None,
    }
}

fn delta(delta: &Value) -> Vec<u8> {
    event(&json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta}]}))
}

/// A server-sent event without a name.
pub(crate) fn event(content: &Value) -> Vec<u8> {
    format!("data: {content}\n\n").into_bytes()
}

/// The word for a reason to stop.
pub(crate) fn finish(stop: StopReason) -> &'static str {
    match stop {
        StopReason::End => "stop",
        StopReason::ToolUse => "tool_calls",
        StopReason::Length => "length",
        StopReason::Filtered => "content_filter",
    }
}

/// The counts.
pub(crate) fn usage(usage: Usage) -> Value {
    json!({"prompt_tokens": usage.input_tokens, "completion_tokens": usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_input_tokens}})
}
