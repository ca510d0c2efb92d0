//! Responses as OpenAI's API writes them.

use agentsvc::model::provider::DriverKind;
use agentsvc_components::session::message::Usage;
use agentsvc_components::turn::outcome::StopReason;
use serde_json::{Value, json};

use super::openai::picture;
use super::script::{Script, Step, Whole};
use super::server::{Answer, Received};
use super::speaks::{Heard, KEY, Speaks, items, string};

/// The protocol.
pub(crate) struct Responses;

impl Speaks for Responses {
    fn kind(&self) -> DriverKind {
        DriverKind::OpenAiResponses
    }

    fn stream(&self, script: &Script) -> Vec<Vec<u8>> {
        let mut frames = begin(script);
        let kind = if is_cut(script.stop) { "response.incomplete" } else { "response.completed" };
        frames.push(event(json!({"type": kind, "response": response(script)})));
        frames
    }

    fn frames_to_stop(&self, script: &Script) -> usize {
        begin(script).len() + 1
    }

    fn whole(&self, script: &Script) -> Vec<u8> {
        response(script).to_string().into_bytes()
    }

    fn error(&self, status: u16, words: &str) -> Answer {
        Answer::json(status, &json!({"error": {"message": words, "type": "x", "param": null, "code": null}}))
    }

    fn error_frame(&self, words: &str) -> Option<Vec<u8>> {
        Some(event(json!({"type": "error", "code": "server_error", "message": words, "param": null})))
    }

    fn heard(&self, received: &Received) -> Heard {
        assert_eq!(received.path, "/v1/responses");
        assert_eq!(received.header("authorization"), format!("Bearer {KEY}"));
        let body = received.json();
        assert_eq!((&body["store"], &body["include"]), (&json!(false), &json!(["reasoning.encrypted_content"])));
        let choice = &body["tool_choice"];
        let named = choice["name"].as_str().or(choice.as_str());
        let format = &body["text"]["format"];
        let mut heard = Heard {
            model: string(&body["model"]),
            streaming: body["stream"] == true,
            system: string(&body["instructions"]),
            tools: items(&body["tools"]).iter().map(|tool| string(&tool["name"])).collect(),
            max_tokens: body["max_output_tokens"].as_u64(),
            temperature: body["temperature"].as_f64(),
            top_p: body["top_p"].as_f64(),
            choice: named.map(|name| if name == "required" { "any" } else { name }.to_owned()),
            schema: (format["type"] == "json_schema").then(|| format["schema"].clone()),
            ..Heard::default()
        };
        assert!(items(&body["tools"]).iter().all(|tool| tool["strict"].is_boolean()), "strict is the default");
        items(&body["input"]).iter().for_each(|item| hear(item, &mut heard));
        heard
    }

    fn counts_cache(&self) -> (bool, bool) {
        (true, false)
    }

    fn takes_stops(&self) -> bool {
        false
    }
}

fn hear(item: &Value, heard: &mut Heard) {
    match item["type"].as_str() {
        Some("message") => {
            let role = string(&item["role"]);
            for part in items(&item["content"]) {
                heard.said.push(match (role.as_str(), part["type"].as_str()) {
                    ("user", Some("input_text")) | ("assistant", Some("output_text")) => {
                        format!("{role}: {}", string(&part["text"]))
                    }
                    ("user", Some("input_image")) => picture(&string(&part["image_url"])),
                    _ => panic!("a part {part}"),
                });
            }
        }
        Some("function_call") => {
            let arguments: Value = serde_json::from_str(&string(&item["arguments"])).expect("arguments are JSON");
            heard.said.push(format!("call {} {} {arguments}", string(&item["call_id"]), string(&item["name"])));
        }
        Some("function_call_output") => {
            heard.said.push(format!("result {}: {}", string(&item["call_id"]), string(&item["output"])));
        }
        Some("reasoning") => heard.said.push(format!("thought {}", string(&item["encrypted_content"]))),
        _ => panic!("an item {item}"),
    }
}

/// Every frame before the last.
fn begin(script: &Script) -> Vec<Vec<u8>> {
    let created =
        json!({"type": "response.created", "response": {"id": "resp_1", "status": "in_progress", "output": []}});
    let mut frames = vec![event(created)];
    let mut output = Output { frames: Vec::new(), items: Vec::new(), calls: Vec::new() };
    for step in &script.steps {
        output.step(step);
    }
    frames.append(&mut output.frames);
    for (at, whole) in script.joined().iter().enumerate() {
        if !matches!(whole, Whole::Thought { .. }) {
            frames
                .push(event(json!({"type": "response.output_item.done", "output_index": at, "item": item(at, whole)})));
        }
    }
    frames
}

/// The events of items, as they are written.
struct Output {
    frames: Vec<Vec<u8>>,
    /// What each item is.
    items: Vec<&'static str>,
    /// The items that are calls.
    calls: Vec<usize>,
}

impl Output {
    fn step(&mut self, step: &Step) {
        match step {
            Step::Text(text) => {
                let at = self.within("message", json!({"content": []}));
                self.event(json!({"type": "response.output_text.delta", "output_index": at, "delta": text}));
            }
            Step::Thought(text) => {
                let at = self.within("reasoning", json!({"summary": []}));
                let kind = "response.reasoning_summary_text.delta";
                self.event(json!({"type": kind, "output_index": at, "summary_index": 0, "delta": text}));
            }
            Step::EndThought(mark) => {
                let at = self.items.len() - 1;
                let thought = Whole::Thought { text: "(told)".to_owned(), mark: Some(mark.clone()) };
                self.event(
                    json!({"type": "response.output_item.done", "output_index": at, "item": item(at, &thought)}),
                );
            }
            Step::Call { id, name, .. } => {
                let at = self.begin("function_call", json!({"call_id": id, "name": name, "arguments": ""}));
                self.calls.push(at);
            }
            Step::Arguments { at, piece } => {
                let kind = "response.function_call_arguments.delta";
                self.event(json!({"type": kind, "output_index": self.calls[*at], "delta": piece}));
            }
        }
    }

    /// The index of the open item of this kind; begins one when there is none.
    fn within(&mut self, kind: &'static str, item: Value) -> usize {
        if self.items.last() != Some(&kind) {
            return self.begin(kind, item);
        }
        self.items.len() - 1
    }

    fn begin(&mut self, kind: &'static str, mut item: Value) -> usize {
        item["type"] = kind.into();
        let at = self.items.len();
        self.items.push(kind);
        self.event(json!({"type": "response.output_item.added", "output_index": at, "item": item}));
        at
    }

    fn event(&mut self, content: Value) {
        self.frames.push(event(content));
    }
}

fn item(at: usize, whole: &Whole) -> Value {
    match whole {
        Whole::Text(text) => {
            let content = json!([{"type": "output_text", "text": text, "annotations": []}]);
            json!({"id": format!("msg_{at}"), "type": "message", "role": "assistant", "content": content})
        }
        Whole::Thought { text, mark } => {
            let summary = json!([{"type": "summary_text", "text": text}]);
            json!({"id": format!("rs_{at}"), "type": "reasoning", "summary": summary, "encrypted_content": mark})
        }
        Whole::Call { id, name, arguments, .. } => {
            json!({"id": format!("fc_{at}"), "type": "function_call", "call_id": id, "name": name, "arguments": arguments})
        }
    }
}

fn response(script: &Script) -> Value {
    let output: Vec<Value> = script.joined().iter().enumerate().map(|(at, whole)| item(at, whole)).collect();
    let (status, why) = match script.stop {
        StopReason::Length => ("incomplete", json!({"reason": "max_output_tokens"})),
        StopReason::Filtered => ("incomplete", json!({"reason": "content_filter"})),
        _ => ("completed", Value::Null),
    };
    let mut body = json!({"id": "resp_1", "object": "response", "status": status, "error": null,
        "incomplete_details": why, "output": output});
    if let Some(counts) = script.usage {
        body["usage"] = usage(counts);
    }
    body
}

fn is_cut(stop: StopReason) -> bool {
    matches!(stop, StopReason::Length | StopReason::Filtered)
}

fn usage(usage: Usage) -> Value {
    json!({"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_input_tokens},
        "output_tokens_details": {"reasoning_tokens": 1}})
}

fn event(content: Value) -> Vec<u8> {
    format!("event: {}\ndata: {content}\n\n", string(&content["type"])).into_bytes()
}
