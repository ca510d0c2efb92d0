//! What changes of knowledge store, count and refuse.

use agentsvc_components::agent::sweep::SweepAgent;
use agentsvc_components::event::Event;
use agentsvc_components::kernel::record::Space;
use agentsvc_components::kernel::taint::Taint;
use agentsvc_components::knowledge::record::{EntityRecord, RelationRecord};
use agentsvc_components::knowledge::{EntityKey, RelationKey};
use agentsvc_components::{AgentId, Refusal};

use super::*;
use crate::agent::RemoveAgents;
use crate::kernel::record::{decode, knowledge_prefix};
use crate::testing::TestWorld;

fn key(name: &str) -> EntityKey {
    names::entity_key(("name", "entity_type"), name, "person").unwrap()
}

fn entity(name: &str, replaces: Option<u64>) -> PutEntity {
    let record = EntityRecord {
        name: name.into(),
        properties: "".into(),
        confidence: 1.0,
        created_at: NOW,
        updated_at: NOW,
        taint: Taint::NONE,
    };
    PutEntity { key: key(name), record, replaces }
}

fn relation(source: &str, target: &str) -> PutRelation {
    let record = RelationRecord {
        confidence: 0.5,
        properties: "{\"a\":1}".into(),
        created_at: NOW,
        updated_at: NOW,
        taint: Taint::WEB,
    };
    PutRelation {
        key: RelationKey { source: key(source), relation: "knows".into(), target: key(target) },
        record,
        replaces: None,
    }
}

fn none(agent: AgentId, revision: u64) -> ChangeKnowledge {
    let (entities, relations, gone_entities, gone_relations) = Default::default();
    ChangeKnowledge { agent, revision, entities, relations, gone_entities, gone_relations, by: None }
}

/// Two entities and a relation between them.
fn pair(agent: AgentId, revision: u64) -> ChangeKnowledge {
    let entities = vec![entity("Ada", None), entity("Bob", None)];
    ChangeKnowledge { entities, relations: vec![relation("Ada", "Bob")], ..none(agent, revision) }
}

fn rows(world: &TestWorld, agent: AgentId) -> usize {
    let prefix = knowledge_prefix(agent);
    world.store.keys().filter(|(space, key)| *space == Space::Content && key.starts_with(&prefix)).count()
}

fn refused(reply: Result<KnowledgeUseRecord, Refusal>) -> Option<String> {
    let refusal = reply.unwrap_err();
    refusal.field.or(refusal.code.map(|code| code.to_string()))
}

#[test]
fn entities_and_relations_are_stored_counted_and_deleted() {
    let mut world = TestWorld::new();
    let agent = world.spawn("a");
    let zero = world.ask(GetKnowledgeUse(agent)).unwrap();
    assert_eq!((zero.entities, zero.relations, zero.bytes, zero.revision), (0, 0, 0, 0));
    let two = world.ask(pair(agent, 0)).unwrap();
    // Two times 3 + 6 + 3 bytes, and two times 9 + 5 + 9, and 7.
    assert_eq!((two.entities, two.relations, two.bytes, two.revision), (2, 1, 77, 1));
    assert_eq!(rows(&world, agent), 4);
    let row = key::relation_row(agent, &relation("Ada", "Bob").key);
    let stored: RelationRecord = decode(&row, &world.store[&(Space::Content, row.clone())]).unwrap();
    assert_eq!((stored.taint, stored.created_at), (Taint::WEB, world.now));
    let longer = PutEntity { replaces: Some(12), ..entity("Ada", None) };
    let longer = PutEntity { record: EntityRecord { properties: "{\"b\":2}".into(), ..longer.record }, ..longer };
    let same = world.ask(ChangeKnowledge { entities: vec![longer], ..none(agent, 1) }).unwrap();
    assert_eq!((same.entities, same.bytes, same.revision), (2, 84, 2), "the same entity is updated");
    world.restart();
    assert_eq!(world.ask(GetKnowledgeUse(agent)).unwrap(), same);
    let gone_relations = vec![(relation("Ada", "Bob").key, 53)];
    let gone_entities = vec![(key("Ada"), 19), (key("Bob"), 12)];
    let left = world.ask(ChangeKnowledge { gone_entities, gone_relations, ..none(agent, 2) }).unwrap();
    assert_eq!((left.entities, left.relations, left.bytes, rows(&world, agent)), (0, 0, 0, 0));
    let told = world.events.iter().filter_map(|event| match event {
        Event::KnowledgeUpdated { entities, relations, deleted, .. } => Some((*entities, *relations, *deleted)),
        _ => None,
    });
    assert_eq!(told.collect::<Vec<_>>(), [(2, 1, 0), (1, 0, 0), (0, 0, 3)], "each change is told once");
}

#[test]
fn a_writer_that_missed_a_change_is_refused() {
    let mut world = TestWorld::new();
    let (agent, other) = (world.spawn("a"), world.spawn("b"));
    world.ask(pair(agent, 0)).unwrap();
    assert_eq!(refused(world.ask(pair(agent, 0))).as_deref(), Some("knowledge_changed"));
    assert_eq!(world.ask(pair(other, 0)).unwrap().revision, 1, "another agent does not disturb");
    world.restart();
    assert_eq!(refused(world.ask(pair(agent, 0))).as_deref(), Some("knowledge_changed"), "after a restart, too");
    assert_eq!(rows(&world, agent), 4);
}

#[test]
fn what_may_not_be_stored_changes_nothing() {
    let mut world = TestWorld::new();
    let agent = world.spawn("a");
    let wrong_key = |name: &str, kind: &str| PutEntity {
        key: EntityKey { name: name.into(), kind: kind.into() },
        ..entity("Ada", None)
    };
    let with = |record: EntityRecord| PutEntity { record, ..entity("Ada", None) };
    let long = "p".repeat(limits::KNOWLEDGE_PROPERTIES_BYTES_MAX + 1);
    let record = entity("Ada", None).record;
    for (wrong, field) in [
        (wrong_key("Ada", "person"), "name"),
        (wrong_key("", "person"), "name"),
        (wrong_key("a\0b", "person"), "name"),
        (wrong_key("ada", "Person"), "entity_type"),
        (wrong_key("ada", "a:b"), "entity_type"),
        (with(EntityRecord { name: "".into(), ..record.clone() }), "name"),
        (with(EntityRecord { confidence: 1.5, ..record.clone() }), "confidence"),
        (with(EntityRecord { properties: long.into(), ..record }), "properties"),
    ] {
        let command = ChangeKnowledge { entities: vec![entity("Bob", None), wrong], ..none(agent, 0) };
        assert_eq!(refused(world.ask(command)).as_deref(), Some(field));
    }
    let mut loud = relation("Ada", "Bob");
    loud.key.relation = "KNOWS".into();
    let command = ChangeKnowledge { relations: vec![loud], ..none(agent, 0) };
    assert_eq!(refused(world.ask(command)).as_deref(), Some("relation"));
    let unknown = AgentId(uuid::Uuid::nil());
    assert!(world.ask(pair(unknown, 0)).is_err());
    assert_eq!((rows(&world, agent), world.ask(GetKnowledgeUse(agent)).unwrap().revision), (0, 0));
}

#[test]
fn knowledge_is_bounded_in_number_and_bytes() {
    let mut world = TestWorld::new();
    let agent = world.spawn("a");
    let mut revision = 0;
    let mut n = 0;
    while n < limits::KNOWLEDGE_ENTITIES_MAX {
        let upto = (n + 4_000).min(limits::KNOWLEDGE_ENTITIES_MAX);
        let entities = (n..upto).map(|n| entity(&format!("n{n}"), None)).collect();
        revision = world.ask(ChangeKnowledge { entities, ..none(agent, revision) }).unwrap().revision;
        n = upto;
    }
    let more = ChangeKnowledge { entities: vec![entity("one more", None)], ..none(agent, revision) };
    assert_eq!(refused(world.ask(more)).as_deref(), Some("knowledge_full"));
    let same = ChangeKnowledge { entities: vec![entity("n1", Some(10))], ..none(agent, revision) };
    assert!(world.ask(same).is_ok(), "what is there may still be changed");
    let other = world.spawn("b");
    let properties: Box<str> = "p".repeat(limits::KNOWLEDGE_PROPERTIES_BYTES_MAX).into();
    let mut full = None;
    for round in 0..3 {
        let entities = (0..2_000).map(|n| {
            let put = entity(&format!("r{round} n{n}"), None);
            PutEntity { record: EntityRecord { properties: properties.clone(), ..put.record }, ..put }
        });
        let command = ChangeKnowledge { entities: entities.collect(), ..none(other, round) };
        full = world.ask(command).err().and_then(|refusal| refusal.code);
    }
    assert_eq!(full.as_deref(), Some("knowledge_full"));
    let many = (0..=limits::KNOWLEDGE_CHANGE_ROWS_MAX).map(|n| entity(&n.to_string(), None)).collect();
    let command = ChangeKnowledge { entities: many, ..none(other, 2) };
    assert_eq!(refused(world.ask(command)).as_deref(), Some("entities"));
}

#[test]
fn a_removed_agent_takes_its_knowledge_along() {
    let mut world = TestWorld::new();
    let agent = world.spawn("a");
    world.ask(pair(agent, 0)).unwrap();
    world.ask(RemoveAgents(vec![agent])).unwrap();
    assert!(world.ask(GetKnowledgeUse(agent)).is_err());
    assert!(!world.store.keys().any(|(space, key)| *space == Space::World && key[0] == b'G'));
    assert!(world.effects.iter().any(|effect| effect.get() == Some(&SweepAgent(agent))));
    let prefixes = record::agent_prefixes(agent);
    assert!(prefixes.iter().any(|prefix| key::entity_row(agent, &key("Ada")).starts_with(prefix)));
}
