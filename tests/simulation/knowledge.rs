//! The client changes what agents know, as the API does it: ask what is durable, look at the rows, bring what was seen.

use agentsvc_components::AgentId;
use agentsvc_components::kernel::taint::Taint;
use agentsvc_components::knowledge::record::{EntityRecord, KnowledgeUseRecord, RelationRecord};
use agentsvc_components::knowledge::{EntityKey, RelationKey};
use agentsvc_systems::agent::GetAgent;
use agentsvc_systems::kernel::record::{self, knowledge_prefix};
use agentsvc_systems::knowledge::{ChangeKnowledge, GetKnowledgeUse, NOW, PutEntity, PutRelation, key};

use super::client::agent;
use super::facts::GONE;
use super::harness::Harness;

fn entity(n: usize) -> EntityKey {
    EntityKey { name: format!("e{n}").into(), kind: "thing".into() }
}

fn relation(source: usize, target: usize) -> RelationKey {
    RelationKey { source: entity(source), relation: "knows".into(), target: entity(target) }
}

fn stored(harness: &Harness, agent: AgentId, of: &RelationKey) -> Option<RelationRecord> {
    let row = harness.disk.content.get(&key::relation_row(agent, of))?;
    record::decode(b"g", row).ok()
}

/// A relation is written, with its ends, or deleted.
pub(crate) fn act(harness: &mut Harness, is_put: bool) {
    let Some(agent) = agent(harness) else { return };
    let (source, target) = (harness.rng.below(4), harness.rng.below(4));
    let (of, value) = (relation(source, target), harness.text("value"));
    harness.ask(GetKnowledgeUse(agent), move |harness, seen| {
        let old = stored(harness, agent, &of).map(|record| record.bytes(&of));
        let name = format!("knowledge/{agent}/{source}-{target}");
        let (entities, relations, gone_entities, gone_relations) = Default::default();
        let (revision, by) = (seen.revision, None);
        let mut change = ChangeKnowledge { agent, revision, entities, relations, gone_entities, gone_relations, by };
        let fact = if is_put {
            for end in [&of.source, &of.target] {
                let is_known = harness.disk.content.contains_key(&key::entity_row(agent, end));
                if !is_known && change.entities.iter().all(|put: &PutEntity| put.key != *end) {
                    change.entities.push(new_entity(end));
                }
            }
            let properties: Box<str> = format!("{{\"value\":{value:?}}}").into();
            let fact = harness.facts.submit(name, &*properties);
            let (confidence, taint) = (1.0, Taint::NONE);
            let record = RelationRecord { confidence, properties, created_at: NOW, updated_at: NOW, taint };
            change.relations.push(PutRelation { key: of, record, replaces: old });
            fact
        } else {
            let Some(bytes) = old else { return };
            change.gone_relations.push((of, bytes));
            harness.facts.submit(name, GONE)
        };
        harness.ask(change, move |harness, _| harness.facts.acknowledge(fact));
    });
}

fn new_entity(end: &EntityKey) -> PutEntity {
    let (name, properties, confidence, taint) = (end.name.clone(), Box::default(), 1.0, Taint::NONE);
    let record = EntityRecord { name, properties, confidence, created_at: NOW, updated_at: NOW, taint };
    PutEntity { key: end.clone(), record, replaces: None }
}

/// What the relation between two entities, such as `0-3`, says.
pub(crate) fn register(harness: &Harness, agent: &str, between: &str) -> Option<String> {
    let (source, target) = between.split_once('-')?;
    let of = relation(source.parse().ok()?, target.parse().ok()?);
    let record = stored(harness, agent.parse().ok()?, &of);
    Some(record.map_or_else(|| GONE.to_owned(), |record| record.properties.into()))
}

/// What is counted is what is stored.
pub(crate) fn end(harness: &mut Harness) -> Result<(), String> {
    for (agent, _) in harness.known.sessions.clone() {
        if harness.read(GetAgent(agent)).is_err() {
            continue;
        }
        let row = harness.disk.world.get(&[&b"G"[..], agent.0.as_bytes()].concat());
        let row = row.map(|row| record::decode::<KnowledgeUseRecord>(b"G", row).map_err(|error| error.to_string()));
        let counted = row.transpose()?.map_or((0, 0, 0), |used| (used.entities, used.relations, used.bytes));
        let (mut entities, mut rows, mut bytes) = (0, 0, 0);
        let prefix = knowledge_prefix(agent);
        let stored = harness.disk.content.range(prefix.clone()..).take_while(|(key, _)| key.starts_with(&prefix));
        for (row, value) in stored {
            if let Some(of) = key::parse_entity(row) {
                entities += 1;
                bytes += record::decode::<EntityRecord>(row, value).map_err(|error| error.to_string())?.bytes(&of);
            } else if let Some(of) = key::parse_relation(row) {
                rows += 1;
                if *row == key::relation_row(agent, &of) {
                    let record = record::decode::<RelationRecord>(row, value).map_err(|error| error.to_string())?;
                    bytes += record.bytes(&of);
                }
            }
        }
        if rows % 2 != 0 || counted != (entities, rows / 2, bytes) {
            return Err(format!(
                "agent {agent} knows {entities} entities and {rows} rows of relations of {bytes} bytes, counted {counted:?}"
            ));
        }
    }
    Ok(())
}
