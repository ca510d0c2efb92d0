//! What can be asked for: the kinds of entities and their fields. One file per group of kinds; the documentation and
//! `GET /api/world/query/schema` come from here.

mod agents;
mod automation;
mod sums;
mod work;

use bevy_ecs::prelude::{Component, Entity, World};

use agentsvc_components::Timestamp;
use agentsvc_components::kernel::limit;
use agentsvc_components::manifest::SharedManifest;
use agentsvc_components::usage::{Scope, UsageSum};

use super::source::Source;
use super::value::{Type, Value};
use crate::kernel::clock::Now;

/// Every kind, in the order in which they are shown.
pub const KINDS: [&Kind; 16] = [
    &agents::AGENTS,
    &agents::SESSIONS,
    &agents::TURNS,
    &automation::TRIGGERS,
    &automation::SCHEDULES,
    &automation::CRON_JOBS,
    &work::GOALS,
    &work::TASKS,
    &work::WORKFLOWS,
    &work::RUNS,
    &work::APPROVALS,
    &work::COMPACTIONS,
    &sums::BUDGETS,
    &sums::MANIFESTS,
    &sums::PROVIDERS,
    &sums::MODELS,
];

/// A kind of entities, or of what is counted like them.
#[derive(Debug)]
pub struct Kind {
    /// What a query calls it.
    pub name: &'static str,
    /// What it is.
    pub text: &'static str,
    /// Its fields.
    pub fields: &'static [Field],
    /// What its fields lead to.
    pub relations: &'static [Relation],
    /// The fields that are shown when a query names none.
    pub shown: &'static [&'static str],
    /// Where its rows come from.
    pub(super) source: Source,
}

/// A field.
#[derive(Debug)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// What its values are.
    pub kind: Type,
    /// What it means.
    pub text: &'static str,
    pub(super) read: Read,
}

/// Reads a field of a row.
pub(super) type Read = for<'w> fn(&Row<'w>) -> Value<'w>;

/// The way from a row to another one: `agent` in `agent.name`.
#[derive(Debug)]
pub struct Relation {
    /// Its name.
    pub name: &'static str,
    /// The kind it leads to.
    pub to: &'static Kind,
    /// What it means.
    pub text: &'static str,
    pub(super) follow: for<'w> fn(&Row<'w>) -> Option<Item<'w>>,
}

/// A row: something of the world while it is looked at.
#[derive(Clone, Copy)]
pub(in crate::query) struct Row<'w> {
    pub(super) world: &'w World,
    pub(super) item: Item<'w>,
    /// A text that is made of others may end behind so many bytes: more of it is not asked for.
    pub(super) text_max: usize,
}

/// What a row is about.
#[derive(Clone, Copy)]
pub(super) enum Item<'w> {
    Entity(Entity),
    Scope(Scope),
    Manifest(&'w SharedManifest, u32),
    Provider(&'w str),
    Model(&'w str, &'w str, UsageSum),
}

impl<'w> Row<'w> {
    /// The row for an answer: texts are cut there.
    pub(super) const fn shown(self) -> Self {
        Self { text_max: limit::QUERY_CELL_BYTES_MAX, ..self }
    }

    /// Words with commas between.
    fn joined(&self, words: &[Box<str>]) -> Value<'w> {
        let mut text = String::new();
        for (at, word) in words.iter().enumerate() {
            if at > 0 {
                text.push_str(", ");
            }
            let end = word.floor_char_boundary(self.text_max.saturating_sub(text.len()));
            text.push_str(&word[..end]);
            if end < word.len() || text.len() >= self.text_max {
                break;
            }
        }
        Value::Text(text.into())
    }

    /// The entity, where it is one.
    pub(super) const fn entity(&self) -> Option<Entity> {
        if let Item::Entity(entity) = self.item { Some(entity) } else { None }
    }

    /// A component of the entity.
    pub(super) fn get<C: Component>(&self) -> Option<&'w C> {
        self.world.get(self.entity()?)
    }

    /// What `read` makes of a component; nothing where there is none.
    fn of<C: Component>(&self, read: impl FnOnce(&'w C) -> Value<'w>) -> Value<'w> {
        self.get().map_or(Value::Null, read)
    }

    /// A component of another entity.
    fn other<C: Component>(&self, entity: Entity) -> Option<&'w C> {
        self.world.get(entity)
    }

    fn now(&self) -> Timestamp {
        self.world.resource::<Now>().0
    }
}

impl Kind {
    /// The field called `name`.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// The relation called `name`.
    #[must_use]
    pub fn relation(&self, name: &str) -> Option<&'static Relation> {
        self.relations.iter().find(|relation| relation.name == name)
    }
}

const fn field(name: &'static str, kind: Type, text: &'static str, read: Read) -> Field {
    Field { name, kind, text, read }
}

/// Time from `from` to `to`.
fn span(from: Timestamp, to: Timestamp) -> Value<'static> {
    Value::Duration(to.0.saturating_sub(from.0))
}

/// The id of another entity.
fn id_at<'w, C: Component + Copy>(row: &Row<'w>, entity: Entity, id: impl FnOnce(C) -> uuid::Uuid) -> Value<'w> {
    Value::maybe(row.other::<C>(entity), |it| Value::Id(id(*it)))
}
