//! Asks the present world for the search.

use std::collections::HashSet;

use agentsvc_api::http::bridge::Bridge;
use agentsvc_api::http::error::ContentError;
use agentsvc_components::kernel::limit::PAGE_ITEMS_MAX;
use agentsvc_components::{AgentId, RefusalKind, Timestamp};
use agentsvc_systems::agent::SummariseAgents;
use agentsvc_systems::kernel::command::Command;
use agentsvc_systems::kernel::stored::AwaitStored;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::watch;

use super::search::World;
use crate::kernel::world_loop::Clock;

/// The present world of the daemon.
pub(super) struct Present {
    pub(super) bridge: Bridge,
    /// Hears of each world that comes to life.
    pub(super) starts: Mutex<watch::Receiver<()>>,
    pub(super) clock: Clock,
}

impl Present {
    fn ask<C: Command + Send + 'static>(&self, command: C) -> Result<C::Reply, ContentError> {
        let handle = Handle::try_current().map_err(|error| ContentError::Failed(error.to_string()))?;
        handle.block_on(self.bridge.ask(command)).map_err(|refusal| match refusal.kind {
            RefusalKind::Busy => ContentError::Exchanging,
            _ => ContentError::Failed(refusal.to_string()),
        })
    }
}

impl World for Present {
    fn living(&self, agents: Vec<AgentId>) -> Result<HashSet<AgentId>, ContentError> {
        let mut living = HashSet::with_capacity(agents.len());
        for some in agents.chunks(PAGE_ITEMS_MAX) {
            living.extend(self.ask(SummariseAgents(some.to_vec()))?.into_iter().map(|agent| agent.id));
        }
        Ok(living)
    }

    fn settled(&self) -> Result<(), ContentError> {
        self.ask(AwaitStored)
    }

    fn is_another(&self) -> bool {
        let mut starts = self.starts.lock();
        let is_another = starts.has_changed().unwrap_or(false);
        starts.mark_unchanged();
        is_another
    }

    fn now(&self) -> Timestamp {
        (self.clock.wall)()
    }
}
