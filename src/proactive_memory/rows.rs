//! Reads the entries of the memory that agents keep.

use std::ops::Bound;

use agentsvc_api::http::error::ContentError;
use agentsvc_api::proactive_memory::store::{EntryPage, EntryRow, EntryStore};
use agentsvc_components::AgentId;
use agentsvc_components::proactive_memory::MemoryEntryId;
use agentsvc_components::proactive_memory::record::MemoryEntryRecord;
use agentsvc_systems::kernel::record::entry_prefix;
use agentsvc_systems::proactive_memory::keys::{
    entry_key, owner_prefix, parse_entry_key, parse_lead, user_key, user_prefix,
};

use crate::kernel::store::Store;
use crate::kernel::store::deferred::DeferredStore;

/// Bytes of the texts of rows that are read at once; the row that reaches them is the last.
const READ_BYTES_MAX: u64 = 4 << 20;

type Place = (AgentId, MemoryEntryId);

impl EntryStore for Store {
    fn entry(&self, agent: AgentId, id: MemoryEntryId) -> Result<Option<MemoryEntryRecord>, ContentError> {
        let key = entry_key(agent, id);
        let value = self.content.get(&key).map_err(|error| self.unread(error))?;
        value.map(|value| self.decoded(&key, &value)).transpose()
    }

    fn owner(&self, id: MemoryEntryId) -> Result<Option<AgentId>, ContentError> {
        let row = self.content.prefix(owner_prefix(id)).next();
        let key = row.map(|row| row.key().map_err(|error| self.unread(error))).transpose()?;
        Ok(key.and_then(|key| parse_lead(&key)).map(|(agent, _)| agent))
    }

    fn entries(&self, agent: Option<AgentId>, after: Option<Place>, limit: usize) -> Result<EntryPage, ContentError> {
        let prefix = agent.map_or_else(|| b"e".to_vec(), entry_prefix);
        let from = match after {
            Some((agent, id)) if entry_key(agent, id) >= prefix => Bound::Excluded(entry_key(agent, id)),
            _ => Bound::Included(prefix.clone()),
        };
        let (mut rows, mut bytes) = (Vec::new(), 0);
        for row in self.content.range((from, Bound::Unbounded)) {
            let (key, value) = row.into_inner().map_err(|error| self.unread(error))?;
            if !key.starts_with(&prefix) {
                break;
            }
            if rows.len() == limit || bytes >= READ_BYTES_MAX {
                return Ok(EntryPage { rows, is_last: false });
            }
            let place = parse_entry_key(&key).ok_or_else(|| self.damaged(&key, "not the key of an entry"))?;
            let record: MemoryEntryRecord = self.decoded(&key, &value)?;
            bytes += record.bytes();
            rows.push(EntryRow { agent: place.0, id: place.1, record });
        }
        Ok(EntryPage { rows, is_last: true })
    }

    fn of_user(&self, user: &str, after: Option<Place>, limit: usize) -> Result<EntryPage, ContentError> {
        let prefix = user_prefix(user);
        let from = match after {
            Some((agent, id)) => Bound::Excluded(user_key(user, agent, id)),
            None => Bound::Included(prefix.clone()),
        };
        let (mut rows, mut bytes) = (Vec::new(), 0);
        for row in self.content.range((from, Bound::Unbounded)) {
            let key = row.key().map_err(|error| self.unread(error))?;
            if !key.starts_with(&prefix) {
                break;
            }
            if rows.len() == limit || bytes >= READ_BYTES_MAX {
                return Ok(EntryPage { rows, is_last: false });
            }
            let (agent, id) = parse_lead(&key).ok_or_else(|| self.damaged(&key, "not the key of an entry"))?;
            // Of an agent that is being erased, the entry may be gone already.
            if let Some(record) = self.entry(agent, id)? {
                bytes += record.bytes();
                rows.push(EntryRow { agent, id, record });
            }
        }
        Ok(EntryPage { rows, is_last: true })
    }
}

impl EntryStore for DeferredStore {
    fn entry(&self, agent: AgentId, id: MemoryEntryId) -> Result<Option<MemoryEntryRecord>, ContentError> {
        self.store()?.entry(agent, id)
    }

    fn owner(&self, id: MemoryEntryId) -> Result<Option<AgentId>, ContentError> {
        self.store()?.owner(id)
    }

    fn entries(&self, agent: Option<AgentId>, after: Option<Place>, limit: usize) -> Result<EntryPage, ContentError> {
        self.store()?.entries(agent, after, limit)
    }

    fn of_user(&self, user: &str, after: Option<Place>, limit: usize) -> Result<EntryPage, ContentError> {
        self.store()?.of_user(user, after, limit)
    }
}
