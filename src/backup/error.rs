//! What can go wrong with a backup or a restore.

use agentsvc_api::backup::error_codes;
use agentsvc_components::ErrorCode;
use agentsvc_components::kernel::error_codes as kernel_codes;
use std::io;
use std::path::{Path, PathBuf};

use crate::kernel::store;
use crate::kernel::store::rows::RowError;

/// Why a backup was not made, or an archive not restored. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file is no archive of ours.
    #[error("not an agentsvc backup: {0}")]
    Foreign(String),
    /// A later release wrote it.
    #[error("written by a newer release (format {found}; this release reads up to {supported})")]
    Newer {
        /// The format found.
        found: u32,
        /// The latest format this release reads.
        supported: u32,
    },
    /// It is not what was written.
    #[error("damaged: {0}")]
    Damaged(String),
    /// An entry would be written where none may be, or is no plain file.
    #[error("entry {name:?} {reason}")]
    Unsafe {
        /// The entry's name.
        name: String,
        /// Reason.
        reason: &'static str,
    },
    /// It is larger than backups may be, or grows too much.
    #[error("{0}")]
    TooLarge(String),
    /// What is in it does not go with this home.
    #[error("{0}")]
    Unfit(String),
    /// The disk has no room for it.
    #[error("{needed} bytes are needed at {}, but only {free} are free", path.display())]
    NoRoom {
        /// Bytes needed.
        needed: u64,
        /// Bytes free.
        free: u64,
        /// Where.
        path: PathBuf,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The disk failed.
    #[error("cannot {what} {}: {source}", path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// On which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A restore that is decided cannot be carried out to its end. Some of it may be done; nothing is lost.
    #[error(
        "the interrupted restore of {archive} cannot be completed: {source}; fix this and try again, or run \
         `agentsvc doctor --repair` to roll it back"
    )]
    Unfinished {
        /// The archive.
        archive: String,
        /// What stands in the way.
        source: Box<Error>,
    },
    /// It was told to stop.
    #[error("the daemon is shutting down")]
    Stopped,
}

/// Names the file and the deed when the system refuses.
pub(super) fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    move |source| Error::Io { what, path: path.to_owned(), source }
}

impl Error {
    /// A stable word for programs; `None` for what is a failure of this machine.
    pub const fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Foreign(_) => Some(error_codes::BACKUP_FOREIGN),
            Self::Newer { .. } => Some(error_codes::BACKUP_NEWER),
            Self::Damaged(_) => Some(error_codes::BACKUP_DAMAGED),
            Self::Unsafe { .. } => Some(error_codes::BACKUP_UNSAFE),
            Self::TooLarge(_) => Some(error_codes::BACKUP_TOO_LARGE),
            Self::Unfit(_) => Some(error_codes::BACKUP_UNFIT),
            Self::NoRoom { .. } => Some(kernel_codes::STORAGE_FULL),
            Self::Store(_) | Self::Io { .. } | Self::Unfinished { .. } | Self::Stopped => None,
        }
    }

    /// What stands in the way of a restore that is not finished, else the error itself; in words.
    pub(super) fn cause(&self) -> String {
        match self {
            Self::Unfinished { source, .. } => source.to_string(),
            error => error.to_string(),
        }
    }

    /// What a rows file's fault is for the archive it stands in.
    pub(super) fn of_rows(entry: &str, error: RowError) -> Self {
        match error {
            RowError::Io(source) => {
                // A fault of the layers below travels through the reader of rows as it came.
                match source.downcast::<Self>() {
                    Ok(error) => error,
                    Err(source) => Self::Io { what: "read", path: entry.into(), source },
                }
            }
            RowError::Newer { found } => Self::Newer { found: u32::from(found), supported: 1 },
            other => Self::Damaged(format!("{entry}: {other}")),
        }
    }
}

/// A fault on its way through a layer that knows the system's errors only.
pub(super) fn smuggled(error: Error) -> io::Error {
    io::Error::other(error)
}

/// The fault that such a layer gave back.
pub(super) fn found_in(what: &'static str, path: &Path, source: io::Error) -> Error {
    match source.downcast::<Error>() {
        Ok(error) => error,
        Err(source) => Error::Io { what, path: path.to_owned(), source },
    }
}
