//! The client's side of the table: one question to a driver, made by hand.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use agentsvc::model::draft::{Draft, Outlet};
use agentsvc::model::error::CallError;
use agentsvc::model::http::Timeouts;
use agentsvc::model::images::Images;
use agentsvc::model::provider::{Secret, Target};
use agentsvc::model::{Drivers, ModelSettings, Purpose, Request};
use agentsvc::tool::toolset::ToolSpec;
use agentsvc_components::session::message::{Block, ChatMessage, Role, ToolCall};
use agentsvc_components::turn::TurnRequest;
use agentsvc_components::turn::outcome::ModelAnswer;
use agentsvc_components::turn::stream::{StreamEvent, StreamItem};
use agentsvc_systems::prompt::Prompt;

use super::script::Script;
use super::server::{Answer, Server};
use super::speaks::{Heard, Speaks};
use crate::harness::{SESSION, attempt, turn};

/// Tokens that the prompt is taken for where the provider counts none.
pub(crate) const PROMPT_TOKENS: u64 = 21;

/// A question.
pub(crate) struct Ask {
    pub(crate) prompt: Prompt,
    pub(crate) images: Images,
    pub(crate) tools: Vec<ToolSpec>,
    pub(crate) asked: TurnRequest,
    pub(crate) temperature: Option<f32>,
    pub(crate) max_tokens: Option<u32>,
    pub(crate) streaming: bool,
    pub(crate) model: Option<&'static str>,
    pub(crate) impatient: bool,
}

/// A question in one message, whole or streamed.
pub(crate) fn question(streaming: bool) -> Ask {
    conversation(streaming, vec![(Role::User, vec![text("question")])])
}

/// The last message of a conversation.
pub(crate) fn conversation(streaming: bool, messages: Vec<(Role, Vec<Block>)>) -> Ask {
    let messages = messages.into_iter().map(|(role, blocks)| ChatMessage { role, blocks }).collect();
    let prompt = Prompt { system: "Be brief.".to_owned(), messages, estimated_tokens: 20, ..Prompt::default() };
    Ask {
        prompt,
        images: Images::default(),
        tools: Vec::new(),
        asked: TurnRequest::default(),
        temperature: None,
        max_tokens: None,
        streaming,
        model: None,
        impatient: false,
    }
}

/// What came of it.
pub(crate) struct Told {
    /// The answer, or why there is none.
    pub(crate) result: Result<ModelAnswer, CallError>,
    /// What readers saw meanwhile.
    pub(crate) chunks: Vec<String>,
}

impl Told {
    /// The answer, which there must be.
    pub(crate) fn answer(self) -> ModelAnswer {
        self.result.unwrap_or_else(|error| panic!("no answer: {error:?}"))
    }

    /// The error, which there must be.
    pub(crate) fn error(self) -> CallError {
        self.result.expect_err("a call that fails")
    }
}

/// Asks the driver of `speaker` at `server`.
pub(crate) async fn ask(speaker: &dyn Speaks, server: &Server, ask: Ask) -> Told {
    let mut timeouts = Timeouts::default();
    if ask.impatient {
        timeouts.read = Duration::from_millis(100);
    }
    let drivers = Drivers::new(&ModelSettings { timeouts, ..ModelSettings::default() });
    let target = Target {
        provider: "scripted".into(),
        model: ask.model.unwrap_or(speaker.model()).into(),
        driver: speaker.kind(),
        base_url: server.url(speaker.base_path()).into(),
        key: Some(Secret::new(speaker.key())),
        context_tokens: 100_000,
        reasons: true,
        ..Target::default()
    };
    let request = Request {
        attempt: attempt(),
        target: &target,
        purpose: Purpose::Turn,
        temperature: ask.temperature,
        max_tokens: ask.max_tokens,
        prompt: &ask.prompt,
        images: &ask.images,
        tools: &ask.tools,
        asked: Some(&ask.asked),
        streaming: ask.streaming,
    };
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let sees = Arc::clone(&seen);
    let publish = Arc::new(move |item: StreamItem| {
        let StreamEvent::Chunk { content } = item.event else { panic!("only text is given out") };
        sees.lock().expect("no test panics in here").push(content);
    });
    let outlet = Arc::new(Outlet { publish, session: SESSION, turn: turn() });
    let mut draft = Draft::new(ask.streaming.then_some(outlet));
    let ended = drivers.get(target.driver).call(&request, &mut draft).await;
    let result = ended.map(|()| draft.into_answer(attempt(), PROMPT_TOKENS, &target));
    let chunks = std::mem::take(&mut *seen.lock().expect("no test panics in here"));
    Told { result, chunks }
}

/// Asks a server that answers with `script`, and gives the request as it came too.
pub(crate) async fn told(speaker: &dyn Speaks, script: &Script, question: Ask) -> (Heard, Told) {
    let server = Server::always(right(speaker, script, question.streaming)).await;
    let told = ask(speaker, &server, question).await;
    (speaker.heard(&server.requests()[0]), told)
}

/// The answer as it should be sent.
pub(crate) fn right(speaker: &dyn Speaks, script: &Script, streaming: bool) -> Answer {
    if streaming {
        Answer::new(200, speaker.stream_type(), speaker.stream(script))
    } else {
        Answer::new(200, "application/json", vec![speaker.whole(script)])
    }
}

/// A text block.
pub(crate) fn text(text: &str) -> Block {
    Block::Text { text: text.to_owned() }
}

/// A call.
pub(crate) fn call(id: &str, name: &str, input: &str) -> Block {
    Block::ToolCall(ToolCall { id: id.to_owned(), name: name.to_owned(), input: input.to_owned() })
}

/// A result.
pub(crate) fn result(call_id: &str, name: &str, content: &str) -> Block {
    Block::ToolResult {
        call_id: call_id.to_owned(),
        name: name.to_owned(),
        content: content.to_owned(),
        is_error: false,
    }
}

/// A tool that takes a text `q`.
pub(crate) fn tool(name: &str) -> ToolSpec {
    let schema = r#"{"type":"object","properties":{"q":{"type":"string"}}}"#;
    ToolSpec {
        name: name.to_owned().into(),
        description: format!("does {name}").into(),
        input_schema: serde_json::value::RawValue::from_string(schema.to_owned()).expect("it is JSON").into(),
        strict: None,
    }
}
