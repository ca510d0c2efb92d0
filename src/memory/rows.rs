//! Reads the memory of agents.

use std::ops::Bound;

use agentsvc_api::http::error::ContentError;
use agentsvc_api::memory::store::{MemoryRange, MemoryRow, MemoryStore};
use agentsvc_components::AgentId;
use agentsvc_components::memory::record::MemoryRecord;
use agentsvc_systems::kernel::record::{memory_key, memory_prefix};

use crate::kernel::store::Store;
use crate::kernel::store::deferred::DeferredStore;

impl MemoryStore for Store {
    fn memory(&self, agent: AgentId, key: &str) -> Result<Option<MemoryRecord>, ContentError> {
        let key = memory_key(agent, key);
        let value = self.content.get(&key).map_err(|error| self.unread(error))?;
        value.map(|value| self.decoded(&key, &value)).transpose()
    }

    fn memories(&self, agent: AgentId, range: &MemoryRange) -> Result<Vec<MemoryRow>, ContentError> {
        let prefix = memory_key(agent, &range.prefix);
        let from = match &range.after {
            Some(key) if memory_key(agent, key) >= prefix => Bound::Excluded(memory_key(agent, key)),
            _ => Bound::Included(prefix.clone()),
        };
        let start = memory_prefix(agent).len();
        let (mut entries, mut bytes) = (Vec::new(), 0);
        for row in self.content.range((from, Bound::Unbounded)).take(range.limit) {
            let (key, value) = row.into_inner().map_err(|error| self.unread(error))?;
            if !key.starts_with(&prefix) {
                break;
            }
            let name = std::str::from_utf8(&key[start..]).map_err(|_| self.damaged(&key, "the key is not UTF-8"))?;
            let record: MemoryRecord = self.decoded(&key, &value)?;
            bytes += record.value.len();
            entries.push(MemoryRow { key: name.into(), record });
            if range.bytes > 0 && bytes >= range.bytes {
                break;
            }
        }
        Ok(entries)
    }
}

impl MemoryStore for DeferredStore {
    fn memory(&self, agent: AgentId, key: &str) -> Result<Option<MemoryRecord>, ContentError> {
        self.store()?.memory(agent, key)
    }

    fn memories(&self, agent: AgentId, range: &MemoryRange) -> Result<Vec<MemoryRow>, ContentError> {
        self.store()?.memories(agent, range)
    }
}
