//! Environment variables that a domain gives to the commands of some agents.

use std::ffi::OsString;
use std::sync::Arc;

use agentsvc_api::http::bridge::Bridge;
use agentsvc_components::AgentId;
use futures_util::future::BoxFuture;

/// Names and values, or a sentence that says why they cannot be had.
pub type Variables = Result<Vec<(String, OsString)>, String>;

type Ask = dyn Fn(Bridge, AgentId) -> BoxFuture<'static, Variables> + Send + Sync;

/// Knows which variables the commands of an agent get. Kept in the [settings](crate::kernel::settings::Settings).
#[derive(Clone, Default)]
pub struct AgentVariables(Option<Arc<Ask>>);

impl AgentVariables {
    /// Asks `ask`.
    pub(crate) fn new(ask: impl Fn(Bridge, AgentId) -> BoxFuture<'static, Variables> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(ask)))
    }

    /// Those of this agent.
    ///
    /// # Errors
    /// A sentence for the model.
    pub(crate) async fn of(&self, bridge: Bridge, agent: AgentId) -> Variables {
        match &self.0 {
            Some(ask) => ask(bridge, agent).await,
            None => Ok(Vec::new()),
        }
    }
}
