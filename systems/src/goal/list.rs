//! Goals are listed in bounded pages, in order of creation.

use agentsvc_components::goal::GoalStatus;
use agentsvc_components::kernel::limit;
use agentsvc_components::{AgentId, GoalId, Refusal};
use bevy_ecs::prelude::World;

use super::index::find;
use super::{GoalView, Goals};
use crate::kernel::command::{Answer, Command};
use crate::kernel::page::Page;

/// Which goals to list. Empty lists all.
#[derive(Clone, Debug, Default)]
pub struct GoalFilter {
    /// Only this agent's; `Some(None)` is those of nobody.
    pub agent: Option<Option<AgentId>>,
    /// Only those right below this goal; `Some(None)` is those without a parent.
    pub parent: Option<Option<GoalId>>,
    /// Only goals with this status.
    pub status: Option<GoalStatus>,
}

/// Reads a page of goals.
#[derive(Clone, Debug, Default)]
pub struct ListGoals {
    /// Which.
    pub filter: GoalFilter,
    /// Refuse it (404) unless the parent in the filter exists.
    pub parent_must_exist: bool,
    /// Go on after this goal; it need not exist any more.
    pub after: Option<GoalId>,
    /// At most this many; cut to [`limit::PAGE_ITEMS_MAX`].
    pub limit: usize,
}

impl Command for ListGoals {
    type Reply = Page<GoalView, GoalId, Option<usize>>;
    const NAME: &'static str = "list_goals";
    const WRITES: bool = false;

    fn run(self, world: &mut World) -> Answer<Page<GoalView, GoalId, Option<usize>>> {
        Answer::Now(page(world, &self))
    }
}

fn page(world: &World, command: &ListGoals) -> Result<Page<GoalView, GoalId, Option<usize>>, Refusal> {
    let (filter, after, goals) = (&command.filter, command.after, world.resource::<Goals>());
    if command.parent_must_exist
        && let Some(Some(parent)) = filter.parent
    {
        find(world, parent)?;
    }
    let first = after.is_none();
    Ok(match (filter.parent, filter.agent) {
        (Some(parent), _) => {
            let total = first.then(|| goals.below(parent, None).count());
            filled(world, command, total, goals.below(parent, after))
        }
        (None, Some(agent)) => {
            let total = first.then(|| goals.of_agent(agent, None).count());
            filled(world, command, total, goals.of_agent(agent, after))
        }
        (None, None) => filled(world, command, Some(goals.len()), goals.all(after)),
    })
}

/// The page of `ids` as far as the filter lets them pass; looks at no more than [`limit::PAGE_SCAN_MAX`].
fn filled(
    world: &World,
    command: &ListGoals,
    total: Option<usize>,
    ids: impl Iterator<Item = GoalId>,
) -> Page<GoalView, GoalId, Option<usize>> {
    let (most, goals) = (command.limit.clamp(1, limit::PAGE_ITEMS_MAX), world.resource::<Goals>());
    let mut page = Page { items: Vec::new(), next: None, total };
    for (looked, id) in ids.enumerate() {
        if page.items.len() == most || looked == limit::PAGE_SCAN_MAX {
            return page;
        }
        page.next = Some(id);
        let view = goals.get(id).and_then(|entity| GoalView::of(world, entity));
        page.items.extend(view.filter(|view| matches(view, &command.filter)));
    }
    page.next = None;
    page
}

fn matches(view: &GoalView, filter: &GoalFilter) -> bool {
    filter.agent.is_none_or(|agent| view.goal.agent == agent)
        && filter.status.is_none_or(|status| view.goal.status == status)
}
