//! Where the writer's entries become durable before anything that waits for them is released.
//!
//! The writer turns each group of commits into one [`Entry`], appends it to the [`Journal`], and writes it into the
//! store when the journal has acknowledged it. So the store is never ahead of the journal, and applying all entries
//! gives the same rows. With [`Local`] the store's own batch is the journal: nothing is encoded, hashed or copied for it.

pub mod chain;
pub mod entry;
#[cfg(test)]
pub(crate) mod refusing;
pub mod seal;
pub mod shared;

use std::borrow::Cow;

use agentsvc_components::Timestamp;
use agentsvc_components::kernel::record::{Op, Space};
use agentsvc_components::kernel::step::{STEP_KEY, StepMark};
use crossbeam_channel::Sender;
use fjall::{OwnedWriteBatch, PersistMode};

use super::born::BORN_KEY;
use super::view::StoreView;
use super::{CONTENT_KEY, Error, Store};
use entry::{Body, Entry, Position};

/// The key, in the world space, of the [`Position`] of the newest entry that the store holds. A store whose journal is
/// [`Local`] has no such row.
pub const POSITION_KEY: [u8; 2] = [0, b'j'];

/// The key, in the world space, of the name of the snapshot that the store was made of or was made into last. Other stores
/// have no such row.
pub const SNAPSHOT_KEY: [u8; 2] = [0, b'n'];

/// The key, in the world space, of a row that means nothing. All stores that write it hold the same rows then, see
/// [`Store::watch_marks`].
pub const MARK_KEY: [u8; 2] = [0, b'v'];

/// The key, in the world space, of a row that means nothing. Its owner writes it to find out that the world is still its own.
pub const LEASE_KEY: [u8; 2] = [0, b'l'];

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

    /// Waits until the entry at `position`, the newest one, and all before it are durable. Gives where it stands: behind the place
    /// that it was made for, if messages of others came there first.
    ///
    /// # Errors
    /// [`Error::Fenced`] when it was not taken because the world has another owner; those of the journal.
    fn acknowledged(&mut self, position: &Position) -> Result<Position, Error>;

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

    fn acknowledged(&mut self, position: &Position) -> Result<Position, Error> {
        Ok(*position)
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

    /// From here on the store is no part of a journal: nobody else has what it will store.
    ///
    /// # Errors
    /// Those of reading and writing the store.
    pub(crate) fn forget_position(&self) -> Result<(), Error> {
        if self.position()? == Position::default() {
            return Ok(());
        }
        let mut batch = self.database.batch().durability(Some(PersistMode::SyncAll));
        batch.remove(&self.world, POSITION_KEY);
        batch.commit().map_err(|error| self.failed(error))
    }

    /// Applies the entries of `journal` that this store does not hold yet, and gives their number.
    ///
    /// # Errors
    /// Those of the journal, of writing the store, and those of [`Store::position`].
    pub fn catch_up(&self, journal: &dyn Journal) -> Result<u64, Error> {
        let mut count = 0;
        for entry in journal.read(&self.position()?)? {
            self.apply(&entry?)?;
            count += 1;
        }
        Ok(count)
    }

    /// Applies the entry that follows the newest one that this store holds.
    ///
    /// # Errors
    /// [`Error::Rebased`] when the world goes on from a snapshot that is not in this store; those of writing the store.
    pub fn apply(&self, entry: &Entry) -> Result<(), Error> {
        let Entry { position, body } = entry;
        if let Body::Rebase { snapshot } = body
            && self.view().own_row(&SNAPSHOT_KEY, |name| Some(name.to_vec()))?.as_deref() != Some(snapshot.as_bytes())
        {
            return Err(Error::Rebased { snapshot: snapshot.clone().into_owned() });
        }
        self.batch_of(body, Some(position)).commit().map_err(|error| self.failed(error))?;
        mark_of(body).into_iter().for_each(|mark| self.is_marked(mark));
        Ok(())
    }

    /// From here on `marked` is given all rows as they are behind each entry that writes [`MARK_KEY`], and the value of that.
    pub(crate) fn watch_marks(&self, marked: Sender<Marked>) {
        *self.marks.lock() = Some(Box::new(move |store, mark| {
            let _nobody_looks = marked.send(Marked { view: store.view(), mark });
        }));
    }

    /// The store holds an entry that writes `mark`, and none behind it.
    pub(super) fn is_marked(&self, mark: Vec<u8>) {
        if let Some(marked) = &*self.marks.lock() {
            marked(self, mark);
        }
    }

    /// Appends `body` to `journal` and applies it when it is durable there.
    ///
    /// # Errors
    /// Those of the journal and of writing the store.
    pub(crate) fn append(&self, journal: &mut dyn Journal, body: &Body<'_>) -> Result<(), Error> {
        let appended = journal.append(body)?;
        let position = appended.map(|position| journal.acknowledged(&position)).transpose()?;
        self.batch_of(body, position.as_ref()).commit().map_err(|error| self.failed(error))
    }

    /// Since when ids have a slot. The first start of a world decides that: behind `now`. All nodes that keep the world learn it
    /// from `journal`.
    ///
    /// # Errors
    /// Those of [`StoreView::born`], of the journal and of writing the store.
    pub(crate) fn born(&self, now: Timestamp, journal: &mut dyn Journal) -> Result<Timestamp, Error> {
        if let Some(born) = self.view().born()? {
            return Ok(born);
        }
        let born = now.plus_ms(1);
        let op = Op { space: Space::World, key: BORN_KEY.to_vec(), value: Some(born.0.to_be_bytes().to_vec()) };
        self.append(journal, &Body::Step { step: None, ops: Cow::Owned(vec![op]), erased: Cow::Owned(Vec::new()) })?;
        Ok(born)
    }

    /// Makes everything applied so far durable on this machine.
    ///
    /// # Errors
    /// Those of writing the store.
    pub(crate) fn sync(&self) -> Result<(), Error> {
        self.database.persist(PersistMode::SyncData).map_err(|error| self.failed(error))
    }

    /// Says of which snapshot the rows are, where they are in the journal, and what else the store keeps beside them. Synced.
    ///
    /// # Errors
    /// Those of writing the store.
    pub(crate) fn set_origin(&self, origin: &Origin) -> Result<(), Error> {
        let mut batch = self.database.batch().durability(Some(PersistMode::SyncAll));
        batch.insert(&self.world, SNAPSHOT_KEY, origin.snapshot.as_bytes());
        if origin.position != Position::default() {
            batch.insert(&self.world, POSITION_KEY, origin.position.to_bytes());
        }
        batch.insert(&self.world, STEP_KEY, origin.step.to_bytes());
        if let Some(born) = origin.born {
            batch.insert(&self.world, BORN_KEY, born.0.to_be_bytes());
        }
        batch.commit().map_err(|error| self.failed(error))
    }
}

/// What an entry writes under [`MARK_KEY`], if it does.
pub(super) fn mark_of(body: &Body<'_>) -> Option<Vec<u8>> {
    let Body::Step { ops, .. } = body else { return None };
    let mark = ops.iter().find(|op| op.space == Space::World && op.key == MARK_KEY)?;
    mark.value.clone()
}

/// All rows as they are behind an entry that writes [`MARK_KEY`].
pub(crate) struct Marked {
    /// The rows.
    pub(crate) view: StoreView,
    /// The value that was written.
    pub(crate) mark: Vec<u8>,
}

/// The store's own rows that go with a snapshot of its other ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    /// The snapshot's name.
    pub(crate) snapshot: String,
    /// The newest entry in it; the default if there is no journal yet.
    pub(crate) position: Position,
    /// The newest step in it.
    pub(crate) step: StepMark,
    /// Since when ids have a slot.
    pub(crate) born: Option<Timestamp>,
}

impl StoreView {
    /// What goes with a snapshot of these rows under the name `snapshot`.
    ///
    /// # Errors
    /// [`Error::Corrupted`] when one of the rows makes no sense, and the errors of reading the store.
    pub(crate) fn origin(&self, snapshot: String) -> Result<Origin, Error> {
        let position = self.own_row(&POSITION_KEY, Position::from_bytes)?.unwrap_or_default();
        Ok(Origin { snapshot, position, step: self.step()?, born: self.born()? })
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
