//! Sessions are listed in bounded pages.

use agentsvc_components::session::Session;
use agentsvc_components::{AgentId, Refusal, SessionId};
use bevy_ecs::prelude::{Entity, World};
use serde::{Deserialize, Serialize};

use super::SessionView;
use crate::kernel::command::{Answer, command};
use crate::kernel::index::{self, Index};
use crate::kernel::page::Page;
use crate::people;

/// Where a page ended. Stays valid when the session, or its agent, is removed meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionPosition {
    /// The owner's place in the order of the world that gave the page.
    pub owner: u64,
    /// The last session of the page.
    pub session: SessionId,
}

impl SessionPosition {
    /// Where the next page begins, among the sessions of all. A session that lives says itself whose it is: in a world that
    /// was restored since, owners have other places.
    pub(super) fn place(self, world: &World) -> Option<(Entity, Option<SessionId>)> {
        let home = index::session(world, self.session).and_then(|session| world.get::<Session>(session));
        let owner = home.map(|home| home.agent).or_else(|| Entity::try_from_bits(self.owner))?;
        Some((owner, Some(self.session)))
    }
}

/// Reads a page of sessions.
#[derive(Clone, Debug, Default)]
pub struct ListSessions {
    /// Only of this agent.
    pub agent: Option<AgentId>,
    /// The last made first; only together with `agent`.
    pub newest_first: bool,
    /// Only sessions whose label or agent name contains this, ignoring case.
    pub matching: Option<String>,
    /// Go on after this.
    pub after: Option<SessionPosition>,
    /// At most this many; cut to [`PAGE_ITEMS_MAX`](agentsvc_components::kernel::limit::PAGE_ITEMS_MAX).
    pub limit: usize,
}

command! {
    read "list_sessions" ListSessions => Page<SessionView, SessionPosition, Option<usize>>,
        IdOrAll(|it| it.agent.map(|id| id.0)), |it, world|
        Answer::Now(page(world, &it))
}

fn page(world: &World, command: &ListSessions) -> Result<Page<SessionView, SessionPosition, Option<usize>>, Refusal> {
    let owner = command.agent.map(|id| reached(world, id)).transpose()?;
    let after = command.after.and_then(|at| match owner {
        Some(owner) => Some((owner, Some(at.session))),
        None => at.place(world),
    });
    let from = after.or(owner.map(|owner| (owner, None)));
    let matching = command.matching.as_ref().map(|text| text.to_lowercase());
    let index = world.resource::<Index>();
    let total = match owner {
        None => people::limit(world).is_none().then(|| index.session_count()),
        Some(owner) => after.is_none().then(|| index.session_count_of(owner)),
    };
    let agents = if owner.is_none() { people::own_agents(world) } else { None };
    let order: Box<dyn Iterator<Item = _>> = match (owner, agents) {
        (Some(owner), _) if command.newest_first => {
            Box::new(index.sessions_before(owner, command.after.map(|at| at.session)))
        }
        (None, Some(agents)) => Box::new(of_these(index, agents, after)),
        _ => Box::new(index.sessions_after(from)),
    };
    let own = order.take_while(|(holder, _)| owner.is_none_or(|owner| owner == *holder));
    let found = own.map(|(holder, id)| (SessionPosition { owner: holder.to_bits(), session: id }, id));
    Ok(Page::of(found, command.limit, total, |id| {
        let known = index::session(world, id).filter(|at| is_known(world, *at));
        let view = known.and_then(|entity| SessionView::of(world, entity));
        view.filter(|view| matching.as_ref().is_none_or(|text| matches(view, text)))
    }))
}

/// The sessions of these agents in the order of those of all, from after a position on. None of another is looked at.
fn of_these(
    index: &Index,
    mut agents: Vec<Entity>,
    after: Option<(Entity, Option<SessionId>)>,
) -> impl Iterator<Item = (Entity, SessionId)> + '_ {
    agents.sort_unstable();
    let behind = agents.into_iter().filter(move |agent| after.is_none_or(|(last, _)| *agent >= last));
    behind.flat_map(move |agent| {
        let from = after.filter(|(last, _)| *last == agent).and_then(|(_, session)| session);
        index.sessions_of(agent, from).map(move |id| (agent, id))
    })
}

/// The agent `id`, if whoever acts may know of it.
fn reached(world: &World, id: AgentId) -> Result<Entity, Refusal> {
    let found = index::agent(world, id)?;
    people::reaches(world, found).then_some(found).ok_or_else(|| Refusal::not_found("agent", id))
}

fn is_known(world: &World, session: Entity) -> bool {
    world.get::<Session>(session).is_some_and(|it| super::lives(world, it) && people::reaches(world, it.agent))
}

fn matches(view: &SessionView, text: &str) -> bool {
    view.label.as_ref().is_some_and(|label| label.to_lowercase().contains(text))
        || view.agent_name.to_lowercase().contains(text)
}
