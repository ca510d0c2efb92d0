//! What becomes of a batch, by what the rows say: which are new, which change, which stay.

use std::collections::BTreeMap;

use agentsvc_components::knowledge::record::{EntityRecord, RelationRecord};
use agentsvc_components::knowledge::{EntityKey, RelationKey};
use agentsvc_components::{AgentId, Refusal, TurnId};
use agentsvc_systems::knowledge::key::End;
use agentsvc_systems::knowledge::limits::KNOWLEDGE_TRIPLES_MAX;
use agentsvc_systems::knowledge::names::{check_properties, fold};
use agentsvc_systems::knowledge::{ChangeKnowledge, NOW, PutEntity, PutRelation};
use serde_json::{Map, Value};

use crate::http::error::ContentError;
use crate::knowledge::batch::{About, Batch, NewEnd, NewEntity, NewRelation, UNKNOWN, Written};
use crate::knowledge::store::Rows;

/// Why there is no plan.
pub(super) enum Stopped {
    /// It must not be stored.
    Refused(Refusal),
    /// The rows could not be read.
    Unread(ContentError),
}

impl From<Refusal> for Stopped {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<ContentError> for Stopped {
    fn from(error: ContentError) -> Self {
        Self::Unread(error)
    }
}

/// A change that grows.
pub(super) struct Plan<'a> {
    rows: Rows<'a>,
    entities: BTreeMap<EntityKey, PutEntity>,
    relations: BTreeMap<RelationKey, PutRelation>,
    gone_entities: BTreeMap<EntityKey, u64>,
    gone_relations: BTreeMap<RelationKey, u64>,
}

impl<'a> Plan<'a> {
    /// What becomes of `batch`.
    pub(super) fn of(rows: Rows<'a>, batch: &Batch) -> Result<Self, Stopped> {
        let (entities, relations, gone_entities, gone_relations) = Default::default();
        let mut plan = Self { rows, entities, relations, gone_entities, gone_relations };
        batch.entities.iter().try_for_each(|entity| plan.entity(entity))?;
        batch.relations.iter().try_for_each(|relation| plan.relation(relation))?;
        Ok(plan)
    }

    /// What it does.
    pub(super) fn written(&self) -> Written {
        let created = self.entities.values().filter(|put| put.replaces.is_none()).count();
        let relations = self.relations.values().filter(|put| put.replaces.is_none()).count();
        Written {
            entities_created: created,
            entities_updated: self.entities.len() - created,
            relations_created: relations,
            relations_updated: self.relations.len() - relations,
        }
    }

    /// The change; `None` when everything stays as it is.
    pub(super) fn change(self, agent: AgentId, revision: u64, by: Option<TurnId>) -> Option<ChangeKnowledge> {
        let Self { entities, relations, gone_entities, gone_relations, .. } = self;
        let is_empty = entities.is_empty() && relations.is_empty() && gone_entities.is_empty();
        (!is_empty).then(|| ChangeKnowledge {
            agent,
            revision,
            entities: entities.into_values().collect(),
            relations: relations.into_values().collect(),
            gone_entities: gone_entities.into_iter().collect(),
            gone_relations: gone_relations.into_iter().collect(),
            by,
        })
    }

    /// The entity as it will be so far, and the bytes of its row.
    fn entity_now(&self, key: &EntityKey) -> Result<Option<(EntityRecord, Option<u64>)>, ContentError> {
        if let Some(put) = self.entities.get(key) {
            return Ok(Some((put.record.clone(), put.replaces)));
        }
        if self.gone_entities.contains_key(key) {
            return Ok(None);
        }
        Ok(self.rows.entity(key)?.map(|record| {
            let bytes = record.bytes(key);
            (record, Some(bytes))
        }))
    }

    fn relation_now(&self, key: &RelationKey) -> Result<Option<(RelationRecord, Option<u64>)>, ContentError> {
        if let Some(put) = self.relations.get(key) {
            return Ok(Some((put.record.clone(), put.replaces)));
        }
        if self.gone_relations.contains_key(key) {
            return Ok(None);
        }
        Ok(self.rows.relation(key)?.map(|record| {
            let bytes = record.bytes(key);
            (record, Some(bytes))
        }))
    }

    fn entity(&mut self, new: &NewEntity) -> Result<(), Stopped> {
        let NewEntity { key, name, about } = new;
        if *key.kind != *UNKNOWN {
            self.adopt(key)?;
        }
        let now = self.entity_now(key)?;
        let replaces = match &now {
            Some((_, replaces)) => *replaces,
            None => self.gone_entities.remove(key),
        };
        let old = now.map(|(record, _)| record);
        let properties = merged(old.as_ref().map_or("", |old| &old.properties), about)?;
        let record = EntityRecord {
            name: old.as_ref().map_or_else(|| name.clone(), |old| old.name.clone()),
            properties,
            confidence: about.confidence.or(old.as_ref().map(|old| old.confidence)).unwrap_or(1.0),
            created_at: old.as_ref().map(|old| old.created_at).or(about.created_at).unwrap_or(NOW),
            updated_at: about.updated_at.unwrap_or(NOW),
            taint: old.as_ref().map(|old| old.taint).unwrap_or_default().with(about.taint),
        };
        let stays = |old: &EntityRecord| *old == EntityRecord { updated_at: old.updated_at, ..record.clone() };
        if !old.as_ref().is_some_and(stays) {
            self.entities.insert(key.clone(), PutEntity { key: key.clone(), record, replaces });
        }
        Ok(())
    }

    fn relation(&mut self, new: &NewRelation) -> Result<(), Stopped> {
        let (source, target) = (self.end(&new.source)?, self.end(&new.target)?);
        let key = RelationKey { source, relation: new.relation.clone(), target };
        self.put_relation(key, &new.about)
    }

    fn put_relation(&mut self, key: RelationKey, about: &About) -> Result<(), Stopped> {
        let now = self.relation_now(&key)?;
        let replaces = match &now {
            Some((_, replaces)) => *replaces,
            None => self.gone_relations.remove(&key),
        };
        let old = now.map(|(record, _)| record);
        let record = RelationRecord {
            confidence: about.confidence.or(old.as_ref().map(|old| old.confidence)).unwrap_or(1.0),
            properties: merged(old.as_ref().map_or("", |old| &old.properties), about)?,
            created_at: old.as_ref().map(|old| old.created_at).or(about.created_at).unwrap_or(NOW),
            updated_at: about.updated_at.unwrap_or(NOW),
            taint: old.as_ref().map(|old| old.taint).unwrap_or_default().with(about.taint),
        };
        let stays = |old: &RelationRecord| *old == RelationRecord { updated_at: old.updated_at, ..record.clone() };
        if !old.as_ref().is_some_and(stays) {
            self.relations.insert(key.clone(), PutRelation { key, record, replaces });
        }
        Ok(())
    }

    /// The entity that an end means. One that does not exist is made.
    fn end(&mut self, end: &NewEnd) -> Result<EntityKey, Stopped> {
        let (field, text) = match end {
            NewEnd::Entity(entity) => {
                self.entity(entity)?;
                return Ok(entity.key.clone());
            }
            NewEnd::Meant { field, text } => (field, text),
        };
        let mut meant: Vec<EntityKey> = self.rows.meant(text)?;
        meant.retain(|key| !self.gone_entities.contains_key(key));
        let name = fold(text);
        let written = self.entities.keys().filter(|key| *key.name == *name || key.to_string() == **text);
        meant.extend(written.cloned());
        meant.sort_unstable();
        meant.dedup();
        if meant.len() > 1 {
            meant.retain(|key| *key.kind != *UNKNOWN);
        }
        match &*meant {
            [] => {
                let new = NewEntity::new((field, field), text, UNKNOWN, About::default())?;
                self.entity(&new)?;
                Ok(new.key)
            }
            [one] => Ok(one.clone()),
            _ => {
                let text = format!("{field} means entities of several types; give the id, such as person:{name}");
                Err(Refusal::bad_field(&**field, text).into())
            }
        }
    }

    /// An entity that a relation named before its type was known gets this type: its relations become those of `key`.
    fn adopt(&mut self, key: &EntityKey) -> Result<(), Stopped> {
        let was = EntityKey { name: key.name.clone(), kind: UNKNOWN.into() };
        let Some((old, replaces)) = self.entity_now(&was)? else { return Ok(()) };
        let mut relations = self.rows.relations(End::Source(&was), None, None, KNOWLEDGE_TRIPLES_MAX)?;
        relations.extend(self.rows.relations(End::Target(&was), None, None, KNOWLEDGE_TRIPLES_MAX)?);
        let is_end = |relation: &&RelationKey| relation.source == was || relation.target == was;
        relations.extend(self.relations.keys().filter(is_end).cloned());
        relations.sort_unstable();
        relations.dedup();
        if self.gone_relations.len() + relations.len() >= KNOWLEDGE_TRIPLES_MAX {
            // Too many for one change: it stays beside the new one, and both have the name.
            return Ok(());
        }
        for from in relations {
            let Some((record, replaces)) = self.relation_now(&from)? else { continue };
            self.relations.remove(&from);
            self.gone_relations.extend(replaces.map(|bytes| (from.clone(), bytes)));
            let end = |end: EntityKey| if end == was { key.clone() } else { end };
            let to = RelationKey { source: end(from.source), relation: from.relation, target: end(from.target) };
            let about = about(&record.properties, record.confidence);
            let about = About {
                created_at: Some(record.created_at),
                updated_at: Some(record.updated_at),
                taint: record.taint,
                ..about
            };
            self.put_relation(to, &about)?;
        }
        self.entities.remove(&was);
        self.gone_entities.extend(replaces.map(|bytes| (was, bytes)));
        let about =
            About { created_at: Some(old.created_at), taint: old.taint, ..about(&old.properties, old.confidence) };
        self.entity(&NewEntity { key: key.clone(), name: old.name, about })
    }
}

fn about(properties: &str, confidence: f32) -> About {
    let properties = serde_json::from_str(properties).ok();
    About { properties, confidence: Some(confidence), ..About::default() }
}

/// Properties with those of `about` in their place, as compact JSON; empty when there are none.
fn merged(old: &str, about: &About) -> Result<Box<str>, Refusal> {
    let Some(new) = &about.properties else { return Ok(old.into()) };
    let mut properties: Map<String, Value> = serde_json::from_str(old).unwrap_or_default();
    properties.extend(new.clone());
    let text = if properties.is_empty() { String::new() } else { Value::Object(properties).to_string() };
    check_properties(&format!("{}properties", about.at), &text)?;
    Ok(text.into())
}
