//! A daemon in one thread, without network and disk: the real routes over a real world, whose content is in memory and
//! whose model gives back what it is told. Time is virtual, so that nothing waits and every run of an input is the same.

use std::cell::{Cell, RefCell};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use agentsvc_api::agent::texts::ManifestTexts;
use agentsvc_api::chat::agent_feed::AgentFeed;
use agentsvc_api::http::bridge::{Arrival, Intake, bridge};
use agentsvc_api::http::shutdown::Shutdown;
use agentsvc_api::knowledge::store::KnowledgeStore;
use agentsvc_api::memory::store::MemoryStore;
use agentsvc_api::model::catalog::DefaultModel;
use agentsvc_api::session::content::{Content, MessageRange};
use agentsvc_api::turn::hub::StreamHub;
use agentsvc_api::turn::store::TraceStore;
use agentsvc_api::upload::files::Files;
use agentsvc_api::usage::store::UsageStore;
use agentsvc_api::world::watch::WorldWatch;
use agentsvc_api::{Api, ApiSettings, DOMAINS};
use agentsvc_components::agent::sweep::AgentSwept;
use agentsvc_components::agent::sweep::SweepAgent;
use agentsvc_components::compaction::call::SummaryCall;
use agentsvc_components::compaction::call::{Summary, SummaryEnd, SummaryOutcome};
use agentsvc_components::kernel::attempt::Attempt;
use agentsvc_components::kernel::effect::Abort;
use agentsvc_components::kernel::effect::AnyEffect;
use agentsvc_components::kernel::outcome::AnyOutcome;
use agentsvc_components::kernel::taint::Taint;
use agentsvc_components::session::message::{Block, ToolCall, Usage, text_of};
use agentsvc_components::session::sweep::LogSwept;
use agentsvc_components::session::sweep::SweepLog;
use agentsvc_components::turn::effect::{ModelCall, ToolRun};
use agentsvc_components::turn::outcome::{ModelAnswer, ModelEnd, ModelOutcome, ToolEnd, ToolOutcome, ToolStatus};
use agentsvc_components::turn::stream::{StreamEvent, StreamItem};
use agentsvc_components::{AgentId, Timestamp};
use agentsvc_systems::event::told::events_of;
use agentsvc_systems::replay::write_entry;
use agentsvc_systems::{Commit, Engine, Records, Settings};
use parking_lot::Mutex;
use tokio::runtime::{Builder, Runtime};

use super::memory::{Memory, MemoryFiles};

/// When every world begins.
const BEGIN: Timestamp = Timestamp(1_700_000_000_000);
/// Looks at whether something is done, each after a wait of virtual time that is a half longer than the one before.
const LOOKS_MAX: u32 = 48;
/// Steps after one arrival; what is left over then waits for the next.
const STEPS_MAX: u32 = 64;
/// What stands before a message that has the model call a tool: `!name {"key": 1}`.
const CALL: char = '!';

/// The daemon.
pub struct Harness {
    /// The front.
    pub api: Arc<Api>,
    intake: Intake,
    engine: Arc<Mutex<Engine>>,
    memory: Arc<Memory>,
    hub: Arc<StreamHub>,
    now: Cell<Timestamp>,
    /// What each step left, and its entry of the input log, once somebody wants to know.
    journal: RefCell<Option<Journal>>,
    runtime: Option<Runtime>,
}

/// What the steps of a world left.
#[derive(Default)]
pub struct Journal {
    /// Every record that was written.
    pub rows: Vec<(Vec<u8>, Vec<u8>)>,
    /// The input log.
    pub entries: Vec<Vec<u8>>,
}

impl Harness {
    /// A daemon with an empty world.
    pub fn new() -> Self {
        let (bridge, intake) = bridge();
        let memory = Arc::new(Memory::default());
        let mut engine = Engine::new(Settings::default(), [7; 32]);
        engine.restore(Records::default(), BEGIN).expect("an empty world");
        let engine = Arc::new(Mutex::new(engine));
        intake.open_with(&engine);
        let settings = ApiSettings { rate_limit_per_second: 0, ..ApiSettings::default() };
        let api = Api::new(&DOMAINS, settings, bridge, Shutdown::new());
        api.services.provide::<dyn Content>(Arc::clone(&memory) as _);
        api.services.provide::<dyn ManifestTexts>(Arc::clone(&memory) as _);
        api.services.provide::<dyn TraceStore>(Arc::clone(&memory) as _);
        api.services.provide::<dyn MemoryStore>(Arc::clone(&memory) as _);
        api.services.provide::<dyn KnowledgeStore>(Arc::clone(&memory) as _);
        api.services.provide::<dyn UsageStore>(Arc::clone(&memory) as _);
        api.services.provide::<dyn Files>(Arc::new(MemoryFiles::default()));
        let default = DefaultModel { provider: "builtin".into(), model: "builtin".into() };
        api.services.provide(Arc::new(default));
        let hub = api.services.state();
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime");
        Self {
            api,
            intake,
            engine,
            memory,
            hub,
            now: Cell::new(BEGIN),
            journal: RefCell::default(),
            runtime: Some(runtime),
        }
    }

    /// What comes of `future`, while the world goes on; `None` when it is not done after hours of virtual time.
    pub fn wait<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        let runtime = self.runtime.as_ref().expect("it lives");
        runtime.block_on(async {
            let mut future = pin!(future);
            let mut pause = Duration::from_millis(1);
            for _ in 0..LOOKS_MAX {
                let mut until = pin!(tokio::time::sleep(pause));
                let done = std::future::poll_fn(|cx| {
                    loop {
                        if let Poll::Ready(done) = future.as_mut().poll(cx) {
                            return Poll::Ready(Some(done));
                        }
                        if !self.step() {
                            return until.as_mut().poll(cx).map(|()| None);
                        }
                    }
                });
                if let Some(done) = done.await {
                    return Some(done);
                }
                self.now.set(self.now.get().plus_ms(i64::try_from(pause.as_millis()).unwrap_or(0)));
                self.beat();
                pause = pause * 3 / 2;
            }
            None
        })
    }

    /// Carries out what has arrived; was there anything?
    fn step(&self) -> bool {
        let mut moved = false;
        while let Ok(arrival) = self.intake.arrivals.try_recv() {
            moved = true;
            self.now.set(self.now.get().plus_ms(1));
            let mut engine = self.engine.lock();
            engine.set_now(self.now.get());
            match arrival {
                Arrival::Command(envelope) => {
                    self.intake.took_command();
                    envelope.run(&mut engine);
                }
                Arrival::Outcome(outcome) => engine.outcome(outcome),
                Arrival::Stop => {}
            }
            drop(engine);
            self.settle();
        }
        moved
    }

    fn beat(&self) {
        let mut engine = self.engine.lock();
        engine.set_now(self.now.get());
        engine.beat();
        drop(engine);
        self.settle();
    }

    /// Steps until nothing follows, and does what the steps ask for.
    fn settle(&self) {
        for _ in 0..STEPS_MAX {
            let mut engine = self.engine.lock();
            let commit = engine.step();
            let goes_on = engine.has_work();
            drop(engine);
            self.note(&commit);
            self.memory.apply(commit.ops);
            for happened in commit.told.into_iter().flat_map(events_of) {
                self.api.services.state::<AgentFeed>().note(&happened.event);
                self.api.services.state::<WorldWatch>().events.note(happened);
            }
            commit.releases.into_iter().for_each(|release| release());
            commit.effects.into_iter().for_each(|effect| self.perform(effect));
            if !goes_on {
                return;
            }
        }
    }

    /// From here on what the steps leave is kept.
    pub fn keep_journal(&self) {
        self.engine.lock().record(true);
        self.journal.replace(Some(Journal::default()));
    }

    /// What was kept.
    pub fn take_journal(&self) -> Journal {
        self.journal.take().unwrap_or_default()
    }

    fn note(&self, commit: &Commit) {
        if let Some(journal) = &mut *self.journal.borrow_mut() {
            let written = commit.ops.iter().filter_map(|op| Some((op.key.clone(), op.value.clone()?)));
            journal.rows.extend(written);
            if let Some(inputs) = &commit.inputs {
                let mut entry = Vec::new();
                write_entry(inputs, commit.ops.iter(), &mut entry);
                journal.entries.push(entry);
            }
        }
    }

    fn perform(&self, effect: AnyEffect) {
        let outcome: AnyOutcome = if let Some(item) = effect.get::<StreamItem>() {
            return self.hub.publish(item.clone());
        } else if let Some(call) = effect.get::<ModelCall>() {
            self.answer(call).into()
        } else if let Some(Abort(attempt)) = effect.get() {
            ModelOutcome(*attempt, ModelEnd::Aborted(ModelAnswer::default())).into()
        } else if let Some(call) = effect.get::<SummaryCall>() {
            let (provider, model) = ("builtin".to_owned(), "builtin".to_owned());
            let messages = 2 * (call.upto - call.from);
            let (text, taint) = ("they spoke".to_owned(), Taint::NONE);
            let summary = Summary { text, upto: call.upto, messages, provider, model, taint };
            let end = SummaryEnd { usage: Usage::default(), written: Ok(summary), calls: Vec::new() };
            SummaryOutcome(call.attempt, end).into()
        } else if let Some(run) = effect.get::<ToolRun>() {
            let end = ToolEnd {
                index: run.index,
                call: run.call.clone(),
                content: "done".to_owned(),
                whole: None,
                notice: None,
                brought: None,
                status: ToolStatus::Ok,
            };
            ToolOutcome(run.attempt, end).into()
        } else if let Some(SweepLog(log)) = effect.get() {
            LogSwept(*log).into()
        } else if let Some(SweepAgent(agent)) = effect.get() {
            AgentSwept(*agent).into()
        } else {
            return;
        };
        self.api.bridge.outcome(outcome);
    }

    /// The model gives back what was said last, or calls the tool that was named.
    fn answer(&self, call: &ModelCall) -> ModelOutcome {
        let before = call.ordinal.checked_add(1).map(|ordinal| (ordinal, 0));
        let range = MessageRange::Newest { before, limit: 1, bytes: 1 };
        let said = self.memory.messages(call.log, range).unwrap_or_default();
        let said = said.first().map(|row| text_of(&row.record.blocks)).unwrap_or_default();
        let event = StreamEvent::Chunk { content: said.clone() };
        self.hub.publish(StreamItem { session: call.session, turn: call.turn(), event });
        let block = match said.strip_prefix(CALL).and_then(|rest| rest.split_once(' ')) {
            Some((name, input)) => {
                let Attempt { number, .. } = call.attempt;
                let (name, input) = (name.to_owned(), input.to_owned());
                Block::ToolCall(ToolCall { id: format!("call-{number}"), name, input })
            }
            None => Block::Text { text: said },
        };
        let answer = ModelAnswer {
            blocks: vec![block],
            usage: Usage::of(10, 5),
            provider: "builtin".into(),
            model: "builtin".into(),
            ..ModelAnswer::default()
        };
        ModelOutcome(call.attempt, ModelEnd::Answered(answer))
    }

    /// What is wrong in the world.
    pub fn check(&self) -> Vec<String> {
        self.engine.lock().check()
    }

    /// The agents there are.
    pub fn agents(&self) -> Vec<AgentId> {
        let list = agentsvc_systems::agent::ListAgents { limit: 10, ..Default::default() };
        let page = self.wait(self.api.bridge.ask(list)).and_then(Result::ok);
        page.map(|page| page.items.into_iter().map(|agent| agent.id).collect()).unwrap_or_default()
    }
}

impl Drop for Harness {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
