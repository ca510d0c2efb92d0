//! Files on their way in: pieces of a body are gathered and written off the tokio workers.

use agentsvc_components::kernel::limit;
use bytes::Bytes;
use tokio::runtime::Handle;

use crate::http::blocking::spawn_blocking;
use crate::http::files::{FileWriter, FilesError};

/// Bytes that are gathered before they are written. Fewer trips to another thread, and still little memory.
const BATCH_BYTES: usize = 256 << 10;

/// One file that is being received. Dropped before [`finish`](Self::finish), nothing of it stays.
pub(crate) struct Receiver<T: 'static> {
    writer: Option<Box<dyn FileWriter<T>>>,
    batch: Vec<Bytes>,
    batch_bytes: usize,
}

impl<T: Send + 'static> Receiver<T> {
    pub(crate) const fn new(writer: Box<dyn FileWriter<T>>) -> Self {
        Self { writer: Some(writer), batch: Vec::new(), batch_bytes: 0 }
    }

    /// Takes a piece; writes when enough have come.
    ///
    /// # Errors
    /// Those of [`FileWriter::write`].
    pub(crate) async fn push(&mut self, piece: Bytes) -> Result<(), FilesError> {
        // A piece of a byte takes the memory of many.
        self.batch_bytes += piece.len().max(limit::BODY_PIECE_BYTES as usize);
        self.batch.push(piece);
        if self.batch_bytes < BATCH_BYTES {
            return Ok(());
        }
        self.batch_bytes = 0;
        let (Some(mut writer), batch) = (self.writer.take(), std::mem::take(&mut self.batch)) else {
            return Err(FilesError::Failed);
        };
        let written = blocking(move || {
            batch.iter().try_for_each(|piece| writer.write(piece))?;
            Ok(writer)
        });
        self.writer = Some(written.await?);
        Ok(())
    }

    /// Writes the rest and makes the file durable.
    ///
    /// # Errors
    /// Those of [`FileWriter::finish`].
    pub(crate) async fn finish(mut self) -> Result<T, FilesError> {
        let (Some(mut writer), batch) = (self.writer.take(), std::mem::take(&mut self.batch)) else {
            return Err(FilesError::Failed);
        };
        blocking(move || {
            batch.iter().try_for_each(|piece| writer.write(piece))?;
            writer.finish()
        })
        .await
    }
}

impl<T: 'static> Drop for Receiver<T> {
    fn drop(&mut self) {
        // Cleaning up touches the disk.
        if let (Some(writer), Ok(runtime)) = (self.writer.take(), Handle::try_current()) {
            drop(runtime.spawn_blocking(move || drop(writer)));
        }
    }
}

/// Runs what touches the disk on a thread that may wait for it.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, FilesError> + Send + 'static,
) -> Result<T, FilesError> {
    match spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => {
            tracing::error!(%error, "a file operation was interrupted");
            Err(FilesError::Failed)
        }
    }
}
