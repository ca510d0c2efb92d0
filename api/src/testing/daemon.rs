//! A daemon in a test: a real world on a thread of its own behind a real bridge, its content in memory, and a model
//! that answers when the test says so.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;

use agentsvc_components::compaction::call::{Summary, SummaryCall, SummaryEnd, SummaryOutcome};
use agentsvc_components::compaction::record::SummaryRecord;
use agentsvc_components::kernel::attempt::Attempt;
use agentsvc_components::kernel::effect::{Abort, AnyEffect};
use agentsvc_components::kernel::record::{Op, Space};
use agentsvc_components::kernel::taint::Taint;
use agentsvc_components::session::message::{Block, Role, Usage};
use agentsvc_components::session::message_record::MessageRecord;
use agentsvc_components::turn::effect::ModelCall;
use agentsvc_components::turn::outcome::{ModelAnswer, ModelEnd, ModelOutcome};
use agentsvc_components::turn::stream::{StreamEvent, StreamItem};
use agentsvc_components::{AgentId, LogId, Timestamp};
use agentsvc_systems::kernel::record;
use agentsvc_systems::{Engine, Records, Settings};
use hyper::Request;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use uuid::Uuid;

use crate::agent::texts::ManifestTexts;
use crate::http::api::Api;
use crate::http::bridge::{Arrival, Bridge, Intake, bridge};
use crate::http::error::ContentError;
use crate::http::reply::{self, Response};
use crate::http::settings::ApiSettings;
use crate::http::shutdown::Shutdown;
use crate::session::content::{Content, MessageRange, MessageRow};
use crate::turn::hub::StreamHub;
use crate::upload::files::Files;
use crate::{DOMAINS, testing};

/// The content records of a world, in memory.
#[derive(Default)]
pub(crate) struct Memory(Mutex<BTreeMap<Vec<u8>, Vec<u8>>>, AtomicUsize);

impl Memory {
    /// The next so many readers of a summary come before it is stored.
    pub(crate) fn hold_summaries_back(&self, readers: usize) {
        self.1.store(readers, Ordering::SeqCst);
    }

    fn apply(&self, ops: Vec<Op>) {
        let mut rows = self.0.lock();
        for op in ops.into_iter().filter(|op| op.space == Space::Content) {
            match op.value {
                Some(value) => rows.insert(op.key, value),
                None => rows.remove(&op.key),
            };
        }
    }
}

impl Content for Memory {
    fn messages(&self, log: LogId, range: MessageRange) -> Result<Vec<MessageRow>, ContentError> {
        let (MessageRange::After { after, limit } | MessageRange::Chunk { after, limit, .. }) = range else {
            return Err(ContentError::Failed("not in tests".into()));
        };
        let rows = self.0.lock();
        let prefix = record::log_prefix(log);
        let of_log = rows.range(prefix.to_vec()..).take_while(|(key, _)| key.starts_with(&prefix));
        let read = of_log.map(|(key, value)| {
            let at = record::parse_message_key(key).unwrap();
            MessageRow { ordinal: at.ordinal, index: at.index, record: record::decode(key, value).unwrap() }
        });
        Ok(read.filter(|row| after.is_none_or(|after| (row.ordinal, row.index) > after)).take(limit).collect())
    }

    fn result(&self, log: LogId, ordinal: u32, index: u32) -> Result<Option<String>, ContentError> {
        let key = record::result_key(record::MessageKey { log, ordinal, index });
        Ok(self.0.lock().get(&key).map(|value| String::from_utf8_lossy(value).into_owned()))
    }

    fn summary(&self, log: LogId, upto: u32) -> Result<Option<SummaryRecord>, ContentError> {
        let key = record::summary_key(log, upto);
        let is_late = |late: usize| late.checked_sub(1);
        if self.1.fetch_update(Ordering::SeqCst, Ordering::SeqCst, is_late).is_ok() {
            return Ok(None);
        }
        Ok(self.0.lock().get(&key).map(|value| record::decode(&key, value).unwrap()))
    }

    fn summaries(&self, log: LogId) -> Result<Vec<SummaryRecord>, ContentError> {
        let rows = self.0.lock();
        let prefix = record::summary_prefix(log);
        let of_log = rows.range(prefix.to_vec()..).take_while(|(key, _)| key.starts_with(&prefix));
        Ok(of_log.map(|(key, value)| record::decode(key, value).unwrap()).collect())
    }
}

impl ManifestTexts for Memory {
    fn manifest_text(&self, agent: AgentId) -> Result<Option<String>, ContentError> {
        let rows = self.0.lock();
        let key = record::manifest_text_key(agent);
        Ok(rows.get(&key).map(|value| String::from_utf8_lossy(value).into_owned()))
    }
}

/// The outside of the test's world.
struct Outside {
    bridge: Bridge,
    hub: Arc<StreamHub>,
    memory: Arc<Memory>,
    /// The model answers at once, with an echo.
    echo: Arc<AtomicBool>,
    /// The calls that the test answers itself.
    calls: mpsc::UnboundedSender<ModelCall>,
}

impl Outside {
    fn perform(&self, effect: AnyEffect) {
        if let Some(item) = effect.get::<StreamItem>() {
            self.hub.publish(item.clone());
        } else if let Some(call) = effect.get::<ModelCall>() {
            if !self.echo.load(Ordering::SeqCst) {
                return self.calls.send(call.clone()).unwrap();
            }
            let rows = self.memory.messages(call.log, MessageRange::After { after: None, limit: usize::MAX });
            let question = rows.unwrap().into_iter().rev().find(|row| row.ordinal == call.ordinal).unwrap();
            let text = format!("echo: {}", agentsvc_components::session::message::text_of(&question.record.blocks));
            answer(&self.bridge, &self.hub, call, &text);
        } else if let Some(Abort(attempt)) = effect.get() {
            self.bridge.outcome(aborted(*attempt));
        } else if let Some(call) = effect.get::<SummaryCall>() {
            let (provider, model) = ("builtin".to_owned(), "builtin".to_owned());
            let messages = 2 * (call.upto - call.from);
            let summary = Summary {
                text: "they spoke".to_owned(),
                upto: call.upto,
                messages,
                provider,
                model,
                taint: Taint::NONE,
            };
            let end = SummaryEnd { usage: Usage::default(), written: Ok(summary), calls: Vec::new() };
            self.bridge.outcome(SummaryOutcome(call.attempt, end));
        }
    }
}

fn aborted(attempt: Attempt) -> ModelOutcome {
    ModelOutcome(attempt, ModelEnd::Aborted(ModelAnswer::default()))
}

/// The model answers `call`: one chunk, then the whole.
fn answer(bridge: &Bridge, hub: &StreamHub, call: &ModelCall, text: &str) {
    let event = StreamEvent::Chunk { content: text.to_owned() };
    hub.publish(StreamItem { session: call.session, turn: call.turn(), event });
    let blocks = vec![Block::Text { text: text.to_owned() }];
    let usage = Usage::of(10, 5);
    let whole =
        ModelAnswer { blocks, usage, provider: "builtin".into(), model: "builtin".into(), ..Default::default() };
    bridge.outcome(ModelOutcome(call.attempt, ModelEnd::Answered(whole)));
}

fn run_world(intake: &Intake, outside: &Outside) {
    let mut engine = Engine::new(Settings::default(), [7; 32]);
    let mut now = Timestamp(1_700_000_000_000);
    engine.restore(Records::default(), now).unwrap();
    while let Ok(arrival) = intake.arrivals.recv() {
        now = now.plus_ms(1);
        engine.set_now(now);
        match arrival {
            Arrival::Command(envelope) => {
                intake.took_command();
                envelope.run(&mut engine);
            }
            Arrival::Outcome(outcome) => engine.outcome(outcome),
            Arrival::Stop => return,
        }
        let commit = engine.step();
        outside.memory.apply(commit.ops);
        commit.releases.into_iter().for_each(|release| release());
        commit.effects.into_iter().for_each(|effect| outside.perform(effect));
    }
}

/// A daemon without a socket.
pub(crate) struct TestDaemon {
    pub(crate) api: Arc<Api>,
    pub(crate) memory: Arc<Memory>,
    echo: Arc<AtomicBool>,
    calls: mpsc::UnboundedReceiver<ModelCall>,
    world: Option<JoinHandle<()>>,
}

impl TestDaemon {
    pub(crate) fn new() -> Self {
        let (bridge, intake) = bridge();
        let memory = Arc::new(Memory::default());
        let settings = ApiSettings { rate_limit_per_second: 0, ..ApiSettings::default() };
        let api = Api::new(&DOMAINS, settings, bridge.clone(), Shutdown::new());
        api.services.provide::<dyn Content>(Arc::clone(&memory) as _);
        api.services.provide::<dyn ManifestTexts>(Arc::clone(&memory) as _);
        api.services.provide::<dyn Files>(Arc::new(testing::TestFiles::default()));
        let (sender, calls) = mpsc::unbounded_channel();
        let echo = Arc::new(AtomicBool::new(true));
        let outside = Outside { bridge, hub: api.state(), memory: memory.clone(), echo: echo.clone(), calls: sender };
        intake.open();
        let world = std::thread::spawn(move || run_world(&intake, &outside));
        Self { api, memory, echo, calls, world: Some(world) }
    }

    /// From now on the test answers for the model.
    pub(crate) fn hold_model(&self) {
        self.echo.store(false, Ordering::SeqCst);
    }

    /// The next call of a held model; waits for it.
    pub(crate) async fn model_call(&mut self) -> ModelCall {
        self.calls.recv().await.expect("the world lives")
    }

    /// The held model answers.
    pub(crate) fn answer(&self, call: &ModelCall, text: &str) {
        answer(&self.api.bridge, &self.api.state::<StreamHub>(), call, text);
    }

    /// The response to a request such as `GET /api/agents`, as it leaves the front.
    pub(crate) async fn respond(&self, request: &str, body: &[u8]) -> Response {
        let (method, uri) = request.split_once(' ').unwrap();
        testing::send(&self.api, Request::builder().method(method).uri(uri), body.to_vec()).await
    }

    /// Sends a request; gives the status and the JSON body.
    pub(crate) async fn send(&self, request: &str, body: Value) -> (u16, Value) {
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let response = self.respond(request, &body).await;
        (response.status().as_u16(), reply::collect(response).await)
    }

    /// Sends a request that must succeed.
    pub(crate) async fn ok(&self, request: &str, body: Value) -> Value {
        let (status, answer) = self.send(request, body).await;
        assert!((200..300).contains(&status), "{request}: {status} {answer}");
        answer
    }

    /// Sends a request that must be refused with `status`; gives the body.
    pub(crate) async fn refused(&self, status: u16, request: &str, body: Value) -> Value {
        let (got, answer) = self.send(request, body).await;
        assert_eq!(got, status, "{request}: {answer}");
        assert!(answer["error"].as_str().is_some_and(|text| !text.is_empty()), "{request}: {answer}");
        answer
    }

    /// Creates an agent of a small manifest; gives its id.
    pub(crate) async fn agent(&self, name: &str) -> String {
        let manifest = format!("name = {name:?}\ndescription = \"d\"\ntags = [\"t-{name}\"]\n");
        let created = self.ok("POST /api/agents", json!({"manifest_toml": manifest})).await;
        created["agent_id"].as_str().unwrap().to_owned()
    }

    /// Puts a row of `role` into a log.
    pub(crate) fn put_row(&self, log: LogId, ordinal: u32, index: u32, role: Role, blocks: Vec<Block>) {
        let turn = agentsvc_components::TurnId(Uuid::nil());
        let row = MessageRecord {
            turn,
            role,
            blocks,
            created_at: Timestamp(0),
            usage: None,
            model: None,
            stopped: false,
            repeats: None,
        };
        let key = record::message_key(record::MessageKey { log, ordinal, index });
        self.memory.0.lock().insert(key, record::encode(&row));
    }
}

impl Drop for TestDaemon {
    fn drop(&mut self) {
        self.api.bridge.stop();
        if let Some(world) = self.world.take() {
            world.join().expect("the world ends in order");
        }
    }
}
