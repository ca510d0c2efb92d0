//! Which agents are offered.

use agentsvc_components::AgentId;
use agentsvc_components::kernel::limit::PAGE_SCAN_MAX;
use agentsvc_systems::a2a::limits;
use agentsvc_systems::agent::{AgentFilter, AgentSummary, AgentView, FindAgent, GetAgent, ListAgents};
use agentsvc_systems::kernel::glob;
use agentsvc_systems::kernel::page::Page;

use super::error_codes::{A2A_AGENT_UNKNOWN, A2A_AGENT_UNNAMED};
use super::host::Policy;
use crate::http::call::Call;
use crate::http::error::Error;

/// Agents that one read gives; it looks at more where many belong to users.
const PAGE: usize = 500;
/// Reads for one list.
const READS_MAX: usize = limits::A2A_AGENTS_SCANNED_MAX / PAGE_SCAN_MAX;

/// An agent that is offered.
#[derive(Clone, Debug)]
pub(crate) struct Offered {
    pub(crate) id: AgentId,
    pub(crate) name: Box<str>,
}

fn is_offered(policy: &Policy, name: &str) -> bool {
    glob::any(&policy.agents, name)
}

/// Agents of users are theirs, and are not offered.
fn shared() -> AgentFilter {
    AgentFilter { is_shared: true, ..AgentFilter::default() }
}

/// The agents that are offered, in the order of their creation; at most so many.
///
/// # Errors
/// Those of the world.
pub(crate) async fn list(call: &Call, policy: &Policy, most: usize) -> Result<Vec<Offered>, Error> {
    let read = |after| call.ask(ListAgents { filter: shared(), after, limit: PAGE });
    among(read, policy, most).await
}

/// The offered agents of the pages that `read` gives, of [`READS_MAX`] at most.
async fn among<F>(read: impl Fn(Option<AgentId>) -> F, policy: &Policy, most: usize) -> Result<Vec<Offered>, Error>
where
    F: Future<Output = Result<Page<AgentSummary, AgentId>, Error>>,
{
    let (mut found, mut after) = (Vec::new(), None);
    for _ in 0..READS_MAX {
        let page = read(after).await?;
        let offered = page.items.into_iter().filter(|agent| is_offered(policy, &agent.name));
        found.extend(offered.map(|agent| Offered { id: agent.id, name: agent.name }).take(most - found.len()));
        after = page.next;
        if after.is_none() || found.len() >= most {
            break;
        }
    }
    Ok(found)
}

/// What the world knows of an offered agent; `None` when it is gone.
///
/// # Errors
/// Those of the world.
pub(crate) async fn detail(call: &Call, id: AgentId) -> Result<Option<AgentView>, Error> {
    gone(call.ask(GetAgent(id)).await)
}

fn gone<T>(found: Result<T, Error>) -> Result<Option<T>, Error> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.status().as_u16() == 404 => Ok(None),
        Err(error) => Err(error),
    }
}

/// The agent that a request means: the named one, else the default one, else the only one.
///
/// # Errors
/// 404 for one that is not offered, in the same words whether it exists or not; 400 when several are offered.
pub(crate) async fn choose(call: &Call, policy: &Policy, named: Option<&str>) -> Result<Offered, Error> {
    let Some(name) = named.or(policy.default_agent.as_deref()) else {
        let mut first = list(call, policy, 2).await?;
        return match (first.pop(), first.is_empty()) {
            (Some(only), true) => Ok(only),
            (None, _) => Err(Error::of(A2A_AGENT_UNKNOWN, "no agent is offered over A2A")),
            (Some(_), false) => {
                let text = "several agents are offered; name one in `agent_id`";
                Err(Error::of(A2A_AGENT_UNNAMED, text).with("field", "agent_id"))
            }
        };
    };
    let unknown = || Error::of(A2A_AGENT_UNKNOWN, "no agent of this name or id is offered").with("field", "agent_id");
    let found = match name.parse::<AgentId>() {
        Ok(id) => gone(call.ask(GetAgent(id)).await)?,
        Err(_) => gone(call.ask(FindAgent(name.into())).await)?,
    };
    let found = found.filter(|agent| agent.owner.is_none() && is_offered(policy, &agent.name));
    found.map(|agent| Offered { id: agent.id, name: agent.name }).ok_or_else(unknown)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use uuid::Uuid;

    use super::*;

    #[tokio::test]
    async fn agents_that_belong_to_users_count_among_those_that_are_looked_at() {
        let reads = Cell::new(0_u32);
        // As the world answers where all agents belong to users: each page looks at so many, and shows none.
        let read = |_| {
            reads.set(reads.get() + 1);
            let next = Some(AgentId(Uuid::from_u128(reads.get().into())));
            std::future::ready(Ok(Page { items: Vec::new(), next, total: 0 }))
        };
        assert!(among(read, &Policy::default(), 1).await.unwrap().is_empty());
        assert_eq!(reads.get() as usize * PAGE_SCAN_MAX, limits::A2A_AGENTS_SCANNED_MAX);
    }
}
