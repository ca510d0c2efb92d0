//! Some agents are read at once, in the form of a list.

use agentsvc_components::AgentId;
use agentsvc_components::kernel::limit;

use super::list::{AgentFilter, AgentSummary, matching};
use crate::kernel::command::{Answer, command};
use crate::kernel::index;

/// Reads the list lines of these agents; at most [`limit::PAGE_ITEMS_MAX`], the rest is left out.
#[derive(Clone, Debug)]
pub struct SummariseAgents(pub Vec<AgentId>);

command! {
    /// Those that live, in the order of the ids.
    read "summarise_agents" SummariseAgents => Vec<AgentSummary>, All, |it, world| {
        let living = it.0.iter().take(limit::PAGE_ITEMS_MAX).filter_map(|id| index::agent(world, *id).ok());
        Answer::read(living.filter_map(|entity| matching(world, entity, &AgentFilter::default())).collect())
    }
}
