//! Messages as Anthropic's API writes them.

use agentsvc::model::provider::DriverKind;
use agentsvc_components::session::message::Usage;
use agentsvc_components::turn::outcome::StopReason;
use serde_json::{Value, json};

use super::script::{Script, Step, Whole};
use super::server::{Answer, Received};
use super::speaks::{Heard, KEY, Speaks, items, string, texts};

/// The protocol.
pub(crate) struct Anthropic;

impl Speaks for Anthropic {
    fn kind(&self) -> DriverKind {
        DriverKind::Anthropic
    }

    fn model(&self) -> &'static str {
        "claude-sonnet-4-5"
    }

    fn stream(&self, script: &Script) -> Vec<Vec<u8>> {
        let mut frames = begin(script);
        let tokens = script.usage.map(|usage| json!({"output_tokens": usage.output_tokens}));
        let stop = json!({"stop_reason": reason(script.stop), "stop_sequence": null});
        frames.push(event(&json!({"type": "message_delta", "delta": stop, "usage": tokens})));
        frames.push(event(&json!({"type": "message_stop"})));
        frames
    }

    fn frames_to_stop(&self, script: &Script) -> usize {
        begin(script).len() + 1
    }

    fn whole(&self, script: &Script) -> Vec<u8> {
        let content: Vec<Value> = script.joined().iter().map(block).collect();
        let mut body = message(script, content);
        body["stop_reason"] = reason(script.stop).into();
        body.to_string().into_bytes()
    }

    fn error(&self, status: u16, words: &str) -> Answer {
        let kind = match status {
            401 => "authentication_error",
            403 => "permission_error",
            404 => "not_found_error",
            413 => "request_too_large",
            429 => "rate_limit_error",
            529 => "overloaded_error",
            500.. => "api_error",
            _ => "invalid_request_error",
        };
        let error = json!({"type": "error", "error": {"type": kind, "message": words}, "request_id": "req_1"});
        Answer::json(status, &error)
    }

    fn error_frame(&self, words: &str) -> Option<Vec<u8>> {
        Some(event(&json!({"type": "error", "error": {"type": "overloaded_error", "message": words}})))
    }

    fn heard(&self, received: &Received) -> Heard {
        assert_eq!(received.path, "/v1/messages");
        assert_eq!(received.header("x-api-key"), KEY);
        assert_eq!(received.header("anthropic-version"), "2023-06-01");
        assert_eq!(received.header("authorization"), "");
        let body = received.json();
        assert!(body["max_tokens"].as_u64().is_some_and(|most| most > 0), "max_tokens is required");
        assert!(received.json().to_string().matches("cache_control").count() <= 4, "at most four breakpoints");
        let choice = &body["tool_choice"];
        let named = choice["name"].as_str().or(choice["type"].as_str());
        let mut heard = Heard {
            model: string(&body["model"]),
            streaming: body["stream"] == true,
            system: items(&body["system"]).iter().map(|block| string(&block["text"])).collect(),
            tools: items(&body["tools"]).iter().map(|tool| string(&tool["name"])).collect(),
            max_tokens: body["max_tokens"].as_u64(),
            temperature: body["temperature"].as_f64(),
            top_p: body["top_p"].as_f64(),
            stops: texts(&body["stop_sequences"]),
            choice: named.map(str::to_owned),
            schema: body.pointer("/output_config/format/schema").cloned(),
            ..Heard::default()
        };
        hear(&body, &mut heard);
        heard
    }
}

/// The conversation, held to the rules of the protocol.
fn hear(body: &Value, heard: &mut Heard) {
    let mut open: Vec<String> = Vec::new();
    for (at, message) in items(&body["messages"]).iter().enumerate() {
        let role = string(&message["role"]);
        assert_eq!(role, if at % 2 == 0 { "user" } else { "assistant" }, "roles take turns");
        let blocks = items(&message["content"]);
        assert!(!blocks.is_empty(), "no message is empty");
        let results = blocks.iter().take_while(|block| block["type"] == "tool_result").count();
        let answered: Vec<String> = blocks[..results].iter().map(|block| string(&block["tool_use_id"])).collect();
        assert_eq!(answered, open, "every call is answered at once, and first");
        open.clear();
        for block in blocks {
            let text = string(&block["text"]);
            heard.said.push(match block["type"].as_str() {
                Some("text") if !text.trim().is_empty() => format!("{role}: {text}"),
                Some("image") => {
                    assert_eq!(block["source"]["type"], "base64");
                    format!("image {} {}", string(&block["source"]["media_type"]), string(&block["source"]["data"]))
                }
                Some("tool_use") => {
                    let id = string(&block["id"]);
                    open.push(id.clone());
                    assert!(block["input"].is_object(), "the input is an object");
                    format!("call {id} {} {}", string(&block["name"]), block["input"])
                }
                Some("tool_result") => {
                    format!("result {}: {}", string(&block["tool_use_id"]), string(&block["content"]))
                }
                Some("thinking") => format!("thought {}", string(&block["signature"])),
                _ => panic!("a block {block}"),
            });
        }
    }
    assert!(open.is_empty(), "every call is answered");
}

/// Every frame before the one with the reason to stop.
fn begin(script: &Script) -> Vec<Vec<u8>> {
    let mut frames = vec![event(&json!({"type": "message_start", "message": message(script, Vec::new())}))];
    frames.push(event(&json!({"type": "ping"})));
    let mut blocks = Blocks { frames, index: 0, open: None };
    for step in script.in_sequence() {
        blocks.step(&step);
    }
    blocks.close();
    blocks.frames
}

/// The frames of content blocks, one behind the other.
struct Blocks {
    frames: Vec<Vec<u8>>,
    index: usize,
    open: Option<&'static str>,
}

impl Blocks {
    fn step(&mut self, step: &Step) {
        match step {
            Step::Text(text) => {
                self.within("text", || json!({"type": "text", "text": ""}));
                self.delta(json!({"type": "text_delta", "text": text}));
            }
            Step::Thought(text) => {
                self.within("thinking", || json!({"type": "thinking", "thinking": "", "signature": ""}));
                self.delta(json!({"type": "thinking_delta", "thinking": text}));
            }
            Step::EndThought(mark) => {
                self.delta(json!({"type": "signature_delta", "signature": mark}));
                self.close();
            }
            Step::Call { id, name, .. } => {
                self.close();
                self.within("tool_use", || json!({"type": "tool_use", "id": id, "name": name, "input": {}}));
            }
            Step::Arguments { piece, .. } => self.delta(json!({"type": "input_json_delta", "partial_json": piece})),
        }
    }

    fn within(&mut self, kind: &'static str, block: impl FnOnce() -> Value) {
        if self.open == Some(kind) {
            return;
        }
        self.close();
        let start = json!({"type": "content_block_start", "index": self.index, "content_block": block()});
        self.frames.push(event(&start));
        self.open = Some(kind);
    }

    fn delta(&mut self, delta: Value) {
        self.frames.push(event(&json!({"type": "content_block_delta", "index": self.index, "delta": delta})));
    }

    fn close(&mut self) {
        if self.open.take().is_some() {
            self.frames.push(event(&json!({"type": "content_block_stop", "index": self.index})));
            self.index += 1;
        }
    }
}

fn block(whole: &Whole) -> Value {
    match whole {
        Whole::Text(text) => json!({"type": "text", "text": text}),
        Whole::Thought { text, mark } => json!({"type": "thinking", "thinking": text, "signature": mark}),
        Whole::Call { id, name, arguments, .. } => {
            let input: Value = serde_json::from_str(arguments).unwrap_or_else(|_| json!({}));
            json!({"type": "tool_use", "id": id, "name": name, "input": input})
        }
    }
}

fn message(script: &Script, content: Vec<Value>) -> Value {
    let mut message = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
        "content": content, "stop_reason": null, "stop_sequence": null});
    if let Some(counts) = script.usage {
        message["usage"] = usage(counts);
    }
    message
}

/// What was read from the cache and written to it stands beside the rest.
fn usage(usage: Usage) -> Value {
    let plain = usage.input_tokens - usage.cached_input_tokens - usage.cache_write_tokens;
    json!({"input_tokens": plain, "output_tokens": usage.output_tokens,
        "cache_read_input_tokens": usage.cached_input_tokens,
        "cache_creation_input_tokens": usage.cache_write_tokens})
}

fn event(content: &Value) -> Vec<u8> {
    format!("event: {}\ndata: {content}\n\n", string(&content["type"])).into_bytes()
}

fn reason(stop: StopReason) -> &'static str {
    match stop {
        StopReason::End => "end_turn",
        StopReason::ToolUse => "tool_use",
        StopReason::Length => "max_tokens",
        StopReason::Filtered => "refusal",
    }
}
