//! Reads the content that belongs to an agent beside its logs: traces and memory.

use std::ops::Bound;

use agentsvc_api::http::error::ContentError;
use agentsvc_api::memory::store::{MemoryRange, MemoryRow};
use agentsvc_components::memory::record::MemoryRecord;
use agentsvc_components::turn::trace::TraceRecord;
use agentsvc_components::{AgentId, TurnId};
use agentsvc_systems::kernel::record;
use agentsvc_systems::kernel::record::{memory_key, memory_prefix, trace_key, trace_prefix};
use serde::de::DeserializeOwned;
use uuid::Uuid;

use super::content::content_error;
use super::{Error, Store};

impl Store {
    pub(super) fn read_traces(
        &self,
        agent: AgentId,
        before: Option<TurnId>,
        limit: usize,
    ) -> Result<Vec<TraceRecord>, ContentError> {
        let to = match before {
            Some(turn) => Bound::Excluded(trace_key(agent, turn)),
            None => Bound::Included(trace_key(agent, TurnId(Uuid::max()))),
        };
        let rows = self.content.range((Bound::Included(trace_prefix(agent)), to));
        rows.rev().take(limit).map(|row| Ok(self.row(row)?.1)).collect()
    }

    pub(super) fn read_trace_count(&self, agent: AgentId) -> Result<u64, ContentError> {
        let keys = self.content.prefix(trace_prefix(agent));
        keys.map(|row| row.key().map(|_| 1).map_err(|error| content_error(self.failed(error)))).sum()
    }

    pub(super) fn read_memory(&self, agent: AgentId, key: &str) -> Result<Option<MemoryRecord>, ContentError> {
        let key = memory_key(agent, key);
        let value = self.content.get(&key).map_err(|error| content_error(self.failed(error)))?;
        value.map(|value| self.decoded(&key, &value)).transpose()
    }

    pub(super) fn read_memories(&self, agent: AgentId, range: &MemoryRange) -> Result<Vec<MemoryRow>, ContentError> {
        let prefix = memory_key(agent, &range.prefix);
        let from = match &range.after {
            Some(key) if memory_key(agent, key) >= prefix => Bound::Excluded(memory_key(agent, key)),
            _ => Bound::Included(prefix.clone()),
        };
        let start = memory_prefix(agent).len();
        let mut entries = Vec::new();
        for row in self.content.range((from, Bound::Unbounded)).take(range.limit) {
            let (key, value) = row.into_inner().map_err(|error| content_error(self.failed(error)))?;
            if !key.starts_with(&prefix) {
                break;
            }
            let name = std::str::from_utf8(&key[start..]).map_err(|_| self.damaged(&key, "the key is not UTF-8"))?;
            entries.push(MemoryRow { key: name.into(), record: self.decoded(&key, &value)? });
        }
        Ok(entries)
    }

    /// A row's key and its decoded value.
    fn row<T: DeserializeOwned>(&self, row: fjall::Guard) -> Result<(Vec<u8>, T), ContentError> {
        let (key, value) = row.into_inner().map_err(|error| content_error(self.failed(error)))?;
        let decoded = self.decoded(&key, &value)?;
        Ok((key.to_vec(), decoded))
    }

    /// A decoded value.
    pub(super) fn decoded<T: DeserializeOwned>(&self, key: &[u8], value: &[u8]) -> Result<T, ContentError> {
        record::decode(key, value).map_err(|error| content_error(Error::record(&self.path, key, &error)))
    }

    fn damaged(&self, key: &[u8], reason: &str) -> ContentError {
        let error = record::Error::Corrupt { key: String::new(), reason: reason.to_owned() };
        content_error(Error::record(&self.path, key, &error))
    }
}
