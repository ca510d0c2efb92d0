//! Model and tool calls through the performer, against a scripted server over real HTTP.

#[path = "support/model_server.rs"]
mod model_server;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agentsvc::effects::model::ModelSettings;
use agentsvc::effects::model::http::Timeouts;
use agentsvc::effects::model::provider::Providers;
use agentsvc::effects::model::retry::RetryPolicy;
use agentsvc::effects::{Performer, PerformerParts};
use agentsvc_api::content::{Content, ContentError, MessageRange, MessageRow};
use agentsvc_components::effect::{Attempt, Effect, ModelCall, ToolRun};
use agentsvc_components::limit;
use agentsvc_components::manifest::{Interned, Manifest, ManifestHash, ModelChoice};
use agentsvc_components::message::{Block, Role, ToolCall, Usage, text_of};
use agentsvc_components::outcome::{
    FailureCode, ModelAnswer, ModelEnd, ModelFailure, OutcomeKind, StopReason, ToolEnd,
};
use agentsvc_components::record::MessageRecord;
use agentsvc_components::stream::{StreamEvent, StreamItem};
use agentsvc_components::{AgentId, LogId, SessionId, Timestamp, TurnId};
use model_server::{Gate, ModelServer, Reply};
use tokio::sync::mpsc;
use uuid::Uuid;

const KEY: &str = "hunter2-hunter2-hunter2";
const SESSION: SessionId = SessionId(Uuid::from_u128(3));

fn environment(name: &str) -> Option<String> {
    (name == "SCRIPTED_KEY").then(|| KEY.to_owned())
}

/// A log in memory.
enum Log {
    Says(Vec<(Role, String)>),
    Broken,
    Panics,
}

impl Content for Log {
    fn messages(&self, _: LogId, range: MessageRange) -> Result<Vec<MessageRow>, ContentError> {
        assert!(matches!(range, MessageRange::Newest { ordinal: 5, limit: limit::PROMPT_MESSAGES_MAX }));
        let said = match self {
            Self::Says(said) => said,
            Self::Broken => return Err(ContentError("a bad disk".to_owned())),
            Self::Panics => panic!("as the test wants it"),
        };
        let row = |(index, (role, text)): (u32, &(Role, String))| MessageRow {
            ordinal: 5,
            index,
            record: MessageRecord {
                turn: turn(),
                role: *role,
                blocks: vec![Block::Text { text: text.clone() }],
                created_at: Timestamp(0),
                usage: None,
                model: None,
                stopped: false,
            },
        };
        Ok((0..).zip(said).map(row).collect())
    }

    fn manifest_text(&self, _: AgentId) -> Result<Option<String>, ContentError> {
        Ok(None)
    }
}

fn turn() -> TurnId {
    TurnId(Uuid::from_u128(2))
}

fn attempt() -> Attempt {
    Attempt { turn: turn(), number: 1 }
}

/// The performer, with what it says recorded.
struct House {
    performer: Performer,
    outcomes: mpsc::UnboundedReceiver<OutcomeKind>,
    stream: mpsc::UnboundedReceiver<StreamItem>,
    swept: Arc<Mutex<Vec<LogId>>>,
    watched: Arc<AtomicBool>,
    manifest: Manifest,
    model: ModelChoice,
}

impl House {
    fn new(base_url: &str) -> Self {
        Self::with_log(base_url, Log::Says(vec![(Role::User, "question".to_owned())]))
    }

    fn with_log(base_url: &str, log: Log) -> Self {
        Self::with_settings(base_url, log, quick())
    }

    /// One that waits 100 ms for a piece.
    fn impatient(base_url: &str) -> Self {
        let timeouts = Timeouts { read: Duration::from_millis(100), ..Timeouts::default() };
        let log = Log::Says(vec![(Role::User, "question".to_owned())]);
        Self::with_settings(base_url, log, ModelSettings { timeouts, ..quick() })
    }

    fn with_settings(base_url: &str, log: Log, model_settings: ModelSettings) -> Self {
        let (outcome_sender, outcomes) = mpsc::unbounded_channel();
        let (stream_sender, stream) = mpsc::unbounded_channel();
        let (swept, watched): (Arc<Mutex<Vec<LogId>>>, Arc<AtomicBool>) = Default::default();
        let (sweep_to, watched_by) = (Arc::clone(&swept), Arc::clone(&watched));
        let performer = Performer::new(PerformerParts {
            handle: tokio::runtime::Handle::current(),
            outcomes: Arc::new(move |outcome| drop(outcome_sender.send(outcome))),
            publish: Arc::new(move |item| drop(stream_sender.send(item))),
            subscribed: Arc::new(move |session| session == SESSION && watched_by.load(Ordering::Relaxed)),
            sweep: Arc::new(move |log| sweep_to.lock().expect("no test panics in here").push(log)),
            content: Arc::new(log),
            providers: Arc::new(Providers::default().with_environment(environment)),
            model: model_settings,
        });
        let model = ModelChoice {
            provider: "scripted".into(),
            model: "m-1".into(),
            base_url: Some(base_url.into()),
            api_key_env: Some("SCRIPTED_KEY".into()),
            ..ModelChoice::default()
        };
        let manifest = Manifest { system_prompt: "Be brief.".into(), ..Manifest::default() };
        Self { performer, outcomes, stream, swept, watched, manifest, model }
    }

    fn call(&self, streaming: bool) {
        self.performer.perform(Effect::CallModel(Box::new(ModelCall {
            attempt: attempt(),
            agent: AgentId(Uuid::from_u128(1)),
            agent_name: "ada".into(),
            session: SESSION,
            log: LogId(7),
            ordinal: 5,
            manifest: Arc::new(Interned { hash: ManifestHash([0; 32]), manifest: self.manifest.clone() }),
            model: self.model.clone(),
            streaming,
        })));
    }

    async fn outcome(&mut self) -> OutcomeKind {
        let outcome = tokio::time::timeout(Duration::from_secs(30), self.outcomes.recv()).await;
        outcome.expect("the call comes back").expect("the performer lives")
    }

    async fn end(&mut self) -> ModelEnd {
        let OutcomeKind::Model(of, end) = self.outcome().await else { panic!("not a model's outcome") };
        assert_eq!(of, attempt());
        end
    }

    async fn answer(&mut self) -> ModelAnswer {
        match self.end().await {
            ModelEnd::Answered(answer) => answer,
            other => panic!("no answer: {other:?}"),
        }
    }

    async fn failure(&mut self) -> ModelFailure {
        match self.end().await {
            ModelEnd::Failed(failure) => failure,
            other => panic!("no failure: {other:?}"),
        }
    }

    async fn aborted(&mut self) -> ModelAnswer {
        match self.end().await {
            ModelEnd::Aborted(answer) => answer,
            other => panic!("not aborted: {other:?}"),
        }
    }

    async fn next_event(&mut self) -> StreamEvent {
        let item = tokio::time::timeout(Duration::from_secs(30), self.stream.recv()).await;
        let item = item.expect("an event comes").expect("the performer lives");
        assert_eq!((item.session, item.turn), (SESSION, turn()));
        item.event
    }

    /// Every event so far.
    fn events(&mut self) -> Vec<StreamEvent> {
        std::iter::from_fn(|| self.stream.try_recv().ok()).map(|item| item.event).collect()
    }
}

/// Retries without waits to speak of.
fn quick() -> ModelSettings {
    let retry = RetryPolicy {
        attempts_max: 4,
        wait_base: Duration::from_millis(1),
        wait_max: Duration::from_millis(2),
        total_max: Duration::from_secs(20),
    };
    ModelSettings { retry, timeouts: Timeouts::default() }
}

fn chunk(text: &str) -> StreamEvent {
    StreamEvent::Chunk { content: text.to_owned() }
}

fn calls(answer: &ModelAnswer) -> Vec<(&str, &str, &str)> {
    let calls = answer.blocks.iter().filter_map(|block| match block {
        Block::ToolCall(call) => Some((call.id.as_str(), call.name.as_str(), call.input.as_str())),
        _ => None,
    });
    calls.collect()
}

#[tokio::test]
async fn a_whole_answer() {
    let server = ModelServer::start();
    let said = [(Role::User, "one"), (Role::Assistant, "two"), (Role::User, "three")];
    let log = Log::Says(said.map(|(role, text)| (role, text.to_owned())).to_vec());
    let mut house = House::with_log(&server.base_url(), log);
    house.model.temperature = Some(0.5);
    house.model.max_tokens = Some(64);
    server.push(Reply::text("four of them"));
    house.call(false);
    let answer = house.answer().await;
    assert_eq!(text_of(&answer.blocks), "four of them");
    assert_eq!(answer.usage, Usage { input_tokens: 11, output_tokens: 7 });
    assert_eq!((answer.provider.as_str(), answer.model.as_str()), ("scripted", "m-1"));
    assert_eq!(answer.stop, StopReason::End);
    assert_eq!(house.events(), []);

    let request = &server.requests()[0];
    assert_eq!(request.path, "/v1/chat/completions");
    assert_eq!(request.header("authorization"), format!("Bearer {KEY}"));
    assert_eq!(request.header("content-type"), "application/json");
    let spoken: Vec<(&str, &str)> = request
        .messages()
        .iter()
        .map(|message| (message["role"].as_str().unwrap(), message["content"].as_str().unwrap()))
        .collect();
    assert_eq!(spoken, [("system", "Be brief."), ("user", "one"), ("assistant", "two"), ("user", "three")]);
    assert_eq!((&request.body["temperature"], &request.body["max_tokens"]), (&0.5.into(), &64.into()));
    assert_eq!(request.body["tools"], serde_json::Value::Null);
}

#[tokio::test]
async fn a_streamed_answer_comes_piece_by_piece() {
    let server = ModelServer::start();
    let mut house = House::new(&server.base_url());
    let gate = Gate::default();
    server.push(Reply::text("one two three").gated(&gate));
    house.call(true);
    gate.pass(2);
    assert_eq!(house.next_event().await, chunk("one "));
    gate.pass(1);
    assert_eq!(house.next_event().await, chunk("two "));
    assert!(house.outcomes.try_recv().is_err());
    gate.open();
    let answer = house.answer().await;
    assert_eq!(house.events(), [chunk("three")]);
    assert_eq!(text_of(&answer.blocks), "one two three");
    assert_eq!(answer.usage, Usage { input_tokens: 11, output_tokens: 7 });
    assert_eq!(server.requests()[0].body["stream_options"]["include_usage"], true);
}

#[tokio::test]
async fn a_watched_session_streams_and_a_late_watcher_gets_it_whole() {
    let server = ModelServer::start();
    let mut house = House::new(&server.base_url());
    house.watched.store(true, Ordering::Relaxed);
    server.push(Reply::text("a b"));
    house.call(false);
    house.answer().await;
    assert_eq!(house.events(), [chunk("a "), chunk("b")]);

    house.watched.store(false, Ordering::Relaxed);
    let gate = Gate::default();
    server.push(Reply::text("a b").gated(&gate));
    house.call(false);
    server.received(2).await;
    house.watched.store(true, Ordering::Relaxed);
    gate.open();
    house.answer().await;
    assert_eq!(house.events(), [chunk("a b")]);
}

#[tokio::test]
async fn tool_calls_whole_and_split_over_a_stream() {
    let server = ModelServer::start();
    let mut house = House::new(&server.base_url());
    house.manifest.capabilities.tools = vec!["*".into()];
    let made = [("a", "system_time", "{\"format\":\"date\"}"), ("b", "other", "{not json")];
    for streaming in [false, true] {
        server.push(Reply::calls(&made).saying("Let me see."));
        house.call(streaming);
        let answer = house.answer().await;
        assert_eq!(calls(&answer), made);
        assert_eq!((answer.stop, text_of(&answer.blocks).as_str()), (StopReason::ToolUse, "Let me see."));
    }
    assert_eq!(server.requests()[0].body["tools"][0]["function"]["name"], "system_time");
}

#[tokio::test]
async fn usage_left_out_is_estimated() {
    let server = ModelServer::start();
    let mut house = House::new(&server.base_url());
    for streaming in [false, true] {
        server.push(Reply::text("12345678").usage(None).finish("length"));
        house.call(streaming);
        let answer = house.answer().await;
        // "Be brief." is 4 + 3 tokens, "question" 4 + 2.
        assert_eq!(answer.usage, Usage { input_tokens: 13, output_tokens: 2 });
        assert_eq!(answer.stop, StopReason::Length);
    }
}

#[tokio::test]
async fn a_break_is_retried_until_something_was_given_out() {
    let server = ModelServer::start();
    let mut house = House::new(&server.base_url());
    // Whole: nothing was seen. Streamed: only the role had come.
    for streaming in [false, true] {
        server.push(Reply::text("lost words").break_after(1));
        server.push(Reply::text("all of it"));
        house.call(streaming);
        assert_eq!(text_of(&house.answer().await.blocks), "all of it");
    }
    assert_eq!(server.requests().len(), 4);
    house.events();

    server.push(Reply::text("seen and lost").break_after(3));
    house.call(true);
    let failure = house.failure().await;
    assert_eq!(failure.code, FailureCode::ProviderError);
    assert!(failure.message.contains("broke off"), "{}", failure.message);
    assert_eq!(server.requests().len(), 5);
    assert_eq!(house.events(), [chunk("seen "), chunk("and ")]);
}

#[tokio::test]
async fn passing_failures_are_retried() {
    let server = ModelServer::start();
    let mut house = House::new(&server.base_url());
    server.push(Reply::error(500, "oops"));
    server.push(Reply::error(429, "slow down").header("retry-after", "0"));
    server.push(Reply::raw(503, &[], "<html>busy</html>"));
    server.push(Reply::text("at last"));
    house.call(false);
    assert_eq!(text_of(&house.answer().await.blocks), "at last");
    assert_eq!(server.requests().len(), 4);
}

#[tokio::test]
async fn retries_are_bounded() {
    let server = ModelServer::start();
    let mut house = House::new(&server.base_url());
    server.respond(|_| Reply::error(429, "slow down"));
    house.call(false);
    let failure = house.failure().await;
    assert_eq!(failure.code, FailureCode::ProviderRateLimited);
    assert_eq!(failure.message, "Provider scripted answered 429 Too Many Requests: slow down");
    assert_eq!(server.requests().len(), 4);

    server.push(Reply::error(429, "tomorrow").header("retry-after", "86400"));
    house.call(false);
    assert!(house.failure().await.message.contains("tomorrow"));
    assert_eq!(server.requests().len(), 5, "a wait beyond the total is not begun");

    let quota = r#"{"error":{"message":"out of money","code":"insufficient_quota"}}"#;
    server.push(Reply::raw(429, &[], quota));
    house.call(false);
    assert!(house.failure().await.message.contains("out of money"));
    assert_eq!(server.requests().len(), 6);

    server.respond(|_| Reply::error(502, "upstream"));
    house.call(true);
    assert_eq!(house.failure().await.code, FailureCode::ProviderError);
    assert_eq!(server.requests().len(), 10);
}

#[tokio::test]
async fn lasting_failures_are_not_retried() {
    let server = ModelServer::start();
    let mut house = House::new(&server.base_url());
    let expected = [
        (Reply::error(401, &format!("Incorrect API key provided: {KEY}")), FailureCode::ProviderAuth),
        (Reply::error(403, "not yours"), FailureCode::ProviderAuth),
        (Reply::error(400, "context too long"), FailureCode::ProviderRefused),
        (Reply::error(404, "no such model"), FailureCode::ProviderRefused),
        (Reply::raw(307, &[("location", "http://elsewhere.example/")], ""), FailureCode::ProviderProtocol),
        (Reply::raw(200, &[("content-type", "application/json")], "<html>"), FailureCode::ProviderProtocol),
        (Reply::raw(200, &[("content-type", "application/json")], "{}"), FailureCode::ProviderProtocol),
        (Reply::raw(200, &[("content-type", "text/event-stream")], "data: {oops\n\n"), FailureCode::ProviderProtocol),
    ];
    for (at, (reply, code)) in expected.into_iter().enumerate() {
        server.push(reply);
        house.call(false);
        let failure = house.failure().await;
        assert_eq!(failure.code, code, "{}", failure.message);
        assert!(failure.message.contains("scripted") && !failure.message.contains("hunter2"), "{}", failure.message);
        assert_eq!(server.requests().len(), at + 1);
    }
}

#[tokio::test]
async fn servers_that_stream_otherwise_than_asked() {
    let server = ModelServer::start();
    let mut house = House::new(&server.base_url());
    let whole = r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"whole"},"finish_reason":"stop"}]}"#;
    server.push(Reply::raw(200, &[("content-type", "application/json; charset=utf-8")], whole));
    house.call(true);
    assert_eq!(text_of(&house.answer().await.blocks), "whole");
    assert_eq!(house.events(), [chunk("whole")]);

    // No `[DONE]`, CRLF, a comment, a byte order mark.
    let stream =
        "\u{feff}: ping\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"x\"},\"finish_reason\":\"stop\"}]}\r\n\r\n";
    server.push(Reply::raw(200, &[("content-type", "text/event-stream; charset=utf-8")], stream));
    house.call(false);
    assert_eq!(text_of(&house.answer().await.blocks), "x");
}

#[tokio::test]
async fn no_connection() {
    let address = ModelServer::start().address();
    // That server is gone with its port.
    let mut house = House::new(&format!("http://{address}/v1"));
    while tokio::net::TcpStream::connect(address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    house.call(false);
    let failure = house.failure().await;
    assert_eq!(failure.code, FailureCode::ProviderUnreachable, "{}", failure.message);
    assert!(failure.message.contains("127.0.0.1") && failure.message.contains("refused"), "{}", failure.message);
}

#[tokio::test]
async fn silence_is_a_timeout() {
    let server = ModelServer::start();
    let mut house = House::impatient(&server.base_url());
    server.push(Reply::hang());
    house.call(false);
    assert_eq!(house.failure().await.code, FailureCode::ProviderTimeout);

    let gate = Gate::default();
    gate.pass(2);
    server.push(Reply::text("one two").gated(&gate));
    house.call(true);
    let failure = house.failure().await;
    assert_eq!(failure.code, FailureCode::ProviderTimeout, "{}", failure.message);
    assert_eq!(server.requests().len(), 2);
    server.abandoned(2).await;
}

#[tokio::test]
async fn an_abort_keeps_what_was_written() {
    let server = ModelServer::start();
    let mut house = House::new(&server.base_url());
    let gate = Gate::default();
    server.push(Reply::text("one two three").gated(&gate));
    house.call(true);
    gate.pass(2);
    assert_eq!(house.next_event().await, chunk("one "));
    house.performer.perform(Effect::Abort(Attempt { number: 2, ..attempt() }));
    assert!(house.outcomes.try_recv().is_err(), "another attempt's abort");
    house.performer.perform(Effect::Abort(attempt()));
    let answer = house.aborted().await;
    assert_eq!(text_of(&answer.blocks), "one ");
    assert_eq!(answer.usage, Usage { input_tokens: 13, output_tokens: 1 });
    server.abandoned(1).await;

    server.push(Reply::hang());
    house.call(false);
    server.received(2).await;
    house.performer.perform(Effect::Abort(attempt()));
    assert_eq!(house.aborted().await.blocks, []);
    server.abandoned(2).await;
    assert_eq!(house.performer.calls_out(), 0);
}

#[tokio::test]
async fn an_abort_ends_the_wait_for_a_retry() {
    let server = ModelServer::start();
    let mut house = House::new(&server.base_url());
    server.push(Reply::error(500, "wait for me").header("retry-after", "10"));
    house.call(false);
    server.received(1).await;
    house.performer.perform(Effect::Abort(attempt()));
    house.aborted().await;
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn fallback_models_are_asked_in_order() {
    let server = ModelServer::start();
    let mut house = House::new(&server.base_url());
    let nowhere = ModelChoice { provider: "nowhere".into(), model: "x".into(), ..ModelChoice::default() };
    let second = ModelChoice { model: "m-2".into(), ..ModelChoice::default() };
    house.manifest.fallback_models = vec![nowhere, second];
    server.push(Reply::error(404, "no such model"));
    server.push(Reply::text("from the second"));
    house.call(false);
    let answer = house.answer().await;
    assert_eq!((answer.provider.as_str(), answer.model.as_str()), ("scripted", "m-2"));
    let asked: Vec<String> = server.requests().iter().map(|request| request.body["model"].to_string()).collect();
    assert_eq!(asked, ["\"m-1\"", "\"m-2\""]);
}

#[tokio::test]
async fn too_long_an_answer_is_cut() {
    let server = ModelServer::start();
    let mut house = House::new(&server.base_url());
    let long = "four".repeat(limit::ANSWER_BYTES_MAX / 4 + 10);
    for streaming in [false, true] {
        server.push(Reply::text(&long));
        house.call(streaming);
        let answer = house.answer().await;
        assert_eq!((answer.stop, text_of(&answer.blocks).len()), (StopReason::Length, limit::ANSWER_BYTES_MAX));
    }
}

#[tokio::test]
async fn connections_are_kept() {
    let server = ModelServer::start();
    let mut house = House::new(&server.base_url());
    for number in 0..40 {
        house.call(number % 2 == 0);
        house.answer().await;
    }
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn failures_of_the_house_itself() {
    for log in [Log::Broken, Log::Panics] {
        let mut house = House::with_log("http://127.0.0.1:9/v1", log);
        house.call(false);
        let failure = house.failure().await;
        assert_eq!(failure.code, FailureCode::Internal);
        assert!(!failure.message.contains("bad disk"), "{}", failure.message);
        assert_eq!(house.performer.calls_out(), 0);
        assert!(house.outcomes.try_recv().is_err(), "exactly one outcome");
    }
    let mut house = House::new("http://127.0.0.1:9/v1");
    house.model.api_key_env = Some("MISSING_KEY".into());
    house.call(false);
    let failure = house.failure().await;
    assert_eq!(failure.code, FailureCode::ProviderAuth);
    assert!(failure.message.contains("MISSING_KEY"), "{}", failure.message);
}

#[tokio::test]
async fn the_builtin_model_needs_no_network() {
    let mut house = House::with_log("", Log::Says(vec![(Role::User, "hello".to_owned())]));
    house.model = ModelChoice { provider: "builtin".into(), ..ModelChoice::default() };
    house.call(true);
    let answer = house.answer().await;
    let text = text_of(&answer.blocks);
    assert!(text.contains("built-in offline model"), "{text}");
    assert_eq!(answer.usage, Usage { input_tokens: 4 + 3 + 4 + 2, output_tokens: text.len().div_ceil(4) as u64 });
    let events = house.events();
    assert_eq!(events.len(), text.split(' ').count());
    let streamed = events.iter().map(|event| match event {
        StreamEvent::Chunk { content } => content.as_str(),
        other => panic!("{other:?}"),
    });
    assert_eq!(streamed.collect::<String>(), text);

    house.call(false);
    assert_eq!(text_of(&house.answer().await.blocks), text);
}

fn tool_run(manifest: &Manifest, name: &str, input: &str) -> Effect {
    Effect::RunTool(Box::new(ToolRun {
        attempt: attempt(),
        agent: AgentId(Uuid::from_u128(1)),
        session: SESSION,
        manifest: Arc::new(Interned { hash: ManifestHash([0; 32]), manifest: manifest.clone() }),
        index: 4,
        call: ToolCall { id: "a".to_owned(), name: name.to_owned(), input: input.to_owned() },
    }))
}

#[tokio::test]
async fn tools_run_and_explain() {
    let mut house = House::new("");
    house.watched.store(true, Ordering::Relaxed);
    house.manifest.capabilities.tools = vec!["*".into()];
    for (name, input, is_error, part) in [
        ("system_time", "{\"format\":\"date\"}", false, "-"),
        ("system_time", "{broken", true, "not valid JSON"),
        ("rm", "{}", true, "Tools you may call: system_time"),
    ] {
        house.performer.perform(tool_run(&house.manifest, name, input));
        let OutcomeKind::Tool(of, ToolEnd { index, call, content, is_error: failed }) = house.outcome().await else {
            panic!("not a tool's outcome")
        };
        assert_eq!((of, index, call.input.as_str(), failed), (attempt(), 4, input, is_error), "{content}");
        assert!(content.contains(part), "{content}");
        let events = house.events();
        assert_eq!(events[0], StreamEvent::ToolUse { tool: name.to_owned() });
        let StreamEvent::ToolResult { tool, input: shown } = &events[1] else { panic!("{events:?}") };
        assert_eq!(tool, name);
        assert!(serde_json::from_str::<serde_json::Value>(shown).is_ok());
    }
}

#[tokio::test]
async fn an_aborted_tool_still_comes_back() {
    let mut house = House::new("");
    house.manifest.capabilities.tools = vec!["*".into()];
    // On this single-threaded runtime the task cannot have begun before the abort.
    house.performer.perform(tool_run(&house.manifest, "system_time", "{}"));
    house.performer.perform(Effect::Abort(attempt()));
    let OutcomeKind::Tool(_, end) = house.outcome().await else { panic!("not a tool's outcome") };
    assert!(end.is_error && end.content.contains("stopped"), "{}", end.content);
    assert_eq!(house.events(), [], "nobody watches");
}

#[tokio::test]
async fn the_rest_is_handed_on() {
    let mut house = House::new("");
    let item = StreamItem { session: SESSION, turn: turn(), event: chunk("x") };
    house.performer.perform(Effect::Publish(item));
    assert_eq!(house.events(), [chunk("x")]);
    house.performer.perform(Effect::Sweep(LogId(9)));
    assert_eq!(*house.swept.lock().unwrap(), [LogId(9)]);
}
