//! Kinds of rows of the world space: what each domain stores, by the byte that the keys begin with.

use std::sync::LazyLock;

use bevy_ecs::prelude::{Component, Entity, With, World};

use agentsvc_components::kernel::id::DurableId;
use agentsvc_components::kernel::record::{Op, Record, Space, StoredComponent};
use serde::Serialize;
use uuid::Uuid;

use super::{Error, decode, encode, hex, key};
use crate::kernel::index::id_of;
use crate::kernel::restore::Records;

/// Reads one row, of this key and value, into the records.
pub type ReadRow = fn(&mut Records, &[u8], &[u8]) -> Result<(), Error>;

/// The row of an entity; `None` when it has none.
pub(crate) type RowOf = fn(&World, Entity) -> Option<Op>;

/// One kind of rows of the world space.
#[derive(Clone, Copy)]
pub struct Kind {
    /// The byte that its keys begin with.
    pub key: u8,
    /// Reads one row.
    read: ReadRow,
    /// Entities with such rows, and the row of each. `None` when rows are written by the domain itself.
    pub(crate) entities: Option<Entities>,
    /// Must the stored rows be those that the live world would write? Not so for intents and for rows that stand for
    /// others.
    pub(crate) is_compared: bool,
}

/// How entities become rows.
#[derive(Clone, Copy)]
pub(crate) struct Entities {
    /// The row of an entity that is marked.
    pub(crate) row: RowOf,
    /// Is its row part of another's for now? Then it is not written.
    pub(crate) is_elsewhere: fn(&World, Entity) -> bool,
    /// All such entities.
    pub(crate) all: fn(&mut World) -> Vec<Entity>,
    /// Those that changed in this step.
    #[cfg(test)]
    pub(crate) changed: fn(&mut World) -> Vec<Entity>,
}

impl Kind {
    /// A kind whose rows are read by `read` into [`Records`].
    #[must_use]
    pub const fn new(key: u8, read: ReadRow) -> Self {
        Self { key, read, entities: None, is_compared: true }
    }

    /// A component that is its own record.
    #[must_use]
    pub const fn component<C: StoredComponent>() -> Self {
        Self::new(C::KEY, read_component::<C>).with_entities::<C>(row_of_component::<C>)
    }

    /// A form of its own.
    #[must_use]
    pub const fn record<R: Record>() -> Self {
        Self::new(R::KEY, read_record::<R>)
    }

    /// Entities with the component `C` have such a row, which is written when they are marked.
    #[must_use]
    pub(crate) const fn with_entities<C: Component>(self, row: RowOf) -> Self {
        let entities = Entities {
            row,
            is_elsewhere: |_, _| false,
            all: all::<C>,
            #[cfg(test)]
            changed: changed::<C>,
        };
        Self { entities: Some(entities), ..self }
    }

    /// The row of an entity of which `is_elsewhere` holds is part of another's.
    #[must_use]
    pub(crate) const fn elsewhere(self, is_elsewhere: fn(&World, Entity) -> bool) -> Self {
        match self.entities {
            Some(entities) => Self { entities: Some(Entities { is_elsewhere, ..entities }), ..self },
            None => self,
        }
    }

    /// The live world does not know of these rows.
    #[must_use]
    pub(crate) const fn not_compared(self) -> Self {
        Self { is_compared: false, ..self }
    }
}

/// The kinds of all domains, by the byte that their keys begin with.
static TABLE: LazyLock<[Option<&'static Kind>; 256]> = LazyLock::new(|| {
    let mut table = [None; 256];
    for kind in crate::kernel::domain::all().iter().flat_map(|domain| domain.kinds) {
        table[usize::from(kind.key)] = Some(kind);
    }
    table
});

/// The kind of a row; `None` when this release has none.
pub(crate) fn kind_of(key: &[u8]) -> Option<&'static Kind> {
    key.first().and_then(|byte| TABLE[usize::from(*byte)])
}

/// Reads one row into `records`.
pub(crate) fn read(records: &mut Records, key: &[u8], value: &[u8]) -> Result<(), Error> {
    let kind = kind_of(key).ok_or_else(|| unknown(key))?;
    (kind.read)(records, key, value)
}

/// The row as a record of this type; `None` when it is of another kind or cannot be read.
pub fn read_as<R: Record>(key: &[u8], value: &[u8]) -> Option<R> {
    (key.first() == Some(&R::KEY)).then(|| decode(key, value).ok()).flatten()
}

/// The error of a key that no kind has.
pub(crate) fn unknown(key: &[u8]) -> Error {
    Error::Key(hex(key))
}

/// The UUID behind the first byte of a key.
pub(crate) fn uuid_of(key: &[u8]) -> Result<Uuid, Error> {
    key.get(1..).and_then(|id| Uuid::from_slice(id).ok()).ok_or_else(|| unknown(key))
}

fn read_component<C: StoredComponent>(records: &mut Records, key: &[u8], value: &[u8]) -> Result<(), Error> {
    records.push((C::Id::from_uuid(uuid_of(key)?), decode::<C>(key, value)?));
    Ok(())
}

fn read_record<R: Record>(records: &mut Records, key: &[u8], value: &[u8]) -> Result<(), Error> {
    records.push(decode::<R>(key, value)?);
    Ok(())
}

fn row_of_component<C: StoredComponent>(world: &World, entity: Entity) -> Option<Op> {
    world.get::<C>(entity).map(|component| put_component(id_of::<C::Id>(world, entity), component))
}

fn all<C: Component>(world: &mut World) -> Vec<Entity> {
    world.query_filtered::<Entity, With<C>>().iter(world).collect()
}

#[cfg(test)]
fn changed<C: Component>(world: &mut World) -> Vec<Entity> {
    world.query_filtered::<Entity, bevy_ecs::prelude::Changed<C>>().iter(world).collect()
}

/// A component with the id of its entity before its fields: the form that rows have had since the first release.
#[derive(Serialize)]
struct WithId<'a, C> {
    id: Uuid,
    #[serde(flatten)]
    component: &'a C,
}

/// The row of a component that is its own record.
pub fn put_component<C: StoredComponent>(id: C::Id, component: &C) -> Op {
    let id = id.to_uuid();
    Op { space: Space::World, key: key::uuid(C::KEY, id), value: Some(encode(&WithId { id, component })) }
}

/// Removes that row.
pub(crate) fn remove_component<C: StoredComponent>(id: C::Id) -> Op {
    Op { space: Space::World, key: key::uuid(C::KEY, id.to_uuid()), value: None }
}

/// The row of a record.
pub fn put<R: Record>(record: &R) -> Op {
    Op { space: Space::World, key: key::uuid(R::KEY, record.id().to_uuid()), value: Some(encode(record)) }
}

/// Removes the row of a record.
pub fn remove<R: Record>(id: R::Id) -> Op {
    Op { space: Space::World, key: key::uuid(R::KEY, id.to_uuid()), value: None }
}

/// Makes the entities of components that are their own records, in the order of their ids.
pub(crate) fn restore_components<C: StoredComponent>(world: &mut World, records: &mut Records) -> Result<(), Error>
where
    C::Id: Component,
{
    let mut stored = records.take::<(C::Id, C)>();
    stored.sort_by_key(|(id, _)| *id);
    for (id, component) in stored {
        world.spawn((id, component));
    }
    Ok(())
}
