//! Large worlds come back whole, and worlds that contradict themselves not at all.

use agentsvc_components::agent::record::AgentRecord;
use agentsvc_components::agent::{AgentMode, AgentState, ImportedFrom};
use agentsvc_components::compaction::call::SummaryCall;
use agentsvc_components::compaction::record::CompactionRecord;
use agentsvc_components::kernel::taint::{AgentTaint, Taint};
use agentsvc_components::manifest::{Manifest, ManifestHash};
use agentsvc_components::session::record::SessionRecord;
use agentsvc_components::{AgentId, CompactionId, LogId, SessionId, Timestamp};
use uuid::Uuid;

use super::Records;
use crate::kernel::id_generator::IdGenerator;
use crate::kernel::index::{self, Index};
use crate::{Engine, Settings};

/// Enough for the indexes to be filled by other threads.
const MANY: u32 = 12_000;
const MANIFEST: ManifestHash = ManifestHash([7; 32]);
const FROM: ImportedFrom = ImportedFrom { place: [1; 32], text: [2; 32] };

fn agent_id(n: u32) -> AgentId {
    AgentId(Uuid::from_u128(1 << 64 | u128::from(n)))
}

fn session_id(n: u32) -> SessionId {
    SessionId(Uuid::from_u128(u128::from(n) << 32))
}

fn agent(n: u32) -> AgentRecord {
    AgentRecord {
        id: agent_id(n),
        name: format!("agent-{n}").into(),
        manifest: MANIFEST,
        current: session_id(n),
        created_at: Timestamp(1),
        updated_at: Timestamp(2),
        input_tokens: 3,
        output_tokens: n.into(),
        state: AgentState::Running,
        mode: AgentMode::Normal,
        parent: (n % 100 == 1).then(|| agent_id(n - 1)),
        taint: AgentTaint::default(),
        imported_from: (n == 77).then(|| Box::new(FROM)),
        owner: (n % 50 == 3).then(|| agentsvc_components::kernel::id::UserId(uuid::Uuid::from_u128(n.into()))),
    }
}

fn session(n: u32) -> SessionRecord {
    SessionRecord {
        id: session_id(n),
        agent: agent_id(n % MANY),
        log: LogId(u64::from(n) + 1),
        created_at: Timestamp(1),
        updated_at: Timestamp(2),
        label: n.is_multiple_of(50).then(|| format!("label {n}").into()),
        message_count: n,
        next_ordinal: 0,
        interrupted: false,
        ephemeral: false,
        compacted: 0,
        stored: n % 3,
        taint: Taint::NONE,
        addresses: Vec::new(),
        ending: None,
        is_strangers: false,
    }
}

/// A world of agents, each with two sessions, in no order.
fn records() -> Records {
    let mut records = Records::default();
    records.push((MANIFEST, Manifest::default()));
    let anyhow = |n: u32, count: u32| n * 7_919 % count;
    (0..MANY).for_each(|n| records.push(agent(anyhow(n, MANY))));
    (0..2 * MANY).for_each(|n| records.push(session(anyhow(n, 2 * MANY))));
    records
}

fn restored(records: Records) -> Result<Engine, String> {
    let mut engine = Engine::new(Settings::default(), [5; 32]);
    let result = engine.restore(records, Timestamp(9));
    result.map_err(|error| error.to_string()).map(|()| engine)
}

#[test]
fn a_large_world_comes_back_whole_whatever_the_order_of_its_records() {
    let mut engine = restored(records()).unwrap();
    assert_eq!(engine.check(), Vec::<String>::new());
    let world = engine.world();
    let index = world.resource::<Index>();
    assert_eq!((index.agent_count(), index.session_count()), (MANY as usize, 2 * MANY as usize));
    let ids: Vec<AgentId> = index.agents_after(None).map(|(id, _)| id).collect();
    assert!(ids.into_iter().eq((0..MANY).map(agent_id)));
    let entity = index::agent(world, agent_id(77)).unwrap();
    assert_eq!(world.get::<ImportedFrom>(entity), Some(&FROM));
    assert_eq!(world.get::<ImportedFrom>(index::agent(world, agent_id(78)).unwrap()), None);
    assert_eq!(crate::agent::agent_named(world, "agent-77"), Some(entity));
    assert_eq!(index.sessions_of(entity, None).collect::<Vec<_>>(), [session_id(77), session_id(77 + MANY)]);
    let labelled = index.labelled(index::agent(world, agent_id(100)).unwrap(), "label 100");
    assert_eq!(labelled, index::session(world, session_id(100)));
    let next = engine.world_mut().resource_mut::<IdGenerator>().log();
    assert_eq!(next, LogId(u64::from(2 * MANY) + 1));
}

#[test]
fn compactions_stand_in_line_in_the_order_in_which_they_were_begun() {
    let asked = |order: [u32; 2]| -> Vec<SessionId> {
        let mut records = Records::default();
        records.push((MANIFEST, Manifest::default()));
        for n in order {
            records.push(agent(n));
            records.push(SessionRecord { next_ordinal: 4, ..session(n) });
            let (id, log) = (CompactionId(Uuid::from_u128(n.into())), session(n).log);
            let job = CompactionRecord { id, session: session_id(n), log, from: 0, upto: 2, attempt: 0 };
            records.push(job);
        }
        let effects = restored(records).unwrap().step().effects.into_iter();
        effects.filter_map(|effect| effect.get::<SummaryCall>().map(|call| call.session)).collect()
    };
    for order in [[2, 3], [3, 2]] {
        assert_eq!(asked(order), [session_id(2), session_id(3)]);
    }
}

#[test]
fn what_contradicts_itself_is_named() {
    let error = |change: fn(&mut Records)| {
        let mut records = records();
        change(&mut records);
        restored(records).err().expect("it contradicts itself")
    };
    let said = error(|records| drop(records.take::<(ManifestHash, Manifest)>()));
    assert_eq!(said, format!("record {} refers to a manifest that is not stored", agent_id(0)));
    let said = error(|records| records.push(SessionRecord { agent: agent_id(MANY), ..session(2 * MANY) }));
    assert_eq!(said, format!("record {} refers to a agent that is not stored", session_id(2 * MANY)));
    let lost = AgentRecord { current: session_id(3 * MANY), ..agent(MANY) };
    let mut records = records();
    records.push(lost);
    let said = restored(records).err().expect("it contradicts itself");
    assert_eq!(said, format!("record {} refers to a current session that is not stored", agent_id(MANY)));
    let said = error(|records| records.push(agent(5)));
    assert_eq!(said, format!("record {} cannot be read: another agent has the same id", agent_id(5)));
    let said = error(|records| records.push(session(6)));
    assert_eq!(said, format!("record {} cannot be read: another session has the same id", session_id(6)));
}
