//! What can go wrong with the store.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use agentsvc_systems::kernel::record;

/// Why the store cannot be opened, read or written. Every text names the place, so that a person can act on it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another process has the store open.
    #[error("the store at {} is in use by another process; stop that process first", path.display())]
    InUse {
        /// Where the store is.
        path: PathBuf,
    },
    /// A later release wrote the store.
    #[error(
        "the store at {} was written by a newer release (format {found}; this release reads up to {supported})",
        path.display()
    )]
    Newer {
        /// Where the store is.
        path: PathBuf,
        /// The format found.
        found: u32,
        /// The latest format this release reads.
        supported: u32,
    },
    /// What is on disk does not make sense.
    #[error("the store at {} is damaged: {reason}; run `agentsvc doctor --repair` to save the readable data, or \
        restore a backup", path.display())]
    Corrupted {
        /// Where the store is.
        path: PathBuf,
        /// What was found.
        reason: String,
    },
    /// A damaged store of which nothing usable can be read.
    #[error("the store at {} cannot be repaired: {reason}; nothing was changed. Restore a backup", path.display())]
    Unrepairable {
        /// Where the store is.
        path: PathBuf,
        /// What was found.
        reason: String,
    },
    /// One record cannot be read.
    #[error("the store at {} is damaged: record {key} of kind '{kind}' cannot be read: {reason}; run `agentsvc \
        doctor --repair` to save the other records, or restore a backup", path.display())]
    Record {
        /// Where the store is.
        path: PathBuf,
        /// The key in hexadecimal, kind byte included.
        key: String,
        /// The kind byte as a character.
        kind: char,
        /// Reason.
        reason: String,
    },
    /// The disk or the file system failed.
    #[error("the store at {} cannot be used: {source}", path.display())]
    Io {
        /// Where the store is.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The rows that a store was to be made of cannot be used.
    #[error("no store can be created from these rows: {source}")]
    Rows {
        /// What is wrong with them.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Another node has taken the world over.
    #[error("another node owns this world since epoch {epoch}; this one stores nothing more")]
    Fenced {
        /// The epoch of the new owner.
        epoch: u64,
    },
    /// The journal that several nodes share cannot be used.
    #[error("the journal cannot be used: {0}")]
    Journal(String),
    /// The journal goes on from a snapshot that this store was not made of.
    #[error("the journal goes on from the snapshot {snapshot}; the store has to be built anew from it")]
    Rebased {
        /// The name of the snapshot.
        snapshot: String,
    },
    /// The journal no longer holds what it had acknowledged.
    #[error(
        "the journal has lost entry {index}, which it had acknowledged: nothing is served until it is known what else is missing"
    )]
    Lost {
        /// The first one that is missing.
        index: u64,
    },
    /// The store holds another entry than the journal.
    #[error("entry {index} of this node's store is not the one that the journal holds: it is no part of this journal")]
    Diverged {
        /// The newest one of the store.
        index: u64,
    },
    /// The journal no longer goes back to what the store lacks.
    #[error(
        "the journal begins with entry {first}, and the store lacks entries before it; it needs a copy of the world"
    )]
    Trimmed {
        /// The oldest one of the journal.
        first: u64,
    },
    /// An earlier write failed; nothing more is written until the next start.
    #[error("the store has failed and accepts no more writes")]
    Poisoned,
}

/// Is what lies behind an error a disk, or a share of one, without room?
pub fn is_full(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut causes = std::iter::successors(Some(error), |error| error.source());
    causes.any(|cause| {
        let io = cause.downcast_ref::<std::io::Error>();
        io.is_some_and(|io| matches!(io.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded))
    })
}

impl Error {
    /// The error of the storage engine at `path`, sorted into the classes a person can act on.
    pub(crate) fn from_engine(path: &Path, error: fjall::Error) -> Self {
        let path = path.to_owned();
        match error {
            fjall::Error::Locked => Self::InUse { path },
            fjall::Error::Poisoned => Self::Poisoned,
            // A file that another one names: the disk is well, the store is not.
            fjall::Error::Io(source) | fjall::Error::Storage(fjall::LsmError::Io(source))
                if matches!(source.kind(), ErrorKind::NotFound | ErrorKind::UnexpectedEof | ErrorKind::InvalidData) =>
            {
                Self::Corrupted { path, reason: source.to_string() }
            }
            fjall::Error::Io(source) => Self::Io { path, source },
            fjall::Error::Storage(fjall::LsmError::Io(source)) => Self::Io { path, source },
            other => Self::Corrupted { path, reason: format!("{other:?}") },
        }
    }

    /// There should be a store at `path`, and there is none.
    pub(crate) fn missing(path: &Path) -> Self {
        Self::Io { path: path.to_owned(), source: ErrorKind::NotFound.into() }
    }

    /// The record under `key` at `path` cannot be read.
    pub(crate) fn record(path: &Path, key: &[u8], error: &record::Error) -> Self {
        let reason = match error {
            record::Error::Corrupt { reason, .. } => reason.clone(),
            other => other.to_string(),
        };
        let hex = record::hex(key);
        let kind = key.first().map_or('?', |byte| char::from(*byte));
        Self::Record { path: path.to_owned(), key: hex, kind, reason }
    }
}
