//! Tables: what a domain lets queries ask about one kind of its things. A [`Kind`] names its fields, where they lead, and
//! how its rows are read a page at a time.

use std::any::Any;

use agentsvc_components::Timestamp;
use bevy_ecs::prelude::{Component, Entity, World};
use uuid::Uuid;

use super::clock::Now;
use super::expr::{Type, Value};

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
    /// Fields shown by default.
    pub shown: &'static [&'static str],
    /// Where its rows come from.
    pub(crate) source: Source,
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
    pub(crate) read: Read,
}

/// Reads a field of a row.
pub(crate) type Read = for<'w> fn(&Row<'w>) -> Value<'w>;

/// The way from a row to another one: `owner` in `owner.name`.
#[derive(Debug)]
pub struct Relation {
    /// Its name.
    pub name: &'static str,
    /// The kind it leads to.
    pub to: &'static Kind,
    /// What it means.
    pub text: &'static str,
    pub(crate) follow: for<'w> fn(&Row<'w>) -> Option<Item<'w>>,
}

/// Where the rows of a kind come from: in the order of an index, from a place on, a bounded number at a time. What lives
/// from the first page to the last is seen exactly once, for the keys of the indexes never change.
#[derive(Debug)]
pub(crate) struct Source {
    /// A page of all rows; gives where the next one begins.
    pub(crate) all: for<'w> fn(&mut Page<'_, 'w>) -> Cursor,
    /// The row with an id, where rows have ids.
    pub(crate) by_id: Option<fn(&World, Uuid) -> Option<Entity>>,
    /// Fields whose value leads to the rows that have it.
    pub(crate) lookups: &'static [Lookup],
    /// Rows of other kinds that take as long to read as one of this.
    pub(crate) cost: usize,
}

/// An index over the value of a field.
#[derive(Debug)]
pub(crate) struct Lookup {
    /// The field, by each name that it has.
    pub(crate) fields: &'static [&'static str],
    /// A page of the rows that have this value.
    pub(crate) rows: for<'w> fn(&mut Page<'_, 'w>, &Value<'static>) -> Cursor,
}

/// How far rows were read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Cursor {
    #[default]
    Start,
    After(Uuid),
    AfterOwned(Entity, Uuid),
    AfterEntity(Entity, Entity),
    AfterPair(Uuid, Uuid),
    /// So many of a list.
    Nth(usize),
    End,
}

/// Keys of rows that stand in no order, taken down with the first page.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    list: Vec<Box<[u8]>>,
    /// At most so many are kept.
    most: usize,
    /// There were more.
    pub(crate) cut: bool,
}

/// A page of rows while it is read.
pub(crate) struct Page<'a, 'w> {
    pub(crate) world: &'w World,
    /// Where it begins.
    pub(crate) cursor: Cursor,
    pub(crate) keys: &'a mut Keys,
    /// Rows on it.
    pub(crate) most: usize,
    /// Takes a row; false when it has seen enough.
    pub(crate) visit: &'a mut dyn FnMut(Item<'w>) -> bool,
}

/// A row: something of the world while it is looked at.
#[derive(Clone, Copy)]
pub(crate) struct Row<'w> {
    pub(crate) world: &'w World,
    pub(crate) item: Item<'w>,
    /// A text that is made of others may end behind so many bytes: more of it is not asked for.
    pub(crate) text_max: usize,
}

/// What a row is about.
#[derive(Clone, Copy)]
pub(crate) enum Item<'w> {
    Entity(Entity),
    Id(Uuid),
    Text(&'w str),
    /// Something that only its domain knows.
    Other(&'w (dyn Any + Send + Sync)),
}

impl Source {
    /// A source whose rows are found by walking over all of them.
    pub(crate) const fn of(all: for<'w> fn(&mut Page<'_, 'w>) -> Cursor) -> Self {
        Self { all, by_id: None, lookups: &[], cost: 1 }
    }
}

impl Keys {
    /// None yet, and at most so many.
    pub(crate) const fn new(most: usize) -> Self {
        Self { list: Vec::new(), most, cut: false }
    }
}

impl<'w> Page<'_, 'w> {
    /// The id behind which it begins.
    pub(crate) const fn after(&self) -> Option<Uuid> {
        if let Cursor::After(id) = self.cursor { Some(id) } else { None }
    }

    /// Entities in the order of their ids.
    pub(crate) fn entities(&mut self, found: impl Iterator<Item = (Uuid, Entity)>) -> Cursor {
        self.walk(found.map(|(id, entity)| (id, Item::Entity(entity))), Cursor::After)
    }

    /// The one row that there is at most.
    pub(crate) fn one(&mut self, item: Option<Item<'w>>) -> Cursor {
        if let Some(item) = item {
            (self.visit)(item);
        }
        Cursor::End
    }

    /// Shows the items up to the end of the page, and says where the next one begins.
    pub(crate) fn walk<K: Copy>(
        &mut self,
        items: impl Iterator<Item = (K, Item<'w>)>,
        cursor: impl Fn(K) -> Cursor,
    ) -> Cursor {
        let (mut count, mut last) = (0, None);
        for (key, item) in items.take(self.most) {
            (count, last) = (count + 1, Some(key));
            if !(self.visit)(item) {
                return cursor(key);
            }
        }
        if count < self.most { Cursor::End } else { last.map_or(Cursor::End, cursor) }
    }

    /// Items that stand in no order, by their keys.
    pub(crate) fn listed(
        &mut self,
        mut keys: impl Iterator<Item = Box<[u8]>>,
        item: impl Fn(&[u8]) -> Option<Item<'w>>,
    ) -> Cursor {
        let mut list = std::mem::take(&mut self.keys.list);
        if self.cursor == Cursor::Start {
            list = keys.by_ref().take(self.keys.most).collect();
            self.keys.cut = keys.next().is_some();
        }
        let cursor = self.nth(&list, |key| item(key));
        self.keys.list = list;
        cursor
    }

    /// The items that stand in a list by their keys.
    pub(crate) fn nth<K>(&mut self, keys: &[K], item: impl Fn(&K) -> Option<Item<'w>>) -> Cursor {
        let mut at = if let Cursor::Nth(from) = self.cursor { from } else { 0 };
        for key in keys.iter().skip(at).take(self.most) {
            at += 1;
            if item(key).is_some_and(|item| !(self.visit)(item)) {
                break;
            }
        }
        if at < keys.len() { Cursor::Nth(at) } else { Cursor::End }
    }
}

impl<'w> Row<'w> {
    /// Words with commas between.
    pub(crate) fn joined(&self, words: &[Box<str>]) -> Value<'w> {
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
    pub(crate) const fn entity(&self) -> Option<Entity> {
        if let Item::Entity(entity) = self.item { Some(entity) } else { None }
    }

    /// What the row is about, where it is a `T`.
    pub(crate) fn other_as<T: Any>(&self) -> Option<&'w T> {
        if let Item::Other(other) = self.item { other.downcast_ref() } else { None }
    }

    /// A component of the entity.
    pub(crate) fn get<C: Component>(&self) -> Option<&'w C> {
        self.world.get(self.entity()?)
    }

    /// What `read` makes of a component; nothing where there is none.
    pub(crate) fn of<C: Component>(&self, read: impl FnOnce(&'w C) -> Value<'w>) -> Value<'w> {
        self.get().map_or(Value::Null, read)
    }

    /// The world's time.
    pub(crate) fn now(&self) -> Timestamp {
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

/// A field, for the tables.
pub(crate) const fn field(name: &'static str, kind: Type, text: &'static str, read: Read) -> Field {
    Field { name, kind, text, read }
}

/// Time from `from` to `to`.
pub(crate) fn span(from: Timestamp, to: Timestamp) -> Value<'static> {
    Value::Duration(to.0.saturating_sub(from.0))
}

/// The id of another entity.
pub(crate) fn id_at<'w, C: Component + Copy>(row: &Row<'w>, entity: Entity, id: impl FnOnce(C) -> Uuid) -> Value<'w> {
    Value::maybe(row.world.get::<C>(entity), |it| Value::Id(id(*it)))
}
