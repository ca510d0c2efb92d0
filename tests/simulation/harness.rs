//! One world and everything around it: the clock, the disk, the outside, the client and what the client was told.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use agentsvc_components::a2a::A2aTaskId;
use agentsvc_components::a2a::outbound::{A2aAgentId, A2aSentId};
use agentsvc_components::goal::GoalStatus;
use agentsvc_components::hand::HandInstanceId;
use agentsvc_components::kernel::id::{KeyId, UserId};
use agentsvc_components::kernel::limit;
use agentsvc_components::pairing::DeviceId;
use agentsvc_components::schedule::ScheduleKind;
use agentsvc_components::session::message::Block;
use agentsvc_components::usage::Limits;
use agentsvc_components::usage::price::Price;
use agentsvc_components::webhook::WebhookId;
use agentsvc_components::{
    Actor, AgentId, GoalId, Micros, Refusal, RunId, ScheduleId, SessionId, TaskId, Timestamp, TriggerId, WorkflowId,
};
use agentsvc_systems::a2a::SendA2aTask;
use agentsvc_systems::config::budget::BudgetSettings;
use agentsvc_systems::config::taint::TaintPolicy;
use agentsvc_systems::{Command, Engine, Records, ReplySlot, Settings};

use super::action::{Action, What};
use super::chats::{self, Chats};
use super::coverage::Coverage;
use super::disk::{Disk, End, Landed};
use super::event_hooks::Ears;
use super::facts::{Facts, GONE};
use super::hooks::{self, Hooks};
use super::money::Watermarks;
use super::observe::AuditLog;
use super::outside::Outside;
use super::prompts::Prompts;
use super::rng::Rng;
use super::slots::Plans;
use super::{client, entries, event_hooks, money, observe, outside, reads};

/// When worlds begin; a Tuesday.
const BEGIN: i64 = 1_700_000_000_000;
/// Tokens of the context of the model here.
pub(crate) const CONTEXT: u64 = 1_000;
/// Tokens of its longest answer.
pub(crate) const ANSWER: u64 = 100;

/// Rounds at the end of a run after which it is given up, when no job ended meanwhile.
const ROUNDS_WITHOUT_PROGRESS: u32 = 600;

/// Something that is done when a reply has come.
type Heard = Box<dyn FnOnce(&mut Harness) + Send>;

/// What the client knows of. Some of it is gone by now.
#[derive(Debug, Default)]
pub(crate) struct Known {
    pub(crate) agents: Vec<AgentId>,
    pub(crate) sessions: Vec<(AgentId, SessionId)>,
    pub(crate) triggers: Vec<(AgentId, TriggerId)>,
    pub(crate) schedules: Vec<(AgentId, ScheduleKind, ScheduleId)>,
    pub(crate) goals: Vec<(GoalId, GoalStatus)>,
    pub(crate) tasks: Vec<TaskId>,
    pub(crate) workflows: Vec<WorkflowId>,
    pub(crate) runs: Vec<RunId>,
    pub(crate) conversations: Vec<SessionId>,
    pub(crate) invocations: Vec<u128>,
    pub(crate) webhooks: Vec<WebhookId>,
    pub(crate) users: Vec<UserId>,
    pub(crate) keys: Vec<KeyId>,
    pub(crate) devices: Vec<DeviceId>,
    pub(crate) hands: Vec<HandInstanceId>,
    pub(crate) a2a: Vec<(A2aTaskId, SendA2aTask)>,
    pub(crate) external: Vec<A2aAgentId>,
    pub(crate) sent: Vec<A2aSentId>,
    pub(crate) memories: BTreeSet<(AgentId, String)>,
    pub(crate) chats: Chats,
    pub(crate) hooks: Hooks,
    pub(crate) prompts: Prompts,
}

/// The simulation.
pub(crate) struct Harness {
    pub(crate) engine: Engine,
    pub(crate) rng: Rng,
    pub(crate) now: i64,
    pub(crate) settings: Settings,
    pub(crate) disk: Disk,
    pub(crate) outside: Outside,
    pub(crate) facts: Facts,
    pub(crate) known: Known,
    /// What must have become of the slots of schedules.
    plans: Plans,
    pub(crate) coverage: Coverage,
    /// What hooks of events heard.
    pub(crate) ears: Ears,
    pub(crate) trace: Vec<String>,
    pub(crate) watermarks: Watermarks,
    pub(crate) trail: AuditLog,
    /// Numbers texts, so that no two are the same.
    pub(crate) number: u64,
    /// Nothing new is begun any more.
    pub(crate) is_ending: bool,
    /// The next step is the first one after a start.
    pub(crate) is_fresh: bool,
    heard: Arc<Mutex<Vec<Heard>>>,
    own: Rng,
    steps: u64,
}

/// What is done with sensitive calls of tainted turns: most often they run.
const TAINT: &[TaintPolicy] =
    &[TaintPolicy::Audit, TaintPolicy::Audit, TaintPolicy::Off, TaintPolicy::Approve, TaintPolicy::Deny];

/// The configuration of a seed.
fn settings(rng: &mut Rng) -> Settings {
    let mut settings = Settings {
        provider_calls: rng.pick(&[1, 2, 8]),
        require_approval: vec!["danger".into()],
        approval_timeout_ms: 60_000,
        claim_timeout_secs: 120,
        prompt_intelligence: true,
        ..Settings::default()
    };
    settings.default_model.provider = "acme".into();
    settings.default_model.model = "one".into();
    settings.context_tokens.insert("acme".into(), CONTEXT as u32);
    let million = Micros(1_000_000);
    settings.prices.set("acme", "*", Price { input_per_m: million, output_per_m: million, ..Price::default() });
    settings.budget = budgets(rng);
    // Drawn aside, so that a seed keeps its other settings.
    let mut aside = Rng(rng.0 ^ 0xa2a);
    settings.a2a.daily_limit = Micros(aside.pick(&[0, 0, 2, 20]) * (CONTEXT + ANSWER));
    settings.a2a.is_off = aside.chance(5);
    settings.security.taint = rng.pick(TAINT);
    settings.triggers.default_cooldown_secs = rng.pick(&[0, 0, 5]);
    settings.triggers.max_depth = 3;
    settings.memory.extraction_model = Some("acme/one".into());
    let dreams = &mut settings.auto_dream;
    (dreams.enabled, dreams.min_hours, dreams.min_sessions) = (true, 1, 1);
    (dreams.check_interval_secs, dreams.timeout_secs, dreams.max_calls_per_run) = (300, 30, 1);
    settings
}

/// The budgets of a configuration: often none, sometimes so little that calls wait and turns end.
pub(crate) fn budgets(rng: &mut Rng) -> BudgetSettings {
    let worst = CONTEXT + ANSWER;
    let limit = |rng: &mut Rng, from: &[u64]| rng.chance(35).then(|| Micros(rng.pick(from) * worst + 7));
    // Drawn aside, so that a seed keeps its other limits.
    let mut aside = Rng(rng.0 ^ 0x60);
    let mut tokens = |from: &[u64]| {
        let tokens = aside.pick(from) * worst + 7;
        aside.chance(20).then_some(tokens)
    };
    let (of_all, of_each, of_user) = (tokens(&[4, 30]), tokens(&[1, 3, 12]), tokens(&[2, 20]));
    BudgetSettings {
        global: Limits { daily: limit(rng, &[3, 20]), monthly: limit(rng, &[8, 60]), hourly_tokens: of_all },
        agent: Limits { daily: limit(rng, &[1, 2, 10]), monthly: None, hourly_tokens: of_each },
        user: Limits { hourly_tokens: of_user, ..Limits::default() },
        unknown_price_per_m: Micros::ZERO,
        answer_tokens_max: ANSWER as u32,
    }
}

impl Harness {
    /// An empty world.
    pub(crate) fn new(seed: u64) -> Self {
        let mut own = Rng(seed ^ 0x5eed);
        let settings = settings(&mut own);
        let mut harness = Self {
            engine: Engine::new(settings.clone(), own.seed()),
            rng: own,
            now: BEGIN,
            settings,
            disk: Disk::default(),
            outside: Outside::default(),
            facts: Facts::default(),
            known: Known::default(),
            plans: Plans::default(),
            coverage: Coverage::default(),
            ears: Ears::default(),
            trace: Vec::new(),
            watermarks: Watermarks::default(),
            trail: AuditLog::default(),
            number: 0,
            is_ending: false,
            is_fresh: false,
            heard: Arc::default(),
            own,
            steps: 0,
        };
        harness.engine.watch();
        let restored = harness.engine.restore(Records::default(), Timestamp(harness.now));
        restored.expect("an empty store can be read");
        harness
    }

    /// One thing happens, and what must hold is looked at.
    pub(crate) fn act(&mut self, action: Action) -> Result<(), String> {
        self.rng = action.rng;
        self.trace.push(format!("{:?} at {}", action.what, self.now - BEGIN));
        self.now += self.rng.below(40) as i64;
        self.engine.set_now(Timestamp(self.now));
        match action.what {
            What::Answer => outside::answer(self),
            What::Repeat => outside::repeat(self),
            What::Lose => outside::lose(self),
            What::Sync => return self.sync(usize::MAX),
            What::Beat => self.engine.beat(),
            What::Wait => {
                let span = self.rng.pick(&[100, 1_000, 7_000, 61_000, 600_000, 4_000_000]);
                self.wait(span);
            }
            What::ClockJump => {
                let jump = self.rng.pick(&[-500, -90_000, -7_200_000, 40_000_000, -200_000_000, 200_000_000]);
                let before = self.now;
                self.now = (before + jump).max(BEGIN);
                self.note(|| format!("the clock jumps by {jump} ms"));
                self.engine.set_now(Timestamp(self.now));
                if self.now + limit::CLOCK_FAULT_MS < before {
                    self.plans.count_anew(self.now);
                }
                self.engine.beat();
            }
            What::Kill => return self.die(End::Kill),
            What::DiskFault => return self.fault(),
            What::Read => reads::read(self)?,
            what => client::act(self, what),
        }
        self.close()
    }

    /// Time passes, and the beat comes.
    pub(crate) fn wait(&mut self, span: i64) {
        self.now += span;
        self.engine.set_now(Timestamp(self.now));
        self.engine.beat();
    }

    /// A line of the trace.
    pub(crate) fn note(&mut self, line: impl FnOnce() -> String) {
        let line = line();
        if let Some(last) = self.trace.last_mut() {
            last.push_str("; ");
            last.push_str(&line);
        }
    }

    /// Closes the step; the disk may take its time.
    fn close(&mut self) -> Result<(), String> {
        self.hear();
        self.step()?;
        while self.engine.has_work() && self.rng.chance(90) {
            self.step()?;
        }
        match self.rng.below(10) {
            0..7 => self.sync(usize::MAX),
            7 => self.sync(1),
            _ => Ok(()),
        }
    }

    /// One step is written.
    pub(crate) fn step(&mut self) -> Result<(), String> {
        let commit = self.engine.step();
        let notes = self.engine.take_notes();
        self.coverage.step(&self.disk.seen, &commit, std::mem::take(&mut self.is_fresh));
        self.plans.step(&commit, &notes, self.now, !self.engine.has_work())?;
        money::hours(self, &commit)?;
        self.disk.write(commit);
        self.steps += 1;
        observe::step(self, self.steps)
    }

    /// The oldest so many steps that wait are on disk: replies leave, effects start.
    pub(crate) fn sync(&mut self, count: usize) -> Result<(), String> {
        let landed = self.disk.sync(count);
        for Landed { effects, releases, told } in landed {
            releases.into_iter().for_each(|release| release());
            self.ears.hear(told)?;
            outside::begin(self, effects)?;
        }
        self.hear();
        observe::sync(self)
    }

    /// The disk fails while requests are under way.
    fn fault(&mut self) -> Result<(), String> {
        for _ in 0..=self.rng.below(3) {
            let what = self.rng.pick(&[What::Send, What::Post, What::NewSession, What::Spawn]);
            client::act(self, what);
            self.hear();
            self.step()?;
        }
        let end = self.rng.pick(&End::FAULTS);
        self.die(end)
    }

    /// The process dies and starts again. Of the steps that were not synced, the first few may have made it.
    fn die(&mut self, end: End) -> Result<(), String> {
        let waiting = self.disk.waiting();
        let mut kept = end.kept(waiting, &mut self.rng);
        self.note(|| format!("{end:?}: {kept} of {waiting} steps that were not synced are there"));
        self.coverage.end(end, kept, waiting);
        if end == End::FullDisk {
            self.sync(kept)?;
            kept = 0;
        }
        self.coverage.stats(&self.engine.stats());
        let is_missed = self.disk.die(kept);
        self.ears.die(is_missed);
        self.outside.die();
        self.facts.die();
        // What is told from here on was told before.
        self.heard = Arc::default();
        self.start()
    }

    /// A start: the only way a stored world comes to life.
    fn start(&mut self) -> Result<(), String> {
        let records = self.disk.records().map_err(|error| format!("a stored row cannot be read: {error}"))?;
        self.now += self.rng.pick(&[5, 1_000, 90_000]);
        self.engine = Engine::new(self.settings.clone(), self.own.seed());
        self.engine.watch();
        let restored = self.engine.restore(records, Timestamp(self.now));
        restored.map_err(|error| format!("the world does not come back: {error}"))?;
        self.is_fresh = true;
        self.plans.load(&self.disk.world, self.now)?;
        observe::start(self);
        self.step()?;
        observe::facts(self)?;
        if self.rng.chance(80) { self.sync(usize::MAX) } else { Ok(()) }
    }

    /// Sends a command; `then` runs when its reply has come and is no refusal.
    pub(crate) fn ask<C: Command>(&mut self, command: C, then: impl FnOnce(&mut Self, C::Reply) + Send + 'static) {
        self.ask_as(Actor::Api, command, |harness, reply| {
            if let Ok(reply) = reply {
                then(harness, reply);
            }
        });
    }

    /// The same, by somebody; refusals are heard too.
    pub(crate) fn ask_as<C: Command>(
        &mut self,
        actor: Actor,
        command: C,
        then: impl FnOnce(&mut Self, Result<C::Reply, Refusal>) + Send + 'static,
    ) {
        let heard = Arc::clone(&self.heard);
        let slot = ReplySlot::new(move |reply: Result<C::Reply, Refusal>| {
            heard.lock().expect("one thread").push(Box::new(move |harness: &mut Self| then(harness, reply)));
        });
        self.engine.command(actor, command, slot);
    }

    /// Carries out a read.
    pub(crate) fn read<C: Command>(&mut self, command: C) -> Result<C::Reply, Refusal> {
        let place = Arc::new(Mutex::new(None));
        let to = Arc::clone(&place);
        self.engine.command(
            Actor::Api,
            command,
            ReplySlot::new(move |reply| *to.lock().expect("one thread") = Some(reply)),
        );
        let reply = place.lock().expect("one thread").take();
        reply.expect("a read is answered at once")
    }

    /// Takes in the replies that have come.
    fn hear(&mut self) {
        loop {
            let heard = std::mem::take(&mut *self.heard.lock().expect("one thread"));
            if heard.is_empty() {
                return;
            }
            heard.into_iter().for_each(|then| then(self));
        }
    }

    /// Something new was acknowledged. It may be gone again by a request that was sent meanwhile, or with what it belongs to.
    pub(crate) fn learn(&mut self, key: String, value: impl Into<String>) {
        if observe::register(self, &key).is_some_and(|is| is != GONE) {
            self.facts.learn(key, value);
        }
    }

    /// A text that no other one is.
    pub(crate) fn text(&mut self, what: &str) -> String {
        self.number += 1;
        format!("{what} {}", self.number)
    }

    /// Lets everything come to its end, and looks whether it did.
    pub(crate) fn end(&mut self) -> Result<(), String> {
        self.trace.push("the end".to_owned());
        self.is_ending = true;
        self.close()?;
        self.sync(usize::MAX)?;
        client::quiet(self);
        self.close()?;
        self.sync(usize::MAX)?;
        let (mut round, mut progress, mut fewest) = (0, 0, usize::MAX);
        while round - progress < ROUNDS_WITHOUT_PROGRESS {
            outside::answer_all(self);
            client::decide_all(self);
            self.hear();
            self.wait(if round % 4 == 3 { 31_000 } else { 1_000 });
            self.step()?;
            self.sync(usize::MAX)?;
            let stats = self.engine.stats();
            if stats.turns_open == 0
                && !self.engine.has_work()
                && stats.workflow_runs_open == 0
                && self.outside.is_idle()
                && !entries::is_memorizing(self)
            {
                self.coverage.stats(&stats);
                chats::at_end(self)?;
                hooks::at_end(self)?;
                event_hooks::at_end(self)?;
                return observe::end(self);
            }
            // Webhooks get a few deliveries a round, and what happened may have left them a thousand.
            let jobs = self.disk.world.range(b"q".to_vec()..b"r".to_vec()).count();
            if jobs < fewest {
                (fewest, progress) = (jobs, round);
            }
            round += 1;
        }
        let stats = self.engine.stats();
        Err(format!("it does not come to its end: {} turns open, {stats:?}", stats.turns_open))
    }
}

/// A block of text.
pub(crate) fn text_block(text: impl Into<String>) -> Block {
    Block::Text { text: text.into() }
}
