//! The stored vectors of entries: derived data beside the index, which may be deleted at any time.
//!
//! Each embedder has a folder of its own, so that vectors of two are never compared. A row has the key of an entry and holds a
//! fingerprint of its text, and the vectors of the pieces of the text, each number in 8 bits. An entry that the model refuses has
//! a row without vectors.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use fjall::{Database, Guard, Keyspace, KeyspaceCreateOptions};
use xxhash_rust::xxh3::xxh3_64;

use crate::memory_index::segment::Key;

/// Bytes of one memtable.
const MEMTABLE_BYTES: u64 = 4 << 20;
/// Bytes of blocks kept in memory. The system's page cache stands behind it.
const CACHE_BYTES: u64 = 8 << 20;
/// Bytes of journals kept.
const JOURNAL_BYTES: u64 = 64 << 20;
/// Threads that flush and compact.
const WORKERS: usize = 1;
/// The name of the embedder, and the dimensions of its vectors.
const NAME: &[u8] = b"name";
const DIMENSIONS: &[u8] = b"dimensions";
/// The largest number of 8 bits that a part becomes.
const PART_MAX: f32 = 127.0;

/// The vectors of one embedder.
pub(super) struct VectorStore {
    database: Database,
    rows: Keyspace,
    about: Keyspace,
    root: PathBuf,
    dir: PathBuf,
    /// Of all vectors; 0 until there is one.
    dimensions: AtomicU64,
}

/// What is stored of an entry.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    /// Of the text.
    pub(super) fingerprint: u64,
    /// Of its pieces; none where the model refuses the text.
    pub(super) vectors: Vec<Packed>,
}

/// A vector of length 1 in 8 bits a part.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Packed {
    scale: f32,
    parts: Box<[i8]>,
}

impl Packed {
    /// Of a vector.
    pub(super) fn new(vector: &[f32]) -> Self {
        let largest = vector.iter().fold(0.0_f32, |largest, part| largest.max(part.abs()));
        let scale = if largest > 0.0 { largest / PART_MAX } else { 1.0 };
        Self { scale, parts: vector.iter().map(|part| (part / scale).round() as i8).collect() }
    }

    /// How similar it is to a vector of as many parts; 0 for one of another number.
    pub(super) fn similarity(&self, vector: &[f32]) -> f32 {
        if vector.len() != self.parts.len() {
            return 0.0;
        }
        let sum: f32 = self.parts.iter().zip(vector).map(|(part, other)| f32::from(*part) * other).sum();
        sum * self.scale
    }
}

impl Row {
    fn to_bytes(&self) -> Vec<u8> {
        let parts = self.vectors.first().map_or(0, |vector| vector.parts.len());
        let mut bytes = Vec::with_capacity(10 + self.vectors.len() * (4 + parts));
        bytes.extend(self.fingerprint.to_le_bytes());
        bytes.extend((parts as u16).to_le_bytes());
        for vector in &self.vectors {
            bytes.extend(vector.scale.to_le_bytes());
            bytes.extend(vector.parts.iter().map(|part| *part as u8));
        }
        bytes
    }

    /// `None` for what is no row.
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (fingerprint, rest) = bytes.split_first_chunk()?;
        let (parts, rest) = rest.split_first_chunk()?;
        let width = 4 + usize::from(u16::from_le_bytes(*parts));
        if !rest.len().is_multiple_of(width) || (width == 4 && !rest.is_empty()) {
            return None;
        }
        let packed = |bytes: &[u8]| {
            let (scale, parts) = bytes.split_first_chunk()?;
            let scale = Some(f32::from_le_bytes(*scale)).filter(|scale| scale.is_finite())?;
            Some(Packed { scale, parts: parts.iter().map(|part| *part as i8).collect() })
        };
        let vectors = rest.chunks_exact(width).map(packed).collect::<Option<Vec<_>>>()?;
        Some(Self { fingerprint: u64::from_le_bytes(*fingerprint), vectors })
    }
}

/// Says that vectors cannot be compared, and what to do.
pub(super) fn other_dimensions(answered: u64, stored: u64) -> String {
    format!(
        "the model answers with {answered} dimensions, and the stored vectors have {stored}; set another embedding_model or \
         embedding_dimensions, or delete data/memory-vectors while the daemon is stopped"
    )
}

/// The fingerprint of a text.
pub(super) fn fingerprint(text: &str) -> u64 {
    xxh3_64(text.as_bytes())
}

impl VectorStore {
    /// The vectors of the embedder of this name below `root`. What cannot be opened is deleted, and made again.
    ///
    /// # Errors
    /// The disk's.
    pub(super) fn open(root: &Path, name: &str) -> io::Result<Self> {
        let dir = root.join(format!("{:016x}", xxh3_64(name.as_bytes())));
        std::fs::create_dir_all(&dir)?;
        let opened = Self::open_in(root, &dir, name).or_else(|error| {
            tracing::warn!(%error, dir = %dir.display(), "stored vectors cannot be opened; they are made again");
            std::fs::remove_dir_all(&dir)?;
            std::fs::create_dir_all(&dir)?;
            Self::open_in(root, &dir, name)
        })?;
        Ok(opened)
    }

    fn open_in(root: &Path, dir: &Path, name: &str) -> io::Result<Self> {
        let builder = Database::builder(dir).cache_size(CACHE_BYTES).worker_threads(WORKERS);
        let database = builder.max_journaling_size(JOURNAL_BYTES).open().map_err(failed)?;
        let options = || KeyspaceCreateOptions::default().max_memtable_size(MEMTABLE_BYTES);
        let rows = database.keyspace("rows", options).map_err(failed)?;
        let about = database.keyspace("about", options).map_err(failed)?;
        match about.get(NAME).map_err(failed)? {
            Some(stored) if *stored == *name.as_bytes() => {}
            Some(_) => return Err(io::Error::other("they are those of another embedder")),
            None => about.insert(NAME, name).map_err(failed)?,
        }
        let dimensions = about.get(DIMENSIONS).map_err(failed)?.and_then(|bytes| Some(*bytes.first_chunk::<8>()?));
        let dimensions = AtomicU64::new(dimensions.map_or(0, u64::from_le_bytes));
        Ok(Self { database, rows, about, root: root.to_owned(), dir: dir.to_owned(), dimensions })
    }

    /// The dimensions of all vectors; `None` while there is none. Never blocks.
    pub(super) fn dimensions(&self) -> Option<u32> {
        u32::try_from(self.dimensions.load(Ordering::Acquire)).ok().filter(|dimensions| *dimensions > 0)
    }

    /// The row of an entry.
    ///
    /// # Errors
    /// The disk's.
    pub(super) fn get(&self, key: &Key) -> io::Result<Option<Row>> {
        Ok(self.rows.get(key).map_err(failed)?.and_then(|bytes| Row::from_bytes(&bytes)))
    }

    /// Stores rows. Vectors of other dimensions than those that are stored are refused.
    ///
    /// # Errors
    /// Another number of dimensions, or the disk's.
    pub(super) fn put(&self, rows: &[(Key, Row)]) -> io::Result<()> {
        let mut dimensions = self.dimensions.load(Ordering::Acquire);
        let mut batch = self.database.batch();
        for vector in rows.iter().flat_map(|(_, row)| &row.vectors) {
            let parts = vector.parts.len() as u64;
            if dimensions == 0 {
                dimensions = parts;
                batch.insert(&self.about, DIMENSIONS, parts.to_le_bytes());
            }
            if parts != dimensions {
                return Err(io::Error::other(other_dimensions(parts, dimensions)));
            }
        }
        for (key, row) in rows {
            batch.insert(&self.rows, *key, row.to_bytes());
        }
        batch.commit().map_err(failed)?;
        self.dimensions.store(dimensions, Ordering::Release);
        Ok(())
    }

    /// Removes rows; those that are not there are no matter.
    ///
    /// # Errors
    /// The disk's.
    pub(super) fn remove(&self, keys: &[Key]) -> io::Result<()> {
        let mut batch = self.database.batch();
        keys.iter().for_each(|key| batch.remove(&self.rows, *key));
        batch.commit().map_err(failed)
    }

    /// Keys from this one on, that begin with `prefix`, at most `most`.
    ///
    /// # Errors
    /// The disk's.
    pub(super) fn keys(&self, from: &Key, prefix: &[u8], most: usize) -> io::Result<Vec<Key>> {
        let mut keys = Vec::new();
        for key in self.rows.range(from.as_slice()..).take(most).map(Guard::key) {
            let key = key.map_err(failed)?;
            match <Key>::try_from(&*key) {
                Ok(key) if key.starts_with(prefix) => keys.push(key),
                _ => break,
            }
        }
        Ok(keys)
    }

    /// Deletes what other embedders have left.
    ///
    /// # Errors
    /// The disk's.
    pub(super) fn remove_others(&self) -> io::Result<()> {
        for folder in std::fs::read_dir(&self.root)? {
            let path = folder?.path();
            if path != self.dir && path.is_dir() {
                std::fs::remove_dir_all(path)?;
            }
        }
        Ok(())
    }
}

fn failed(error: fjall::Error) -> io::Error {
    io::Error::other(error)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(number: u8) -> Key {
        [number; 32]
    }

    fn row(text: &str, vectors: &[&[f32]]) -> Row {
        Row { fingerprint: fingerprint(text), vectors: vectors.iter().map(|vector| Packed::new(vector)).collect() }
    }

    #[test]
    fn rows_outlive_the_process_and_each_embedder_has_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let store = VectorStore::open(dir.path(), "a/1").unwrap();
        assert_eq!(store.dimensions(), None);
        store.put(&[(key(1), row("one", &[&[1.0, 0.0], &[0.0, 1.0]])), (key(2), row("refused", &[]))]).unwrap();
        assert!(
            store.put(&[(key(3), row("three", &[&[1.0, 0.0, 0.0]]))]).unwrap_err().to_string().contains("3 dimensions")
        );
        drop(store);
        let other = VectorStore::open(dir.path(), "b/1").unwrap();
        assert_eq!((other.get(&key(1)).unwrap(), other.dimensions()), (None, None));
        other.put(&[(key(1), row("one", &[&[1.0]]))]).unwrap();
        let store = VectorStore::open(dir.path(), "a/1").unwrap();
        assert_eq!(store.dimensions(), Some(2));
        assert_eq!(store.get(&key(1)).unwrap(), Some(row("one", &[&[1.0, 0.0], &[0.0, 1.0]])));
        assert_eq!(store.get(&key(2)).unwrap().unwrap().vectors, []);
        assert_eq!(store.keys(&key(0), &[], 10).unwrap(), [key(1), key(2)]);
        assert_eq!(store.keys(&key(2), &[2; 16], 10).unwrap(), [key(2)]);
        store.remove(&[key(1), key(9)]).unwrap();
        assert_eq!(store.keys(&key(0), &[], 10).unwrap(), [key(2)]);
        drop(other);
        store.remove_others().unwrap();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_damaged_store_is_made_again() {
        let dir = tempfile::tempdir().unwrap();
        let store = VectorStore::open(dir.path(), "a").unwrap();
        store.put(&[(key(1), row("one", &[&[1.0]]))]).unwrap();
        let folder = store.dir.clone();
        drop(store);
        for file in std::fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path()).filter(|path| path.is_file()) {
            std::fs::write(file, "damaged").unwrap();
        }
        let store = VectorStore::open(dir.path(), "a").unwrap();
        store.put(&[(key(2), row("two", &[&[1.0, 0.0]]))]).unwrap();
        assert!(store.get(&key(2)).unwrap().is_some());
    }

    proptest! {
        #[test]
        fn packed_vectors_are_about_as_similar(
            one in proptest::collection::vec(-1.0_f32..1.0, 64),
            other in proptest::collection::vec(-1.0_f32..1.0, 64),
        ) {
            let unit = |mut vector: Vec<f32>| {
                super::super::normalise(&mut vector);
                vector
            };
            let (one, other) = (unit(one), unit(other));
            let exact = super::super::similarity(&one, &other);
            prop_assert!((Packed::new(&one).similarity(&other) - exact).abs() < 0.02);
        }

        #[test]
        fn rows_are_read_as_they_were_written(
            vectors in proptest::collection::vec(proptest::collection::vec(-1.0_f32..1.0, 5), 0..4), fingerprint: u64,
        ) {
            let row = Row { fingerprint, vectors: vectors.iter().map(|vector| Packed::new(vector)).collect() };
            prop_assert_eq!(Row::from_bytes(&row.to_bytes()), Some(row));
        }

        #[test]
        fn any_bytes_are_a_row_or_none(bytes: Vec<u8>) {
            if let Some(row) = Row::from_bytes(&bytes) {
                prop_assert!(row.vectors.iter().all(|vector| vector.similarity(&[1.0; 5]).is_finite() || !vector.scale.is_normal()));
            }
        }
    }
}
