//! Entities and relations are stored and deleted, all or none.

use agentsvc_components::event::Event;
use agentsvc_components::kernel::record::Space;
use agentsvc_components::knowledge::record::{EntityRecord, KnowledgeUseRecord, RelationRecord};
use agentsvc_components::knowledge::{EntityKey, RelationKey};
use agentsvc_components::{Actor, AgentId, Refusal, Timestamp, TurnId};
use bevy_ecs::prelude::World;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::limits::KNOWLEDGE_CHANGE_ROWS_MAX;
use super::usage::{Change, change};
use super::{audit_kinds, key, names};
use crate::audit::{Audit, names as first_names};
use crate::event::told::Tell;
use crate::kernel::acting::Acting;
use crate::kernel::clock::Now;
use crate::kernel::command::{Answer, command};
use crate::kernel::outbox::Emit;
use crate::kernel::record;
use crate::taint;

/// Stores and deletes entities and relations of an agent's knowledge, all or none. The writer has looked at the rows, and
/// says what it saw of those that it replaces and deletes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ChangeKnowledge {
    /// Whose.
    pub agent: AgentId,
    /// The revision after which the writer looked at the rows.
    pub revision: u64,
    /// Entities to store, each key once.
    pub entities: Vec<PutEntity>,
    /// Relations to store, each key once. Their ends exist, or are stored with them.
    pub relations: Vec<PutRelation>,
    /// Entities to delete, each with the bytes of its row. No relation has them as an end, but those that are deleted here.
    pub gone_entities: Vec<(EntityKey, u64)>,
    /// Relations to delete, each with the bytes of its row.
    pub gone_relations: Vec<(RelationKey, u64)>,
    /// The turn that does it, if one does.
    pub by: Option<TurnId>,
}

/// One entity to store.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PutEntity {
    /// Its folded name and its type.
    pub key: EntityKey,
    /// What is stored, as the writer puts it together: `taint` is that of what stays of the old row and of what is imported;
    /// that of the turn which writes comes to it.
    pub record: EntityRecord,
    /// Bytes of the row that this replaces; `None` when the entity is new.
    pub replaces: Option<u64>,
}

/// One relation to store.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PutRelation {
    /// What it joins, and its type.
    pub key: RelationKey,
    /// What is stored; `taint` as in [`PutEntity`].
    pub record: RelationRecord,
    /// Bytes of the row that this replaces; `None` when the relation is new.
    pub replaces: Option<u64>,
}

/// The moment of a row that is stored now: the world fills it in.
pub const NOW: Timestamp = Timestamp(i64::MIN);

command! {
    write "change_knowledge" ChangeKnowledge => KnowledgeUseRecord, Id(|it| it.agent.0),
    |it, world| Answer::stored(run(world, it))
}

fn run(world: &mut World, command: ChangeKnowledge) -> Result<KnowledgeUseRecord, Refusal> {
    let more = checked(&command)?;
    let after = change(world, command.agent, command.revision, &more)?;
    audit(world, &command);
    let ChangeKnowledge { agent, entities, relations, gone_entities, gone_relations, by, .. } = command;
    let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let told = Event::KnowledgeUpdated {
        agent,
        entities: count(entities.len()),
        relations: count(relations.len()),
        deleted: count(gone_entities.len() + gone_relations.len()),
        by,
    };
    let (now, acting) = (world.resource::<Now>().0, taint::acting(world));
    let at = |moment: Timestamp| if moment == NOW { now } else { moment };
    for (entity, _) in gone_entities {
        world.op(record::op(Space::Content, key::entity_row(agent, &entity), None));
    }
    for (relation, _) in gone_relations {
        world.op(record::op(Space::Content, key::relation_row(agent, &relation), None));
        world.op(record::op(Space::Content, key::incoming_row(agent, &relation), None));
    }
    for PutEntity { key, mut record, .. } in entities {
        record.taint = record.taint.with(acting);
        (record.created_at, record.updated_at) = (at(record.created_at), at(record.updated_at));
        world.op(record::put_content(key::entity_row(agent, &key), &record));
    }
    for PutRelation { key, mut record, .. } in relations {
        record.taint = record.taint.with(acting);
        (record.created_at, record.updated_at) = (at(record.created_at), at(record.updated_at));
        world.op(record::op(Space::Content, key::incoming_row(agent, &key), Some(vec![record::VERSION])));
        world.op(record::put_content(key::relation_row(agent, &key), &record));
    }
    world.event(told);
    Ok(after)
}

/// By how much there will be more, when all of it may be stored.
fn checked(command: &ChangeKnowledge) -> Result<Change, Refusal> {
    let ChangeKnowledge { entities, relations, gone_entities, gone_relations, .. } = command;
    let most = KNOWLEDGE_CHANGE_ROWS_MAX;
    for (field, rows) in [
        ("entities", entities.len()),
        ("relations", relations.len()),
        ("entities", gone_entities.len()),
        ("relations", gone_relations.len()),
    ] {
        if rows > most {
            return Err(Refusal::bad_field(field, format!("{field}: more than {most} in one change")));
        }
    }
    let mut more = Change::default();
    for PutEntity { key, record, replaces } in entities {
        names::entity_name("name", &record.name)?;
        check_key(key)?;
        names::check_properties("properties", &record.properties)?;
        names::check_confidence("confidence", record.confidence)?;
        more.entities += more.put(record.bytes(key), *replaces);
    }
    for PutRelation { key, record, replaces } in relations {
        check_key(&key.source)?;
        check_key(&key.target)?;
        check_type("relation", &key.relation)?;
        names::check_properties("properties", &record.properties)?;
        names::check_confidence("confidence", record.confidence)?;
        more.relations += more.put(record.bytes(key), *replaces);
    }
    more.entities -= gone_entities.len() as i64;
    more.relations -= gone_relations.len() as i64;
    let gone = gone_entities.iter().map(|(_, bytes)| *bytes).chain(gone_relations.iter().map(|(_, bytes)| *bytes));
    more.bytes -= gone.map(u64::cast_signed).sum::<i64>();
    Ok(more)
}

/// Refuses a key that is not in the form in which keys are compared.
fn check_key(key: &EntityKey) -> Result<(), Refusal> {
    // Lower case may take more bytes than the name had.
    let is_name = !key.name.is_empty() && key.name.len() <= 3 * super::limits::ENTITY_NAME_BYTES_MAX;
    if !is_name || key.name.chars().any(char::is_control) || names::fold(&key.name) != *key.name {
        return Err(Refusal::bad_field("name", "name is not in its folded form"));
    }
    check_type("entity_type", &key.kind)
}

fn check_type(field: &str, word: &str) -> Result<(), Refusal> {
    if *names::type_name(field, word)? == *word {
        return Ok(());
    }
    Err(Refusal::bad_field(field, format!("{field} is not in its stored form")))
}

/// Puts a change on record. One that an agent makes itself is on record as its tool call already.
fn audit(world: &mut World, command: &ChangeKnowledge) {
    if matches!(world.resource::<Acting>().0, Actor::Agent { .. }) {
        return;
    }
    let ChangeKnowledge { agent, entities, relations, gone_entities, gone_relations, .. } = command;
    let mut put = |kind, entities: Vec<String>, relations: usize| {
        if entities.is_empty() && relations == 0 {
            return;
        }
        let (count, names) = first_names(entities.iter().map(String::as_str));
        world.audit(kind, *agent, json!({ "entities": count, "names": names, "relations": relations }));
    };
    let written = entities.iter().map(|entity| entity.key.to_string()).collect();
    put(audit_kinds::KNOWLEDGE_WRITTEN, written, relations.len());
    let deleted = gone_entities.iter().map(|(key, _)| key.to_string()).collect();
    put(audit_kinds::KNOWLEDGE_DELETED, deleted, gone_relations.len());
}
