//! The agent that a client means, however loosely it says so.

use crate::agent::error_codes;

use agentsvc_components::kernel::limit;
use agentsvc_components::{AgentId, Refusal};

use super::AgentView;
use super::index::agent_named;
use super::show::is_shared;
use crate::kernel::command::{Answer, command};
use crate::kernel::index::{self, Index};
use crate::people::{self, Owners};

/// Finds the agent with this id, else the one of this name, else the first one of all (spec 1, OpenAI-compatible
/// endpoints, Model resolution), among those that whoever asks may know of.
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
            .filter(|agent| people::reaches(world, *agent))
            .or_else(|| match people::limit(world) {
                Some(user) => world.resource::<Owners>().after(user, None).next().map(|(_, agent)| agent),
                // Not one of a user: they would read what others ask of an agent that is not there.
                None => {
                    let mut first = world.resource::<Index>().agents_after(None).take(limit::PAGE_SCAN_MAX);
                    first.find(|(_, agent)| is_shared(world, *agent)).map(|(_, agent)| agent)
                }
            });
        let missing = || Refusal::of(error_codes::NO_AGENT, "no agent exists yet; create one first");
        Answer::Now(found.and_then(|entity| AgentView::of(world, entity)).ok_or_else(missing))
    }
}
