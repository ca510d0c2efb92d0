//! The store of the present world, for those who were there before it and stay when another takes its place.

use agentsvc_api::session::content::{
    Content, ContentError, MemoryRange, MemoryRow, MessageRange, MessageRow, UsageRange, UsageRow,
};
use agentsvc_components::compaction::record::SummaryRecord;
use agentsvc_components::memory::record::MemoryRecord;
use agentsvc_components::turn::trace::TraceRecord;
use agentsvc_components::{AgentId, LogId, TurnId};
use parking_lot::RwLock;

use crate::kernel::store::Store;

/// Answers from the store of the present world. Nobody asks before there is one: the world takes no command before that.
#[derive(Default)]
pub(crate) struct LateStore(RwLock<Place>);

#[derive(Default)]
enum Place {
    /// There was none yet.
    #[default]
    Opening,
    /// It is open.
    Open(Store),
    /// It was given up for another.
    Exchanging,
}

impl LateStore {
    /// The store is open.
    pub(crate) fn set(&self, store: Store) {
        *self.0.write() = Place::Open(store);
    }

    /// The store is given up; who reads it at this moment still ends that.
    pub(crate) fn give_up(&self) {
        *self.0.write() = Place::Exchanging;
    }

    /// The store of the present world.
    pub(crate) fn store(&self) -> Result<Store, ContentError> {
        match &*self.0.read() {
            Place::Opening => Err(ContentError::Failed("it is still being opened".to_owned())),
            Place::Open(store) => Ok(store.clone()),
            Place::Exchanging => Err(ContentError::Exchanging),
        }
    }
}

impl Content for LateStore {
    fn messages(&self, log: LogId, range: MessageRange) -> Result<Vec<MessageRow>, ContentError> {
        self.store()?.messages(log, range)
    }

    fn result(&self, log: LogId, ordinal: u32, index: u32) -> Result<Option<String>, ContentError> {
        self.store()?.result(log, ordinal, index)
    }

    fn summary(&self, log: LogId, upto: u32) -> Result<Option<SummaryRecord>, ContentError> {
        self.store()?.summary(log, upto)
    }

    fn summaries(&self, log: LogId) -> Result<Vec<SummaryRecord>, ContentError> {
        self.store()?.summaries(log)
    }

    fn manifest_text(&self, agent: AgentId) -> Result<Option<String>, ContentError> {
        self.store()?.manifest_text(agent)
    }

    fn traces(&self, agent: AgentId, before: Option<TurnId>, limit: usize) -> Result<Vec<TraceRecord>, ContentError> {
        self.store()?.traces(agent, before, limit)
    }

    fn trace_count(&self, agent: AgentId) -> Result<u64, ContentError> {
        self.store()?.trace_count(agent)
    }

    fn memory(&self, agent: AgentId, key: &str) -> Result<Option<MemoryRecord>, ContentError> {
        self.store()?.memory(agent, key)
    }

    fn memories(&self, agent: AgentId, range: &MemoryRange) -> Result<Vec<MemoryRow>, ContentError> {
        self.store()?.memories(agent, range)
    }

    fn usage(&self, range: &UsageRange) -> Result<Vec<UsageRow>, ContentError> {
        self.store()?.usage(range)
    }

    fn active_agents(&self, from: i64, to: i64) -> Result<usize, ContentError> {
        self.store()?.active_agents(from, to)
    }
}
