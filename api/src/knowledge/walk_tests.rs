//! Walks and plans against a plain model of the graph.

use std::collections::{BTreeMap, BTreeSet};

use agentsvc_components::kernel::taint::Taint;
use agentsvc_components::knowledge::record::{EntityRecord, RelationRecord};
use agentsvc_components::knowledge::{EntityKey, RelationKey};
use agentsvc_components::{AgentId, Timestamp};
use agentsvc_systems::kernel::record;
use agentsvc_systems::knowledge::key;
use proptest::prelude::*;
use uuid::Uuid;

use crate::http::error::ContentError;
use crate::knowledge::batch::{About, Batch, NewEnd, NewEntity, NewRelation, UNKNOWN};
use crate::knowledge::plan::Plan;
use crate::knowledge::store::{KnowledgeRow, KnowledgeStore, Rows};
use crate::knowledge::walk::{Pattern, walk};

const AGENT: AgentId = AgentId(Uuid::from_u128(7));
const OTHER: AgentId = AgentId(Uuid::from_u128(8));

/// Rows in memory.
#[derive(Default)]
struct Disk(BTreeMap<Vec<u8>, Vec<u8>>);

impl KnowledgeStore for Disk {
    fn value(&self, key: &[u8]) -> Result<Option<Vec<u8>>, ContentError> {
        Ok(self.0.get(key).cloned())
    }

    fn rows(&self, prefix: &[u8], after: Option<&[u8]>, limit: usize) -> Result<Vec<KnowledgeRow>, ContentError> {
        let rows =
            self.0.iter().filter(|(key, _)| key.starts_with(prefix) && after.is_none_or(|after| &***key > after));
        Ok(rows.take(limit).map(|(key, value)| (key.clone(), value.clone())).collect())
    }
}

impl Disk {
    fn put_entity(&mut self, agent: AgentId, entity: &EntityKey, record: &EntityRecord) {
        self.0.insert(key::entity_row(agent, entity), record::encode(record));
    }

    fn put_relation(&mut self, agent: AgentId, relation: &RelationKey, record: &RelationRecord) {
        self.0.insert(key::incoming_row(agent, relation), vec![1]);
        self.0.insert(key::relation_row(agent, relation), record::encode(record));
    }

    /// Does what the world would do.
    fn apply(&mut self, batch: &Batch) {
        let plan = Plan::of(Rows { store: self, agent: AGENT }, batch).ok().expect("the batch is sound");
        let Some(change) = plan.change(AGENT, 0, None) else { return };
        for (entity, bytes) in &change.gone_entities {
            let row = self.0.remove(&key::entity_row(AGENT, entity)).expect("it was seen");
            assert_eq!(record::decode::<EntityRecord>(b"", &row).unwrap().bytes(entity), *bytes);
        }
        for (relation, bytes) in &change.gone_relations {
            let row = self.0.remove(&key::relation_row(AGENT, relation)).expect("it was seen");
            self.0.remove(&key::incoming_row(AGENT, relation));
            assert_eq!(record::decode::<RelationRecord>(b"", &row).unwrap().bytes(relation), *bytes);
        }
        for put in change.entities {
            let old = self.0.get(&key::entity_row(AGENT, &put.key));
            let old = old.map(|old| record::decode::<EntityRecord>(b"", old).unwrap().bytes(&put.key));
            assert_eq!(old, put.replaces, "{}", put.key);
            self.put_entity(AGENT, &put.key, &put.record);
        }
        for put in change.relations {
            let old = self.0.get(&key::relation_row(AGENT, &put.key));
            let old = old.map(|old| record::decode::<RelationRecord>(b"", old).unwrap().bytes(&put.key));
            assert_eq!(old, put.replaces, "{:?}", put.key);
            self.put_relation(AGENT, &put.key, &put.record);
        }
    }

    fn rows_of(&self) -> Rows<'_> {
        Rows { store: self, agent: AGENT }
    }

    /// Every relation has ends that exist, and stands in both orders.
    fn check(&self) {
        let all: Vec<_> = self.0.keys().filter_map(|key| key::parse_relation(key)).collect();
        let each: BTreeSet<_> = all.iter().collect();
        assert_eq!(all.len(), 2 * each.len());
        for relation in each {
            for end in [&relation.source, &relation.target] {
                assert!(self.0.contains_key(&key::entity_row(AGENT, end)), "{end} of {relation:?} does not exist");
            }
        }
    }
}

fn entity(n: u8) -> EntityKey {
    EntityKey { name: format!("n{n}").into(), kind: "thing".into() }
}

fn edge((source, relation, target): (u8, bool, u8)) -> RelationKey {
    let relation = if relation { "owns" } else { "own" }.into();
    RelationKey { source: entity(source), relation, target: entity(target) }
}

fn relation_record() -> RelationRecord {
    let (properties, taint) = (Box::default(), Taint::NONE);
    RelationRecord { confidence: 1.0, properties, created_at: Timestamp(0), updated_at: Timestamp(0), taint }
}

/// The relations that a walk may take, by the plainest means: all entities that are so many steps away, step by step.
fn reached(
    edges: &BTreeSet<RelationKey>,
    from: &BTreeSet<EntityKey>,
    depth: u8,
    back: bool,
) -> Vec<BTreeSet<EntityKey>> {
    let mut levels = vec![from.clone()];
    for _ in 0..depth {
        let last = levels.last().unwrap().clone();
        let step = |edge: &RelationKey| {
            let (begin, end) = if back { (&edge.target, &edge.source) } else { (&edge.source, &edge.target) };
            last.contains(begin).then(|| end.clone())
        };
        let next: BTreeSet<_> = edges.iter().filter_map(step).chain(last.iter().cloned()).collect();
        levels.push(next);
    }
    levels
}

fn expected(edges: &BTreeSet<RelationKey>, pattern: &Pattern) -> BTreeSet<RelationKey> {
    let fits = |edge: &&RelationKey| pattern.relation.as_ref().is_none_or(|relation| edge.relation == *relation);
    let edges: BTreeSet<_> = edges.iter().filter(fits).cloned().collect();
    let depth = usize::from(pattern.depth);
    let levels = |seeds: &Option<Vec<EntityKey>>, back| {
        let seeds = seeds.as_ref().map(|seeds| seeds.iter().cloned().collect());
        seeds.map(|seeds: BTreeSet<_>| reached(&edges, &seeds, pattern.depth, back))
    };
    let (ahead, behind) = (levels(&pattern.source, false), levels(&pattern.target, true));
    let on_way = |edge: &RelationKey| match (&ahead, &behind) {
        (None, None) => true,
        (Some(ahead), None) => ahead[depth - 1].contains(&edge.source),
        (None, Some(behind)) => behind[depth - 1].contains(&edge.target),
        (Some(ahead), Some(behind)) => (0..depth)
            .any(|before| ahead[before].contains(&edge.source) && behind[depth - 1 - before].contains(&edge.target)),
    };
    edges.iter().filter(|edge| on_way(edge)).cloned().collect()
}

fn ends() -> impl Strategy<Value = Option<Vec<u8>>> {
    prop::option::of(prop::collection::vec(0..8_u8, 0..3))
}

proptest! {
    #[test]
    fn a_walk_finds_what_steps_find(
        edges in prop::collection::btree_set((0..8_u8, any::<bool>(), 0..8_u8), 0..40),
        (source, target) in (ends(), ends()),
        (relation, depth, limit) in (prop::option::of(any::<bool>()), 1..=10_u8, 1..60_usize),
    ) {
        let edges: BTreeSet<_> = edges.into_iter().map(edge).collect();
        let mut disk = Disk::default();
        edges.iter().for_each(|edge| disk.put_relation(AGENT, edge, &relation_record()));
        // What another agent knows is never found.
        (0..8).for_each(|n| disk.put_relation(OTHER, &edge((n, true, 7 - n)), &relation_record()));
        let of = |ends: Option<Vec<u8>>| ends.map(|ends| ends.into_iter().map(entity).collect());
        let relation = relation.map(|owns| Box::from(if owns { "owns" } else { "own" }));
        let pattern = Pattern { source: of(source), relation, target: of(target), depth, limit, after: None };
        let expected = expected(&edges, &pattern);
        let found = walk(disk.rows_of(), &pattern).unwrap();
        let each: BTreeSet<_> = found.relations.iter().cloned().collect();
        prop_assert_eq!(each.len(), found.relations.len(), "each once");
        prop_assert!(each.is_subset(&expected), "{:?} are not in {:?}", each, expected);
        prop_assert_eq!(each.len(), expected.len().min(limit));
        prop_assert_eq!(found.is_cut, expected.len() > limit);
        // The nearest come first.
        if let (Some(source), None) = (&pattern.source, &pattern.target) {
            let levels = reached(&edges, &source.iter().cloned().collect(), depth, false);
            let fits = |edge: &&RelationKey| pattern.relation.as_ref().is_none_or(|relation| edge.relation == *relation);
            if pattern.relation.is_none() {
                let near = |edge: &RelationKey| levels.iter().position(|level| level.contains(&edge.source));
                prop_assert!(found.relations.iter().filter(fits).map(near).is_sorted());
            }
        }
    }

    #[test]
    fn pages_without_ends_give_every_relation_once(
        edges in prop::collection::btree_set((0..8_u8, any::<bool>(), 0..8_u8), 0..40),
        limit in 1..7_usize,
    ) {
        let edges: BTreeSet<_> = edges.into_iter().map(edge).collect();
        let mut disk = Disk::default();
        edges.iter().for_each(|edge| disk.put_relation(AGENT, edge, &relation_record()));
        let mut pattern = Pattern { depth: 1, limit, ..Pattern::default() };
        let mut all = Vec::new();
        loop {
            let page = walk(disk.rows_of(), &pattern).unwrap();
            all.extend(page.relations);
            if !page.is_cut {
                break;
            }
            pattern.after = all.last().cloned();
        }
        prop_assert!(all.iter().eq(&edges));
    }

    #[test]
    fn batches_leave_a_whole_graph(
        batches in prop::collection::vec(prop::collection::vec((0..4_u8, 0..4_u8, 0..4_u8), 1..8), 1..6),
    ) {
        let mut disk = Disk::default();
        for items in batches {
            let mut batch = Batch::default();
            for (what, one, other) in items {
                let text = |n: u8| format!("N{n}");
                let new = |n: u8, kind| NewEntity::new(("a", "b"), &text(n), kind, About::default()).unwrap();
                let end = |n: u8| if n == 3 { NewEnd::Entity(new(n, "thing")) } else { NewEnd::new(("a", "b"), &text(n), None).unwrap() };
                match what {
                    0 => batch.entities.push(new(one, "thing")),
                    1 => batch.entities.push(new(one, UNKNOWN)),
                    _ => {
                        let relation = "knows".into();
                        batch.relations.push(NewRelation { source: end(one), relation, target: end(other), about: About::default() });
                    }
                }
            }
            disk.apply(&batch);
            disk.check();
            // The same once more changes nothing.
            let again = Plan::of(disk.rows_of(), &batch).ok().expect("it was sound before");
            let is_mixed = batch.entities.iter().any(|entity| *entity.key.kind == *UNKNOWN);
            prop_assert!(is_mixed || again.change(AGENT, 0, None).is_none());
        }
    }
}

/// A long chain with a hub of many relations at its end.
#[test]
fn a_walk_is_bounded_in_depth_entities_and_relations() {
    let chain = |n: u32| EntityKey { name: format!("c{n:05}").into(), kind: "thing".into() };
    let mut disk = Disk::default();
    let relation = |source, target| RelationKey { source, relation: "next".into(), target };
    (0..30).for_each(|n| disk.put_relation(AGENT, &relation(chain(n), chain(n + 1)), &relation_record()));
    let pattern = Pattern { source: Some(vec![chain(0)]), depth: 10, limit: 1_000, ..Pattern::default() };
    let found = walk(disk.rows_of(), &pattern).unwrap();
    assert_eq!((found.relations.len(), found.is_cut), (10, false));
    (100..1_400).for_each(|n| disk.put_relation(AGENT, &relation(chain(1), chain(n)), &relation_record()));
    let found = walk(disk.rows_of(), &pattern).unwrap();
    assert_eq!((found.relations.len(), found.is_cut), (1_000, true));
    let one = Pattern {
        source: Some(vec![chain(1)]),
        target: Some(vec![chain(1_399)]),
        depth: 1,
        limit: 1,
        ..pattern.clone()
    };
    assert_eq!(walk(disk.rows_of(), &one).unwrap().relations, [relation(chain(1), chain(1_399))]);
    let both = Pattern { target: Some(vec![chain(1_399)]), ..pattern };
    let found = walk(disk.rows_of(), &both).unwrap();
    let expected = [relation(chain(0), chain(1)), relation(chain(1), chain(1_399))];
    assert_eq!((found.relations.as_slice(), found.is_cut), (expected.as_slice(), false));
}

#[test]
fn an_entity_that_gets_a_type_takes_its_relations_along() {
    let mut disk = Disk::default();
    let end = |text: &str| NewEnd::new(("source", "source"), text, None).unwrap();
    let knows = |source: &str, target: &str| NewRelation {
        source: end(source),
        relation: "knows".into(),
        target: end(target),
        about: About { taint: Taint::WEB, confidence: Some(0.5), ..About::default() },
    };
    let relations = vec![knows("Ada", "Bob"), knows("Bob", "ada"), knows("ADA", "Ada")];
    disk.apply(&Batch { relations, ..Batch::default() });
    assert_eq!(disk.rows_of().named("Ada").unwrap().len(), 1);
    let person = NewEntity::new(("name", "entity_type"), "Ada", "person", About::default()).unwrap();
    disk.apply(&Batch { entities: vec![person], ..Batch::default() });
    disk.check();
    let named = disk.rows_of().named("ada").unwrap();
    assert_eq!(named.iter().map(ToString::to_string).collect::<Vec<_>>(), ["person:ada"]);
    let pattern = Pattern { depth: 1, limit: 10, ..Pattern::default() };
    let found = walk(disk.rows_of(), &pattern).unwrap().relations;
    assert_eq!(found.len(), 3);
    assert!(found.iter().all(|edge| disk.rows_of().relation(edge).unwrap().unwrap().taint == Taint::WEB));
    // A name of several types says nothing; the id does.
    let tool = NewEntity::new(("name", "entity_type"), "Ada", "tool", About::default()).unwrap();
    disk.apply(&Batch { entities: vec![tool], ..Batch::default() });
    let batch = Batch { relations: vec![knows("Ada", "Bob")], ..Batch::default() };
    assert!(Plan::of(disk.rows_of(), &batch).is_err());
    disk.apply(&Batch { relations: vec![knows("tool:Ada", "Bob")], ..Batch::default() });
    assert_eq!(walk(disk.rows_of(), &pattern).unwrap().relations.len(), 4);
}
