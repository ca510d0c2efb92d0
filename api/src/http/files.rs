//! Files as bodies come from and go to them: read, written, and why that fails.

use agentsvc_components::kernel::error_codes;
use std::io::{self, Read};

use hyper::StatusCode;

use crate::http::error::Error;

/// Why a file could not be had or kept. The texts are for clients: no path of the machine stands in them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FilesError {
    /// There is no such file (404).
    #[error("{0}")]
    NotFound(String),
    /// The name or path is wrong (400).
    #[error("{0}")]
    Wrong(String),
    /// What is there forbids it (409).
    #[error("{0}")]
    Conflict(String),
    /// The file is larger than files may be (413).
    #[error("the file is larger than {0} bytes")]
    TooLarge(u64),
    /// There is no room left (507).
    #[error("{0}")]
    Full(String),
    /// One agent with those it spawned, or one user, has its share (507).
    #[error("{text}")]
    Quota {
        /// For people.
        text: String,
        /// Bytes that the share has.
        limit: u64,
    },
    /// Too much of it at once; again in a moment (503).
    #[error("{0}")]
    Busy(String),
    /// Those with whom files are shared do not answer; nothing was stored (503).
    #[error("{0}")]
    Unavailable(String),
    /// The file is not what was stored (500).
    #[error("{0}")]
    Damaged(String),
    /// The disk failed; the reason is in the log (500).
    #[error("the files could not be read or written")]
    Failed,
    /// One of these because of a field of the request, which the answer names.
    #[error("{error}")]
    Field {
        /// The field.
        field: &'static str,
        /// What is amiss with it.
        error: Box<FilesError>,
    },
}

impl FilesError {
    /// Why a [`FileReader`] failed.
    #[must_use]
    pub fn of_read(error: io::Error) -> Self {
        match error.downcast() {
            Ok(error) => error,
            Err(error) => {
                tracing::error!(%error, "a file could not be read");
                Self::Failed
            }
        }
    }

    /// The same, because of this field of the request.
    #[must_use]
    pub fn of_field(self, field: &'static str) -> Self {
        Self::Field { field, error: Box::new(self) }
    }
}

impl From<FilesError> for Error {
    fn from(error: FilesError) -> Self {
        let text = error.to_string();
        match error {
            FilesError::NotFound(_) => Self::not_found(text),
            FilesError::Wrong(_) => Self::bad_request(text),
            FilesError::Conflict(_) => Self::conflict(text),
            FilesError::TooLarge(max) => Self::new(StatusCode::PAYLOAD_TOO_LARGE, text).with("limit_bytes", max),
            FilesError::Full(_) => Self::of(error_codes::STORAGE_FULL, text),
            FilesError::Quota { limit, .. } => Self::of(error_codes::QUOTA_EXCEEDED, text).with("limit_bytes", limit),
            FilesError::Busy(_) => Self::unavailable(text, 1),
            FilesError::Unavailable(_) => Self::of(error_codes::SHARED_FILES_UNAVAILABLE, text).retry_after(1),
            FilesError::Damaged(_) => Self::of(error_codes::FILE_DAMAGED, text),
            FilesError::Failed => Self::internal(text),
            FilesError::Field { field, error } => Self::from(*error).with("field", field),
        }
    }
}

/// The content of a file. Reads touch the disk; one that finds that the file is damaged fails with a [`FilesError`].
pub type FileReader = Box<dyn Read + Send>;

/// A file that is being written. It is there when `finish` has answered; dropped before, nothing of it stays.
pub trait FileWriter<T>: Send {
    /// Adds a piece.
    ///
    /// # Errors
    /// [`FilesError::TooLarge`], [`FilesError::Full`], or the disk failed.
    fn write(&mut self, piece: &[u8]) -> Result<(), FilesError>;

    /// Makes it durable and gives it its name.
    ///
    /// # Errors
    /// As [`write`](Self::write); nothing of the file stays.
    fn finish(self: Box<Self>) -> Result<T, FilesError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_files_that_cannot_be_reached_are_said_to_be_and_may_be_asked_for_again() {
        let error = Error::from(FilesError::Unavailable("later".to_owned()));
        assert_eq!((error.status(), error.retry_after_secs()), (StatusCode::SERVICE_UNAVAILABLE, Some(1)));
        let of_field = Error::from(FilesError::Unavailable("later".to_owned()).of_field("file"));
        assert_eq!(of_field.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(error_codes::SHARED_FILES_UNAVAILABLE.as_str(), "shared_files_unavailable");
    }
}
