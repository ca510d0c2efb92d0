//! Reads usage events. Each call has a snapshot of its own, so that a slow reader of a long export keeps nothing.

use std::collections::HashSet;
use std::ops::Bound;

use agentsvc_api::http::error::ContentError;
use agentsvc_api::usage::store::{UsageRange, UsageRow, UsageStore};
use agentsvc_components::AgentId;
use agentsvc_systems::usage::{active_key, parse_active_key, usage_range};
use uuid::Uuid;

use crate::kernel::store::Store;
use crate::kernel::store::deferred::DeferredStore;

impl UsageStore for Store {
    fn usage(&self, range: &UsageRange) -> Result<Vec<UsageRow>, ContentError> {
        let keys = usage_range(range.from, range.to);
        let from = match &range.after {
            Some(key) if *key >= keys.start => Bound::Excluded(key.clone()),
            _ => Bound::Included(keys.start),
        };
        let mut events = Vec::new();
        for row in self.content.range((from, Bound::Excluded(keys.end))).take(range.limit) {
            let (key, value) = row.into_inner().map_err(|error| self.unread(error))?;
            let record = self.decoded(&key, &value)?;
            events.push(UsageRow { key: key.to_vec(), record });
        }
        Ok(events)
    }

    fn active_agents(&self, from: i64, to: i64) -> Result<usize, ContentError> {
        let nobody = AgentId(Uuid::nil());
        let mut agents = HashSet::new();
        for row in self.content.range(active_key(from, nobody)..active_key(to.saturating_add(1), nobody)) {
            let key = row.key().map_err(|error| self.unread(error))?;
            agents.extend(parse_active_key(&key));
        }
        Ok(agents.len())
    }
}

impl UsageStore for DeferredStore {
    fn usage(&self, range: &UsageRange) -> Result<Vec<UsageRow>, ContentError> {
        self.store()?.usage(range)
    }

    fn active_agents(&self, from: i64, to: i64) -> Result<usize, ContentError> {
        self.store()?.active_agents(from, to)
    }
}
