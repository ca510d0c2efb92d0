//! A stored world comes to life: records become entities and indexes, and what was under way goes on.

mod chunks;

use std::any::{Any, TypeId};
use std::fmt;

use bevy_ecs::prelude::World;
use hashbrown::HashMap;

use super::domain::Phase;
use super::record::Error;

pub use chunks::{Chunks, ChunksIter};

/// Everything a world is made of, by the type of record. Order within a type does not matter.
#[derive(Default)]
pub struct Records {
    lists: HashMap<TypeId, Box<dyn List>>,
    /// Records are read and dropped.
    only_checks: bool,
}

/// A list of records of one type.
trait List: Any + Send {
    fn append(&mut self, other: Box<dyn List>);
    fn as_any(&self) -> &dyn Any;
    fn as_any_mut(&mut self) -> &mut dyn Any;
    fn into_any(self: Box<Self>) -> Box<dyn Any>;
    fn len(&self) -> usize;
}

impl<T: Send + 'static> List for Chunks<T> {
    fn append(&mut self, other: Box<dyn List>) {
        if let Ok(mut other) = other.into_any().downcast::<Self>() {
            Self::append(self, &mut other);
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }

    fn len(&self) -> usize {
        Self::len(self)
    }
}

impl Records {
    /// Adds a record.
    pub fn push<T: Send + 'static>(&mut self, record: T) {
        if !self.only_checks {
            self.list().push(record);
        }
    }

    /// Keeps nothing of what is read: for those who only ask whether it can be.
    pub(crate) fn only_checking() -> Self {
        Self { only_checks: true, ..Self::default() }
    }

    /// The records of one type.
    pub fn list<T: Send + 'static>(&mut self) -> &mut Chunks<T> {
        let list = self.lists.entry(TypeId::of::<T>()).or_insert_with(|| Box::new(Chunks::<T>::default()));
        list.as_any_mut().downcast_mut().expect("a list holds records of its type")
    }

    /// Looks at the records of one type.
    pub fn iter<T: Send + 'static>(&self) -> impl Iterator<Item = &T> {
        let list = self.lists.get(&TypeId::of::<T>());
        list.and_then(|list| list.as_any().downcast_ref::<Chunks<T>>()).into_iter().flatten()
    }

    /// Takes the records of one type out.
    pub fn take<T: Send + 'static>(&mut self) -> Chunks<T> {
        std::mem::take(self.list())
    }

    /// Joins the parts that parallel readers made.
    pub fn append(&mut self, other: Self) {
        for (kind, list) in other.lists {
            match self.lists.entry(kind) {
                hashbrown::hash_map::Entry::Occupied(mut own) => own.get_mut().append(list),
                hashbrown::hash_map::Entry::Vacant(place) => drop(place.insert(list)),
            }
        }
    }

    /// How many records there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lists.values().map(|list| list.len()).sum()
    }

    /// Is there none?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl fmt::Debug for Records {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} records", self.len())
    }
}

/// The error of a record that points at another which is not there.
pub(crate) fn dangling(id: impl ToString, what: &'static str) -> Error {
    Error::Dangling { key: id.to_string(), what }
}

/// Fills the empty `world`. On an error the world is of no use and the daemon does not start.
pub(crate) fn restore(world: &mut World, mut records: Records) -> Result<(), Error> {
    for phase in Phase::ALL {
        for domain in crate::kernel::domain::all() {
            for (at, restore) in domain.restore {
                if *at == phase {
                    restore(world, &mut records)?;
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
