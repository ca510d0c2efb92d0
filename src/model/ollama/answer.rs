//! From an Ollama chat, whole or in lines, to the draft.

use agentsvc_components::session::message::Usage;
use agentsvc_components::turn::outcome::StopReason;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::model::draft::{CallPiece, Draft};
use crate::model::error::CallError;
use crate::model::failure;
use crate::model::frames::Frame;
use crate::model::provider::Target;
use crate::model::reading;
use crate::model::wire::{Answer, Progress};

/// Lines say all there is to know: nothing is remembered.
#[derive(Default)]
pub(crate) struct Lines;

impl Answer for Lines {
    fn frame(&mut self, target: &Target, frame: Frame<'_>, draft: &mut Draft) -> Result<Progress, CallError> {
        let chat: Chat = serde_json::from_str(frame.data)
            .map_err(|_| failure::protocol(target, "a line contains malformed JSON"))?;
        let is_done = apply(target, chat, draft)?;
        Ok(if is_done { Progress::Done } else { Progress::of(draft) })
    }

    fn whole(&mut self, target: &Target, body: &[u8], draft: &mut Draft) -> Result<(), CallError> {
        let chat: Chat = reading::whole(target, body, "not a chat response")?;
        if chat.error.is_none() && chat.message.is_none() {
            return Err(failure::protocol(target, "no message"));
        }
        apply(target, chat, draft).map(drop)
    }
}

/// Applies what one JSON document says; true when it is the last.
fn apply(target: &Target, chat: Chat, draft: &mut Draft) -> Result<bool, CallError> {
    if let Some(error) = &chat.error {
        // The server says no class; most often the model's process was ended under load.
        return Err(CallError { retryable: true, ..failure::in_answer(target, error) });
    }
    if let Some(message) = chat.message {
        draft.push_thought(message.thinking.as_deref().unwrap_or_default());
        draft.push_text(message.content.as_deref().unwrap_or_default());
        for call in message.tool_calls.into_iter().flatten() {
            let function = call.function;
            draft.push_call(CallPiece {
                // Each is whole; their indexes are not always told apart.
                index: None,
                id: call.id.as_deref().unwrap_or_default(),
                name: function.name.as_deref().unwrap_or_default(),
                arguments: function.arguments.as_deref().map_or("{}", RawValue::get),
            });
        }
    }
    if !chat.done.unwrap_or(false) {
        return Ok(false);
    }
    // A prompt that the server still has in memory is sometimes not counted.
    if let (Some(input), output) = (chat.prompt_eval_count, chat.eval_count.unwrap_or(0)) {
        draft.set_usage(Usage::of(input, output));
    }
    draft.set_stop(match chat.done_reason.as_deref() {
        Some("length") => StopReason::Length,
        // `stop`, and none at all from older servers.
        _ => StopReason::End,
    });
    Ok(true)
}

#[derive(Deserialize)]
struct Chat {
    message: Option<Message>,
    done: Option<bool>,
    done_reason: Option<String>,
    #[serde(default, deserialize_with = "crate::model::reading::counts")]
    prompt_eval_count: Option<u64>,
    #[serde(default, deserialize_with = "crate::model::reading::counts")]
    eval_count: Option<u64>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Message {
    content: Option<String>,
    thinking: Option<String>,
    tool_calls: Option<Vec<WireCall>>,
}

#[derive(Deserialize)]
struct WireCall {
    /// From newer servers.
    id: Option<String>,
    function: WireFunction,
}

#[derive(Deserialize)]
struct WireFunction {
    name: Option<String>,
    arguments: Option<Box<RawValue>>,
}

#[cfg(test)]
mod tests {
    use agentsvc_components::session::message::Block;
    use agentsvc_components::turn::outcome::{FailureCode, ModelAnswer};

    use super::*;
    use crate::model::ollama::Ollama;
    use crate::model::provider::DriverKind;
    use crate::model::testing;

    fn target() -> Target {
        testing::target(DriverKind::Ollama, "http://h")
    }

    fn streamed(lines: &[&str]) -> Result<ModelAnswer, CallError> {
        let frames: Vec<(&str, &str)> = lines.iter().map(|line| ("", *line)).collect();
        testing::streamed(&Ollama, &target(), &frames)
    }

    fn whole(body: &str) -> Result<ModelAnswer, CallError> {
        testing::whole(&Ollama, &target(), body)
    }

    fn shown(answer: &ModelAnswer) -> Vec<String> {
        let shown = |block: &Block| match block {
            Block::Text { text } => text.clone(),
            Block::ToolCall(call) => format!("{} {} {}", call.id, call.name, call.input),
            Block::Reasoning(thought) => format!("({})", thought.text),
            other => format!("{other:?}"),
        };
        answer.blocks.iter().map(shown).collect()
    }

    #[test]
    fn lines_with_thoughts_and_calls_without_ids() {
        let answer = streamed(&[
            r#"{"model":"m","message":{"role":"assistant","content":"","thinking":"Let me "},"done":false}"#,
            r#"{"model":"m","message":{"role":"assistant","content":"","thinking":"see."},"done":false}"#,
            r#"{"message":{"role":"assistant","content":"Loo"},"done":false}"#,
            r#"{"message":{"role":"assistant","content":"k."},"done":false}"#,
            r#"{"message":{"role":"assistant","content":"","tool_calls":[{"function":{"index":0,"name":"t","arguments":{"x":[1]}}},
                {"function":{"index":0,"name":"t","arguments":{}}}]},"done":false}"#,
            r#"{"message":{"role":"assistant","content":"","tool_calls":[{"id":"abc","function":{"name":"u"}}]},"done":false}"#,
            r#"{"message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","total_duration":7,
                "prompt_eval_count":26,"eval_count":12}"#,
            r#"{"never":"read"}"#,
        ])
        .unwrap();
        let expected = ["(Let me see.)", "Look.", "call_1_0 t {\"x\":[1]}", "call_1_1 t {}", "abc u {}"];
        assert_eq!(shown(&answer), expected);
        assert_eq!((answer.stop, answer.usage), (StopReason::ToolUse, Usage::of(26, 12)));
    }

    #[test]
    fn a_whole_answer() {
        let body = r#"{"model":"m","message":{"role":"assistant","content":"Hi"},"done":true,"done_reason":"length",
            "prompt_eval_count":3,"eval_count":4}"#;
        let answer = whole(body).unwrap();
        assert_eq!((shown(&answer), answer.stop), (vec!["Hi".to_owned()], StopReason::Length));
        let uncounted = whole(r#"{"message":{"content":"12345678"},"done":true,"eval_count":4}"#).unwrap();
        assert_eq!((uncounted.usage, uncounted.stop), (Usage::of(5, 2), StopReason::End));
    }

    #[test]
    fn errors_and_what_cannot_be_read() {
        let error = r#"{"error":"llama runner process has terminated"}"#;
        for error in [streamed(&[error]).unwrap_err(), whole(error).unwrap_err()] {
            assert_eq!((error.code, error.retryable), (FailureCode::ProviderError, true));
            assert!(error.message.contains("runner process"), "{}", error.message);
        }
        for body in ["", "<html>", "[]", "{}", r#"{"message":7}"#] {
            assert_eq!(whole(body).unwrap_err().code, FailureCode::ProviderProtocol, "{body}");
        }
        assert_eq!(streamed(&["{oops"]).unwrap_err().code, FailureCode::ProviderProtocol);
        let cut = streamed(&[r#"{"message":{"content":"half"},"done":false}"#]).unwrap_err();
        assert!(cut.message.contains("closed the connection"), "{}", cut.message);
    }
}
