//! Budgets are read (spec 3, Budget).

use bevy_ecs::prelude::World;

use agentsvc_components::agent::Agent;
use agentsvc_components::kernel::limit;
use agentsvc_components::usage::{Limits, Period, Scope, UsageSum};
use agentsvc_components::{AgentId, Micros, Timestamp};

use super::{Budgets, check_scope, limits};
use crate::kernel::clock::Now;
use crate::kernel::command::{Answer, command};
use crate::kernel::index;
use crate::usage::{Rollups, calendar};

/// A budget and what is spent of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BudgetView {
    /// Whose.
    pub scope: Scope,
    /// The agent's name, where it is one's.
    pub agent_name: Option<Box<str>>,
    /// The limits in force; `None` is no limit.
    pub limits: Limits,
    /// Money of today.
    pub today: Micros,
    /// Money of this month.
    pub month: Micros,
    /// Tokens of this hour.
    pub hour_tokens: u64,
    /// Money that is reserved for calls that are out.
    pub reserved: Micros,
    /// All time.
    pub total: UsageSum,
    /// When day, month and hour begin anew.
    pub resets: [Timestamp; 3],
    /// With what its descendants spent, which the amounts above leave out: `ok`, `warning` (80 % of a
    /// limit are spent) or `exceeded` (it is used up, or left no room for a call).
    pub status: &'static str,
}

/// Reads one budget.
#[derive(Clone, Copy, Debug)]
pub struct GetBudget(pub Scope);

command! {
    read "get_budget" GetBudget => BudgetView, Root, |it, world| {
        Answer::Now(check_scope(world, it.0).map(|()| view(world, it.0)))
    }
}

pub(crate) fn view(world: &World, scope: Scope) -> BudgetView {
    let now = world.resource::<Now>().0;
    let limits = limits(world, scope);
    let rollups = world.resource::<Rollups>();
    let [day, month, hour] =
        [Period::Daily, Period::Monthly, Period::Hourly].map(|period| (period, rollups.spent(scope, period, now)));
    let told = world.resource::<Budgets>().of(scope);
    let of_limit = [
        (Period::Daily, limits.daily),
        (Period::Monthly, limits.monthly),
        (Period::Hourly, limits.hourly_tokens.map(Micros)),
    ];
    let mut status = "ok";
    for (period, limit) in of_limit {
        let Some(limit) = limit else { continue };
        let spent = rollups.counted(scope, period, now);
        if spent.spent >= limit.0 || told.exceeded[period as usize] == Some(spent.index) {
            status = "exceeded";
        } else if u128::from(spent.spent) * 100 >= u128::from(limit.0) * 80 && status == "ok" {
            status = "warning";
        }
    }
    BudgetView {
        scope,
        agent_name: scope.agent().and_then(|agent| name_of(world, agent)),
        limits,
        today: Micros(day.1.spent),
        month: Micros(month.1.spent),
        hour_tokens: hour.1.spent,
        reserved: Micros(month.1.reserved),
        total: rollups.total(scope),
        resets: [day, month, hour].map(|(period, spent)| calendar::ends(period, spent.index)),
        status,
    }
}

fn name_of(world: &World, agent: AgentId) -> Option<Box<str>> {
    let entity = index::agent(world, agent).ok()?;
    world.get::<Agent>(entity).map(|agent| agent.name.clone())
}

/// Spending of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentBudget {
    /// Who.
    pub agent: AgentId,
    /// Its name.
    pub agent_name: Box<str>,
    /// Money since ever.
    pub total: Micros,
    /// Money of today.
    pub today: Micros,
}

/// Reads what agents have spent, those that spent most first; agents that never asked a model are not among them. At
/// most [`limit::BUDGETS_LISTED_MAX`].
#[derive(Clone, Copy, Debug)]
pub struct ListAgentBudgets;

command! {
    read "list_agent_budgets" ListAgentBudgets => Vec<AgentBudget>, All, |_, world| {
        let now = world.resource::<Now>().0;
        let rollups = world.resource::<Rollups>();
        let row = |agent| {
            let scope = Scope::Agent(agent);
            let today = Micros(rollups.spent(scope, Period::Daily, now).spent);
            let agent_name = name_of(world, agent)?;
            Some(AgentBudget { agent, agent_name, total: rollups.total(scope).cost, today })
        };
        Answer::read(rollups.ranked().filter_map(row).take(limit::BUDGETS_LISTED_MAX).collect())
    }
}
