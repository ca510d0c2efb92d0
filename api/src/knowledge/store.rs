//! Agents' knowledge as routes and tools read it.

use agentsvc_components::AgentId;
use agentsvc_components::knowledge::record::{EntityRecord, RelationRecord};
use agentsvc_components::knowledge::{EntityKey, RelationKey};
use agentsvc_systems::kernel::record;
use agentsvc_systems::knowledge::key::{self, End};
use agentsvc_systems::knowledge::names;

use crate::http::error::ContentError;

/// A row: its key and its value.
pub type KnowledgeRow = (Vec<u8>, Vec<u8>);

/// Reads rows of the content space. Implemented where the disk is known. The calls may touch the disk: on a tokio worker use
/// `spawn_blocking`.
pub trait KnowledgeStore: Send + Sync + 'static {
    /// The value of the row with this key; `None` when there is none.
    fn value(&self, key: &[u8]) -> Result<Option<Vec<u8>>, ContentError>;

    /// Rows whose keys begin with `prefix`, in the order of their keys, behind `after`.
    fn rows(&self, prefix: &[u8], after: Option<&[u8]>, limit: usize) -> Result<Vec<KnowledgeRow>, ContentError>;
}

/// Entities of one name that are looked at: each has another type.
const NAMESAKES_MAX: usize = 64;

/// The rows of one agent.
#[derive(Clone, Copy)]
pub struct Rows<'a> {
    /// Where they are.
    pub store: &'a dyn KnowledgeStore,
    /// Whose.
    pub agent: AgentId,
}

fn decoded<T: serde::de::DeserializeOwned>(key: &[u8], value: &[u8]) -> Result<T, ContentError> {
    record::decode(key, value).map_err(|error| ContentError::Failed(error.to_string()))
}

fn damaged(key: &[u8]) -> ContentError {
    ContentError::Failed(format!("the row {} is damaged", record::hex(key)))
}

impl Rows<'_> {
    /// One entity.
    ///
    /// # Errors
    /// The store failed.
    pub fn entity(&self, entity: &EntityKey) -> Result<Option<EntityRecord>, ContentError> {
        let key = key::entity_row(self.agent, entity);
        self.store.value(&key)?.map(|value| decoded(&key, &value)).transpose()
    }

    /// One relation.
    ///
    /// # Errors
    /// The store failed.
    pub fn relation(&self, relation: &RelationKey) -> Result<Option<RelationRecord>, ContentError> {
        let key = key::relation_row(self.agent, relation);
        self.store.value(&key)?.map(|value| decoded(&key, &value)).transpose()
    }

    /// Entities in the order of their names, behind `after`.
    ///
    /// # Errors
    /// The store failed.
    pub fn entities(
        &self,
        after: Option<&EntityKey>,
        limit: usize,
    ) -> Result<Vec<(EntityKey, EntityRecord)>, ContentError> {
        let after = after.map(|entity| key::entity_row(self.agent, entity));
        let rows = self.store.rows(&key::entities_prefix(self.agent, None), after.as_deref(), limit)?;
        let entity = |(key, value): KnowledgeRow| {
            Ok((key::parse_entity(&key).ok_or_else(|| damaged(&key))?, decoded(&key, &value)?))
        };
        rows.into_iter().map(entity).collect()
    }

    /// Relations with this end, of one type or of all, behind `after`.
    ///
    /// # Errors
    /// The store failed.
    pub fn relations(
        &self,
        end: End<'_>,
        relation: Option<&str>,
        after: Option<&RelationKey>,
        limit: usize,
    ) -> Result<Vec<RelationKey>, ContentError> {
        let after = after.map(|relation| key::row_at(self.agent, end, relation));
        let rows =
            self.store.rows(&key::relations_prefix(self.agent, end, relation), after.as_deref(), limit)?.into_iter();
        rows.map(|(key, _)| key::parse_relation(&key).ok_or_else(|| damaged(&key))).collect()
    }

    /// The entities with this name, of any type.
    ///
    /// # Errors
    /// The store failed.
    pub fn named(&self, name: &str) -> Result<Vec<EntityKey>, ContentError> {
        let prefix = key::entities_prefix(self.agent, Some(&names::fold(name)));
        let rows = self.store.rows(&prefix, None, NAMESAKES_MAX)?.into_iter();
        rows.map(|(key, _)| key::parse_entity(&key).ok_or_else(|| damaged(&key))).collect()
    }

    /// The entities that a text means: those with this name, else the one with this id.
    ///
    /// # Errors
    /// The store failed.
    pub fn meant(&self, text: &str) -> Result<Vec<EntityKey>, ContentError> {
        let named = self.named(text)?;
        if !named.is_empty() {
            return Ok(named);
        }
        Ok(self.identified(text)?.map(|(entity, _)| entity).into_iter().collect())
    }

    /// The entity with this id.
    ///
    /// # Errors
    /// The store failed.
    pub fn identified(&self, id: &str) -> Result<Option<(EntityKey, EntityRecord)>, ContentError> {
        let Some((kind, name)) = id.split_once(':') else { return Ok(None) };
        let Ok(entity) = names::entity_key(("id", "id"), name, kind) else { return Ok(None) };
        Ok(self.entity(&entity)?.map(|record| (entity, record)))
    }
}
