//! Triggers: events against many of them, and one event that fires many: `cargo bench --bench all -- trigger_match`.
//!
//! The world runs in this process, on one thread, over a real store in a temporary directory. Nothing is sent to a model:
//! what asks for one is dropped. `AGENTSVC_BENCH_TRIGGERS` is the largest number of triggers, 1,000,000 unless set, and
//! `AGENTSVC_BENCH_TRIGGERS_LEAST` the smallest. The parts `matching` and `firing` can be asked for by name. What is
//! measured stands in two functions of its own, so that a profiler can be told to look at nothing else ([`Harness::meet`],
//! [`Harness::fire`]).

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::measure::{Profile, Row, goals, head, is_wanted, ms, size};
use agentsvc::kernel::store::Store;
use agentsvc::kernel::store::writer::{Outlets, Writer};
use agentsvc_components::event::Event;
use agentsvc_components::{AgentId, TaskId, Timestamp};
use agentsvc_systems::agent::{SpawnAgent, SpawnAgents};
use agentsvc_systems::event::parse_pattern;
use agentsvc_systems::trigger::{CreateTrigger, NewTrigger, TellEvents};
use agentsvc_systems::world::GetStats;
use agentsvc_systems::{Command, Engine, Records, ReplySlot, Settings, manifest};
use serde_json::{Value, json};
use uuid::Uuid;

/// Events of one step.
const EVENTS: usize = 10_000;
/// Of so many events one finds a trigger.
const HIT_EVERY: usize = 10;
/// Triggers of one agent.
const EACH: usize = 100;
/// Runs of each measurement; the median counts.
const RUNS: usize = 9;
/// Runs of the firing that a goal is for.
const FIRINGS: usize = 3;
/// The moment in which everything happens.
const NOW: Timestamp = Timestamp(1_700_000_000_000);

pub(crate) fn main() {
    head("trigger_match");
    let most = size("AGENTSVC_BENCH_TRIGGERS", 1_000_000, 10_000);
    let least = size("AGENTSVC_BENCH_TRIGGERS_LEAST", 0, 0);
    let counts = || [1_000, 10_000, 100_000, 1_000_000].into_iter().filter(|count| (least..=most).contains(count));
    let parts = [("matching", matching as fn(usize, bool)), ("firing", firing)];
    for (_, measure) in parts.into_iter().filter(|(part, _)| is_wanted(part)) {
        // The goal is for a hundred thousand; with small sizes the largest stands for it.
        counts().for_each(|count| measure(count, count == most.min(100_000)));
    }
}

/// A world of agents and its store.
struct Harness {
    engine: Engine,
    writer: Writer,
    agents: Vec<AgentId>,
    _home: tempfile::TempDir,
}

impl Harness {
    fn new(agents: usize) -> Self {
        let home = tempfile::tempdir().expect("a temporary directory");
        let store = Store::open(home.path().join("world")).expect("a store can be made");
        let fatal = Arc::new(|cause: String| panic!("{cause}"));
        let outlets = Outlets {
            effects: Arc::new(drop),
            told: Arc::new(drop),
            reopen: Arc::new(drop),
            fenced: Arc::new(|_| ()),
            fatal,
        };
        let writer = Writer::start(store, outlets).expect("a thread");
        let mut engine = Engine::new(Settings::default(), [7; 32]);
        engine.restore(Records::default(), NOW).expect("nothing is restored");
        let mut harness = Self { engine, writer, agents: Vec::new(), _home: home };
        let spawned = harness.ask(SpawnAgents((0..agents).map(agent).collect()));
        harness.agents = spawned.into_iter().map(|made| made.expect("a free name").agent).collect();
        harness
    }

    /// Carries a command out, without its step.
    fn ask<C: Command>(&mut self, command: C) -> C::Reply {
        let (answer, answered) = std::sync::mpsc::channel();
        self.engine.command(
            agentsvc_components::Actor::Api,
            command,
            ReplySlot::new(move |reply| drop(answer.send(reply))),
        );
        // A write is answered by its step.
        let reply = answered.try_recv().or_else(|_| {
            self.step();
            self.writer.queue().flush().expect("the store writes");
            answered.recv()
        });
        reply.expect("an answer").unwrap_or_else(|refusal| panic!("{refusal}"))
    }

    /// Lets a command wait for the next step.
    fn tell<C: Command>(&mut self, command: C) {
        self.engine.command(
            agentsvc_components::Actor::Api,
            command,
            ReplySlot::new(|reply| assert!(reply.is_ok(), "a command is carried out")),
        );
    }

    fn step(&mut self) -> Duration {
        let begun = Instant::now();
        let commit = self.engine.step_without_writing();
        let took = begun.elapsed();
        self.writer.queue().send(commit);
        took
    }

    /// Steps until nothing waits, and until all of it is on disk; gives the steps.
    fn drain(&mut self) -> usize {
        let mut steps = 1;
        self.step();
        while self.engine.has_work() {
            self.step();
            steps += 1;
        }
        self.writer.queue().flush().expect("the store writes");
        steps
    }

    /// The step in which events meet the triggers.
    #[inline(never)]
    fn meet(&mut self) -> Duration {
        self.step()
    }

    /// Steps until nothing waits and all is on disk. Gives the steps, the longest, and when all was queued and durable.
    #[inline(never)]
    fn fire(&mut self) -> (usize, Duration, Duration, Duration) {
        let begun = Instant::now();
        let (mut steps, mut longest) = (1, self.step());
        while self.engine.has_work() {
            longest = longest.max(self.step());
            steps += 1;
        }
        let queued = begun.elapsed();
        self.writer.queue().flush().expect("the store writes");
        (steps, longest, queued, begun.elapsed())
    }

    /// Makes `count` triggers.
    fn triggers(&mut self, count: usize, new: impl Fn(usize) -> NewTrigger) {
        for n in 0..count {
            let agent = self.agents[n / EACH % self.agents.len()];
            self.tell(CreateTrigger { agent, trigger: new(n) });
            if n % 1_000 == 999 {
                self.drain();
            }
        }
        self.drain();
    }
}

/// The n-th agent.
fn agent(n: usize) -> SpawnAgent {
    let text = format!("name = \"agent-{n}\"");
    let parsed = manifest::parse(&text).expect("a manifest");
    let hash = manifest::hash(&parsed.manifest);
    SpawnAgent { name: parsed.name, manifest: parsed.manifest, hash, text }
}

fn trigger(pattern: &Value) -> NewTrigger {
    NewTrigger {
        pattern: parse_pattern(pattern).expect("a pattern"),
        prompt_template: "Look: {{event}}".into(),
        enabled: true,
        max_fires: 0,
        cooldown_secs: Some(0),
        session_mode: None,
        target: None,
    }
}

/// The n-th of patterns of every sort: names, heads and pieces of names, types, assignees, words.
fn mixed(n: usize) -> NewTrigger {
    let pattern = match n % 10 {
        0 | 1 => json!({ "agent_spawned": { "name_pattern": format!("web-{n}") } }),
        2 | 3 => json!({ "agent_terminated": { "name_pattern": format!("team-{n}-*") } }),
        4 => json!({ "agent_spawned": { "name_pattern": format!("*-{n}-x") } }),
        5 | 6 => json!({ "custom": { "event_type": format!("type-{n}") } }),
        7 => json!({ "content_match": { "substring": format!("order {n} ") } }),
        8 => json!({ "task_posted": { "assignee_match": format!("worker-{n}") } }),
        _ if n < 100 => json!({ "budget_exceeded": {} }),
        _ => json!({ "turn_completed": { "name_pattern": format!("h{n}-[a-z]*") } }),
    };
    // What is found is counted and no more: this measures the finding.
    NewTrigger { enabled: false, ..trigger(&pattern) }
}

/// The n-th of events of every sort; of [`HIT_EVERY`] one finds a trigger.
fn event(n: usize, triggers: usize) -> Event {
    let (by, agent) = (None, AgentId(Uuid::from_u128(n as u128)));
    // A number that a trigger has, or one that none has; of the sort that event and trigger share.
    let number = |sort: usize| {
        let at = n.wrapping_mul(7_919) % (triggers / 10).max(1) * 10 + sort;
        if n.is_multiple_of(HIT_EVERY) { at } else { at + triggers }
    };
    match n / HIT_EVERY % 6 {
        0 => Event::AgentSpawned { agent, name: format!("web-{}", number(0)), by },
        1 => Event::AgentTerminated { agent, name: format!("team-{}-7", number(2)), by },
        2 => Event::AgentSpawned { agent, name: format!("db-{}-x", number(4)), by },
        3 => Event::Custom { event_type: format!("type-{}", number(5)), agent: None, payload: "{}".into(), by },
        4 => {
            let payload = format!("the parcel of order {} has left the harness", number(7)).into();
            Event::Custom { event_type: "parcel".into(), agent: None, payload, by }
        }
        _ => Event::TaskPosted {
            task: TaskId(Uuid::from_u128(n as u128)),
            title: "sweep".into(),
            description: "".into(),
            assignee: Some(format!("worker-{}", number(8))),
            assignee_id: None,
            by,
        },
    }
}

/// Many events in one step against so many mixed triggers.
fn matching(count: usize, is_goal: bool) {
    let mut harness = Harness::new(count.div_ceil(EACH).min(1_000));
    harness.triggers(count, mixed);
    let mut times = Vec::new();
    let mut found = 0;
    for _ in 0..RUNS {
        let before = harness.ask(GetStats).trigger_totals.outcomes;
        harness.tell(TellEvents((0..EVENTS).map(|n| event(n, count)).collect()));
        times.push(harness.meet());
        harness.drain();
        let after = harness.ask(GetStats).trigger_totals.outcomes;
        let disabled = agentsvc_components::trigger::FireOutcome::Disabled;
        found = after.of(disabled) - before.of(disabled);
    }
    times.sort_unstable();
    let (median, least) = (times[times.len() / 2], times[0]);
    let what = format!("{EVENTS} events against {count} mixed triggers, one step, {found} matches");
    let row = Row::new(what, format!("median {}, least {}", ms(median), ms(least)));
    let row = if is_goal { row.goal(&goals::MATCHING, median <= Duration::from_millis(10)) } else { row };
    row.print();
    // Before its directory goes, so that it leaves nothing there.
    harness.writer.stop();
}

/// One event that fires so many triggers; judged by the median of runs in fresh harnesses.
fn firing(count: usize, is_goal: bool) {
    let runs = if is_goal { FIRINGS } else { 1 };
    let mut fired: Vec<Fired> = (0..runs).map(|run| fire_all(count, is_goal && run == 0)).collect();
    fired.sort_unstable_by_key(|fired| fired.took);
    let (least, most) = (fired[0].took, fired[runs - 1].took);
    let Fired { steps, longest, queued, took } = fired.swap_remove(runs / 2);
    let each = took.as_secs_f64() * 1e6 / count as f64;
    let result =
        format!("{} ({} queued, {each:.2} us each), {steps} steps, longest {}", ms(took), ms(queued), ms(longest));
    let row = Row::new(format!("one event fires {count} triggers: matched, durable, queued"), result);
    let row = if is_goal {
        row.beside(format!("median of {runs}, from {} to {}", ms(least), ms(most)))
            .goal(&goals::FIRING, took <= Duration::from_millis(300))
    } else {
        row
    };
    row.print();
}

/// What one event that fires many triggers took.
struct Fired {
    steps: usize,
    /// The longest step.
    longest: Duration,
    /// Until all was queued.
    queued: Duration,
    /// Until all was durable.
    took: Duration,
}

/// Fires so many triggers once, in a harness of its own.
fn fire_all(count: usize, is_profiled: bool) -> Fired {
    let mut harness = Harness::new(count.div_ceil(EACH));
    harness.triggers(count, |_| trigger(&json!({ "custom": { "event_type": "signal" } })));
    let event = Event::Custom { event_type: "signal".into(), agent: None, payload: "{}".into(), by: None };
    harness.tell(TellEvents(vec![event]));
    let profile = is_profiled.then(|| Profile::of(std::process::id(), "firing"));
    let (steps, longest, queued, took) = harness.fire();
    drop(profile);
    let stats = harness.ask(GetStats);
    assert_eq!(stats.turns_open, count, "every trigger has its turn");
    harness.writer.stop();
    Fired { steps, longest, queued, took }
}
