//! Reads the knowledge of agents.

use std::ops::Bound;

use agentsvc_api::http::error::ContentError;
use agentsvc_api::knowledge::store::{KnowledgeRow, KnowledgeStore};

use crate::kernel::store::Store;
use crate::kernel::store::deferred::DeferredStore;

impl KnowledgeStore for Store {
    fn value(&self, key: &[u8]) -> Result<Option<Vec<u8>>, ContentError> {
        let value = self.content.get(key).map_err(|error| self.unread(error))?;
        Ok(value.map(|value| value.to_vec()))
    }

    fn rows(&self, prefix: &[u8], after: Option<&[u8]>, limit: usize) -> Result<Vec<KnowledgeRow>, ContentError> {
        let from = match after {
            Some(key) if key >= prefix => Bound::Excluded(key.to_vec()),
            _ => Bound::Included(prefix.to_vec()),
        };
        let mut rows = Vec::new();
        for row in self.content.range((from, Bound::Unbounded)).take(limit) {
            let (key, value) = row.into_inner().map_err(|error| self.unread(error))?;
            if !key.starts_with(prefix) {
                break;
            }
            rows.push((key.to_vec(), value.to_vec()));
        }
        Ok(rows)
    }
}

impl KnowledgeStore for DeferredStore {
    fn value(&self, key: &[u8]) -> Result<Option<Vec<u8>>, ContentError> {
        self.store()?.value(key)
    }

    fn rows(&self, prefix: &[u8], after: Option<&[u8]>, limit: usize) -> Result<Vec<KnowledgeRow>, ContentError> {
        self.store()?.rows(prefix, after, limit)
    }
}
