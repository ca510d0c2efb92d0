//! Where goals are found: by parent, by agent, and the open ones in the order of the prompt.

use crate::goal::error_codes;
use std::collections::BTreeSet;

use bevy_ecs::prelude::World;

use agentsvc_components::goal::Goal;
use agentsvc_components::kernel::limit;
use agentsvc_components::{AgentId, GoalId, Timestamp};

use crate::agent::{is_limited, own_agent_ids, reaches_of};
use crate::kernel::check::Faults;
use crate::kernel::entities::{self, Entities, Mirrored, Own, Put, indexed, state};
use crate::kernel::page::merged;
use crate::kernel::quota::Quota;
use crate::kernel::reaction::{Removed, on};
use crate::kernel::share::Shares;

/// Every goal.
pub(crate) type Goals = Entities<Goal>;

indexed!(Goal: GoalPlaces, "goal", is_limited => is_known, own_goals);

fn is_known(world: &World, goal: &Goal) -> bool {
    reaches_of(world, goal.agent)
}

/// The goals of the agents of a user with a limited role.
fn own_goals(world: &World, after: Option<GoalId>) -> Option<Own<'_, GoalId>> {
    let (agents, goals) = (own_agent_ids(world)?, world.resource::<Goals>());
    let own = agents.into_iter().map(move |agent| goals.of_agent(Some(agent), after));
    Some(Box::new(merged(own)))
}

/// What goals may take.
pub(super) const QUOTA: Quota =
    Quota { count: limit::GOALS_MAX, bytes: limit::GOALS_BYTES_MAX, what: "goals", code: error_codes::GOALS_FULL };

/// Goals by all that a list or a prompt asks for.
#[derive(Debug, Default, PartialEq)]
pub struct GoalPlaces {
    by_parent: BTreeSet<(Option<GoalId>, GoalId)>,
    by_agent: BTreeSet<(Option<AgentId>, GoalId)>,
    /// Open goals of agents, in the order in which they stand in the prompt: due ones first, then by age.
    open: BTreeSet<(AgentId, Timestamp, GoalId)>,
    /// What each holder takes.
    pub(super) shares: Shares,
}

/// Goals without a due date stand behind all others.
const NEVER: Timestamp = Timestamp(i64::MAX);

/// The first of all ids.
const FIRST: GoalId = GoalId(uuid::Uuid::nil());

impl GoalPlaces {
    /// The goals right below `parent`, or those without a parent.
    pub(super) fn below(&self, parent: Option<GoalId>, after: Option<GoalId>) -> impl Iterator<Item = GoalId> + '_ {
        of(&self.by_parent, parent, after)
    }

    /// The goals of `agent`, or those without an agent.
    pub(crate) fn of_agent(&self, agent: Option<AgentId>, after: Option<GoalId>) -> impl Iterator<Item = GoalId> + '_ {
        of(&self.by_agent, agent, after)
    }

    /// The open goals of `agent`, those that are due first.
    pub(super) fn open_of(&self, agent: AgentId) -> impl Iterator<Item = GoalId> + '_ {
        let from = (agent, Timestamp(i64::MIN), FIRST);
        self.open.range(from..).take_while(move |(owner, ..)| *owner == agent).map(|(.., id)| *id)
    }
}

impl Mirrored<Goal> for GoalPlaces {
    fn place(&mut self, id: GoalId, goal: &Goal, is_in: bool) {
        self.by_parent.put((goal.parent, id), is_in);
        self.by_agent.put((goal.agent, id), is_in);
        if let Some(place) = place(id, goal) {
            self.open.put(place, is_in);
        }
        self.shares.put(goal.holder, 1, goal.bytes(), is_in);
    }
}

/// The goals that stand under `key`, from after `after` on.
fn of<K: Ord + Copy>(set: &BTreeSet<(K, GoalId)>, key: K, after: Option<GoalId>) -> impl Iterator<Item = GoalId> + '_ {
    use std::ops::Bound::{Excluded, Included, Unbounded};
    let from = after.map_or(Included((key, FIRST)), |after| Excluded((key, after)));
    set.range((from, Unbounded)).take_while(move |(owner, _)| *owner == key).map(|(_, id)| *id)
}

/// Where an open goal stands among those of its agent.
fn place(id: GoalId, goal: &Goal) -> Option<(AgentId, Timestamp, GoalId)> {
    let agent = goal.agent.filter(|_| goal.status.is_open())?;
    Some((agent, goal.due_at.unwrap_or(NEVER), id))
}

/// Prepares a new world for goals.
pub(crate) fn install(world: &mut World) {
    entities::install::<Goal>(world);
    on(world, |world, gone: &Removed<AgentId>| super::agent_removed(world, gone.id));
}

/// Says which index is wrong ([`check`](crate::kernel::check)).
pub(crate) fn check(world: &mut World, faults: &mut Faults) {
    entities::check::<Goal>(world, faults, |world, id, goal, faults| {
        let has_parent = goal.parent.is_none_or(|parent| state::<Goal>(world, parent).is_some());
        faults.that(has_parent, || format!("goal {id}: the parent goal does not exist"));
        let has_agent = goal.agent.is_none_or(|agent| crate::kernel::index::agent(world, agent).is_ok());
        faults.that(has_agent, || format!("goal {id}: the agent does not exist"));
    });
    QUOTA.check(world.resource::<Goals>().used, faults);
}
