//! Converse as AWS Bedrock writes it: binary messages with sums, signed requests.

use agentsvc::model::provider::DriverKind;
use agentsvc_components::session::message::Usage;
use agentsvc_components::turn::outcome::StopReason;
use serde_json::{Value, json};

use super::script::{Script, Step, Whole};
use super::server::{Answer, Received};
use super::speaks::{Heard, Speaks, items, string, texts};

/// Id, secret and session token.
const KEY: &str = "AKIDSCRIPTED:hunter2/hunter2+hunter2:session-token==";

/// The protocol.
pub(crate) struct Bedrock;

impl Speaks for Bedrock {
    fn kind(&self) -> DriverKind {
        DriverKind::Bedrock
    }

    fn base_path(&self) -> &'static str {
        ""
    }

    fn key(&self) -> &'static str {
        KEY
    }

    fn model(&self) -> &'static str {
        "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
    }

    fn stream_type(&self) -> &'static str {
        "application/vnd.amazon.eventstream"
    }

    fn stream(&self, script: &Script) -> Vec<Vec<u8>> {
        let mut frames = begin(script);
        frames.push(event("messageStop", &json!({"stopReason": reason(script.stop)})));
        let metrics = json!({"latencyMs": 9});
        let metadata = match script.usage {
            Some(counts) => json!({"usage": usage(counts), "metrics": metrics}),
            None => json!({"metrics": metrics}),
        };
        frames.push(event("metadata", &metadata));
        frames
    }

    fn frames_to_stop(&self, script: &Script) -> usize {
        begin(script).len() + 1
    }

    fn whole(&self, script: &Script) -> Vec<u8> {
        let content: Vec<Value> = script.joined().iter().map(block).collect();
        let mut body = json!({"output": {"message": {"role": "assistant", "content": content}},
            "stopReason": reason(script.stop), "metrics": {"latencyMs": 9}});
        if let Some(counts) = script.usage {
            body["usage"] = usage(counts);
        }
        body.to_string().into_bytes()
    }

    fn error(&self, status: u16, words: &str) -> Answer {
        Answer::json(status, &json!({"message": words})).header("x-amzn-errortype", "SomeException:http://x/")
    }

    fn error_frame(&self, words: &str) -> Option<Vec<u8>> {
        let headers = [(":exception-type", "modelStreamErrorException"), (":message-type", "exception")];
        Some(message(&headers, &json!({"message": words}).to_string()))
    }

    fn garbage_frame(&self) -> Vec<u8> {
        message(&[(":event-type", "contentBlockDelta"), (":message-type", "event")], "{oops")
    }

    fn heard(&self, received: &Received) -> Heard {
        let path = received.path.strip_prefix("/model/").expect("a path below /model/");
        let (model, tail) = path.rsplit_once('/').expect("a model and what is asked of it");
        assert!(!model.contains([':', '/']), "the id is encoded: {model}");
        signed(received);
        let body = received.json();
        let inference = &body["inferenceConfig"];
        let choice = &body["toolConfig"]["toolChoice"];
        let named = choice["tool"]["name"].as_str().map(str::to_owned);
        let kind = choice.as_object().and_then(|choice| choice.keys().next().cloned());
        let tools = items(&body["toolConfig"]["tools"]).iter().filter(|tool| tool["toolSpec"].is_object());
        let schema = body.pointer("/outputConfig/textFormat/structure/jsonSchema/schema");
        let mut heard = Heard {
            model: model.replace("%3A", ":").replace("%2F", "/"),
            streaming: tail == "converse-stream",
            system: items(&body["system"]).iter().map(|block| string(&block["text"])).collect(),
            tools: tools.map(|tool| string(&tool["toolSpec"]["name"])).collect(),
            max_tokens: inference["maxTokens"].as_u64(),
            temperature: inference["temperature"].as_f64(),
            top_p: inference["topP"].as_f64(),
            stops: texts(&inference["stopSequences"]),
            choice: named.or(kind),
            schema: schema.map(|text| serde_json::from_str(&string(text)).expect("the schema is JSON in a text")),
            ..Heard::default()
        };
        assert!(body.to_string().matches("cachePoint").count() <= 4, "at most four cache points");
        hear(&body, &mut heard);
        heard
    }
}

/// The request is signed: by whom, for where, and over what. The sums themselves are held to published vectors
/// elsewhere.
fn signed(received: &Received) {
    let authorization = received.header("authorization");
    let rest = authorization.strip_prefix("AWS4-HMAC-SHA256 Credential=AKIDSCRIPTED/").expect("a signature");
    let date = received.header("x-amz-date");
    assert!(rest.starts_with(&date[..8]) && date.ends_with('Z') && date.len() == 16, "{date}");
    assert!(rest.contains("/us-east-1/bedrock/aws4_request, "), "{rest}");
    assert!(rest.contains("SignedHeaders=content-type;host;x-amz-date;x-amz-security-token, "), "{rest}");
    let signature = rest.rsplit_once("Signature=").expect("a signature").1;
    assert!(signature.len() == 64 && signature.bytes().all(|byte| byte.is_ascii_hexdigit()), "{signature}");
    assert_eq!(received.header("x-amz-security-token"), "session-token==");
    assert_eq!(received.header("content-type"), "application/json");
}

/// The conversation, held to the rules of the protocol.
fn hear(body: &Value, heard: &mut Heard) {
    let mut open: Vec<String> = Vec::new();
    for (at, message) in items(&body["messages"]).iter().enumerate() {
        let role = string(&message["role"]);
        assert_eq!(role, if at % 2 == 0 { "user" } else { "assistant" }, "roles take turns");
        let blocks = items(&message["content"]);
        let answered: Vec<String> = blocks.iter().filter_map(|block| block.get("toolResult")).map(id).collect();
        assert_eq!(answered, open, "every call is answered at once");
        open.clear();
        for block in blocks {
            let (kind, value) = block.as_object().and_then(|block| block.iter().next()).expect("a block");
            heard.said.push(match kind.as_str() {
                "text" => format!("{role}: {}", string(value)),
                "image" => {
                    format!("image image/{} {}", string(&value["format"]), string(&value["source"]["bytes"]))
                }
                "toolUse" => {
                    open.push(id(value));
                    assert!(value["input"].is_object(), "the input is an object");
                    format!("call {} {} {}", id(value), string(&value["name"]), value["input"])
                }
                "toolResult" => format!("result {}: {}", id(value), string(&value["content"][0]["text"])),
                "reasoningContent" => format!("thought {}", string(&value["reasoningText"]["signature"])),
                "cachePoint" => continue,
                other => panic!("a block of kind {other}"),
            });
        }
    }
    assert!(open.is_empty(), "every call is answered");
    assert!(open.is_empty() && (heard.tools.is_empty() == body["toolConfig"].is_null()));
}

fn id(call: &Value) -> String {
    string(&call["toolUseId"])
}

/// Every frame before the one with the reason to stop.
fn begin(script: &Script) -> Vec<Vec<u8>> {
    let mut frames = vec![event("messageStart", &json!({"role": "assistant", "p": "abcdefgh"}))];
    let mut index = 0;
    let mut open: Option<&'static str> = None;
    for step in script.in_sequence() {
        let kind = match &step {
            Step::Text(_) => "text",
            Step::Thought(_) | Step::EndThought(_) => "thought",
            Step::Call { .. } | Step::Arguments { .. } => "call",
        };
        let goes_on = open == Some(kind) && !matches!(step, Step::Call { .. });
        if !goes_on && open.replace(kind).is_some() {
            frames.push(event("contentBlockStop", &json!({"contentBlockIndex": index})));
            index += 1;
        }
        let delta = match step {
            Step::Text(text) => json!({"text": text}),
            Step::Thought(text) => json!({"reasoningContent": {"text": text}}),
            Step::EndThought(mark) => json!({"reasoningContent": {"signature": mark}}),
            Step::Arguments { piece, .. } => json!({"toolUse": {"input": piece}}),
            Step::Call { id, name, .. } => {
                let start = json!({"toolUse": {"toolUseId": id, "name": name}});
                frames.push(event("contentBlockStart", &json!({"contentBlockIndex": index, "start": start})));
                continue;
            }
        };
        frames.push(event("contentBlockDelta", &json!({"contentBlockIndex": index, "delta": delta})));
    }
    if open.is_some() {
        frames.push(event("contentBlockStop", &json!({"contentBlockIndex": index})));
    }
    frames
}

fn block(whole: &Whole) -> Value {
    match whole {
        Whole::Text(text) => json!({"text": text}),
        Whole::Thought { text, mark } => {
            json!({"reasoningContent": {"reasoningText": {"text": text, "signature": mark}}})
        }
        Whole::Call { id, name, arguments, .. } => {
            let input: Value = serde_json::from_str(arguments).unwrap_or_else(|_| json!({}));
            json!({"toolUse": {"toolUseId": id, "name": name, "input": input}})
        }
    }
}

fn usage(usage: Usage) -> Value {
    let plain = usage.input_tokens - usage.cached_input_tokens - usage.cache_write_tokens;
    json!({"inputTokens": plain, "outputTokens": usage.output_tokens,
        "totalTokens": usage.input_tokens + usage.output_tokens,
        "cacheReadInputTokens": usage.cached_input_tokens, "cacheWriteInputTokens": usage.cache_write_tokens})
}

fn reason(stop: StopReason) -> &'static str {
    match stop {
        StopReason::End => "end_turn",
        StopReason::ToolUse => "tool_use",
        StopReason::Length => "max_tokens",
        StopReason::Filtered => "content_filtered",
    }
}

fn event(name: &str, content: &Value) -> Vec<u8> {
    let headers = [(":event-type", name), (":content-type", "application/json"), (":message-type", "event")];
    message(&headers, &content.to_string())
}

/// A message of the event stream encoding.
fn message(headers: &[(&str, &str)], payload: &str) -> Vec<u8> {
    let mut head = Vec::new();
    for (name, value) in headers {
        head.push(u8::try_from(name.len()).expect("a short name"));
        head.extend(name.as_bytes());
        head.push(7);
        head.extend(u16::try_from(value.len()).expect("a short value").to_be_bytes());
        head.extend(value.as_bytes());
    }
    let length = u32::try_from(16 + head.len() + payload.len()).expect("a message that is not too long");
    let mut bytes = length.to_be_bytes().to_vec();
    bytes.extend(u32::try_from(head.len()).expect("few headers").to_be_bytes());
    bytes.extend(crc32(&bytes).to_be_bytes());
    bytes.extend(head);
    bytes.extend(payload.as_bytes());
    bytes.extend(crc32(&bytes).to_be_bytes());
    bytes
}

/// CRC-32, from its definition: bit by bit for each byte value, once.
fn crc32(bytes: &[u8]) -> u32 {
    static TABLE: std::sync::LazyLock<[u32; 256]> = std::sync::LazyLock::new(|| {
        std::array::from_fn(|byte| {
            let bit = |sum: u32, _| if sum & 1 == 1 { 0xedb8_8320 ^ (sum >> 1) } else { sum >> 1 };
            (0..8).fold(byte as u32, bit)
        })
    });
    !bytes.iter().fold(!0_u32, |sum, byte| TABLE[((sum ^ u32::from(*byte)) & 0xff) as usize] ^ (sum >> 8))
}
