//! Forks in virtual time. The harness below has schedules and triggers of every kind, budgets, failures, tools that need
//! approval and turns that take long; it is run by jumps and by beats, and both must come to exactly the same.
//!
//! `AGENTSVC_REHEARSAL_SCHEDULES` (240) and `AGENTSVC_REHEARSAL_HOURS` (30) make it larger,
//! `AGENTSVC_REHEARSAL_TICK_MS` (1000) sets the grid.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::ControlFlow;

use agentsvc_api::rehearsal::runs::{FireRange, Injected, InjectedKind};
use agentsvc_components::event::Event;
use agentsvc_components::kernel::record::Space;
use agentsvc_components::schedule::{MissedPolicy, OverlapPolicy, ScheduleKind};
use agentsvc_components::usage::price::Price;
use agentsvc_components::{Actor, AgentId, Micros, Timestamp};
use agentsvc_systems::agent::SpawnAgent;
use agentsvc_systems::config::prices::Prices;
use agentsvc_systems::event::parse_pattern;
use agentsvc_systems::kernel::record;
use agentsvc_systems::rehearsal::Note;
use agentsvc_systems::schedule::{CreateSchedule, NewSchedule};
use agentsvc_systems::trigger::{CreateTrigger, NewTrigger};
use agentsvc_systems::{Command, Engine, Records, ReplySlot, Settings, manifest};
use serde_json::{Value, json};

use super::collect::{Collector, Ending};
use super::directory::{self, Directory};
use super::fork::{Fork, Pace, Step, Watcher};
use super::history::{PlayedCall, PlayedTool, PlayedTurn};
use super::script::Script;
use super::spool::{Listing, Spool};
use crate::kernel::store::load;

/// 2026-03-06T00:00:00Z, a Friday; clocks change in New York on Sunday.
const BEGIN: Timestamp = Timestamp(1_772_755_200_000);
const HOUR: i64 = 3_600_000;
/// Between the making of the harness and the fork: slots are missed.
const LATE: i64 = 7 * HOUR;

fn env(name: &str, default: i64) -> i64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn settings() -> Settings {
    let mut prices = Prices::default();
    let price = Price { input_per_m: Micros(3_000_000), output_per_m: Micros(15_000_000), ..Price::default() };
    prices.set("builtin", "builtin", price);
    let mut settings = Settings { prices, ..Settings::default() };
    settings.require_approval = vec!["launch".into()];
    settings.approval_timeout_ms = 20 * 60_000;
    settings.provider_calls = 20;
    settings.context_tokens.insert("builtin".into(), 8_000);
    settings.budget.answer_tokens_max = 500;
    settings
}

/// A world that commands build; what it stores is kept as rows.
struct Harness {
    engine: Engine,
    rows: BTreeMap<(u8, Vec<u8>), Vec<u8>>,
    agents: Vec<AgentId>,
}

impl Harness {
    fn new() -> Self {
        let mut engine = Engine::new(settings(), [7; 32]);
        engine.restore(Records::default(), BEGIN).unwrap();
        Self { engine, rows: BTreeMap::new(), agents: Vec::new() }
    }

    fn ask<C: Command>(&mut self, command: C) -> C::Reply {
        let (sender, receiver) = std::sync::mpsc::channel();
        self.engine.command(Actor::Api, command, ReplySlot::new(move |reply| drop(sender.send(reply))));
        let commit = self.engine.step();
        for op in commit.ops {
            let key = (u8::from(op.space == Space::Content), op.key);
            match op.value {
                Some(value) => drop(self.rows.insert(key, value)),
                None => drop(self.rows.remove(&key)),
            }
        }
        commit.releases.into_iter().for_each(|release| release());
        receiver.recv().unwrap().unwrap()
    }

    fn records(&self) -> Records {
        let rows = self.rows.iter().filter(|((space, _), _)| *space == 0);
        load::from_rows(rows.map(|((_, key), value)| Ok::<_, record::Error>((key.clone(), value.clone())))).unwrap()
    }

    fn agent(&mut self, text: &str) -> AgentId {
        let parsed = manifest::parse(text).unwrap();
        let hash = manifest::hash(&parsed.manifest);
        let spawn = SpawnAgent { name: parsed.name, manifest: parsed.manifest, hash, text: text.to_owned() };
        let agent = self.ask(spawn).agent;
        self.agents.push(agent);
        agent
    }

    fn schedule(&mut self, n: usize, agent: AgentId, rule: &str) {
        let missed = [MissedPolicy::One, MissedPolicy::All, MissedPolicy::Skip][n % 3];
        let overlap = [OverlapPolicy::Queue, OverlapPolicy::Skip, OverlapPolicy::Parallel][n / 3 % 3];
        let kind = if n.is_multiple_of(4) { ScheduleKind::Cron } else { ScheduleKind::Schedule };
        let zone = ["America/New_York", "Asia/Kolkata", "UTC"][n % 3];
        let new = NewSchedule {
            kind,
            agent,
            name: (kind == ScheduleKind::Cron).then(|| format!("job-{n}").into()),
            rule: rule.into(),
            timezone: (!rule.starts_with("every") && !rule.starts_with("in")).then(|| zone.into()),
            prompt: format!("do {n}").into(),
            enabled: true,
            missed,
            overlap,
            session_mode: None,
        };
        self.ask(CreateSchedule { new, by_tool: false });
    }

    fn trigger(&mut self, agent: AgentId, pattern: &Value, cooldown_secs: u32, max_fires: u64) {
        let trigger = NewTrigger {
            pattern: parse_pattern(pattern).unwrap(),
            prompt_template: "look: {{event}}".into(),
            enabled: true,
            max_fires,
            cooldown_secs: Some(cooldown_secs),
            session_mode: None,
            target: None,
        };
        self.ask(CreateTrigger { agent, trigger });
    }

    /// Agents, one with a small budget and one that is stopped, schedules of every kind, and triggers that follow from
    /// their turns and from each other.
    fn furnished(schedules: usize) -> Self {
        let mut harness = Self::new();
        let count = (schedules / 8).max(6);
        for n in 0..count {
            // One comes near its limit step by step, the others have none left at once.
            let limits = match n {
                1 => "[limits]\ndaily_limit_usd = 0.2\n",
                _ if n % 5 == 1 => "[limits]\ndaily_limit_usd = 0.08\n",
                _ => "",
            };
            harness.agent(&format!("name = \"a-{n}\"\nsystem_prompt = \"You do things.\"\n{limits}"));
        }
        let agents = harness.agents.clone();
        for n in 0..schedules {
            let agent = agents[n % count];
            let rule = match n % 10 {
                0 => format!("{} * * * *", n % 60),
                1 => format!("{} {} * * *", n % 60, n % 24),
                2 => "30 1,2 * * *".to_owned(),
                3 => format!("{} 9 * * MON-FRI", n % 60),
                4 => format!("every {}m", 7 + n % 40),
                5 => format!("every {}s", 45 + n % 60),
                6 => format!("in {}h", 1 + n % 30),
                7 => "@hourly".to_owned(),
                8 => format!("{} */{} * * *", n % 60, 2 + n % 5),
                _ => "0 0 1 * *".to_owned(),
            };
            // Slots by the minute are few, or the night is full of nothing else.
            let rule = if n % 10 == 5 && n > 60 { format!("every {}h", 1 + n % 9) } else { rule };
            harness.schedule(n, agent, &rule);
        }
        harness.trigger(agents[0], &json!({ "turn_completed": { "name_pattern": "a-2" } }), 600, 0);
        harness.trigger(agents[3], &json!({ "turn_completed": { "name_pattern": "a-[03]" } }), 0, 0);
        harness.trigger(agents[4], &json!({ "turn_failed": {} }), 60, 20);
        harness.trigger(agents[5], &json!({ "cron_fired": {} }), 300, 0);
        harness.trigger(agents[2], &json!({ "budget_exceeded": {} }), 0, 3);
        harness.trigger(agents[1], &json!({ "custom": { "event_type": "alarm" } }), 0, 0);
        harness
    }
}

/// What the agents' turns are like: short ones, long ones, failures, tools, one of which needs approval.
fn turns(agents: &[AgentId]) -> HashMap<AgentId, Vec<PlayedTurn>> {
    let call = |latency_ms: u32| PlayedCall { input: 3_000, output: 300, latency_ms, ..PlayedCall::default() };
    let tool = |name: &str, duration_ms: u32| PlayedTool { name: name.into(), duration_ms, failed: false };
    let turn = |calls: Vec<PlayedCall>| PlayedTurn { calls, text: Some("done".into()) };
    let mut first = call(900);
    first.tools = vec![tool("look", 70), tool("read", 1_900)];
    let mut gated = call(400);
    gated.tools = vec![tool("launch", 10)];
    let all = vec![
        turn(vec![call(130)]),
        turn(vec![call(95_000)]),
        turn(vec![first, call(2_345)]),
        turn(vec![PlayedCall { failed: true, ..call(777) }]),
        turn(vec![gated, call(50)]),
        turn(vec![call(260_000)]),
    ];
    agents.iter().enumerate().filter(|(n, _)| n % 4 != 3).map(|(_, agent)| (*agent, all.clone())).collect()
}

fn injected(harness: &Harness, from: Timestamp) -> Vec<Injected> {
    let at = |minutes: i64| from.plus_ms(minutes * 60_000 + 17);
    let custom = InjectedKind::Custom { event_type: "alarm".into(), payload: "{}".into(), agent: None };
    let message = |agent: AgentId| InjectedKind::Message { agent, text: "hello".into() };
    vec![
        Injected { at: at(500), what: custom.clone() },
        Injected { at: at(3), what: message(harness.agents[2]) },
        Injected { at: at(500), what: custom },
        Injected { at: at(4), what: message(AgentId(uuid::Uuid::from_u128(5))) },
    ]
}

/// Notes everything, and counts steps.
#[derive(Default)]
struct Everything {
    lines: Vec<String>,
    notes: Vec<(Timestamp, Note)>,
    events: Vec<Event>,
    steps: usize,
}

impl Watcher for Everything {
    fn step(&mut self, step: Step, _: &mut Engine) -> ControlFlow<()> {
        self.steps += 1;
        for note in step.notes {
            self.lines.push(format!("{} {note:?}", step.now));
            self.notes.push((step.now, note));
        }
        for happened in step.events {
            self.lines.push(format!("{} {happened:?}", step.now));
            self.events.push(happened.event);
        }
        ControlFlow::Continue(())
    }
}

fn fork(harness: &Harness, seed: u64, tick_ms: i64) -> Fork {
    let from = BEGIN.plus_ms(LATE);
    let script = Script::recorded(&settings(), seed, turns(&harness.agents));
    Fork::new(settings(), harness.records(), from, seed, script)
        .unwrap()
        .with_tick(tick_ms)
        .with_events(injected(harness, from))
}

#[test]
fn jumps_and_beats_come_to_exactly_the_same() {
    let schedules = usize::try_from(env("AGENTSVC_REHEARSAL_SCHEDULES", 240)).unwrap();
    let until = BEGIN.plus_ms(LATE + env("AGENTSVC_REHEARSAL_HOURS", 30) * HOUR);
    let tick_ms = env("AGENTSVC_REHEARSAL_TICK_MS", 1_000);
    let harness = Harness::furnished(schedules);
    let runs = [Pace::Jump, Pace::Beat].map(|pace| {
        let (mut fork, mut all) = (fork(&harness, 4, tick_ms), Everything::default());
        fork.run(until, pace, &mut all);
        assert_eq!((fork.fate().told, fork.fate().refused.len()), (3, 1));
        assert_eq!(fork.fate().refused[0].0, 3, "the agent does not exist");
        (all, fork.engine().stats())
    });
    let [(jumped, jumped_stats), (beaten, beaten_stats)] = runs;
    for (one, other) in jumped.lines.iter().zip(&beaten.lines) {
        assert_eq!(one, other);
    }
    assert_eq!(jumped.lines.len(), beaten.lines.len());
    assert_eq!(format!("{jumped_stats:?}"), format!("{beaten_stats:?}"));
    assert!(jumped.steps < beaten.steps / 2, "{} of {} steps", jumped.steps, beaten.steps);
    // Everything that makes a difference came up, or the test would say little.
    let mut words = BTreeSet::new();
    for (_, note) in &jumped.notes {
        match note {
            Note::Slot { outcome, count, .. } => {
                words.insert(format!("slot {}", outcome.as_str()));
                words.extend((*count > 1).then(|| "slots together".to_owned()));
            }
            Note::SlotWaits { .. } => drop(words.insert("slot waits".to_owned())),
            Note::Match { outcome, .. } => drop(words.insert(format!("match {}", outcome.as_str()))),
            Note::Ended { over_budget: true, .. } => drop(words.insert("turn over budget".to_owned())),
            Note::Ended { .. } | Note::Call { .. } => {}
        }
    }
    words.extend(jumped.events.iter().map(|event| event.kind().as_str().to_owned()));
    for word in [
        "slot fired",
        "slot missed",
        "slot overlapped",
        "slot over_budget",
        "slots together",
        "slot waits",
        "match fired",
        "match cooling_down",
        "match exhausted",
        "match too_deep",
        "turn_failed",
        "tool_called",
        "budget_warning",
        "budget_exceeded",
        "approval_requested",
        "approval_resolved",
        "custom",
    ] {
        assert!(words.contains(word), "{word} did not come up: {words:?}");
    }
}

#[test]
fn the_seed_decides() {
    let harness = Harness::furnished(60);
    let until = BEGIN.plus_ms(LATE + 5 * HOUR);
    let lines = |seed: u64| {
        let (mut fork, mut all) = (fork(&harness, seed, 50), Everything::default());
        fork.run(until, Pace::Jump, &mut all);
        all.lines
    };
    assert_eq!(lines(1), lines(1));
    assert_ne!(lines(1), lines(2));
}

#[test]
fn idle_time_costs_nothing() {
    let mut harness = Harness::new();
    let agent = harness.agent("name = \"a\"\n");
    harness.schedule(3, agent, "0 12 1 * *");
    let mut fork = Fork::new(settings(), harness.records(), BEGIN, 1, Script::builtin(&settings())).unwrap();
    let mut all = Everything::default();
    fork.run(BEGIN.plus_ms(365 * 24 * HOUR), Pace::Jump, &mut all);
    let fired = all.events.iter().filter(|event| matches!(event, Event::ScheduleFired { .. })).count();
    assert_eq!(fired, 12);
    // One for each day, and a few for each fire.
    assert!(all.steps < 365 + 12 * 4 + 5, "{} steps", all.steps);
}

#[test]
fn a_report_agrees_with_its_list() {
    let harness = Harness::furnished(120);
    let (from, until) = (BEGIN.plus_ms(LATE), BEGIN.plus_ms(LATE + 24 * HOUR));
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.fires");
    let records = harness.records();
    let collector = || {
        let spool = Spool::create(&path).unwrap();
        Collector::new(Directory::of(&records), HashMap::new(), directory::waiting(&records), spool, (from, until))
    };
    let (mut fork_, mut all) = (fork(&harness, 9, 50), collector());
    fork_.run(until, Pace::Jump, &mut all);
    let open = fork_.engine().stats().turns_open as u64;
    let ending = Ending { until, took: std::time::Duration::from_secs(1), open, fate: fork_.fate() };
    let (report, rows, reasons, directory) = all.finish(ending).unwrap();
    let listing = Listing { path, rows, reasons, directory };
    let mut counted: BTreeMap<&str, u64> = BTreeMap::new();
    let (mut after, mut queued, mut lines) = (Some(0), 0, 0);
    let mut last = from;
    while let Some(at) = after {
        let page = listing.page(FireRange { after: at, limit: 1_000, outcome: None }).unwrap();
        for fire in &page.fires {
            *counted.entry(fire.outcome).or_default() += u64::from(fire.count);
            queued += u64::from(fire.queued && fire.outcome != "waiting");
            assert!(fire.fired_at >= last && fire.nominal_at <= fire.fired_at, "{fire:?}");
            assert!(fire.agent_name.starts_with("a-") && (fire.kind == "cron") == fire.name.is_some(), "{fire:?}");
            assert_eq!((fire.kind == "trigger"), fire.event.is_some());
            last = fire.fired_at;
        }
        lines += page.fires.len() as u64;
        after = page.next;
    }
    assert_eq!((report.outcomes.0.clone(), report.fires_listed), (counted.clone(), lines));
    assert_eq!(report.overlaps.queued, queued);
    assert!(queued > 0 && report.overlaps.skipped == counted["overlapped"] && report.overlaps.longest_wait_secs > 0.0);
    let fired = counted["fired"];
    let skipped: u64 = counted.iter().filter(|(word, _)| !matches!(**word, "fired" | "waiting")).map(|(_, n)| n).sum();
    assert_eq!(report.skips.iter().map(|skip| skip.count).sum::<u64>(), skipped);
    assert_eq!(
        report.sources.iter().map(|source| source.outcomes.0.values().sum::<u64>()).sum::<u64>(),
        counted.values().sum::<u64>()
    );
    assert_eq!(report.agents.iter().map(|agent| agent.fires).sum::<u64>(), fired);
    let buckets = &report.timeline.buckets;
    assert_eq!(buckets.iter().map(|bucket| bucket.fires).sum::<u64>(), fired);
    assert_eq!(buckets.iter().map(|bucket| bucket.skips).sum::<u64>(), skipped);
    let cost: f64 = buckets.iter().map(|bucket| bucket.cost_usd).sum();
    assert!((cost - report.cost.rehearsed_usd).abs() < 1e-6 && cost > 0.0);
    assert!(report.cost.low_usd < report.cost.forecast_usd && report.cost.forecast_usd < report.cost.high_usd);
    let ended = report.turns.completed + report.turns.failed + report.turns.over_budget;
    assert_eq!(buckets.iter().map(|bucket| bucket.turns).sum::<u64>(), ended);
    assert!(
        report.budgets.iter().any(|line| line.limit_usd == Some(0.08) || line.limit_usd == Some(0.2)),
        "{:?}",
        report.budgets
    );
    assert!(report.approvals.requested > 0 && !report.approvals.items.is_empty());
    assert!(report.busiest_minute.is_some_and(|minute| minute.fires > 1));
    assert_eq!((report.events.told, report.events.refused.len()), (3, 1));
}
