//! What is to be written to an agent's knowledge.

use agentsvc_components::kernel::taint::Taint;
use agentsvc_components::knowledge::EntityKey;
use agentsvc_components::{Refusal, Timestamp};
use agentsvc_systems::knowledge::names;
use serde_json::{Map, Value};

/// The type of an entity that a relation names before its type is known.
pub const UNKNOWN: &str = "unknown";

/// Entities and relations to write together.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// The entities; those of one name and type are one.
    pub entities: Vec<NewEntity>,
    /// The relations; their ends are made where they do not exist.
    pub relations: Vec<NewRelation>,
}

/// What an entity and a relation have in common. What is not given stays as it is, or has the usual value.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// Where it stands in a request, with a dot behind it, for errors.
    pub at: Box<str>,
    /// Properties; those that exist under other keys stay.
    pub properties: Option<Map<String, Value>>,
    /// How sure it is; 1 where it is new.
    pub confidence: Option<f32>,
    /// When it was first stored, where that is to be kept.
    pub created_at: Option<Timestamp>,
    /// When it was last stored, where that is to be kept.
    pub updated_at: Option<Timestamp>,
    /// Untrusted content that it is known to come from.
    pub taint: Taint,
}

/// An entity to write.
#[derive(Clone, Debug)]
pub struct NewEntity {
    /// Its folded name and its type.
    pub key: EntityKey,
    /// Its name.
    pub name: Box<str>,
    /// The rest.
    pub about: About,
}

impl NewEntity {
    /// An entity of this name and type.
    ///
    /// # Errors
    /// 400 naming one of `fields`: the name and the type.
    pub fn new(fields: (&str, &str), name: &str, kind: &str, about: About) -> Result<Self, Refusal> {
        let key = names::entity_key(fields, name, kind)?;
        Ok(Self { key, name: names::entity_name(fields.0, name)?.into(), about })
    }
}

/// An end of a relation.
#[derive(Clone, Debug)]
pub enum NewEnd {
    /// This entity.
    Entity(NewEntity),
    /// The entity that this name or id means.
    Meant {
        /// The field that says it.
        field: Box<str>,
        /// The name or id.
        text: Box<str>,
    },
}

impl NewEnd {
    /// The end that a name, with or without a type, means.
    ///
    /// # Errors
    /// 400 naming one of `fields`: the name and the type.
    pub fn new(fields: (&str, &str), text: &str, kind: Option<&str>) -> Result<Self, Refusal> {
        if let Some(kind) = kind {
            return NewEntity::new(fields, text, kind, About::default()).map(Self::Entity);
        }
        let text = names::entity_name(fields.0, text)?.into();
        Ok(Self::Meant { field: fields.0.into(), text })
    }
}

/// A relation to write.
#[derive(Clone, Debug)]
pub struct NewRelation {
    /// Where it begins.
    pub source: NewEnd,
    /// Its type.
    pub relation: Box<str>,
    /// Where it ends.
    pub target: NewEnd,
    /// The rest.
    pub about: About,
}

/// What a batch did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Entities that are new.
    pub entities_created: usize,
    /// Entities that were changed.
    pub entities_updated: usize,
    /// Relations that are new.
    pub relations_created: usize,
    /// Relations that were changed.
    pub relations_updated: usize,
}
