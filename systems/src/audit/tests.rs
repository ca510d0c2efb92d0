//! The trail: what commands leave on it, what is asked of the outside, and that a walk finds every change of its rows.

use agentsvc_components::kernel::audit_kind::AuditKind;
use std::collections::BTreeMap;

use agentsvc_components::agent::AgentMode;
use agentsvc_components::audit::record::AuditCheckpoint;
use agentsvc_components::kernel::record::Space;
use agentsvc_components::session::message::Block;
use agentsvc_components::turn::effect::ToolRun;
use agentsvc_components::turn::outcome::{ModelEnd, ModelOutcome, ToolEnd, ToolOutcome, ToolStatus};
use agentsvc_components::{Timestamp, TurnId};
use proptest::prelude::*;
use serde_json::json;
use sha2::{Digest, Sha256};

use super::*;
use crate::agent::{AgentPatch, CloneAgent, RemoveAgents, SetMode, StartAgents, StopAgents, UpdateAgent};
use crate::kernel::record::{AUDIT_PREFIX, audit_checkpoint_key, audit_entry_key};
use crate::memory::{DeleteMemory, Doomed, PutEntry, PutMemory};
use crate::session::{CleanupSessions, ClearHistory, CreateSession, RemoveSession, ResetSession};
use crate::testing::{TestWorld, answer, spawn_command, tool_call};
use crate::turn::{NewMessage, PostMessage};

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

fn rows(world: &TestWorld) -> Rows {
    let of_trail = |space: &Space, key: &[u8]| *space == Space::Content && key.starts_with(&AUDIT_PREFIX);
    let rows = world.store.iter().filter(|((space, key), _)| of_trail(space, key));
    rows.map(|((_, key), value)| (key.clone(), value.clone())).collect()
}

pub(super) fn entries(world: &TestWorld) -> Vec<AuditEntry> {
    rows(world).values().filter_map(|row| decode(row)).collect()
}

/// The kinds of the entries from `from` on, and their actors.
fn kinds(world: &TestWorld, from: usize) -> Vec<(String, String)> {
    let entries = entries(world).into_iter().skip(from);
    entries.map(|entry| (entry.event_type.to_string(), entry.actor.to_string())).collect()
}

/// A signature that only this test can make.
fn sign(message: &[u8]) -> [u8; SIGNATURE_BYTES] {
    let half = Sha256::digest([b"key", message].concat());
    std::array::from_fn(|n| half[n % 32])
}

fn is_signed(message: &[u8], signature: &[u8]) -> bool {
    sign(message) == signature
}

fn walk(rows: &Rows, head: AuditHead, vault: Option<AuditCheckpoint>) -> Result<Walked, Broken> {
    let newest = rows.iter().rev().find(|(key, _)| key.len() == 10);
    let newest = newest.and_then(|(_, row)| parse_checkpoint(row, is_signed));
    let mut walk = Walk::new(head, vault, newest, is_signed);
    for (key, value) in rows.range(walk.from()..) {
        if !walk.row(key, value)? {
            break;
        }
    }
    walk.end()
}

#[test]
fn every_command_that_changes_something_leaves_an_entry() {
    let mut world = TestWorld::new();
    let a = world.spawn("a");
    let copy = world.ask(CloneAgent { agent: a, name: None, text: "name = \"a\"".to_owned() }).unwrap().agent;
    let patch = AgentPatch { model: Some("m".into()), tools: Some(vec!["x".into()]), ..AgentPatch::default() };
    world.ask(UpdateAgent { agent: a, patch }).unwrap();
    let patch = AgentPatch { name: Some("b".into()), skills: Some(vec![]), ..AgentPatch::default() };
    world.ask(UpdateAgent { agent: a, patch }).unwrap();
    world.ask(SetMode { agent: a, mode: AgentMode::Stable, skills: None }).unwrap();
    world.ask(StopAgents(vec![a, a])).unwrap();
    world.ask(StartAgents(vec![a])).unwrap();
    let session = world.ask(CreateSession { agent: a, label: None }).unwrap();
    world.ask(RemoveSession { session }).unwrap();
    world.ask(ResetSession { agent: a }).unwrap();
    world.ask(ClearHistory { agent: a }).unwrap();
    world.ask(CreateSession { agent: a, label: None }).unwrap();
    world.ask(CleanupSessions { unused_since: Timestamp(i64::MAX), after: None }).unwrap();
    let entry = PutEntry { key: "k".into(), value: "1".into(), created_at: None, updated_at: None, replaces: None };
    let revision = world.ask(PutMemory { agent: a, revision: 0, entries: vec![entry], by: None }).unwrap().revision;
    let doomed = vec![Doomed { key: "k".into(), bytes: 2 }];
    world.ask(DeleteMemory { agent: a, revision, entries: doomed, by: None }).unwrap();
    world
        .ask(NoteAction { kind: AuditKind::declared("file_written"), agent: Some(a), details: json!({"f": 1}) })
        .unwrap();
    world.ask(RemoveAgents(vec![copy])).unwrap();
    let all = entries(&world);
    let kinds: Vec<&str> = all.iter().map(|entry| &*entry.event_type).collect();
    let expected = [
        "agent_spawned",
        "agent_spawned",
        "agent_cloned",
        "agent_model_changed",
        "agent_tools_changed",
        "agent_skills_changed",
        "agent_updated",
        "agent_mode_changed",
        "agent_stopped",
        "agent_started",
        "session_removed",
        "session_reset",
        "history_cleared",
        "sessions_cleaned",
        "memory_written",
        "memory_deleted",
        "file_written",
        "agent_terminated",
    ];
    assert_eq!(kinds, expected);
    assert!(all.iter().all(|entry| &*entry.actor == "api"));
    assert_eq!((all[0].agent, &*all[0].details), (Some(a), "{\"name\":\"a\"}"));
    assert_eq!(&*all[4].details, "{\"tools\":{\"count\":1,\"names\":[\"x\"]}}");
    assert_eq!(all[17].agent, Some(copy));
    let head = world.ask(GetAuditHead).unwrap();
    assert_eq!(walk(&rows(&world), head, None).unwrap().entries, 18);
}

#[test]
fn a_refused_command_leaves_nothing() {
    let mut world = TestWorld::new();
    let a = world.spawn("a");
    let before = rows(&world);
    assert!(world.ask(spawn_command("a")).is_err());
    let patch = AgentPatch { model: Some("m".into()), ..AgentPatch::default() };
    let nobody = AgentId(uuid::Uuid::nil());
    assert!(world.ask(UpdateAgent { agent: nobody, patch }).is_err());
    assert!(world.ask(TrimAudit { first: 1, anchor: [0; 32] }).is_err());
    world.ask(StartAgents(vec![a])).unwrap();
    assert_eq!(rows(&world), before);
}

#[test]
fn the_actor_is_who_sent_the_command_and_nobody_after_it() {
    let mut world = TestWorld::new();
    let agent = world.spawn("a");
    let turn = TurnId(uuid::Uuid::from_u128(7));
    world.actor = Actor::Agent { agent, turn };
    world.spawn("b");
    let entry = PutEntry { key: "k".into(), value: "1".into(), created_at: None, updated_at: None, replaces: None };
    world.ask(PutMemory { agent, revision: 0, entries: vec![entry], by: Some(turn) }).unwrap();
    world.actor = Actor::System;
    world.spawn("c");
    let actors: Vec<_> = kinds(&world, 0).into_iter().map(|(_, actor)| actor).collect();
    assert_eq!(actors, ["api".to_owned(), format!("agent:{agent}/turn:{turn}"), "system".to_owned()]);
}

#[test]
fn a_tool_call_is_on_record_before_it_goes_out() {
    let mut world = TestWorld::new();
    let agent = world.spawn("a");
    let message = NewMessage::text("go");
    let turn = world.ask(PostMessage { agent, session: None, message }).unwrap().turn;
    let attempt = world.next_call().attempt;
    let calls: Vec<Block> = ["1", "2"].map(tool_call).into();
    world.outcome(ModelOutcome(attempt, ModelEnd::Answered(answer(calls))));
    let actor = format!("agent:{agent}/turn:{turn}");
    let called = ("tool_called".to_owned(), actor.clone());
    assert_eq!(kinds(&world, 1), [called.clone(), called.clone()]);
    let details = entries(&world)[1].details.clone();
    let hash = crate::kernel::record::hex(&Sha256::digest(b"{}"));
    assert_eq!(*details, *format!("{{\"input_sha256\":\"{hash}\",\"tool\":\"system_time\"}}"));
    let run = |world: &TestWorld, at: usize| {
        let run = world.effects[at].get::<ToolRun>()?;
        Some((run.attempt, run.index, run.call.clone()))
    };
    let runs: Vec<_> = (0..world.effects.len()).filter_map(|at| run(&world, at)).collect();
    for ((attempt, index, call), status) in runs.into_iter().zip([ToolStatus::Refused, ToolStatus::Unknown]) {
        let end = ToolEnd { index, call, content: "no".to_owned(), whole: None, notice: None, brought: None, status };
        world.outcome(ToolOutcome(attempt, end));
    }
    let later = kinds(&world, 3);
    assert_eq!(later, [("tool_refused".to_owned(), actor.clone()), ("tool_unknown".to_owned(), actor)]);
    assert!(entries(&world)[3].details.contains("not_granted"));
}

#[test]
fn the_chain_goes_on_after_a_restart_and_is_sealed_then() {
    let mut world = TestWorld::new();
    world.spawn("a");
    let seals = |world: &mut TestWorld| {
        let seals = std::mem::take(&mut world.seals);
        seals.iter().map(|head| head.last).collect::<Vec<_>>()
    };
    assert_eq!(seals(&mut world), [1], "the first entry of a process");
    for n in 0..limit::AUDIT_CHECKPOINT_EVERY + 3 {
        world.spawn(&format!("n{n}"));
    }
    assert_eq!(seals(&mut world), [1 + limit::AUDIT_CHECKPOINT_EVERY]);
    world.restart();
    world.spawn("z");
    assert_eq!(seals(&mut world), [5 + limit::AUDIT_CHECKPOINT_EVERY]);
    let head = world.ask(GetAuditHead).unwrap();
    assert_eq!(walk(&rows(&world), head, None).unwrap().entries, 5 + limit::AUDIT_CHECKPOINT_EVERY);
}

/// Entries do not wait for a thousand others: the first that is not signed is, a minute later, with all behind it.
#[test]
fn entries_are_sealed_by_time_and_nothing_is_when_nothing_happens() {
    let mut world = TestWorld::new();
    let beat = |world: &mut TestWorld, ms: i64| {
        world.now = world.now.plus_ms(ms);
        world.engine.set_now(world.now);
        world.engine.beat();
        world.step();
        std::mem::take(&mut world.seals).iter().map(|head| head.last).collect::<Vec<_>>()
    };
    world.spawn("a");
    assert_eq!(beat(&mut world, 0), [1], "the first entry of a process");
    assert_eq!(beat(&mut world, 10 * limit::AUDIT_CHECKPOINT_MS), [0; 0], "nothing is unsigned");
    world.spawn("b");
    let due = world.now.plus_ms(limit::AUDIT_CHECKPOINT_MS);
    assert_eq!(next_due(world.engine.world()), Some(due));
    assert_eq!(beat(&mut world, limit::AUDIT_CHECKPOINT_MS / 2), [0; 0]);
    world.spawn("c");
    let left = due.ms_since(world.now).cast_signed();
    assert_eq!(beat(&mut world, left - 1), [0; 0]);
    assert_eq!(beat(&mut world, 1), [3]);
    assert_eq!((beat(&mut world, 10 * limit::AUDIT_CHECKPOINT_MS), next_due(world.engine.world())), (vec![], None));
    world.spawn("d");
    assert_eq!(beat(&mut world, -3_600_000), [4], "a clock that is set back keeps none waiting");
}

#[test]
fn long_details_are_cut() {
    let mut world = TestWorld::new();
    let details = json!({ "x": "ü".repeat(limit::AUDIT_DETAILS_BYTES_MAX) });
    world.ask(NoteAction { kind: AuditKind::declared("auth_failed"), agent: None, details }).unwrap();
    let entry = entries(&world).pop().unwrap();
    assert!(entry.details.len() <= limit::AUDIT_DETAILS_BYTES_MAX + 3 && entry.details.ends_with("ü..."));
}

/// A trail as the daemon keeps it: checkpoints stand in it, and the newest is in the vault too.
struct Kept {
    rows: Rows,
    head: AuditHead,
    vault: Option<AuditCheckpoint>,
}

/// A trail of `count` entries with a checkpoint behind every `every`th.
fn kept(count: u64, every: u64) -> Kept {
    let mut world = TestWorld::new();
    for n in 0..count {
        world
            .ask(NoteAction { kind: AuditKind::declared("file_written"), agent: None, details: json!({ "n": n }) })
            .unwrap();
    }
    let head = world.ask(GetAuditHead).unwrap();
    let mut kept = Kept { rows: rows(&world), head, vault: None };
    for sequence in (1..=count).filter(|n| n % every == 0) {
        let hash = decode(&kept.rows[&audit_entry_key(sequence)]).unwrap().hash;
        kept.seal(AuditHead { last: sequence, hash, ..head });
    }
    kept
}

impl Kept {
    fn seal(&mut self, head: AuditHead) {
        let previous = self.vault.map_or(0, |vault| vault.sequence);
        let AuditHead { first, anchor, last: sequence, hash } = head;
        let checkpoint = AuditCheckpoint { sequence, hash, previous, first, anchor, at: Timestamp(1) };
        let row = encode_checkpoint(&checkpoint, &sign(&message(&checkpoint)));
        self.rows.insert(audit_checkpoint_key(sequence), row);
        self.vault = Some(checkpoint);
    }

    fn walk(&self) -> Result<Walked, Broken> {
        walk(&self.rows, self.head, self.vault)
    }
}

#[test]
fn what_was_trimmed_is_not_missed_and_the_rest_is_still_checked() {
    let mut world = TestWorld::new();
    for n in 0..20 {
        world.spawn(&format!("a{n}"));
    }
    let head = world.ask(GetAuditHead).unwrap();
    let values: Vec<_> = rows(&world).into_values().collect();
    let at = decode(&values[11]).unwrap().at;
    let trim = first_since(head, &values, at).unwrap();
    assert_eq!((trim.first, trim.anchor), (12, decode(&values[10]).unwrap().hash));
    assert_eq!(first_since(head, &values, Timestamp(i64::MAX)).unwrap().first, 20, "the newest stays");
    assert_eq!(first_since(head, &values, Timestamp(0)), None);
    assert_eq!(world.ask(trim).unwrap(), 11);
    let head = world.ask(GetAuditHead).unwrap();
    assert_eq!((head.first, head.last, head.kept()), (12, 21, 10));
    assert_eq!(world.seals.last(), Some(&head));
    let mut kept = Kept { rows: rows(&world), head, vault: None };
    assert!(kept.walk().is_ok(), "nothing is signed and nothing is erased yet");
    kept.seal(head);
    kept.rows = kept.rows.split_off(&audit_entry_key(12));
    assert_eq!(kept.walk().unwrap().entries, 10);
    kept.rows.remove(&audit_entry_key(12));
    assert_eq!(kept.walk().unwrap_err().at, 12);
    world.restart();
    assert_eq!(world.ask(GetAuditHead).unwrap(), head);
}

#[test]
fn a_checkpoint_that_is_stored_while_the_walk_runs_does_not_disturb_it() {
    let mut kept = kept(9, 4);
    let before = kept.vault;
    kept.seal(kept.head);
    // The walk came past entry 8 before its checkpoint was there, and sees that of entry 9.
    let early = before.map(|_| decode_checkpoint(&kept.rows[&audit_checkpoint_key(4)]));
    let mut walk = Walk::new(kept.head, early, early, is_signed);
    for (key, value) in kept.rows.iter().filter(|(key, _)| **key != audit_checkpoint_key(8)) {
        assert!(walk.row(key, value).unwrap());
    }
    assert_eq!(walk.end().unwrap().signed, 9);
}

fn decode_checkpoint(row: &[u8]) -> AuditCheckpoint {
    parse_checkpoint(row, is_signed).unwrap()
}

#[test]
fn the_vault_finds_what_the_database_has_forgotten() {
    let Kept { rows, head, vault } = kept(9, 4);
    // The whole database of an earlier day: five entries, and a head that agrees.
    let hash = decode(&rows[&audit_entry_key(5)]).unwrap().hash;
    let mut earlier = rows.clone();
    earlier.split_off(&audit_entry_key(6));
    let earlier = Kept { rows: earlier, head: AuditHead { last: 5, hash, ..head }, vault };
    let broken = earlier.walk().unwrap_err();
    assert_eq!(broken.at, 6);
    assert!(broken.reason.contains("entry 8 was signed"), "{broken}");
    // Another history, as whole in itself as the true one.
    let mut other = kept(9, 100);
    other.vault = vault;
    assert!(other.walk().is_err());
    // A checkpoint of another key.
    let mut forged = rows.clone();
    forged.get_mut(&audit_checkpoint_key(4)).unwrap()[150] ^= 1;
    assert_eq!(walk(&forged, head, vault).unwrap_err().at, 4);
}

#[test]
fn every_single_bit_counts() {
    let mut kept = kept(4, 2);
    for key in kept.rows.keys().cloned().collect::<Vec<_>>() {
        for bit in 0..kept.rows[&key].len() * 8 {
            kept.rows.get_mut(&key).unwrap()[bit / 8] ^= 1 << (bit % 8);
            assert!(kept.walk().is_err(), "bit {bit} of {key:?}");
            kept.rows.get_mut(&key).unwrap()[bit / 8] ^= 1 << (bit % 8);
        }
    }
    assert!(kept.walk().is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn any_change_of_stored_rows_is_found(
        count in 1_u64..24,
        every in 1_u64..9,
        what in 0_u8..6,
        at in any::<prop::sample::Index>(),
        other in any::<prop::sample::Index>(),
        byte in any::<prop::sample::Index>(),
        flip in 1_u8..=255,
    ) {
        let mut kept = kept(count, every);
        let whole = kept.walk();
        prop_assert!(whole.is_ok(), "{whole:?}");
        prop_assert_eq!(whole.unwrap().entries, count);
        let keys: Vec<_> = kept.rows.keys().cloned().collect();
        let (key, another) = (keys[at.index(keys.len())].clone(), keys[other.index(keys.len())].clone());
        match what {
            0 | 1 => {
                let row = kept.rows.get_mut(&key).unwrap();
                let byte = byte.index(row.len());
                row[byte] ^= flip;
            }
            2 => drop(kept.rows.remove(&key)),
            3 => {
                prop_assume!(key != another);
                let (a, b) = (kept.rows[&key].clone(), kept.rows[&another].clone());
                kept.rows.insert(key, b);
                kept.rows.insert(another, a);
            }
            4 => drop(kept.rows.split_off(&key)),
            _ => {
                let row = kept.rows.get_mut(&key).unwrap();
                let length = byte.index(row.len());
                row.truncate(length);
            }
        }
        prop_assert!(kept.walk().is_err());
    }
}
