//! The store: everything that survives a kill, in one fjall database with two keyspaces.
//!
//! | part | what it does |
//! |------|--------------|
//! | [`writer`] | the one thread that commits: joins waiting steps into one batch and one fsync, then lets go what waited |
//! | [`journal`] | where the writer's batches become durable: the store itself, or a log that other machines share |
//! | [`load`] | reads the world's records back at start, in parallel |
//! | [`content`] | reads content rows while the world runs, for the domains that know what they hold |
//! | [`sweep`] | erases what nothing points at any more |
//! | [`view`] | all rows as of one committed batch, for copies; a new store made of rows |
//! | `carry` | hands the audit trail and the store's own rows on to the store that takes this one's place |
//! | `exchange` | one store directory takes the place of another, whatever is killed meanwhile |
//! | `raw` | reads the engine's files without the engine, and finds damage |
//! | [`repair`] | copies what can be read of a damaged store into a new one |
//! | [`stats`], [`probe`] | counters for the metrics page |
//!
//! `world` holds one small record per entity and is read whole at start; `content` holds messages and texts and
//! is read on demand. Keys are a kind byte and big-endian ids (see `agentsvc_components::kernel::record`). Key 0x00 of
//! `world` is the format of the store, so that a later release can tell an older home and an older release can
//! refuse a newer one; behind it stand a mark of the newest change of `content` (`CONTENT_KEY`), the newest step
//! (`STEP_KEY`), since when ids have a slot (`BORN_KEY`) and, where there is a shared journal, its newest entry (`POSITION_KEY`). None of them is a record of the world.
//!
//! A kill at any point leaves exactly some committed batch: a torn tail of the journal is cut off when the store
//! is opened. There is no clean-close marker, because opening after a kill is the only way of opening.

mod born;
mod commit_queue;
pub mod content;
mod copy_rows;
mod create;
pub(crate) mod deferred;
mod error;
pub(crate) mod exchange;
pub mod journal;
pub mod load;
pub mod probe;
pub(crate) mod raw;
pub mod repair;
pub mod rows;
pub mod stats;
pub mod step_log;
pub mod sweep;
pub mod view;
pub mod writer;

use std::ops::Deref;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use fjall::config::{BlockSizePolicy, FilterPolicy};
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};

pub use error::{Error, is_full};
pub use stats::StoreStats;

/// The format this release writes; grows when keys or keyspaces change in a way an older release cannot read.
pub const FORMAT: u32 = 1;

/// The key of the format record in `world`; sorts before every kind byte.
const FORMAT_KEY: [u8; 1] = [0];
/// The key in `world` of an empty row in each batch that changes `content`. So every batch changes `world`, and the data tables
/// of `world` know the newest batch that those of `content`, or a journal, must have.
const CONTENT_KEY: [u8; 2] = [0, b'c'];
/// Bytes of one memtable. Larger ones stall the writer less often; there are two, and up to four more each while
/// they are flushed.
const MEMTABLE_BYTES: u64 = 8 << 20;
/// Bytes of decompressed blocks kept in memory. Small: the system's page cache stands behind it.
const CACHE_BYTES: u64 = 8 << 20;
/// Bytes of a block of the world's records before compression. A start reads all of them, and each block costs a call of
/// the system.
const WORLD_BLOCK_BYTES: u32 = 16 << 10;
/// Bytes of journals kept before keyspaces are flushed to let old ones go; bounds the replay at start.
const JOURNAL_BYTES: u64 = 64 << 20;
/// How often one who waits for a store to be closed looks.
const CLOSE_POLL: Duration = Duration::from_millis(1);
/// Threads that flush and compact. Two, so that a long compaction does not hold up a flush.
const WORKERS: usize = 2;

/// An open store. Cheap to clone; the last clone closes it.
#[derive(Clone)]
pub struct Store(Arc<Opened>);

type OnMark = dyn Fn(&Store, Vec<u8>) + Send;

/// What an open store is made of.
pub struct Opened {
    /// Where it is.
    pub(crate) path: Arc<Path>,
    /// The database both keyspaces live in.
    database: Database,
    /// One record per entity.
    pub(crate) world: Keyspace,
    /// Messages and texts.
    pub(crate) content: Keyspace,
    /// What the writer has done.
    stats: Arc<StoreStats>,
    /// Who compares this store with others.
    marks: parking_lot::Mutex<Option<Box<OnMark>>>,
    /// The last field: when it is gone, the database is closed.
    open: Arc<()>,
}

impl Deref for Store {
    type Target = Opened;

    fn deref(&self) -> &Opened {
        &self.0
    }
}

/// Tells when a store is closed, without keeping it open.
pub struct StoreWatch {
    store: Weak<Opened>,
    open: Weak<()>,
}

impl StoreWatch {
    /// Waits for the last clone to go; false when one is still there after `wait`. Its directory may be moved only
    /// then: the engine opens its files by their paths.
    pub fn is_closed_within(&self, wait: Duration) -> bool {
        let until = Instant::now() + wait;
        while self.open.strong_count() > 0 {
            if Instant::now() >= until {
                return false;
            }
            std::thread::sleep(CLOSE_POLL);
        }
        true
    }

    /// The store, if somebody still has it open.
    pub(crate) fn store(&self) -> Option<Store> {
        self.store.upgrade().map(Store)
    }
}

impl Store {
    /// Opens the store at `path`, or creates an empty one there.
    ///
    /// # Errors
    /// [`Error::InUse`] when another process has it open, [`Error::Newer`] when a later release wrote it,
    /// [`Error::Corrupted`] when it makes no sense, [`Error::Io`] when the disk fails.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, Error> {
        let path: Arc<Path> = path.into().into();
        caught(&path, || {
            if !create::ensure(&path)? {
                raw::check(&path)?;
            }
            let store = Self::open_engine(&path)?;
            store.check_format()?;
            Ok(store)
        })
    }

    fn open_engine(path: &Arc<Path>) -> Result<Self, Error> {
        let failed = |error| Error::from_engine(path, error);
        let database = Database::builder(path)
            .cache_size(CACHE_BYTES)
            .worker_threads(WORKERS)
            .max_journaling_size(JOURNAL_BYTES)
            .open()
            .map_err(failed)?;
        // Stored when the keyspace is created: a change here holds for new stores only.
        let options = || KeyspaceCreateOptions::default().max_memtable_size(MEMTABLE_BYTES);
        // World records are only ever read in whole ranges, so filters would cost and never pay, and blocks are large.
        let of_world = || {
            let options = options().filter_policy(FilterPolicy::disabled()).expect_point_read_hits(true);
            options.data_block_size_policy(BlockSizePolicy::all(WORLD_BLOCK_BYTES))
        };
        let world = database.keyspace("world", of_world).map_err(failed)?;
        let content = database.keyspace("content", options).map_err(failed)?;
        let (stats, open) = (Arc::default(), Arc::default());
        Ok(Self(Arc::new(Opened {
            path: path.clone(),
            database,
            world,
            content,
            stats,
            marks: Default::default(),
            open,
        })))
    }

    /// Refuses a store that a newer release wrote.
    fn check_format(&self) -> Result<(), Error> {
        let path = self.path.to_path_buf();
        let Some(value) = self.world.get(FORMAT_KEY).map_err(|error| self.failed(error))? else {
            return Err(Error::Corrupted { path, reason: "no format record".to_owned() });
        };
        let Ok(bytes) = <[u8; 4]>::try_from(&*value) else {
            return Err(Error::Corrupted { path, reason: "malformed format record".to_owned() });
        };
        let found = u32::from_be_bytes(bytes);
        if found > FORMAT { Err(Error::Newer { path, found, supported: FORMAT }) } else { Ok(()) }
    }

    /// Marks a new store with the format of this release.
    fn write_format(&self) -> Result<(), Error> {
        let mut batch = self.database.batch().durability(Some(PersistMode::SyncAll));
        batch.insert(&self.world, FORMAT_KEY, FORMAT.to_be_bytes());
        batch.commit().map_err(|error| self.failed(error))
    }

    /// Where the store is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the writer has done so far.
    pub fn stats(&self) -> &StoreStats {
        &self.stats
    }

    /// The same, for who looks at it longer than the store is open.
    pub fn shared_stats(&self) -> Arc<StoreStats> {
        Arc::clone(&self.stats)
    }

    /// What tells when this store is closed.
    pub fn watch(&self) -> StoreWatch {
        StoreWatch { store: Arc::downgrade(&self.0), open: Arc::downgrade(&self.open) }
    }

    /// The engine's error with this store's place.
    pub(crate) fn failed(&self, error: fjall::Error) -> Error {
        Error::from_engine(&self.path, error)
    }
}

/// The engine asserts some of its invariants while it recovers; a broken home is an answer, not a crash.
fn caught(path: &Path, open: impl FnOnce() -> Result<Store, Error>) -> Result<Store, Error> {
    let failed = |_| Err(Error::Corrupted { path: path.to_owned(), reason: "recovery failed".to_owned() });
    std::panic::catch_unwind(AssertUnwindSafe(open)).unwrap_or_else(failed)
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("path", &self.path).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
