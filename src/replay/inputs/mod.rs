//! The input log: what every committed step of the world took in, so that any of them can be lived through again.
//!
//! | part | what it does |
//! |------|--------------|
//! | [`log`] | the thread that appends, behind the commit; the world never waits for it |
//! | [`segment`] | files of framed, checked entries |
//! | [`folder`] | one directory per epoch: how its world began, its rows then, its segments |
//! | [`keep`] | which epochs go |
//! | [`renew`] | begins another epoch at a quiet moment of a running world |
//! | [`read`] | reads epochs back, cut off where they are torn |
//! | [`probe`] | the log's share of the metrics page |
//!
//! An *epoch* is the life of one world in memory: from a start, an exchange of the world or a quiet moment up to the
//! next. Its world is the rows it was restored from and the inputs since; nothing else. A log that could not take an
//! input, because the disk failed or its queue was full, ends its epoch there and says so; the next begins as soon as
//! the world is quiet.

pub mod config;
pub mod folder;
pub mod keep;
pub mod log;
pub mod probe;
pub mod read;
pub mod renew;
pub mod segment;

use std::path::{Path, PathBuf};
use std::time::Duration;

/// What the log keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InputSettings {
    /// How long inputs are kept.
    pub keep: Duration,
    /// Bytes of all epochs together.
    pub max_bytes: u64,
}

/// Why inputs cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The disk failed.
    #[error("{}: {source}", path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file is not what was written.
    #[error("{}: {reason}", path.display())]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The rows that an epoch began with cannot be read.
    #[error("{}: {source}", path.display())]
    Rows {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        source: crate::kernel::store::rows::RowError,
    },
    /// The world of an epoch cannot be restored.
    #[error("the initial world of epoch {epoch} cannot be loaded: {source}")]
    Restore {
        /// Which epoch.
        epoch: String,
        /// What is wrong.
        source: agentsvc_systems::kernel::record::Error,
    },
    /// There are no inputs of the step.
    #[error("{0}")]
    NotKept(String),
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] crate::kernel::store::Error),
}

impl Error {
    pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { path, source }
    }
}

/// Where the inputs of a data directory are.
pub fn folder_of(data_dir: &Path) -> PathBuf {
    data_dir.join("inputs")
}
