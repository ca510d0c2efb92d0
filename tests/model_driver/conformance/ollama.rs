//! Chats as Ollama writes them: one JSON document a line.

use agentsvc::model::provider::DriverKind;
use agentsvc_components::turn::outcome::StopReason;
use serde_json::{Value, json};

use super::script::{Script, Step, Whole};
use super::server::{Answer, Received};
use super::speaks::{Heard, KEY, Speaks, items, string, texts};

/// The protocol.
pub(crate) struct Ollama;

impl Speaks for Ollama {
    fn kind(&self) -> DriverKind {
        DriverKind::Ollama
    }

    fn base_path(&self) -> &'static str {
        ""
    }

    fn stream_type(&self) -> &'static str {
        "application/x-ndjson"
    }

    fn stream(&self, script: &Script) -> Vec<Vec<u8>> {
        let calls = script.joined();
        let step = |step: &Step| match step {
            Step::Text(text) => Some(json!({"content": text})),
            Step::Thought(text) => Some(json!({"content": "", "thinking": text})),
            Step::Call { at: of, .. } => {
                let call = calls.iter().find(|whole| matches!(whole, Whole::Call { at, .. } if at == of))?;
                Some(json!({"content": "", "tool_calls": [called(call)?]}))
            }
            Step::EndThought(_) | Step::Arguments { .. } => None,
        };
        let line = |message: Value| line(&json!({"model": "m-1", "message": message, "done": false}));
        let mut lines: Vec<Vec<u8>> = script.in_sequence().iter().filter_map(step).map(line).collect();
        lines.push(self::line(&done(script, json!({"role": "assistant", "content": ""}))));
        lines
    }

    fn frames_to_stop(&self, script: &Script) -> usize {
        self.stream(script).len()
    }

    fn whole(&self, script: &Script) -> Vec<u8> {
        let calls: Vec<Value> = script.joined().iter().filter_map(called).collect();
        let mut message = json!({"role": "assistant", "content": script.all_text()});
        for whole in script.joined() {
            if let Whole::Thought { text, .. } = whole {
                message["thinking"] = text.into();
            }
        }
        if !calls.is_empty() {
            message["tool_calls"] = calls.into();
        }
        done(script, message).to_string().into_bytes()
    }

    fn error(&self, status: u16, words: &str) -> Answer {
        Answer::json(status, &json!({"error": words}))
    }

    fn error_frame(&self, words: &str) -> Option<Vec<u8>> {
        Some(line(&json!({"error": words})))
    }

    fn garbage_frame(&self) -> Vec<u8> {
        b"{oops\n".to_vec()
    }

    fn heard(&self, received: &Received) -> Heard {
        assert_eq!(received.path, "/api/chat");
        assert_eq!(received.header("authorization"), format!("Bearer {KEY}"));
        let body = received.json();
        let options = &body["options"];
        assert_eq!(options["num_ctx"], 100_000, "the server would cut the prompt in silence");
        let mut heard = Heard {
            model: string(&body["model"]),
            streaming: body["stream"].as_bool().expect("a stream is the default"),
            tools: items(&body["tools"]).iter().map(|tool| string(&tool["function"]["name"])).collect(),
            max_tokens: options["num_predict"].as_u64(),
            temperature: options["temperature"].as_f64(),
            top_p: options["top_p"].as_f64(),
            stops: texts(&options["stop"]),
            schema: body.get("format").cloned(),
            ..Heard::default()
        };
        items(&body["messages"]).iter().for_each(|message| hear(message, &mut heard));
        heard
    }

    fn carries_thoughts(&self) -> bool {
        false
    }

    fn carries_call_ids(&self) -> bool {
        false
    }

    fn counts_cache(&self) -> (bool, bool) {
        (false, false)
    }

    fn takes_choice(&self) -> bool {
        false
    }

    fn can_filter(&self) -> bool {
        false
    }
}

fn hear(message: &Value, heard: &mut Heard) {
    let (role, text) = (string(&message["role"]), string(&message["content"]));
    match role.as_str() {
        "system" => heard.system = text,
        "tool" => heard.said.push(format!("result {}: {text}", string(&message["tool_name"]))),
        _ if text.is_empty() => {}
        _ => heard.said.push(format!("{role}: {text}")),
    }
    for picture in items(&message["images"]) {
        let base64 = string(picture);
        assert!(!base64.starts_with("data:"), "bare base64");
        heard.said.push(format!("image image/png {base64}"));
    }
    for call in items(&message["tool_calls"]) {
        let function = &call["function"];
        assert!(function["arguments"].is_object(), "the arguments are an object");
        heard.said.push(format!("call  {} {}", string(&function["name"]), function["arguments"]));
    }
}

fn called(whole: &Whole) -> Option<Value> {
    let Whole::Call { name, arguments, .. } = whole else { return None };
    let arguments: Value = serde_json::from_str(arguments).unwrap_or_else(|_| json!({}));
    Some(json!({"function": {"name": name, "arguments": arguments}}))
}

fn done(script: &Script, message: Value) -> Value {
    let reason = if script.stop == StopReason::Length { "length" } else { "stop" };
    let mut done = json!({"model": "m-1", "message": message, "done": true, "done_reason": reason});
    if let Some(usage) = script.usage {
        done["prompt_eval_count"] = usage.input_tokens.into();
        done["eval_count"] = usage.output_tokens.into();
    }
    done
}

fn line(content: &Value) -> Vec<u8> {
    format!("{content}\n").into_bytes()
}
