//! All rows of both keyspaces as of one committed batch, while the writer goes on; and a new store made of rows.
//!
//! A view keeps the rows that the writer has replaced since on the disk, and keeps the store open. So it is held
//! no longer than the copy takes.

use std::path::Path;

use agentsvc_components::kernel::record::Space;
use agentsvc_components::kernel::step::{STEP_KEY, StepMark};
use agentsvc_systems::Records;
use fjall::{Guard, Iter, Keyspace, Readable, Snapshot};

use super::load::{self, Progress};
use super::{Error, FORMAT, FORMAT_KEY, Store, create};
use crate::kernel::store::rows::{Row, RowTotals, RowWriter};

/// The least key of a view: what begins with 0 is the store's own.
const FIRST_KEY: [u8; 1] = [1];

/// The store as of one committed batch. Cheap to clone.
#[derive(Clone)]
pub struct StoreView {
    pub(super) store: Store,
    pub(super) snapshot: Snapshot,
}

impl Store {
    /// The store as of the newest committed batch.
    pub fn view(&self) -> StoreView {
        StoreView { store: self.clone(), snapshot: self.database.snapshot() }
    }

    pub(super) fn keyspace(&self, space: Space) -> &Keyspace {
        match space {
            Space::World => &self.world,
            Space::Content => &self.content,
        }
    }

    /// Makes a store of `rows` at `path`, where nothing may be yet: whole and synced, or not at all. The rows stand in
    /// the order of a rows file. The store's own rows are written anew.
    ///
    /// # Errors
    /// [`Error::Rows`] when the rows cannot be read or are out of order, [`Error::Corrupted`] when there is something
    /// at `path`, [`Error::Io`] when the disk fails.
    pub fn build<E>(path: &Path, rows: impl IntoIterator<Item = Result<Row, E>>) -> Result<RowTotals, Error>
    where
        E: std::error::Error + Send + Sync + 'static,
    {
        create::whole(path, |store| fill(store, rows))
    }
}

/// Writes the rows into the empty `store`, past its journal and memtables.
fn fill<E>(store: &Store, rows: impl IntoIterator<Item = Result<Row, E>>) -> Result<RowTotals, Error>
where
    E: std::error::Error + Send + Sync + 'static,
{
    let failed = |error| store.failed(error);
    let refused = |source: Box<dyn std::error::Error + Send + Sync>| Error::Rows { source };
    // The tally of a rows file checks lengths and order, which the engine would answer with a panic.
    let mut check = RowWriter::new(std::io::sink()).map_err(|error| refused(error.into()))?;
    let mut world = store.world.start_ingestion().map_err(failed)?;
    let mut content = store.content.start_ingestion().map_err(failed)?;
    world.write(FORMAT_KEY, FORMAT.to_be_bytes()).map_err(failed)?;
    for row in rows {
        let Row { space, key, value } = row.map_err(|error| refused(error.into()))?;
        check.push(space, &key, &value).map_err(|error| refused(error.into()))?;
        match space {
            Space::World if key.as_slice() < FIRST_KEY.as_slice() => {
                return Err(refused("a row has a key that is the store's own".into()));
            }
            Space::World => world.write(key, value).map_err(failed)?,
            Space::Content => content.write(key, value).map_err(failed)?,
        }
    }
    let (_, totals) = check.finish().map_err(|error| refused(error.into()))?;
    content.finish().map_err(failed)?;
    world.finish().map_err(failed)?;
    Ok(totals)
}

impl StoreView {
    /// All rows of a space in the order of keys; the store's own rows are not among them.
    pub fn rows(&self, space: Space) -> Rows {
        let keyspace = self.store.keyspace(space);
        let iter = match space {
            Space::World => self.snapshot.range(keyspace, FIRST_KEY..),
            Space::Content => self.snapshot.iter(keyspace),
        };
        Rows { iter, store: self.store.clone() }
    }

    /// The rows of a space whose keys begin with `prefix`, in the order of keys.
    pub fn prefix(&self, space: Space, prefix: &[u8]) -> Rows {
        Rows { iter: self.snapshot.prefix(self.store.keyspace(space), prefix), store: self.store.clone() }
    }

    /// All rows in the order of a rows file.
    pub fn all(&self) -> impl Iterator<Item = Result<Row, Error>> + Send + 'static {
        let of = |space| move |row: Result<_, _>| row.map(|(key, value)| Row { space, key, value });
        let (world, content) = (self.rows(Space::World), self.rows(Space::Content));
        world.map(of(Space::World)).chain(content.map(of(Space::Content)))
    }

    /// One row; the store's own can be asked for.
    pub fn get(&self, space: Space, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let value = self.snapshot.get(self.store.keyspace(space), key);
        Ok(value.map_err(|error| self.store.failed(error))?.map(|value| value.to_vec()))
    }

    /// The newest step that is stored.
    ///
    /// # Errors
    /// [`Error::Corrupted`] when the mark makes no sense, and the errors of reading the store.
    pub fn step(&self) -> Result<StepMark, Error> {
        Ok(self.own_row(&STEP_KEY, StepMark::from_bytes)?.unwrap_or_default())
    }

    /// One of the store's own rows.
    pub(super) fn own_row<T>(&self, key: &[u8], read: impl FnOnce(&[u8]) -> Option<T>) -> Result<Option<T>, Error> {
        let Some(value) = self.get(Space::World, key)? else { return Ok(None) };
        read(&value).map(Some).ok_or_else(|| {
            let reason = format!("its own row {} is malformed", key.escape_ascii());
            Error::Corrupted { path: self.store.path.to_path_buf(), reason }
        })
    }

    /// Reads the world's records with `threads` threads.
    ///
    /// # Errors
    /// [`Error::Record`] naming the first record that cannot be read, and the errors of reading the store.
    pub fn records(&self, threads: usize, progress: &Progress) -> Result<Records, Error> {
        load::load_view(self, threads, progress)
    }
}

/// Rows of a [`StoreView`]; keeps the store open.
pub struct Rows {
    iter: Iter,
    store: Store,
}

impl Rows {
    fn row(&self, row: Guard) -> Result<(Vec<u8>, Vec<u8>), Error> {
        let row = row.into_inner();
        row.map(|(key, value)| (key.to_vec(), value.to_vec())).map_err(|error| self.store.failed(error))
    }
}

impl Iterator for Rows {
    type Item = Result<(Vec<u8>, Vec<u8>), Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let row = self.iter.next()?;
        Some(self.row(row))
    }
}

impl DoubleEndedIterator for Rows {
    fn next_back(&mut self) -> Option<Self::Item> {
        let row = self.iter.next_back()?;
        Some(self.row(row))
    }
}
