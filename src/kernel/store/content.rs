//! Reads content rows for those who know what they hold. Each read has a snapshot of its own, so that a slow reader keeps
//! nothing.

use agentsvc_api::http::error::ContentError;
use agentsvc_systems::kernel::record;
use serde::de::DeserializeOwned;

use super::{Error, Store};

impl Store {
    /// A text under its key.
    pub(crate) fn text(&self, key: &[u8]) -> Result<Option<String>, ContentError> {
        let Some(text) = self.content.get(key).map_err(|error| self.unread(error))? else {
            return Ok(None);
        };
        String::from_utf8(text.to_vec()).map(Some).map_err(|_| self.damaged(key, "not UTF-8"))
    }

    /// A row's key and its decoded value.
    pub(crate) fn row<T: DeserializeOwned>(&self, row: fjall::Guard) -> Result<(Vec<u8>, T), ContentError> {
        let (key, value) = row.into_inner().map_err(|error| self.unread(error))?;
        let decoded = self.decoded(&key, &value)?;
        Ok((key.to_vec(), decoded))
    }

    /// A decoded value.
    pub(crate) fn decoded<T: DeserializeOwned>(&self, key: &[u8], value: &[u8]) -> Result<T, ContentError> {
        record::decode(key, value).map_err(|error| content_error(Error::record(&self.path, key, &error)))
    }

    /// A row that holds something else than it should.
    pub(crate) fn damaged(&self, key: &[u8], reason: &str) -> ContentError {
        let error = record::Error::Corrupt { key: String::new(), reason: reason.to_owned() };
        content_error(Error::record(&self.path, key, &error))
    }

    /// The engine failed.
    pub(crate) fn unread(&self, error: fjall::Error) -> ContentError {
        content_error(self.failed(error))
    }
}

/// The API only shows that reading failed; the operator finds the place in the log.
fn content_error(error: Error) -> ContentError {
    tracing::error!(%error, "content cannot be read");
    ContentError::Failed(error.to_string())
}
