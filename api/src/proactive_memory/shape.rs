//! Entries as JSON: how they are shown, and how clients describe new ones.

use agentsvc_components::kernel::taint::Taint;
use agentsvc_components::proactive_memory::record::{EntryVersion, MemoryEntryRecord};
use agentsvc_components::proactive_memory::{Level, MemoryEntryId};
use agentsvc_components::{AgentId, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::http::error::Error;
use crate::http::timestamp::{self, Moment};
use crate::proactive_memory::store::EntryRow;

/// One entry.
#[derive(Serialize, JsonSchema)]
pub(crate) struct MemoryEntry {
    id: Uuid,
    agent_id: Uuid,
    user_id: Option<Box<str>>,
    content: Box<str>,
    /// `user`, `session` or `agent`.
    level: &'static str,
    category: Option<Box<str>>,
    tags: Vec<Box<str>>,
    #[schemars(with = "Map<String, Value>")]
    metadata: Box<RawValue>,
    /// Where it comes from, such as `api`, `rules` or `import`.
    source: Option<Box<str>>,
    /// 0 to 1.
    confidence: f32,
    created_at: Moment,
    updated_at: Moment,
    /// When it was last found.
    accessed_at: Moment,
    /// How often it was found.
    access_count: u32,
    /// When it expires. Entries of the level `session` do.
    expires_at: Option<Moment>,
    /// Untrusted content that it was made from, such as `web`.
    taint: Vec<&'static str>,
    /// How well it fits a search; higher is better.
    #[serde(skip_serializing_if = "Option::is_none")]
    score: Option<f32>,
    /// Earlier contents, the oldest first; of one entry and in an export.
    #[serde(skip_serializing_if = "Option::is_none")]
    versions: Option<Vec<Version>>,
}

/// An earlier content of an entry.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Version {
    content: Box<str>,
    replaced_at: Moment,
}

impl From<EntryVersion> for Version {
    fn from(version: EntryVersion) -> Self {
        Self { content: version.content, replaced_at: Moment(version.replaced_at) }
    }
}

fn filled(text: Box<str>) -> Option<Box<str>> {
    Some(text).filter(|text| !text.is_empty())
}

impl MemoryEntry {
    /// The entry as it is shown.
    pub(crate) fn of(agent: AgentId, id: MemoryEntryId, record: MemoryEntryRecord) -> Self {
        let empty = || RawValue::from_string("{}".to_owned()).unwrap_or_default();
        let metadata = filled(record.metadata).and_then(|text| RawValue::from_string(text.into()).ok());
        Self {
            id: id.0,
            agent_id: agent.0,
            user_id: record.user,
            content: record.content,
            level: record.level.as_str(),
            category: filled(record.category),
            tags: record.tags,
            metadata: metadata.unwrap_or_else(empty),
            source: filled(record.source),
            confidence: record.confidence,
            created_at: Moment(record.created_at),
            updated_at: Moment(record.updated_at),
            accessed_at: Moment(record.accessed_at),
            access_count: record.access_count,
            expires_at: record.expires_at.map(Moment),
            taint: record.taint.words(),
            score: None,
            versions: None,
        }
    }

    /// The entry with its earlier contents.
    pub(crate) fn exported(row: EntryRow) -> Self {
        let versions = row.record.versions.iter().cloned().map(Version::from).collect();
        Self { versions: Some(versions), ..Self::from(row) }
    }

    /// The entry as a search found it.
    pub(crate) fn found(row: EntryRow, score: f32) -> Self {
        Self { score: Some(score), ..Self::from(row) }
    }
}

impl From<EntryRow> for MemoryEntry {
    fn from(row: EntryRow) -> Self {
        Self::of(row.agent, row.id, row.record)
    }
}

/// The level that a word means.
///
/// # Errors
/// 400 naming `level`.
pub(crate) fn level(word: &str) -> Result<Level, Error> {
    Level::parse(word).ok_or_else(|| Error::bad_field("level", "level: must be user, session or agent"))
}

/// What describes a new entry, beside its content.
#[derive(Clone, Debug, Default)]
pub(crate) struct Described {
    user_id: Option<Box<str>>,
    level: Option<Box<str>>,
    category: Option<Box<str>>,
    tags: Option<Vec<Box<str>>>,
    metadata: Option<Map<String, Value>>,
    source: Option<Box<str>>,
    confidence: Option<f32>,
}

/// A body with the keys that describe an entry beside its own.
macro_rules! described {
    ($(#[$about:meta])* $vis:vis struct $name:ident { $($own:tt)* }) => {
        $(#[$about])*
        #[derive(serde::Deserialize, schemars::JsonSchema)]
        $vis struct $name {
            $($own)*
            /// The user that it is about.
            #[serde(default)]
            user_id: Option<Box<str>>,
            /// `user`, `session` or `agent`. Default: `user`.
            #[serde(default, alias = "scope")]
            level: Option<Box<str>>,
            /// A word, such as `preference`.
            #[serde(default)]
            category: Option<Box<str>>,
            /// Words of yours.
            #[serde(default)]
            tags: Option<Vec<Box<str>>>,
            /// A JSON object.
            #[serde(default)]
            metadata: Option<serde_json::Map<String, serde_json::Value>>,
            /// Where it comes from. Default: `api`.
            #[serde(default)]
            source: Option<Box<str>>,
            /// 0 to 1. Default: 1.
            #[serde(default)]
            confidence: Option<f32>,
        }

        impl $name {
            /// Takes what describes the entry.
            fn take_described(&mut self) -> $crate::proactive_memory::shape::Described {
                $crate::proactive_memory::shape::Described::new(
                    (self.user_id.take(), self.level.take(), self.category.take()),
                    (self.tags.take(), self.metadata.take()),
                    (self.source.take(), self.confidence.take()),
                )
            }
        }
    };
}

pub(crate) use described;

type Texts = Option<Vec<Box<str>>>;
type Word = Option<Box<str>>;

impl Described {
    /// What a body gives.
    pub(crate) fn new(
        (user_id, level, category): (Word, Word, Word),
        (tags, metadata): (Texts, Option<Map<String, Value>>),
        (source, confidence): (Word, Option<f32>),
    ) -> Self {
        Self { user_id, level, category, tags, metadata, source, confidence }
    }

    /// Is a level given?
    pub(crate) const fn has_level(&self) -> bool {
        self.level.is_some()
    }

    /// Sets what is given.
    pub(crate) fn apply(&self, record: &mut MemoryEntryRecord) -> Result<(), Error> {
        if let Some(word) = &self.level {
            record.level = level(word)?;
        }
        if let Some(user) = &self.user_id {
            record.user = Some(user.clone());
        }
        if let Some(category) = &self.category {
            record.category.clone_from(category);
        }
        if let Some(tags) = &self.tags {
            record.tags = tags.clone();
            record.tags.dedup();
        }
        if let Some(metadata) = &self.metadata {
            let is_empty = metadata.is_empty();
            record.metadata = if is_empty { Box::default() } else { Value::from(metadata.clone()).to_string().into() };
        }
        if let Some(source) = &self.source {
            record.source.clone_from(source);
        }
        if let Some(confidence) = self.confidence {
            record.confidence = confidence;
        }
        Ok(())
    }
}

described! {
/// One entry of an import: as an export shows it, or its content with any part of what describes it.
pub(crate) struct ImportedEntry {
    /// Kept where it is a UUID.
    #[serde(default)]
    id: Option<Box<str>>,
    #[serde(alias = "memory", alias = "text")]
    content: Box<str>,
    /// Ignored: the entry belongs to the agent in the path.
    #[serde(default)]
    #[expect(dead_code, reason = "accepted so that an export can be imported unchanged")]
    agent_id: Option<Value>,
    /// Ignored.
    #[serde(default)]
    #[expect(dead_code, reason = "accepted so that an export can be imported unchanged")]
    score: Option<Value>,
    /// RFC 3339. Default: now.
    #[serde(default)]
    created_at: Option<Box<str>>,
    /// RFC 3339. Default: `created_at`.
    #[serde(default)]
    updated_at: Option<Box<str>>,
    /// RFC 3339. Default: `updated_at`.
    #[serde(default)]
    accessed_at: Option<Box<str>>,
    #[serde(default)]
    access_count: u32,
    /// RFC 3339.
    #[serde(default)]
    expires_at: Option<Box<str>>,
    /// Untrusted content that it was made from, such as `web`.
    #[serde(default)]
    taint: Vec<Box<str>>,
    /// Earlier contents, the oldest first.
    #[serde(default)]
    versions: Vec<ImportedVersion>,
}
}

/// An earlier content of an entry.
#[derive(Deserialize, JsonSchema)]
struct ImportedVersion {
    content: Box<str>,
    /// RFC 3339.
    replaced_at: Box<str>,
}

impl ImportedEntry {
    /// The id that it had, and the record that it becomes. `expiry` is when an entry of a session expires that does not say it.
    pub(crate) fn read(
        mut self,
        now: Timestamp,
        expiry: Timestamp,
    ) -> Result<(Option<MemoryEntryId>, MemoryEntryRecord), Error> {
        let described = self.take_described();
        let moment = |field: &str, text: Option<Box<str>>| text.map(|text| timestamp::parse(field, &text)).transpose();
        let created_at = moment("created_at", self.created_at)?.unwrap_or(now);
        let updated_at = moment("updated_at", self.updated_at)?.unwrap_or(created_at);
        let accessed_at = moment("accessed_at", self.accessed_at)?.unwrap_or(updated_at);
        let versions = self.versions.into_iter().map(|version| {
            let replaced_at = timestamp::parse("versions", &version.replaced_at)?;
            Ok(EntryVersion { content: version.content, replaced_at })
        });
        let mut record = MemoryEntryRecord {
            content: self.content,
            source: "import".into(),
            confidence: 1.0,
            created_at,
            updated_at,
            accessed_at,
            access_count: self.access_count,
            taint: self.taint.iter().fold(Taint::NONE, |taint, word| taint.with(label(word))),
            versions: versions.collect::<Result<_, Error>>()?,
            ..MemoryEntryRecord::default()
        };
        described.apply(&mut record)?;
        record.expires_at = moment("expires_at", self.expires_at)?;
        if record.level == Level::Session && record.expires_at.is_none() {
            record.expires_at = Some(expiry);
        }
        // A name that is no UUID, as other programs have, leads to none.
        let id = self.id.and_then(|id| id.parse().ok());
        Ok((id, record))
    }
}

/// The label of this word. One that this release does not know still says that something is untrusted.
fn label(word: &str) -> Taint {
    Taint::LABELS.iter().find(|(_, known)| *known == word).map_or(Taint::UPLOAD, |(label, _)| *label)
}
