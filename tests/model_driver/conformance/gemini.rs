//! Generated content as Gemini's API writes it.

use agentsvc::model::provider::DriverKind;
use agentsvc_components::session::message::Usage;
use agentsvc_components::turn::outcome::StopReason;
use serde_json::{Value, json};

use super::openai::event;
use super::script::{Script, Step, Whole};
use super::server::{Answer, Received};
use super::speaks::{Heard, KEY, Speaks, items, string, texts};

/// What stands on calls that another model made.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

/// The protocol.
pub(crate) struct Gemini;

impl Speaks for Gemini {
    fn kind(&self) -> DriverKind {
        DriverKind::Gemini
    }

    fn base_path(&self) -> &'static str {
        "/v1beta"
    }

    fn model(&self) -> &'static str {
        "gemini-3-pro-preview"
    }

    fn stream(&self, script: &Script) -> Vec<Vec<u8>> {
        let mut parts = parts(&steps(script));
        let mut last =
            json!({"candidates": [{"content": {"parts": [{"text": ""}]}, "finishReason": reason(script.stop)}]});
        if let Some(counts) = script.usage {
            last["usageMetadata"] = usage(counts);
        }
        let frame = |part: Value| event(&json!({"candidates": [{"content": {"role": "model", "parts": [part]}}]}));
        parts.drain(..).map(frame).chain([event(&last)]).collect()
    }

    fn frames_to_stop(&self, script: &Script) -> usize {
        parts(&steps(script)).len() + 1
    }

    fn whole(&self, script: &Script) -> Vec<u8> {
        let steps: Vec<Part> = script.joined().into_iter().flat_map(whole_steps).collect();
        let content = json!({"role": "model", "parts": parts(&steps)});
        let candidate = json!({"content": content, "finishReason": reason(script.stop), "index": 0});
        let mut body = json!({"candidates": [candidate], "modelVersion": "gemini-3-pro-preview"});
        if let Some(counts) = script.usage {
            body["usageMetadata"] = usage(counts);
        }
        body.to_string().into_bytes()
    }

    fn error(&self, status: u16, words: &str) -> Answer {
        Answer::json(
            status,
            &json!({"error": {"code": status, "message": words, "status": "SOMETHING", "details": []}}),
        )
    }

    fn error_frame(&self, words: &str) -> Option<Vec<u8>> {
        Some(event(&json!({"error": {"code": 503, "message": words, "status": "UNAVAILABLE"}})))
    }

    fn heard(&self, received: &Received) -> Heard {
        assert_eq!(received.header("x-goog-api-key"), KEY);
        assert_eq!(received.header("authorization"), "");
        let path = received.path.strip_prefix("/v1beta/models/").and_then(|path| path.split_once(':'));
        let (model, method) = path.expect("a model and what is asked of it");
        let streaming = method == "streamGenerateContent";
        assert_eq!(
            (method, received.query.as_str()),
            if streaming { (method, "alt=sse") } else { ("generateContent", "") }
        );
        let body = received.json();
        let config = &body["generationConfig"];
        let calling = &body["toolConfig"]["functionCallingConfig"];
        let named = calling["allowedFunctionNames"][0].as_str().or(calling["mode"].as_str());
        let mut heard = Heard {
            model: model.to_owned(),
            streaming,
            system: items(&body["systemInstruction"]["parts"]).iter().map(|part| string(&part["text"])).collect(),
            tools: items(&body["tools"][0]["functionDeclarations"]).iter().map(|tool| string(&tool["name"])).collect(),
            max_tokens: config["maxOutputTokens"].as_u64(),
            temperature: config["temperature"].as_f64(),
            top_p: config["topP"].as_f64(),
            stops: texts(&config["stopSequences"]),
            choice: named.map(|name| if name == name.to_uppercase() { name.to_lowercase() } else { name.to_owned() }),
            schema: config.get("responseJsonSchema").cloned(),
            ..Heard::default()
        };
        assert_eq!(heard.schema.is_some(), config["responseMimeType"] == "application/json");
        hear(&body, &mut heard);
        heard
    }

    fn counts_cache(&self) -> (bool, bool) {
        (true, false)
    }
}

/// The conversation, held to the rules of the protocol.
fn hear(body: &Value, heard: &mut Heard) {
    let mut open = Vec::new();
    for content in items(&body["contents"]) {
        let parts = items(&content["parts"]);
        assert!(!parts.is_empty(), "no content is empty");
        let role = if content["role"] == "model" { "assistant" } else { "user" };
        let answered: Vec<&Value> = parts.iter().map(|part| &part["functionResponse"]["name"]).collect();
        assert!(open.is_empty() || answered == open, "every call is answered at once, in order: {body}");
        open.clear();
        for part in parts {
            if let Some(signature) = part["thoughtSignature"].as_str().filter(|signature| *signature != NO_SIGNATURE) {
                heard.said.push(format!("thought {signature}"));
            }
            let (call, result, picture) = (&part["functionCall"], &part["functionResponse"], &part["inlineData"]);
            if call.is_object() {
                assert!(call["args"].is_object(), "the arguments are an object");
                open.push(&call["name"]);
                heard.said.push(format!("call {} {} {}", string(&call["id"]), string(&call["name"]), call["args"]));
            } else if result.is_object() {
                heard.said.push(format!("result {}: {}", string(&result["id"]), string(&result["response"]["result"])));
            } else if picture.is_object() {
                heard.said.push(format!("image {} {}", string(&picture["mimeType"]), string(&picture["data"])));
            } else if !string(&part["text"]).is_empty() {
                heard.said.push(format!("{role}: {}", string(&part["text"])));
            }
        }
    }
    assert!(open.is_empty(), "every call is answered");
}

/// A part before it is signed.
enum Part {
    Plain(Value),
    /// The signature of the part that follows.
    Signature(String),
}

/// The parts of a streamed answer. Calls come whole.
fn steps(script: &Script) -> Vec<Part> {
    let calls = script.joined();
    let step = |step: &Step| match step {
        Step::Text(text) => Some(Part::Plain(json!({"text": text}))),
        Step::Thought(text) => Some(Part::Plain(json!({"text": text, "thought": true}))),
        Step::EndThought(mark) => Some(Part::Signature(mark.clone())),
        Step::Call { at: of, .. } => {
            let call = calls.iter().find(|whole| matches!(whole, Whole::Call { at, .. } if at == of));
            call.cloned().into_iter().flat_map(whole_steps).next()
        }
        Step::Arguments { .. } => None,
    };
    script.in_sequence().iter().filter_map(step).collect()
}

fn whole_steps(whole: Whole) -> Vec<Part> {
    match whole {
        Whole::Text(text) => vec![Part::Plain(json!({"text": text}))],
        Whole::Thought { text, mark } => {
            let thought = Part::Plain(json!({"text": text, "thought": true}));
            [thought].into_iter().chain(mark.map(Part::Signature)).collect()
        }
        Whole::Call { id, name, arguments, .. } => {
            let args: Value = serde_json::from_str(&arguments).unwrap_or_else(|_| json!({}));
            vec![Part::Plain(json!({"functionCall": {"id": id, "name": name, "args": args}}))]
        }
    }
}

/// The parts as they are sent, signatures on the part behind them.
fn parts(steps: &[Part]) -> Vec<Value> {
    let (mut parts, mut signature) = (Vec::new(), None);
    for step in steps {
        match step {
            Part::Signature(mark) => signature = Some(mark.clone()),
            Part::Plain(part) => {
                let mut part = part.clone();
                if let Some(mark) = signature.take() {
                    part["thoughtSignature"] = mark.into();
                }
                parts.push(part);
            }
        }
    }
    parts
}

/// What was read from the cache is part of the prompt; what was thought stands beside the answer.
fn usage(usage: Usage) -> Value {
    json!({"promptTokenCount": usage.input_tokens, "cachedContentTokenCount": usage.cached_input_tokens,
        "candidatesTokenCount": usage.output_tokens - 1, "thoughtsTokenCount": 1})
}

fn reason(stop: StopReason) -> &'static str {
    match stop {
        StopReason::End | StopReason::ToolUse => "STOP",
        StopReason::Length => "MAX_TOKENS",
        StopReason::Filtered => "SAFETY",
    }
}
