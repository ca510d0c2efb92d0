//! What a tool knows and may use while it runs.

use std::sync::Arc;

use agentsvc_api::http::bridge::Bridge;
use agentsvc_components::turn::effect::ToolRun;
use agentsvc_components::{Actor, AgentId, TurnId};
use agentsvc_systems::Command;
use agentsvc_systems::kernel::for_call::{ForCall, Formatter};

use super::{Ended, ToolParts, ToolStores};

/// What a tool knows and may use.
#[derive(Clone)]
pub struct Context {
    /// The call: whose, where and with what manifest. When there is no agent its id is nil.
    pub(crate) run: Arc<ToolRun>,
    /// What tools may use.
    pub(crate) parts: ToolParts,
    /// The logs and the memory that tools read.
    pub(crate) stores: ToolStores,
    /// A client calls the tool by itself: there is no turn (spec 2, Direct tool invocation).
    pub(crate) direct: bool,
}

impl Context {
    /// The way into the world: as the agent in its turn, or as the client that calls.
    pub(crate) fn bridge(&self) -> Bridge {
        let actor = match self.turn() {
            Some(turn) => Actor::Agent { agent: self.run.agent, turn },
            None => Actor::Api,
        };
        self.parts.bridge.acting_as(actor)
    }

    /// Sends a command to the world and waits for its reply; a refusal is a sentence for the model.
    pub(crate) async fn ask<C: Command>(&self, command: C) -> Result<C::Reply, String> {
        self.bridge().ask(command).await.map_err(|refusal| format!("Refused: {}.", refusal.message))
    }

    /// Has the world carry out a command and settle the call with what `told` makes of the reply, in one step: safe to
    /// repeat, because a call without a result has changed nothing. Without a turn there is nothing to settle.
    pub(crate) async fn settle<C: Command>(&self, command: C, told: fn(&C::Reply) -> String) -> Result<Ended, String> {
        if self.direct {
            return Ok(Ended::Text(told(&self.ask(command).await?)));
        }
        let (attempt, index) = (self.run.attempt, self.run.index);
        self.ask(ForCall { attempt, index, command, told: Formatter::By(told) }).await?;
        Ok(Ended::Adopted)
    }

    /// The turn whose call this is.
    pub(crate) fn turn(&self) -> Option<TurnId> {
        (!self.direct).then_some(self.run.turn())
    }

    /// The agent on whose behalf it runs.
    pub(crate) fn agent(&self) -> Option<AgentId> {
        Some(self.run.agent).filter(|agent| !agent.0.is_nil())
    }
}
