//! One system that does something else: the replay tells exactly that, and nothing more.

use agentsvc_components::agent::Agent;
use agentsvc_components::agent::record::AgentRecord;
use agentsvc_components::kernel::record::Space;
use agentsvc_components::session::Session;
use agentsvc_components::{AgentId, Timestamp};
use agentsvc_systems::kernel::clock::Now;
use agentsvc_systems::kernel::record::read_as;
use agentsvc_systems::kernel::timings::BoxedSystem as System;
use agentsvc_systems::replay::world_hash;
use bevy_ecs::prelude::World;
use serde_json::Value;

use super::harness::{self, Harness};
use crate::kernel::store::Store;
use crate::replay::{Range, replay_cast};

/// What runs in a system's place at one moment; it gets the system. False: not yet.
trait Other: FnMut(&mut World, &mut System) -> bool + Clone + Send + Sync + 'static {}

impl<F: FnMut(&mut World, &mut System) -> bool + Clone + Send + Sync + 'static> Other for F {}

/// The systems as they are, but for `name`: `other` takes its place until it says that it was done.
fn planted(name: &'static str, other: impl Other) -> impl FnMut(&'static str, System) -> System {
    move |found, mut system| {
        if found != name {
            return system;
        }
        let (mut other, mut is_done) = (other.clone(), false);
        Box::new(move |world| {
            if is_done {
                system(world);
            } else {
                is_done = other(world, &mut system);
            }
        })
    }
}

/// Gives sessions that are called `from` the label `to`, without a word to anybody.
fn relabel(world: &mut World, from: &str, to: &str) -> bool {
    let mut sessions = world.query::<&mut Session>();
    let mut is_found = false;
    for mut session in sessions.iter_mut(world) {
        if session.label.as_ref().is_some_and(|label| &***label == from) {
            session.label = Some(Box::new(to.into()));
            is_found = true;
        }
    }
    is_found
}

#[test]
fn a_field_that_a_system_writes_otherwise_once_is_the_only_difference() {
    assert!((5..25).any(a_label_that_is_written_otherwise_is_the_only_difference), "no load leaves the session alone");
}

/// False where the load changes the session again, so that the store does not have the value of then.
fn a_label_that_is_written_otherwise_is_the_only_difference(seed: u64) -> bool {
    let mut harness = Harness::new(seed);
    harness.load(150);
    let step = harness.set_label("ORIGINAL");
    let at = harness.now;
    harness.load(20);
    let (newest, hash) = (harness.newest(), harness.hash());
    harness.close();
    let kept = Store::open(harness.world_dir()).unwrap();
    // The system that writes records writes this one wrong, in this step alone.
    let mut cast = planted("record_dirty", move |world: &mut World, system: &mut System| {
        let is_then = world.resource::<Now>().0 == at && relabel(world, "ORIGINAL", "PLANTED");
        system(world);
        is_then && relabel(world, "PLANTED", "ORIGINAL")
    });
    let (report, player) = replay_cast(&harness.inputs(), Range::default(), Some(&kept), &mut cast).unwrap();
    let first = report.first_difference.unwrap();
    if !first.records[0].against_log {
        return false;
    }
    assert_eq!((report.equal, report.differing, report.to, report.stopped), (false, 1, newest, None));
    let found: Vec<_> = first.records.iter().map(|record| (record.space, record.kind, record.difference)).collect();
    assert_eq!((first.step, found), (step, vec![("world", 's', "changed")]));
    let expected: [(String, Value, Value); 1] = [("label".to_owned(), "ORIGINAL".into(), "PLANTED".into())];
    let told = |fields: &[agentsvc_systems::replay::FieldDifference]| -> Vec<_> {
        fields.iter().map(|field| (field.field.clone(), field.before.clone(), field.after.clone())).collect()
    };
    assert_eq!(told(&first.records[0].fields), expected);

    // It is the only one: with that record as it is stored, the world is the one that lived.
    let [record] = &report.differing_records[..] else { panic!("{:?}", report.differing_records) };
    assert_eq!((record.kind, record.id.as_str(), record.first, record.steps), ('s', &*first.records[0].id, step, 1));
    assert_eq!(told(record.fields.as_deref().unwrap()), expected);
    assert_ne!(player.hash(), hash);
    let (mut world, _) = player.into_rows();
    let key = [&b"s"[..], uuid::Uuid::parse_str(&record.id).unwrap().as_bytes()].concat();
    world.insert(key.clone(), kept.view().get(Space::World, &key).unwrap().unwrap());
    assert_eq!(world_hash(world.iter().map(|(key, value)| (key.as_slice(), value.as_slice()))), hash);
    true
}

/// The agent that spoke most, of those that live.
fn busiest(harness: &mut Harness) -> AgentId {
    let rows = harness.rows();
    let agents = rows.iter().filter(|row| row.space == Space::World).filter_map(|row| {
        let agent = read_as::<AgentRecord>(&row.key, &row.value)?;
        Some((agent.output_tokens, agent.id))
    });
    agents.max().unwrap().1
}

#[test]
fn a_number_that_a_system_counts_wrong_once_is_the_only_difference_from_then_on() {
    let mut harness = Harness::new(21);
    harness.load(150);
    let at: Timestamp = harness.now;
    harness.load(600);
    let (agent, newest) = (busiest(&mut harness), harness.newest());
    harness.close();
    let kept = Store::open(harness.world_dir()).unwrap();
    // The system that settles what came back counts a token too many, once.
    let mut cast = planted("settle", move |world: &mut World, system: &mut System| {
        system(world);
        if world.resource::<Now>().0 < at {
            return false;
        }
        let mut agents = world.query::<(&AgentId, &mut Agent)>();
        let found = agents.iter_mut(world).find(|(id, _)| **id == agent);
        found.map(|(_, mut agent)| agent.output_tokens += 1).is_some()
    });
    let (report, _) = replay_cast(&harness.inputs(), Range::default(), Some(&kept), &mut cast).unwrap();
    assert_eq!((report.equal, report.to, report.stopped), (false, newest, None));
    let [record] = &report.differing_records[..] else { panic!("{:#?}", report.differing_records) };
    assert_eq!((record.space, record.kind, record.id.as_str()), ("world", 'a', &*agent.to_string()));
    assert_eq!(record.steps, report.differing, "no step differs in anything else");
    let [field] = record.fields.as_deref().unwrap() else { panic!("{:?}", record.fields) };
    assert_eq!(field.field, "output_tokens");
    assert_eq!(field.after.as_u64(), field.before.as_u64().map(|tokens| tokens + 1));
}

#[test]
fn systems_as_they_are_make_no_difference() {
    let mut harness = Harness::new(22);
    harness.load(100);
    let hash = harness.hash();
    let mut cast = planted("record_dirty", |world: &mut World, system: &mut System| {
        system(world);
        false
    });
    let (report, player) = replay_cast(&harness.inputs(), Range::default(), None, &mut cast).unwrap();
    assert!(report.equal && report.differing_records.is_empty(), "{report:?}");
    assert_eq!((player.hash(), harness::hash_of(&harness.store())), (hash, hash));
}
