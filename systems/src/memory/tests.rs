//! Memory commands: what they store, count and refuse.

use agentsvc_components::agent::sweep::{AgentSwept, SweepAgent};
use agentsvc_components::event::Event;
use agentsvc_components::kernel::limit;
use agentsvc_components::kernel::record::Space;
use agentsvc_components::memory::record::MemoryRecord;
use agentsvc_components::{AgentId, Refusal};

use super::*;
use crate::agent::RemoveAgents;
use crate::kernel::record;
use crate::testing::TestWorld;

fn entry(key: &str, value: &str, replaces: Option<u64>) -> PutEntry {
    PutEntry { key: key.into(), value: value.into(), created_at: None, updated_at: None, replaces }
}

fn put(world: &mut TestWorld, agent: AgentId, revision: u64, entries: Vec<PutEntry>) -> Result<MemoryUse, Refusal> {
    world.ask(PutMemory { agent, revision, entries, by: None })
}

fn stored(world: &TestWorld, agent: AgentId, key: &str) -> Option<MemoryRecord> {
    let key = record::memory_key(agent, key);
    world.store.get(&(Space::Content, key.clone())).map(|value| record::decode(&key, value).unwrap())
}

#[test]
fn entries_are_stored_counted_and_removed() {
    let mut world = TestWorld::new();
    let agent = world.spawn("a");
    let none = world.ask(GetMemoryUse(agent)).unwrap();
    assert_eq!((none.entries, none.bytes), (0, 0));
    let one = put(&mut world, agent, none.revision, vec![entry("k", "\"v\"", None), entry("l", "1", None)]).unwrap();
    assert_eq!((one.entries, one.bytes), (2, 6));
    assert_eq!(&*stored(&world, agent, "k").unwrap().value, "\"v\"");
    let two = put(&mut world, agent, one.revision, vec![entry("k", "true", Some(4))]).unwrap();
    assert_eq!((two.entries, two.bytes), (2, 7));
    world.restart();
    let same = world.ask(GetMemoryUse(agent)).unwrap();
    assert_eq!((same.entries, same.bytes), (2, 7));
    let gone = ["k", "l"].map(|key| Doomed { key: key.into(), bytes: if key == "k" { 5 } else { 2 } });
    let left = world.ask(DeleteMemory { agent, revision: same.revision, entries: gone.into(), by: None }).unwrap();
    assert_eq!((left.entries, left.bytes), (0, 0));
    let told: Vec<_> = world
        .events
        .iter()
        .filter_map(|event| match event {
            Event::MemoryUpdated { key, deleted, .. } => Some((&**key, *deleted)),
            _ => None,
        })
        .collect();
    assert_eq!(told, [("k", false), ("l", false), ("k", false), ("k", true), ("l", true)], "each change is told once");
    assert!(stored(&world, agent, "k").is_none());
    assert!(!world.store.keys().any(|(space, key)| *space == Space::World && key[0] == b'k'), "no use, no record");
}

#[test]
fn a_writer_that_missed_a_change_of_its_key_is_refused() {
    let mut world = TestWorld::new();
    let agent = world.spawn("a");
    let seen = world.ask(GetMemoryUse(agent)).unwrap().revision;
    put(&mut world, agent, seen, vec![entry("k", "1", None)]).unwrap();
    let refused = put(&mut world, agent, seen, vec![entry("k", "2", None)]).unwrap_err();
    assert_eq!(refused.code, Some(error_codes::MEMORY_CHANGED));
    let other = put(&mut world, agent, seen, vec![entry("l", "2", None)]).unwrap();
    assert_eq!(other.entries, 2, "another key does not disturb");
    for n in 0..limit::MEMORY_CHANGES_MAX {
        let now = world.ask(GetMemoryUse(agent)).unwrap().revision;
        put(&mut world, agent, now, vec![entry(&format!("n{n}"), "1", None)]).unwrap();
    }
    let refused = put(&mut world, agent, seen, vec![entry("z", "2", None)]).unwrap_err();
    assert_eq!(refused.code, Some(error_codes::MEMORY_CHANGED), "too far behind to know");
}

#[test]
fn bounds_are_kept_and_nothing_is_stored_of_a_refused_change() {
    let mut world = TestWorld::new();
    let agent = world.spawn("a");
    let many = |from: u32, to: u32| (from..to).map(|n| entry(&n.to_string(), "1", None)).collect::<Vec<_>>();
    let full = put(&mut world, agent, 0, many(0, limit::MEMORY_ENTRIES_MAX)).unwrap();
    let refused = put(&mut world, agent, full.revision, vec![entry("0", "2", Some(2)), entry("x", "1", None)]);
    assert_eq!(refused.unwrap_err().code.as_deref(), Some("memory_full"));
    assert_eq!(&*stored(&world, agent, "0").unwrap().value, "1");
    put(&mut world, agent, full.revision, vec![entry("0", "2", Some(2))]).unwrap();
    for (key, value, field) in [
        ("", "1".to_owned(), "key"),
        ("a\nb", "1".to_owned(), "key"),
        (&*"k".repeat(limit::MEMORY_KEY_BYTES_MAX + 1), "1".to_owned(), "key"),
        ("k", format!("\"{}\"", "v".repeat(limit::MEMORY_VALUE_BYTES_MAX)), "value"),
        ("k", nested(limit::MEMORY_VALUE_DEPTH_MAX + 1), "value"),
    ] {
        let refused = put(&mut world, agent, full.revision, vec![entry(key, &value, None)]).unwrap_err();
        assert_eq!(refused.field.as_deref(), Some(field));
    }
    let text = format!(r#"["{}\"{}",[]]"#, "[".repeat(200), "{".repeat(200));
    let other = world.spawn("b");
    let deep = [("k", nested(limit::MEMORY_VALUE_DEPTH_MAX)), ("l", text)];
    put(&mut world, other, 0, deep.iter().map(|(key, value)| entry(key, value, None)).collect()).unwrap();
}

/// A value of so many levels.
fn nested(levels: usize) -> String {
    format!(r#"{{"a":{}[]{}}}"#, "[".repeat(levels - 2), "]".repeat(levels - 2))
}

#[test]
fn a_removed_agent_takes_its_memory_along_even_through_a_crash() {
    let mut world = TestWorld::new();
    let agent = world.spawn("a");
    put(&mut world, agent, 0, vec![entry("k", "1", None)]).unwrap();
    world.ask(RemoveAgents(vec![agent])).unwrap();
    assert!(world.ask(GetMemoryUse(agent)).is_err());
    assert!(world.effects.iter().any(|effect| effect.get() == Some(&SweepAgent(agent))));
    world.restart();
    assert!(world.effects.iter().any(|effect| effect.get() == Some(&SweepAgent(agent))));
    world.outcome(AgentSwept(agent));
    world.restart();
    assert!(!world.effects.iter().any(|effect| effect.is::<SweepAgent>()));
}
