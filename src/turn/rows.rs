//! Reads the traces of turns.

use std::ops::Bound;

use agentsvc_api::http::error::ContentError;
use agentsvc_api::turn::store::TraceStore;
use agentsvc_components::turn::trace::TraceRecord;
use agentsvc_components::{AgentId, TurnId};
use agentsvc_systems::kernel::record::{trace_key, trace_prefix};
use uuid::Uuid;

use crate::kernel::store::Store;
use crate::kernel::store::deferred::DeferredStore;

impl TraceStore for Store {
    fn traces(&self, agent: AgentId, before: Option<TurnId>, limit: usize) -> Result<Vec<TraceRecord>, ContentError> {
        let to = match before {
            Some(turn) => Bound::Excluded(trace_key(agent, turn)),
            None => Bound::Included(trace_key(agent, TurnId(Uuid::max()))),
        };
        let rows = self.content.range((Bound::Included(trace_prefix(agent)), to));
        rows.rev().take(limit).map(|row| Ok(self.row(row)?.1)).collect()
    }

    fn trace_count(&self, agent: AgentId) -> Result<u64, ContentError> {
        let keys = self.content.prefix(trace_prefix(agent));
        keys.map(|row| row.key().map(|_| 1).map_err(|error| self.unread(error))).sum()
    }
}

impl TraceStore for DeferredStore {
    fn traces(&self, agent: AgentId, before: Option<TurnId>, limit: usize) -> Result<Vec<TraceRecord>, ContentError> {
        self.store()?.traces(agent, before, limit)
    }

    fn trace_count(&self, agent: AgentId) -> Result<u64, ContentError> {
        self.store()?.trace_count(agent)
    }
}
