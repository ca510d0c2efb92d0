//! What a beat costs as agents, triggers and schedules grow in number, and how long a second takes in which many
//! schedules are due: `cargo bench --bench all -- world_tick`. The world runs in this process, without a disk and without a model.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::measure::{Row, goals, head, ms, percentile, size};
use agentsvc_components::event::Event;
use agentsvc_components::schedule::{MissedPolicy, OverlapPolicy, ScheduleKind};
use agentsvc_components::{AgentId, ScheduleId, Timestamp};
use agentsvc_systems::agent::SpawnAgent;
use agentsvc_systems::event::parse_pattern;
use agentsvc_systems::event::told::events_of;
use agentsvc_systems::schedule::{CreateSchedule, NewSchedule};
use agentsvc_systems::trigger::{CreateTrigger, NewTrigger};
use agentsvc_systems::{Command, Engine, Records, ReplySlot, Settings, manifest};
use serde_json::json;

/// 2026-01-02T00:00:00Z.
const BEGIN: i64 = 1_767_312_000_000;
const HOUR: i64 = 3_600_000;
/// How many of each there are, one after the other.
const SIZES: [usize; 4] = [1_000, 10_000, 100_000, 1_000_000];
/// Schedules that are due in the same second, at most.
const DUE: usize = 10_000;
/// Beats of one measurement.
const BEATS: usize = 2_000;

pub(crate) fn main() {
    head("world_tick");
    measured();
    let most = size("AGENTSVC_BENCH_AGENTS", 1_000_000, 10_000);
    let mut harness = Harness::new();
    for (at, size) in SIZES.into_iter().filter(|size| *size <= most).enumerate() {
        let due = DUE.min(size / 10);
        // The largest answers the project's goals; the others show that it is not the number that costs.
        let is_goal = size == most;
        // Each size has its second: an hour after the one before.
        harness.grow(size, due, BEGIN + (at as i64 + 1) * HOUR);
        harness.quiet(size, is_goal);
        harness.busy(size, due, BEGIN + (at as i64 + 1) * HOUR, is_goal);
    }
}

/// What it costs a step of an idle world that its systems are timed.
fn measured() {
    let step = |is_timed: bool| {
        let (mut harness, start) = (Harness::new(), Instant::now());
        if is_timed {
            harness.engine.time_systems(Arc::new(move || start.elapsed()));
        }
        let rounds = (0..20).map(|_| {
            let begun = Instant::now();
            for _ in 0..BEATS {
                harness.engine.set_now(Timestamp(harness.now));
                harness.engine.step();
            }
            begun.elapsed() / BEATS as u32
        });
        rounds.min().unwrap_or_default()
    };
    let (plain, timed) = (step(false), step(true));
    Row::new("a step of an idle world, its systems timed", ms(timed))
        .beside(format!("{} not timed", ms(plain)))
        .print();
}

/// A world that grows.
struct Harness {
    engine: Engine,
    now: i64,
    agents: Vec<AgentId>,
}

impl Harness {
    fn new() -> Self {
        let mut engine = Engine::new(Settings::default(), [7; 32]);
        engine.restore(Records::default(), Timestamp(BEGIN)).expect("an empty world is restored");
        Self { engine, now: BEGIN, agents: Vec::new() }
    }

    /// Lets there be `size` agents, each with a trigger and a schedule, `due` of them due at `moment` and the others not
    /// this year.
    fn grow(&mut self, size: usize, due: usize, moment: i64) {
        let begun = Instant::now();
        for n in self.agents.len()..size {
            let spawned = self.ask(spawn(n));
            self.agents.push(spawned.agent);
            let left = size - n;
            let rule = if left <= due {
                format!("at {}", Timestamp(moment))
            } else {
                format!("{} {} * 12 *", n % 60, n / 60 % 24)
            };
            self.ask(CreateSchedule { new: schedule(spawned.agent, rule), by_tool: false });
            self.ask(CreateTrigger { agent: spawned.agent, trigger: trigger(n) });
        }
        let took = format!("{:.1} s", begun.elapsed().as_secs_f64());
        Row::new(format!("{size} agents, triggers and schedules: made"), took).print();
    }

    /// Beats with nothing due, each with its step.
    fn quiet(&mut self, size: usize, is_goal: bool) {
        let mut times: Vec<Duration> = (0..BEATS).map(|_| self.beat().0).collect();
        times.sort_unstable();
        let (p50, p99) = (percentile(&times, 0.5), percentile(&times, 0.99));
        let result = format!("p50 {}, p99 {}", us(p50), us(p99));
        let row = Row::new(format!("beat with {size} agents, triggers and schedules, nothing due"), result);
        let is_met = p99 <= Duration::from_micros(200);
        let row = if is_goal { row.goal(&goals::QUIET_BEAT, is_met) } else { row.bound("<= 0.2 ms", is_met) };
        row.print();
    }

    /// One second in which `due` schedules are due: beats and steps until nothing is left.
    fn busy(&mut self, size: usize, due: usize, moment: i64, is_goal: bool) {
        self.now = moment;
        let begun = Instant::now();
        let (first, events) = self.beat();
        let mut steps = vec![first];
        let mut fired: BTreeMap<ScheduleId, usize> = BTreeMap::new();
        count(events, &mut fired);
        while self.engine.has_work() {
            let step = Instant::now();
            let commit = self.engine.step();
            steps.push(step.elapsed());
            count(commit.told.into_iter().flat_map(events_of).map(|happened| happened.event).collect(), &mut fired);
        }
        let all = begun.elapsed();
        let longest = steps.iter().max().copied().unwrap_or_default();
        let exact = fired.len() == due && fired.values().all(|times| *times == 1);
        let result =
            format!("{} in {} steps, the longest {}; all in {}", fired.len(), steps.len(), ms(longest), ms(all));
        let is_met = exact && longest <= Duration::from_millis(20);
        let row = Row::new(format!("{due} of {size} schedules due in the same second, each fires once"), result);
        let row = if is_goal { row.goal(&goals::DUE, is_met) } else { row.bound("longest step <= 20 ms", is_met) };
        row.print();
    }

    /// One beat and its step; how long they took, and what happened.
    fn beat(&mut self) -> (Duration, Vec<Event>) {
        self.now += 1;
        let begun = Instant::now();
        self.engine.set_now(Timestamp(self.now));
        self.engine.beat();
        let commit = self.engine.step();
        (begun.elapsed(), commit.told.into_iter().flat_map(events_of).map(|happened| happened.event).collect())
    }

    /// Carries out a command that answers at the end of its step; closes the step.
    fn ask<C: Command>(&mut self, command: C) -> C::Reply {
        let (sender, receiver) = std::sync::mpsc::channel();
        self.engine.command(
            agentsvc_components::Actor::Api,
            command,
            ReplySlot::new(move |reply| drop(sender.send(reply))),
        );
        for release in self.engine.step().releases {
            release();
        }
        receiver.recv().expect("the reply comes with its step").expect("nothing is wrong with it")
    }
}

fn count(events: Vec<Event>, fired: &mut BTreeMap<ScheduleId, usize>) {
    for event in events {
        if let Event::ScheduleFired { schedule, .. } = event {
            *fired.entry(schedule).or_default() += 1;
        }
    }
}

fn spawn(n: usize) -> SpawnAgent {
    let text = format!("name = \"agent-{n}\"\n");
    let parsed = manifest::parse(&text).expect("a manifest");
    let hash = manifest::hash(&parsed.manifest);
    SpawnAgent { name: parsed.name, manifest: parsed.manifest, hash, text }
}

fn schedule(agent: AgentId, rule: String) -> NewSchedule {
    NewSchedule {
        kind: ScheduleKind::Schedule,
        agent,
        name: None,
        rule: rule.into(),
        timezone: None,
        prompt: "What is there to do?".into(),
        enabled: true,
        missed: MissedPolicy::default(),
        overlap: OverlapPolicy::default(),
        session_mode: None,
    }
}

/// A trigger that nothing of this program finds.
fn trigger(n: usize) -> NewTrigger {
    let pattern = match n % 3 {
        0 => json!({ "agent_spawned": { "name_pattern": format!("other-{n}") } }),
        1 => json!({ "custom": { "event_type": format!("type-{n}") } }),
        _ => json!({ "task_posted": { "assignee_match": "self" } }),
    };
    NewTrigger {
        pattern: parse_pattern(&pattern).expect("a pattern"),
        prompt_template: "Look: {{event}}".into(),
        enabled: true,
        max_fires: 0,
        cooldown_secs: None,
        session_mode: None,
        target: None,
    }
}

/// Microseconds with one digit behind the point.
fn us(time: Duration) -> String {
    format!("{:.1} us", time.as_secs_f64() * 1e6)
}
