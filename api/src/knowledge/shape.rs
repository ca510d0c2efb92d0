//! The shapes of knowledge in JSON.

use agentsvc_components::kernel::taint::Taint;
use agentsvc_components::knowledge::record::{EntityRecord, RelationRecord};
use agentsvc_components::knowledge::{EntityKey, RelationKey};
use agentsvc_systems::knowledge::names;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::http::error::Error;
use crate::http::timestamp::{self, Moment};
use crate::knowledge::batch::{About, NewEnd, NewEntity, NewRelation};
use crate::knowledge::graph::Found;

/// What stands in the place of properties that there are none of.
const NO_PROPERTIES: &str = "{}";

/// Stored properties as JSON.
pub fn properties(stored: &str) -> Box<RawValue> {
    let text = if stored.is_empty() { NO_PROPERTIES } else { stored };
    // What is stored was written by us as JSON.
    RawValue::from_string(text.to_owned()).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// An entity.
#[derive(Serialize, JsonSchema)]
pub(crate) struct EntityView {
    /// `<type>:<name>`, the name in lower case.
    id: String,
    /// As it was first written.
    name: Box<str>,
    entity_type: Box<str>,
    #[schemars(with = "Map<String, Value>")]
    properties: Box<RawValue>,
    /// 0 to 1.
    confidence: f32,
    created_at: Moment,
    updated_at: Moment,
    /// Sources of untrusted content that it comes from.
    taint: Vec<&'static str>,
}

impl EntityView {
    pub(crate) fn of(key: EntityKey, record: EntityRecord) -> Self {
        Self {
            id: key.to_string(),
            name: record.name,
            entity_type: key.kind,
            properties: properties(&record.properties),
            confidence: record.confidence,
            created_at: Moment(record.created_at),
            updated_at: Moment(record.updated_at),
            taint: record.taint.words(),
        }
    }
}

/// An end of a relation.
#[derive(Serialize, JsonSchema)]
pub(crate) struct EndView {
    /// The id of the entity.
    id: String,
    name: Box<str>,
    entity_type: Box<str>,
}

/// A relation.
#[derive(Serialize, JsonSchema)]
pub(crate) struct RelationView {
    r#type: Box<str>,
    /// 0 to 1.
    confidence: f32,
    #[schemars(with = "Map<String, Value>")]
    properties: Box<RawValue>,
    created_at: Moment,
    updated_at: Moment,
    /// Sources of untrusted content that it comes from.
    taint: Vec<&'static str>,
}

/// A relation and what it joins.
#[derive(Serialize, JsonSchema)]
pub(crate) struct MatchView {
    source: EndView,
    relation: RelationView,
    target: EndView,
}

/// What a query found.
#[derive(Serialize, JsonSchema)]
pub(crate) struct FoundView {
    matches: Vec<MatchView>,
    /// Number of `matches`.
    count: usize,
    /// The entities of `matches`, and those that the query names.
    entities: Vec<EntityView>,
    /// There may be more matches: a limit was reached.
    truncated: bool,
    /// Cursor of the next page of a query with neither `source` nor `target`.
    next_cursor: Option<String>,
}

impl FoundView {
    /// The relations alone.
    pub(crate) fn into_matches(self) -> Vec<MatchView> {
        self.matches
    }

    pub(crate) fn of(found: Found, next_cursor: Option<String>) -> Self {
        let Found { relations, entities, is_cut, .. } = found;
        let end = |key: &EntityKey| {
            let name = entities.get(key).map_or_else(|| key.name.clone(), |record| record.name.clone());
            EndView { id: key.to_string(), name, entity_type: key.kind.clone() }
        };
        let view = |(key, record): (RelationKey, RelationRecord)| MatchView {
            source: end(&key.source),
            target: end(&key.target),
            relation: RelationView {
                r#type: key.relation,
                confidence: record.confidence,
                properties: properties(&record.properties),
                created_at: Moment(record.created_at),
                updated_at: Moment(record.updated_at),
                taint: record.taint.words(),
            },
        };
        let matches: Vec<_> = relations.into_iter().map(view).collect();
        let entities = entities.into_iter().map(|(key, record)| EntityView::of(key, record)).collect();
        Self { count: matches.len(), matches, entities, truncated: is_cut, next_cursor }
    }
}

/// A body with what a relation or an entity may say of itself.
///
/// The fields are written into each: with `#[serde(flatten)]` errors could not name them.
macro_rules! body {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$about])*
        #[derive(Deserialize, JsonSchema)]
        pub(crate) struct $name {
            $($(#[$doc])* $field: $type,)*
            /// At most 4 KiB; the values of other keys stay.
            #[serde(default)]
            properties: Option<Map<String, Value>>,
            /// 0 to 1. Default: as it was, or 1.
            #[serde(default)]
            confidence: Option<f32>,
            /// RFC 3339. Default: as it was, or now.
            #[serde(default)]
            created_at: Option<String>,
            /// RFC 3339. Default: now.
            #[serde(default)]
            updated_at: Option<String>,
            /// Sources of untrusted content that it comes from, in addition to those known already.
            #[serde(default)]
            taint: Vec<String>,
        }

        impl $name {
            /// Reads what it says of itself; `at` is where it stands, with a dot behind it.
            fn about(&mut self, at: &str) -> Result<About, Error> {
                let (created_at, updated_at) = (self.created_at.take(), self.updated_at.take());
                about(at, (self.properties.take(), self.confidence), (created_at, updated_at), &self.taint)
            }
        }
    };
}

fn about(
    at: &str,
    (properties, confidence): (Option<Map<String, Value>>, Option<f32>),
    (created_at, updated_at): (Option<String>, Option<String>),
    words: &[String],
) -> Result<About, Error> {
    let field = |name: &str| format!("{at}{name}");
    let moment = |name: &str, text: Option<String>| text.map(|text| timestamp::parse(&field(name), &text)).transpose();
    if let Some(confidence) = confidence {
        names::check_confidence(&field("confidence"), confidence)?;
    }
    if let Some(properties) = &properties {
        let text = serde_json::to_string(properties).unwrap_or_default();
        names::check_properties(&field("properties"), &text)?;
    }
    let mut taint = Taint::NONE;
    for word in words {
        let label = Taint::LABELS.into_iter().find(|(_, known)| known == word);
        let unknown = || Error::bad_field(&field("taint"), format!("{}: unknown source {word:?}", field("taint")));
        taint = taint.with(label.ok_or_else(unknown)?.0);
    }
    let (created_at, updated_at) = (moment("created_at", created_at)?, moment("updated_at", updated_at)?);
    Ok(About { at: at.into(), properties, confidence, created_at, updated_at, taint })
}

body! {
    /// A relation to write.
    TripleBody {
        /// The name of the entity where it begins.
        subject: String,
        /// Its type, such as `person`. Without it `subject` is the name or id of an entity; one that does not exist gets the
        /// type `unknown`.
        #[serde(default)]
        subject_type: Option<String>,
        /// Its own type, such as `works_at`.
        relation: String,
        /// The name of the entity where it ends.
        object: String,
        /// As `subject_type`.
        #[serde(default)]
        object_type: Option<String>,
    }
}

impl TripleBody {
    pub(crate) fn read(mut self, at: &str) -> Result<NewRelation, Error> {
        let about = self.about(at)?;
        let field = |name: &str| format!("{at}{name}");
        let (begin, begin_type) = (field("subject"), field("subject_type"));
        let (end, end_type) = (field("object"), field("object_type"));
        Ok(NewRelation {
            source: NewEnd::new((&begin, &begin_type), &self.subject, self.subject_type.as_deref())?,
            relation: names::type_name(&field("relation"), &self.relation)?,
            target: NewEnd::new((&end, &end_type), &self.object, self.object_type.as_deref())?,
            about,
        })
    }
}

body! {
    /// An entity to write.
    EntityBody {
        /// Ignored.
        #[serde(default)]
        #[expect(dead_code, reason = "accepted so that an answer can be sent back unchanged")]
        id: Option<Value>,
        name: String,
        entity_type: String,
    }
}

impl EntityBody {
    pub(crate) fn read(mut self, at: &str) -> Result<NewEntity, Error> {
        let about = self.about(at)?;
        let fields = (format!("{at}name"), format!("{at}entity_type"));
        Ok(NewEntity::new((&fields.0, &fields.1), &self.name, &self.entity_type, about)?)
    }
}

/// An end of a match that is written back.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct EndBody {
    /// Ignored.
    #[serde(default)]
    #[expect(dead_code, reason = "accepted so that an answer can be sent back unchanged")]
    id: Option<Value>,
    name: String,
    entity_type: String,
}

body! {
    /// A relation of a match that is written back.
    RelationBody {
        r#type: String,
    }
}

/// A match that is written back.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct MatchBody {
    source: EndBody,
    relation: RelationBody,
    target: EndBody,
}

impl MatchBody {
    pub(crate) fn read(self, at: &str) -> Result<NewRelation, Error> {
        let end = |name: &str, end: &EndBody| {
            let fields = (format!("{at}{name}.name"), format!("{at}{name}.entity_type"));
            NewEnd::new((&fields.0, &fields.1), &end.name, Some(&end.entity_type))
        };
        let Self { source, mut relation, target } = self;
        let about = relation.about(&format!("{at}relation."))?;
        Ok(NewRelation {
            source: end("source", &source)?,
            relation: names::type_name(&format!("{at}relation.type"), &relation.r#type)?,
            target: end("target", &target)?,
            about,
        })
    }
}
