//! Where the writer's entries become durable before anything that waits for them is released.
//!
//! The writer turns each group of commits into one [`Entry`], appends it to the [`Journal`], and writes it into the
//! store when the journal has acknowledged it. So the store is never ahead of the journal, and applying all entries
//! gives the same rows. With [`Local`] the store's own batch is the journal: nothing is encoded, hashed or copied for it.

pub mod chain;
pub mod entry;
pub mod shared;

use agentsvc_components::kernel::record::Space;
use agentsvc_components::kernel::step::STEP_KEY;
use fjall::{OwnedWriteBatch, PersistMode};

use super::{CONTENT_KEY, Error, Store};
use entry::{Body, Entry, Position};

/// The key, in the world space, of the [`Position`] of the newest entry that the store holds. A store whose journal is
/// [`Local`] has no such row.
pub const POSITION_KEY: [u8; 2] = [0, b'j'];

/// A log of entries in one total order. All entries of one world go through one journal, and only its newest owner
/// appends to it.
pub trait Journal: Send {
    /// Takes the world over from whoever owns it: appends an [`Body::Open`] of the next epoch. No entry of an
    /// earlier epoch is valid behind it.
    ///
    /// # Errors
    /// [`Error::Fenced`] when another one did so at the same moment; those of the journal.
    fn open(&mut self, node: &str) -> Result<(), Error>;

    /// Hands an entry over, to stand behind all that were handed over before. Gives its index; `None` when the store's
    /// own batch is the journal.
    ///
    /// # Errors
    /// [`Error::Fenced`] when the world has another owner by now; those of the journal.
    fn append(&mut self, body: &Body<'_>) -> Result<Option<Position>, Error>;

    /// Waits until the entry at `position`, and all before it, are durable.
    ///
    /// # Errors
    /// [`Error::Fenced`] when it was not taken because the world has another owner; those of the journal.
    fn acknowledged(&mut self, position: &Position) -> Result<(), Error>;

    /// The valid entries behind `position`, in order.
    ///
    /// # Errors
    /// Those of the journal, also for each entry. [`Error::Trimmed`] when entries behind `position` were let go,
    /// [`Error::Lost`] when one that was acknowledged is missing, [`Error::Diverged`] when another one stands at `position`.
    fn read(&self, position: &Position) -> Result<Entries<'_>, Error>;

    /// Lets go of the entries before `index`: a snapshot holds what they and this one say. The entry itself stays, so that a
    /// store made of the snapshot can be held against it.
    ///
    /// # Errors
    /// Those of the journal.
    fn trim(&mut self, index: u64) -> Result<(), Error>;
}

/// Entries as they are read.
pub type Entries<'a> = Box<dyn Iterator<Item = Result<Entry, Error>> + 'a>;

/// The journal of a daemon that is alone: the store itself, which no other process can have open.
pub struct Local;

impl Journal for Local {
    fn open(&mut self, _node: &str) -> Result<(), Error> {
        Ok(())
    }

    fn append(&mut self, _body: &Body<'_>) -> Result<Option<Position>, Error> {
        Ok(None)
    }

    fn acknowledged(&mut self, _position: &Position) -> Result<(), Error> {
        Ok(())
    }

    fn read(&self, _position: &Position) -> Result<Entries<'_>, Error> {
        Ok(Box::new(std::iter::empty()))
    }

    fn trim(&mut self, _index: u64) -> Result<(), Error> {
        Ok(())
    }
}

/// How durable a batch is when it has been written. What another journal holds needs no sync of its own. Erasures are synced,
/// too, though they may be repeated after a crash: rows in memory go to data tables at any time, and a data table must not have
/// a batch that a power loss takes from the journal.
const fn durability_of(position: Option<&Position>) -> PersistMode {
    match position {
        None => PersistMode::SyncData,
        Some(_) => PersistMode::Buffer,
    }
}

impl Store {
    /// The batch that an entry is in the store, with its position if it has one. Erased rows go first.
    pub(super) fn batch_of(&self, body: &Body<'_>, position: Option<&Position>) -> OwnedWriteBatch {
        let mut batch = self.database.batch().durability(Some(durability_of(position)));
        if let Body::Step { step, ops, erased } = body {
            for key in erased.iter() {
                batch.remove(&self.content, key.as_slice());
            }
            for op in ops.iter() {
                let keyspace = self.keyspace(op.space);
                match &op.value {
                    Some(value) => batch.insert(keyspace, op.key.as_slice(), value.as_slice()),
                    None => batch.remove(keyspace, op.key.as_slice()),
                }
            }
            if !erased.is_empty() || ops.iter().any(|op| op.space == Space::Content) {
                batch.insert(&self.world, CONTENT_KEY, []);
            }
            if let Some(step) = step {
                batch.insert(&self.world, STEP_KEY, step.to_bytes());
            }
        }
        if let Some(position) = position {
            batch.insert(&self.world, POSITION_KEY, position.to_bytes());
        }
        batch
    }

    /// The position of the newest entry that this store holds.
    ///
    /// # Errors
    /// [`Error::Corrupted`] when the row makes no sense, and the errors of reading the store.
    pub fn position(&self) -> Result<Position, Error> {
        Ok(self.view().own_row(&POSITION_KEY, Position::from_bytes)?.unwrap_or_default())
    }

    /// Applies the entries of `journal` that this store does not hold yet, and gives their number.
    ///
    /// # Errors
    /// Those of the journal, of writing the store, and those of [`Store::position`].
    pub fn catch_up(&self, journal: &dyn Journal) -> Result<u64, Error> {
        let mut count = 0;
        for entry in journal.read(&self.position()?)? {
            let Entry { position, body } = entry?;
            self.batch_of(&body, Some(&position)).commit().map_err(|error| self.failed(error))?;
            count += 1;
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A data table may have any batch from its commit on.
    #[test]
    fn every_batch_that_no_other_journal_holds_is_synced() {
        assert_eq!(durability_of(None), PersistMode::SyncData);
        assert_eq!(durability_of(Some(&Position::default())), PersistMode::Buffer);
    }
}
