//! The agent that a client means, however loosely it says so.

use crate::agent::error_codes;

use agentsvc_components::{AgentId, Refusal};

use super::AgentView;
use super::index::agent_named;
use crate::kernel::command::{Answer, command};
use crate::kernel::index::{self, Index};

/// Finds the agent with this id, else the one of this name, else the first one of all (spec 1, OpenAI-compatible
/// endpoints, Model resolution).
#[derive(Clone, Debug)]
pub struct ResolveAgent {
    /// An id, where one was given.
    pub id: Option<AgentId>,
    /// A name; need not be anyone's.
    pub name: Box<str>,
}

command! {
    quick "resolve_agent" ResolveAgent => AgentView, IdOrAll(|it| it.id.map(|id| id.0)), |it, world| {
        let found = it
            .id
            .and_then(|id| index::agent(world, id).ok())
            .or_else(|| agent_named(world, &it.name))
            .or_else(|| world.resource::<Index>().first_agent());
        let missing = || Refusal::of(error_codes::NO_AGENT, "no agent exists yet; create one first");
        Answer::Now(found.and_then(|entity| AgentView::of(world, entity)).ok_or_else(missing))
    }
}
