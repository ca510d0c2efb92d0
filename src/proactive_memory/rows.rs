//! Reads the entries of the memory that agents keep.

use std::ops::Bound;

use agentsvc_api::http::error::ContentError;
use agentsvc_api::proactive_memory::store::{EntryRow, EntryStore};
use agentsvc_components::AgentId;
use agentsvc_components::proactive_memory::MemoryEntryId;
use agentsvc_components::proactive_memory::record::MemoryEntryRecord;
use agentsvc_systems::kernel::record::entry_prefix;
use agentsvc_systems::proactive_memory::keys::{
    entry_key, owner_prefix, parse_entry_key, parse_lead, user_key, user_prefix,
};

use crate::kernel::store::Store;
use crate::kernel::store::deferred::DeferredStore;

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

    fn entries(
        &self,
        agent: Option<AgentId>,
        after: Option<Place>,
        limit: usize,
    ) -> Result<Vec<EntryRow>, ContentError> {
        let prefix = agent.map_or_else(|| b"e".to_vec(), entry_prefix);
        let from = match after {
            Some((agent, id)) if entry_key(agent, id) >= prefix => Bound::Excluded(entry_key(agent, id)),
            _ => Bound::Included(prefix.clone()),
        };
        let mut rows = Vec::new();
        for row in self.content.range((from, Bound::Unbounded)).take(limit) {
            let (key, value) = row.into_inner().map_err(|error| self.unread(error))?;
            if !key.starts_with(&prefix) {
                break;
            }
            let place = parse_entry_key(&key).ok_or_else(|| self.damaged(&key, "not the key of an entry"))?;
            rows.push(EntryRow { agent: place.0, id: place.1, record: self.decoded(&key, &value)? });
        }
        Ok(rows)
    }

    fn of_user(&self, user: &str, after: Option<Place>, limit: usize) -> Result<Vec<EntryRow>, ContentError> {
        let prefix = user_prefix(user);
        let from = match after {
            Some((agent, id)) => Bound::Excluded(user_key(user, agent, id)),
            None => Bound::Included(prefix.clone()),
        };
        let mut rows = Vec::new();
        for row in self.content.range((from, Bound::Unbounded)) {
            let key = row.key().map_err(|error| self.unread(error))?;
            if !key.starts_with(&prefix) || rows.len() == limit {
                break;
            }
            let (agent, id) = parse_lead(&key).ok_or_else(|| self.damaged(&key, "not the key of an entry"))?;
            // Of an agent that is being erased, the entry may be gone already.
            if let Some(record) = self.entry(agent, id)? {
                rows.push(EntryRow { agent, id, record });
            }
        }
        Ok(rows)
    }
}

impl EntryStore for DeferredStore {
    fn entry(&self, agent: AgentId, id: MemoryEntryId) -> Result<Option<MemoryEntryRecord>, ContentError> {
        self.store()?.entry(agent, id)
    }

    fn owner(&self, id: MemoryEntryId) -> Result<Option<AgentId>, ContentError> {
        self.store()?.owner(id)
    }

    fn entries(
        &self,
        agent: Option<AgentId>,
        after: Option<Place>,
        limit: usize,
    ) -> Result<Vec<EntryRow>, ContentError> {
        self.store()?.entries(agent, after, limit)
    }

    fn of_user(&self, user: &str, after: Option<Place>, limit: usize) -> Result<Vec<EntryRow>, ContentError> {
        self.store()?.of_user(user, after, limit)
    }
}
