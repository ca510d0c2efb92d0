//! The world of the simulation: an engine, what is stored of it, a model that takes its time, and misfortune.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use agentsvc_components::compaction::call::{SummaryCall, SummaryEnd, SummaryOutcome};
use agentsvc_components::kernel::attempt::Attempt;
use agentsvc_components::kernel::effect::Abort;
use agentsvc_components::kernel::limit;
use agentsvc_components::kernel::record::Space;
use agentsvc_components::schedule::record::{ScheduleRecord, ScheduleStateRecord};
use agentsvc_components::schedule::{MissedPolicy, OverlapPolicy, ScheduleKind};
use agentsvc_components::session::message::{Block, Usage};
use agentsvc_components::turn::effect::ModelCall;
use agentsvc_components::turn::outcome::{FailureCode, ModelEnd, ModelFailure, ModelOutcome};
use agentsvc_components::{AgentId, Refusal, ScheduleId, Timestamp};

use super::super::tests::{DAY, HOUR, MINUTE, MONDAY, plain};
use super::super::times::Schedules;
use super::super::{CreateSchedule, NewSchedule, RunSchedule, SchedulePatch, UpdateSchedule};
use super::oracle::{self, HORIZON, Oracle};
use super::{Ledger, Mark, Rng};
use crate::agent::{StartAgents, StopAgents};
use crate::kernel::record;
use crate::testing::{answer, spawn_command};
use crate::{Command, Engine, Records, ReplySlot, Settings};

/// A reply that may have come.
type Asked<R> = Arc<Mutex<Option<Result<R, Refusal>>>>;

/// Days of a run.
const DAYS: i64 = 30;

/// One run.
pub(super) struct Fixture {
    engine: Engine,
    rng: Rng,
    now: i64,
    /// The world space of the store.
    stored: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Model calls that are out, and when they come back.
    calls: Vec<(i64, Attempt)>,
    agents: Vec<AgentId>,
    schedules: BTreeMap<ScheduleId, (ScheduleKind, Oracle)>,
    /// The right time, while the clock is wrong.
    right: Option<i64>,
    restarts: u64,
}

/// What a run came to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Totals {
    pub(super) slots: u64,
    pub(super) fired: u64,
    pub(super) restarts: u64,
}

impl Fixture {
    /// A world with `count` schedules and cron jobs.
    pub(super) fn new(seed: u64, count: usize) -> Self {
        let mut fixture = Self {
            engine: Engine::new(Settings::default(), [1; 32]),
            rng: Rng(seed),
            now: MONDAY,
            stored: BTreeMap::new(),
            calls: Vec::new(),
            agents: Vec::new(),
            schedules: BTreeMap::new(),
            right: None,
            restarts: 0,
        };
        fixture.restore();
        for n in 0..count.div_ceil(8) {
            let spawned = fixture.ask(spawn_command(&format!("agent {n}")));
            fixture.agents.push(spawned.agent);
        }
        for _ in 0..count {
            fixture.create();
        }
        fixture
    }

    fn create(&mut self) {
        let rng = &mut self.rng;
        let (rule, zone, mut oracle) = oracle::rule(rng);
        let kind = rng.pick(&[ScheduleKind::Schedule, ScheduleKind::Cron]);
        let agent = rng.pick(&self.agents);
        let new = NewSchedule {
            kind,
            name: Some("n".into()),
            timezone: Some(zone.name().into()),
            missed: rng.pick(&[MissedPolicy::Skip, MissedPolicy::One, MissedPolicy::All]),
            overlap: rng.pick(&[
                OverlapPolicy::Skip,
                OverlapPolicy::Queue,
                OverlapPolicy::Queue,
                OverlapPolicy::Parallel,
            ]),
            ..plain(agent, &rule)
        };
        let view = self.ask(CreateSchedule { new, by_tool: false });
        oracle.anchored(view.created_at.0);
        self.schedules.insert(view.id, (kind, oracle));
    }

    /// Runs the days; then lets everything come to its end and looks at every schedule.
    pub(super) fn run(mut self) -> Totals {
        while self.now < MONDAY + DAYS * DAY || self.right.is_some() {
            self.round();
        }
        self.ask(StartAgents(self.agents.clone()));
        while self.engine.has_work() || !self.calls.is_empty() {
            self.answer_until(i64::MAX);
            self.beat();
        }
        let mut totals = Totals { restarts: self.restarts, ..Totals::default() };
        for (id, (_, oracle)) in &mut self.schedules {
            let key = [&b"e"[..], id.0.as_bytes()].concat();
            let state: ScheduleStateRecord = record::decode(&key, &self.stored[&key]).unwrap();
            totals.slots += oracle.check_end(&state, self.now);
            totals.fired += oracle.fired();
        }
        totals
    }

    /// Some time passes, and something may happen.
    fn round(&mut self) {
        self.pass();
        self.answer_until(self.now);
        if self.rng.rare(1_500) {
            self.change();
        }
        if self.rng.rare(200) {
            // The step is lost with the process.
            self.engine.beat();
            self.engine.step();
            return self.restart();
        }
        self.beat();
        if self.rng.rare(200) {
            self.restart();
        }
    }

    /// Sets the clock: mostly to when something is due, sometimes anywhere.
    fn pass(&mut self) {
        let visit = self.engine.world().resource::<Schedules>().first_visit().map(|at| at.0);
        let call = self.calls.iter().map(|(at, _)| *at).min();
        let due = visit.into_iter().chain(call).min().unwrap_or(self.now).max(self.now);
        self.now = due + self.rng.pick(&[0, 50, 1_000]);
        if self.rng.rare(2_000) {
            // The process is held up, or the machine sleeps.
            self.now += self.rng.pick(&[30_000, 61_000, 10 * MINUTE, 5 * HOUR]);
        } else if self.rng.rare(30) {
            self.now += self.rng.below(2 * DAY);
        } else if self.rng.rare(100) {
            self.now -= self.rng.below(20 * HOUR);
        } else if self.rng.rare(15) && self.right.is_none() && self.now < MONDAY + 25 * DAY {
            self.right = Some(self.now);
            self.now += DAY + self.rng.below(35 * DAY);
        } else if let Some(right) = self.right
            && self.rng.below(4) == 0
        {
            self.right = None;
            self.set_right(right);
        }
        self.now = self.now.max(MONDAY + 1);
        assert!(self.now < HORIZON);
        self.engine.set_now(Timestamp(self.now));
    }

    /// The clock, far ahead, is set right, with or without a restart. What counts anew is stored before anything else
    /// happens.
    fn set_right(&mut self, right: i64) {
        let is_far = self.now - right > limit::CLOCK_FAULT_MS;
        self.now = right;
        if self.rng.below(2) == 0 {
            return self.restart();
        }
        self.engine.set_now(Timestamp(right));
        if is_far {
            self.count_anew();
        }
        self.step();
    }

    /// Schedules that counted by a wrong clock count from now.
    fn count_anew(&mut self) {
        for (_, oracle) in self.schedules.values_mut() {
            if oracle.is_off(self.now) {
                oracle.count_anew(self.now);
            }
        }
    }

    /// A person does something.
    fn change(&mut self) {
        let ids: Vec<ScheduleId> = self.schedules.keys().copied().collect();
        let id = self.rng.pick(&ids);
        let kind = self.schedules[&id].0;
        let agent = self.rng.pick(&self.agents);
        match self.rng.below(6) {
            0 => drop(self.command(StopAgents(vec![agent]))),
            1 | 2 => drop(self.command(StartAgents(vec![agent]))),
            3 => drop(self.command(RunSchedule { kind, id })),
            enable => {
                let patch = SchedulePatch { enabled: Some(enable == 4), ..SchedulePatch::default() };
                drop(self.command(UpdateSchedule { kind, id, patch }));
            }
        }
    }

    fn command<C: Command>(&mut self, command: C) -> Asked<C::Reply> {
        let place = Asked::default();
        let to = Arc::clone(&place);
        self.engine.set_now(Timestamp(self.now));
        self.engine.command(
            agentsvc_components::Actor::Api,
            command,
            ReplySlot::new(move |reply| *to.lock().unwrap() = Some(reply)),
        );
        place
    }

    fn ask<C: Command>(&mut self, command: C) -> C::Reply {
        let place = self.command(command);
        self.step();
        let reply = place.lock().unwrap().take();
        reply.expect("the reply comes with its step").expect("it is not refused")
    }

    /// The model answers what it has had long enough.
    fn answer_until(&mut self, now: i64) {
        let due: Vec<Attempt> = self.calls.extract_if(.., |(at, _)| *at <= now).map(|(_, attempt)| attempt).collect();
        for attempt in due {
            let failure =
                ModelFailure { code: FailureCode::ProviderError, message: "it failed".into(), spent: Vec::new() };
            let end = match self.rng.below(10) {
                0 => ModelEnd::Failed(failure),
                1 => ModelEnd::Aborted(answer(vec![])),
                _ => ModelEnd::Answered(answer(vec![Block::Text { text: "done".into() }])),
            };
            self.engine.outcome(ModelOutcome(attempt, end));
        }
    }

    fn beat(&mut self) {
        self.engine.beat();
        self.step();
        while self.engine.has_work() {
            if self.rng.rare(1_000) {
                return self.restart();
            }
            self.step();
        }
    }

    /// One step is committed: its records, its effects and its marks.
    fn step(&mut self) {
        let commit = self.engine.step();
        let marks = std::mem::take(&mut self.engine.ledger().0);
        let mut states = Vec::new();
        for op in commit.ops.into_iter().filter(|op| op.space == Space::World) {
            match (op.key[0], &op.value) {
                (b'd', Some(value)) => {
                    let record: ScheduleRecord = record::decode(&op.key, value).unwrap();
                    if let Some((_, oracle)) = self.schedules.get_mut(&record.id) {
                        oracle.anchored(record.anchored_at.0);
                    }
                }
                (b'e', Some(value)) => states.push(record::decode::<ScheduleStateRecord>(&op.key, value).unwrap()),
                _ => {}
            }
            match op.value {
                Some(value) => drop(self.stored.insert(op.key, value)),
                None => drop(self.stored.remove(&op.key)),
            }
        }
        for mark in marks {
            self.apply(mark);
        }
        for state in states {
            if let Some((_, oracle)) = self.schedules.get_mut(&state.id) {
                oracle.check(&state);
            }
        }
        for release in commit.releases {
            release();
        }
        for effect in commit.effects {
            if let Some(call) = effect.get::<ModelCall>() {
                let after = self.rng.pick(&[100, 2_000, 30_000, 5 * MINUTE, 3 * HOUR]);
                self.calls.push((self.now + after, call.attempt));
            } else if let Some(call) = effect.get::<SummaryCall>() {
                let written = Err("not here".to_owned());
                let end = SummaryEnd { usage: Usage::default(), written, calls: Vec::new() };
                self.engine.outcome(SummaryOutcome(call.attempt, end));
            } else if let Some(Abort(attempt)) = effect.get()
                && let Some((at, _)) = self.calls.iter_mut().find(|(_, out)| out == attempt)
            {
                *at = self.now;
            }
        }
    }

    fn apply(&mut self, mark: Mark) {
        let (Mark::Settled(id, ..) | Mark::Waits(id, _) | Mark::Taken(id, _)) = mark;
        let (_, oracle) = self.schedules.get_mut(&id).expect("a schedule of this fixture");
        match mark {
            Mark::Settled(_, outcome, last, count) => oracle.settle(outcome, last, count),
            Mark::Waits(_, slot) => oracle.waits(slot),
            Mark::Taken(_, slot) => oracle.take(slot),
        }
    }

    /// Killed, and started again.
    fn restart(&mut self) {
        self.restarts += 1;
        self.calls.clear();
        self.restore();
        self.count_anew();
        self.step();
    }

    fn restore(&mut self) {
        let mut records = Records::default();
        for (key, value) in &self.stored {
            records.read(key, value).unwrap();
        }
        let seed = self.rng.roll().to_le_bytes();
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed);
        self.engine = Engine::new(Settings::default(), bytes);
        self.engine.keep_ledger();
        self.engine.restore(records, Timestamp(self.now)).unwrap();
    }
}

impl Engine {
    fn keep_ledger(&mut self) {
        self.world_mut().init_resource::<Ledger>();
    }

    fn ledger(&mut self) -> bevy_ecs::prelude::Mut<'_, Ledger> {
        self.world_mut().resource_mut::<Ledger>()
    }
}
