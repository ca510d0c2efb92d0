//! The traces of ended turns as routes read them. Implemented where the disk is known.

use agentsvc_components::turn::trace::TraceRecord;
use agentsvc_components::{AgentId, TurnId};

use crate::http::error::ContentError;

/// Reads traces. The calls may touch the disk: on a tokio worker use `spawn_blocking`.
pub trait TraceStore: Send + Sync + 'static {
    /// The traces of an agent's ended turns, newest first, from before `before` on.
    fn traces(&self, agent: AgentId, before: Option<TurnId>, limit: usize) -> Result<Vec<TraceRecord>, ContentError>;

    /// How many traces of an agent there are.
    fn trace_count(&self, agent: AgentId) -> Result<u64, ContentError>;
}
