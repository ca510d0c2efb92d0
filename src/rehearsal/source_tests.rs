//! The same world is read from a view of a store and from the file of a snapshot.

use std::sync::atomic::AtomicBool;

use agentsvc_components::agent::record::AgentRecord;
use agentsvc_components::kernel::record::Space;
use agentsvc_components::session::message::{Block, Role, Usage};
use agentsvc_components::session::message_record::MessageRecord;
use agentsvc_components::turn::trace::{StepKind, StepStatus, TraceRecord, TraceStep};
use agentsvc_components::turn::{Origin, TurnEnd};
use agentsvc_components::{AgentId, LogId, Micros, SessionId, Timestamp, TurnId};
use agentsvc_systems::agent::SpawnAgent;
use agentsvc_systems::kernel::record;
use agentsvc_systems::kernel::record::MessageKey;
use agentsvc_systems::{Engine, Records, ReplySlot, Settings, manifest};
use uuid::Uuid;

use super::history::{COSTS_MAX, TURNS_MAX};
use super::source::{Error, Source, of_snapshot, of_view};
use crate::kernel::store::Store;
use crate::kernel::store::rows::{Row, RowError, RowWriter};

/// More turns than count.
const TURNS: u32 = 80;

/// The rows of a world with two agents, of which the second has a past.
fn rows() -> (Vec<Row>, AgentId) {
    let mut engine = Engine::new(Settings::default(), [1; 32]);
    engine.restore(Records::default(), Timestamp(1_000)).unwrap();
    for name in ["one", "two"] {
        let text = format!("name = \"{name}\"\n");
        let parsed = manifest::parse(&text).unwrap();
        let hash = manifest::hash(&parsed.manifest);
        let spawn = SpawnAgent { name: parsed.name, manifest: parsed.manifest, hash, text };
        engine.command(agentsvc_components::Actor::Api, spawn, ReplySlot::new(|reply| drop(reply.unwrap())));
    }
    let mut rows: Vec<Row> = Vec::new();
    let ops = engine.step().ops;
    rows.extend(ops.into_iter().filter_map(|op| Some(Row { space: op.space, key: op.key, value: op.value? })));
    let world = rows.iter().filter(|row| row.space == Space::World);
    let agents = world.filter_map(|row| record::read_as::<AgentRecord>(&row.key, &row.value));
    let agent = agents.filter(|agent| &*agent.name == "two").map(|agent| agent.id).next().unwrap();
    for n in 0..TURNS {
        let trace = trace(n);
        let key = record::trace_key(agent, trace.turn);
        rows.push(Row { space: Space::Content, key, value: record::encode(&trace) });
        let message = MessageRecord {
            turn: trace.turn,
            role: Role::Assistant,
            blocks: vec![Block::Text { text: format!("answer {n}") }],
            created_at: trace.ended_at,
            usage: None,
            model: None,
            stopped: false,
            repeats: None,
        };
        let key = record::message_key(MessageKey { log: trace.log, ordinal: n, index: 1 });
        rows.push(Row { space: Space::Content, key, value: record::encode(&message) });
    }
    rows.sort_by_key(|row| (row.space == Space::Content, row.key.clone()));
    rows.dedup_by(|one, other| (one.space, &one.key) == (other.space, &other.key));
    (rows, agent)
}

/// The n-th turn: it cost n cents, and called a tool.
fn trace(n: u32) -> TraceRecord {
    let usage = Usage { cost: Micros(u64::from(n) * 10_000), ..Usage::of(100 + u64::from(n), 7) };
    let step = |kind, name: &str, usage| TraceStep {
        kind,
        name: name.into(),
        started_at: Timestamp(0),
        duration_ms: 30 + n,
        usage,
        status: StepStatus::Ok,
        error: None,
    };
    TraceRecord {
        turn: TurnId(Uuid::from_u128(u128::from(n) + 1)),
        session: SessionId(Uuid::from_u128(9)),
        log: LogId(4),
        ordinal: n,
        origin: Origin::Api,
        started_at: Timestamp(0),
        ended_at: Timestamp(i64::from(n)),
        end: TurnEnd::Done,
        code: None,
        error: None,
        usage,
        iterations: 2,
        tool_calls: 1,
        steps: vec![
            step(StepKind::Model, "p/m", Some(usage)),
            step(StepKind::Tool, "look", None),
            step(StepKind::Model, "p/m", Some(Usage::of(1, 1))),
        ],
        notices: Vec::new(),
        recalled: None,
    }
}

fn check(source: &Source, agent: AgentId, with_texts: bool) {
    assert_eq!((source.records.iter::<AgentRecord>().count(), source.histories.len()), (2, 1));
    let history = &source.histories[&agent];
    assert_eq!(history.costs.count, COSTS_MAX as u64);
    let newest = f64::from(TURNS - 1) / 100.0;
    let mean = newest - (COSTS_MAX as f64 - 1.0) / 200.0;
    assert!((history.costs.mean - mean).abs() < 1e-9, "{} is the mean of the newest", history.costs.mean);
    assert_eq!(history.turns.len(), TURNS_MAX);
    let first = &history.turns[0];
    assert_eq!(
        (first.calls.len(), first.calls[0].input, first.calls[0].latency_ms),
        (2, 100 + TURNS - 1, 30 + TURNS - 1)
    );
    assert_eq!((&*first.calls[0].tools[0].name, first.calls[1].tools.len()), ("look", 0));
    let text = with_texts.then(|| format!("answer {}", TURNS - 1));
    assert_eq!(first.text.as_deref(), text.as_deref());
}

#[test]
fn a_view_and_a_snapshot_are_the_same_world() {
    let dir = tempfile::tempdir().unwrap();
    let (rows, agent) = rows();
    let go_on = AtomicBool::new(false);
    let path = dir.path().join("world");
    Store::build(&path, rows.iter().cloned().map(Ok::<_, RowError>)).unwrap();
    let view = Store::open(path).unwrap().view();
    check(&of_view(&view, true, &go_on).unwrap(), agent, true);
    let only_costs = of_view(&view, false, &go_on).unwrap();
    assert!(only_costs.histories[&agent].turns.is_empty() && only_costs.histories[&agent].costs.count > 0);
    let file = dir.path().join("x.rows.zst");
    let encoder = zstd::Encoder::new(std::fs::File::create(&file).unwrap(), 1).unwrap();
    let mut writer = RowWriter::new(encoder).unwrap();
    rows.iter().for_each(|row| writer.push(row.space, &row.key, &row.value).unwrap());
    writer.finish().unwrap().0.finish().unwrap();
    check(&of_snapshot(&file, true, &go_on).unwrap(), agent, false);
    // Cut off, cancelled, not there.
    let bytes = std::fs::read(&file).unwrap();
    std::fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
    assert!(of_snapshot(&file, true, &go_on).is_err());
    assert!(of_snapshot(&dir.path().join("none"), true, &go_on).is_err());
    let cancel = AtomicBool::new(true);
    assert!(matches!(of_view(&view, true, &cancel), Err(Error::Cancelled)));
}
