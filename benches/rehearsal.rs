//! How long a week of many schedules takes to rehearse: `cargo bench --bench all -- rehearsal`. The world is made by commands in
//! this process, its records are read back as a rehearsal reads them, and the fork runs with the report and the list of
//! fires, as behind the route.
//!
//! The mix of rules, one agent for each schedule: 2 % hourly, 8 % every four or six hours, 55 % once a day at an hour of
//! their own, 10 % on weekdays at nine (by four time zones), 25 % once a week. That is about 14 fires a schedule and week.

use std::collections::{BTreeMap, HashMap};
use std::time::Instant;

use crate::measure::{Row, head, size};
use agentsvc::kernel::store::load::from_rows;
use agentsvc::rehearsal::collect::{Collector, Ending};
use agentsvc::rehearsal::directory::{self, Directory};
use agentsvc::rehearsal::fork::{Fork, Pace};
use agentsvc::rehearsal::script::Script;
use agentsvc::rehearsal::spool::Spool;
use agentsvc_components::kernel::record::Space;
use agentsvc_components::schedule::{MissedPolicy, OverlapPolicy, ScheduleKind};
use agentsvc_components::{Actor, AgentId, Timestamp};
use agentsvc_systems::agent::SpawnAgent;
use agentsvc_systems::kernel::record;
use agentsvc_systems::schedule::{CreateSchedule, NewSchedule};
use agentsvc_systems::{Command, Engine, Records, ReplySlot, Settings, manifest};

/// 2026-01-02T00:00:00Z.
const BEGIN: Timestamp = Timestamp(1_767_312_000_000);
const DAY: i64 = 86_400_000;

pub(crate) fn main() {
    head("rehearsal");
    let schedules = size("AGENTSVC_BENCH_SCHEDULES", 100_000, 5_000);
    let days = size("AGENTSVC_BENCH_DAYS", 7, 7) as i64;
    let rows = harness(schedules);
    let begun = Instant::now();
    let stored = rows.iter().map(|(key, value)| Ok::<_, record::Error>((key.clone(), value.clone())));
    let records = from_rows(stored).expect("what was stored can be read");
    let until = BEGIN.plus_ms(days * DAY);
    let dir = tempfile::tempdir().expect("a directory");
    let spool = Spool::create(&dir.path().join("week.fires")).expect("a file");
    let (names, waiting) = (Directory::of(&records), directory::waiting(&records));
    let mut collector = Collector::new(names, HashMap::new(), waiting, spool, (BEGIN, until));
    let mut fork = Fork::new(Settings::default(), records, BEGIN, 1, Script::builtin(&Settings::default()))
        .expect("a whole world");
    let restored = begun.elapsed();
    fork.run(until, Pace::Jump, &mut collector);
    let ran = begun.elapsed();
    let open = fork.engine().stats().turns_open as u64;
    let ending = Ending { until, took: ran, open, fate: fork.fate() };
    let (report, lines, ..) = collector.finish(ending).expect("a report");
    let took = begun.elapsed();
    let fired = report.outcomes.0.get("fired").copied().unwrap_or_default();
    let rate = fired as f64 / took.as_secs_f64();
    assert_eq!(fired, report.turns.completed, "every fire has its turn");
    let result = format!(
        "{:.1} s, {fired} fires in {lines} lines, {rate:.0} fires/s ({:.1} s of it to restore)",
        took.as_secs_f64(),
        restored.as_secs_f64()
    );
    let what = format!("rehearsal of {days} days of {schedules} schedules");
    Row::new(what, result).bound("<= 60 s", took.as_secs() < 60).print();
    let busiest = report.busiest_minute.map(|minute| format!("{} in the minute of {}", minute.fires, minute.at));
    Row::new("its busiest minute", busiest.unwrap_or_default()).print();
    let memory = crate::measure::resident_bytes(std::process::id()) >> 20;
    Row::new("memory at its end, the records included", format!("{memory} MiB")).print();
}

/// The world's rows with so many schedules, each of an agent of its own.
fn harness(schedules: usize) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut engine = Engine::new(Settings::default(), [7; 32]);
    engine.restore(Records::default(), BEGIN).expect("an empty world is restored");
    let mut rows = BTreeMap::new();
    for n in 0..schedules {
        let agent = ask(&mut engine, &mut rows, spawn(n)).agent;
        ask(&mut engine, &mut rows, CreateSchedule { new: schedule(n, agent), by_tool: false });
    }
    rows
}

/// Carries out a command, and stores what it leaves.
fn ask<C: Command>(engine: &mut Engine, rows: &mut BTreeMap<Vec<u8>, Vec<u8>>, command: C) -> C::Reply {
    let (sender, receiver) = std::sync::mpsc::channel();
    engine.command(Actor::Api, command, ReplySlot::new(move |reply| drop(sender.send(reply))));
    let commit = engine.step();
    for op in commit.ops.into_iter().filter(|op| op.space == Space::World) {
        match op.value {
            Some(value) => drop(rows.insert(op.key, value)),
            None => drop(rows.remove(&op.key)),
        }
    }
    commit.releases.into_iter().for_each(|release| release());
    receiver.recv().expect("the reply comes with its step").expect("nothing is wrong with it")
}

fn spawn(n: usize) -> SpawnAgent {
    let text = format!("name = \"agent-{n}\"\n");
    let parsed = manifest::parse(&text).expect("a manifest");
    let hash = manifest::hash(&parsed.manifest);
    SpawnAgent { name: parsed.name, manifest: parsed.manifest, hash, text }
}

fn schedule(n: usize, agent: AgentId) -> NewSchedule {
    let (minute, hour) = (n / 7 % 60, n / 11 % 24);
    let (rule, zone) = match n % 100 {
        0..2 => (format!("{minute} * * * *"), None),
        2..10 => (format!("{minute} */{} * * *", if n.is_multiple_of(2) { 4 } else { 6 }), None),
        10..65 => (format!("{minute} {hour} * * *"), None),
        65..75 => {
            let zone = ["America/New_York", "Europe/Berlin", "Asia/Tokyo", "UTC"][n % 4];
            ("0 9 * * MON-FRI".to_owned(), Some(zone.into()))
        }
        _ => (format!("{minute} {hour} * * {}", n % 7), None),
    };
    NewSchedule {
        kind: ScheduleKind::Schedule,
        agent,
        name: None,
        rule: rule.into(),
        timezone: zone,
        prompt: "What is there to do?".into(),
        enabled: true,
        missed: MissedPolicy::default(),
        overlap: OverlapPolicy::default(),
        session_mode: None,
    }
}
