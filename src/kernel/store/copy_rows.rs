//! Hands on what does not go back with the world: when one store takes the place of another, the audit trail of the
//! other goes on in it, and so do the store's own rows, such as the number of the newest step.

use std::cmp::Ordering;

use agentsvc_systems::kernel::record::{AUDIT_HEAD_KEY, AUDIT_PREFIX};
use fjall::{Guard, Iter, Keyspace, OwnedWriteBatch, PersistMode};

use super::{CONTENT_KEY, Error, FORMAT_KEY, Store};

/// Rows of one batch.
const BATCH_ROWS: usize = 4_096;
/// What the keys of the store's own rows begin with.
const OWN_PREFIX: [u8; 1] = FORMAT_KEY;

impl Store {
    /// Makes the audit trail and the store's own rows (but the format) those of `other`, and syncs. Gives how many rows
    /// had to be written or removed. A kill in the middle leaves some of them; doing it again mends that.
    pub(crate) fn carry_over(&self, other: &Self) -> Result<u64, Error> {
        let mut carried = Carried { to: self, batch: self.database.batch(), waiting: 0, rows: 0 };
        carried.align(&other.content, &self.content, &AUDIT_PREFIX)?;
        carried.write_content()?;
        carried.align(&other.world, &self.world, &AUDIT_HEAD_KEY)?;
        let born = (self.view().born()?, other.view().born()?);
        carried.align(&other.world, &self.world, &OWN_PREFIX)?;
        carried.write()?;
        // Ids of both are in it: only what has a slot in either home has one.
        if let (Some(own), Some(others)) = born {
            self.set_born(own.max(others))?;
        }
        self.database.persist(PersistMode::SyncAll).map_err(|error| self.failed(error))?;
        Ok(carried.rows)
    }

    /// Writes `rows` of the world, keys and values, in the place of those that have their keys, and syncs.
    pub(crate) fn rewrite(&self, rows: impl Iterator<Item = Result<(Vec<u8>, Vec<u8>), Error>>) -> Result<(), Error> {
        let mut carried = Carried { to: self, batch: self.database.batch(), waiting: 0, rows: 0 };
        for row in rows {
            let (key, value) = row?;
            carried.batch.insert(&self.world, key, value);
            carried.count(&self.world)?;
        }
        carried.write()?;
        self.database.persist(PersistMode::SyncAll).map_err(|error| self.failed(error))
    }
}

/// Rows on their way into a store.
struct Carried<'a> {
    to: &'a Store,
    batch: OwnedWriteBatch,
    waiting: usize,
    rows: u64,
}

type KeyAndValue = (fjall::UserKey, fjall::UserValue);

impl Carried<'_> {
    /// Makes the rows under `prefix` in `to` those of `from`.
    fn align(&mut self, from: &Keyspace, to: &Keyspace, prefix: &[u8]) -> Result<(), Error> {
        let (mut theirs, mut ours) = (from.prefix(prefix), to.prefix(prefix));
        let (mut their, mut our) = (self.next(&mut theirs)?, self.next(&mut ours)?);
        loop {
            let order = match (&their, &our) {
                (None, None) => return Ok(()),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some((their, _)), Some((our, _))) => their.cmp(our),
            };
            match (order, &their, &our) {
                (Ordering::Greater, _, Some((key, _))) => {
                    self.batch.remove(to, key.clone());
                    self.count(to)?;
                }
                (Ordering::Equal, Some((key, value)), Some((_, ours))) if value == ours || **key == FORMAT_KEY => {}
                (_, Some((key, value)), _) => {
                    self.batch.insert(to, key.clone(), value.clone());
                    self.count(to)?;
                }
                _ => {}
            }
            if order != Ordering::Greater {
                their = self.next(&mut theirs)?;
            }
            if order != Ordering::Less {
                our = self.next(&mut ours)?;
            }
        }
    }

    fn next(&self, rows: &mut Iter) -> Result<Option<KeyAndValue>, Error> {
        // The mark of changes of content belongs to the batches of its own store.
        let mut rows =
            rows.map(Guard::into_inner).filter(|row| row.as_ref().map_or(true, |(key, _)| **key != CONTENT_KEY));
        rows.next().transpose().map_err(|error| self.to.failed(error))
    }

    fn count(&mut self, to: &Keyspace) -> Result<(), Error> {
        self.rows += 1;
        self.waiting += 1;
        match self.waiting {
            BATCH_ROWS if *to == self.to.content => self.write_content(),
            BATCH_ROWS => self.write(),
            _ => Ok(()),
        }
    }

    /// Writes rows of content, with the mark of that.
    fn write_content(&mut self) -> Result<(), Error> {
        if self.waiting > 0 {
            self.batch.insert(&self.to.world, CONTENT_KEY, []);
        }
        self.write()
    }

    fn write(&mut self) -> Result<(), Error> {
        self.waiting = 0;
        let batch = std::mem::replace(&mut self.batch, self.to.database.batch());
        batch.commit().map_err(|error| self.to.failed(error))
    }
}
