//! Budgets (spec 3, Budget): what may be spent, by everybody and by each agent, in a day and in a month; and tokens of an
//! hour. All periods begin anew in UTC.
//!
//! No call goes out unless the most that it can cost is reserved at every scope of its path, in the same commit. So
//! what is spent and what is reserved together never exceed a limit, whatever ends how. A turn that wants to call:
//!
//! | at each scope of its path                          | then                                                     |
//! |----------------------------------------------------|----------------------------------------------------------|
//! | spent and reserved leave room for the worst case   | reserved, sent                                           |
//! | only what others have reserved is in the way       | it waits; the next call that comes back looks again      |
//! | what is spent leaves no room                       | it fails with `budget_exceeded`                          |
//! | the tokens of the hour are used up                 | the same                                                 |
//! | a limit of money is in force, no price is known    | it fails with `price_unknown`                            |
//! | strangers began it, and a limit of theirs is in the way ([`CallStarts`]) | it waits or fails as that domain says |
//!
//! The path leads from the agent over those that spawned it, and the user whom it belongs to, to everybody's budget: at an agent's limits counts what it and its
//! descendants spend together, the gone ones included.
//!
//! A call that is nobody's, such as the test of a provider, reserves at everybody's budget, and one that an MCP server asks for
//! inside a turn at the turn's path; both are refused where a turn would wait. A message to an agent whose budget is used up is refused at the door, before anything is stored. At 80 % of a limit,
//! and when it is used up, an event tells of it, once for each period.

pub mod audit_kinds;
mod correct;
pub mod error_codes;
mod fixed;
mod memory;
mod metrics;
mod need;
mod probe;
pub(crate) mod query;
pub(crate) mod rows;
mod sampling;
mod set;
mod show;
mod summary;
mod verdict;
mod waiting;

pub use correct::CorrectBudget;
pub use memory::{MEMORY, ReserveMemory};
pub use probe::ReserveProbe;
pub use sampling::{ReserveSampling, Reserved, SAMPLING};
pub use set::SetBudget;
pub use show::{AgentBudget, BudgetView, GetBudget, ListAgentBudgets};
pub use summary::{GetUsageSummary, UsageSummary};

pub(crate) use fixed::{FixedCall, may_begin, reserve_fixed};
pub(crate) use need::{Need, need, reserve};
pub(crate) use show::view;
pub(crate) use verdict::{Denial, Verdict, at_door, judge, refused, strangers_at_door};
pub(crate) use waiting::{beat, leave, leave_line, next_due, promise_left, wait};

use std::collections::BTreeMap;

use bevy_ecs::prelude::{Entity, Resource, World};
use hashbrown::HashMap;

use agentsvc_components::agent::Agent;
use agentsvc_components::kernel::taint::Taint;
use agentsvc_components::usage::record::BudgetRecord;
use agentsvc_components::usage::{Limits, Scope};
use agentsvc_components::{AgentId, ErrorCode, Micros, Refusal, SessionId, Timestamp};

use crate::config::Settings;
use crate::kernel::check::Faults;
use crate::kernel::counters::Totals;
use crate::kernel::domain::{Domain, Phase, System};
use crate::kernel::index;
use crate::kernel::inputs::table::CommandDef;
use crate::kernel::outbox::Emit;
use crate::kernel::reaction::{Removed, on};
use crate::kernel::record::{Error, Kind};
use crate::kernel::restore::Records;
use crate::kernel::stage::Stage;
use crate::people::{self, UserGone};
use crate::usage::{CallEnded, Spent};

/// What this domain brings.
pub(crate) const DOMAIN: Domain = Domain {
    uses: &[
        "agent",
        "audit",
        "config",
        "model",
        "people",
        "usage",
        "compaction",
        "event",
        "manifest",
        "session",
        "taint",
        "turn",
    ],
    kinds: &[Kind::new(rows::BUDGETS, rows::read)],
    restore: &[(Phase::Owned, load)],
    rows: |world, found| found.extend(world.resource::<Budgets>().stored().map(rows::put_budget)),
    install,
    systems: &[System { stage: Stage::Time, name: "budget_beat", run: beat }],
    next_due,
    check,
    is_quiet: |world| world.resource::<Budgets>().waiting() == 0,
    commands: &[
        CommandDef::of::<CorrectBudget>(),
        CommandDef::of::<ReserveProbe>(),
        CommandDef::of::<ReserveMemory>(),
        CommandDef::of::<ReserveSampling>(),
        CommandDef::of::<SetBudget>(),
    ],
    error_codes: error_codes::ALL,
    audit_kinds: audit_kinds::ALL,
    totals: &[Totals::of::<metrics::BudgetTotals>()],
    metrics: metrics::ALL,
    ..Domain::named("budget")
};

pub use error_codes::BUDGET_EXCEEDED as EXCEEDED;

/// A model call is about to go out. Domains that bound what strangers spend refuse it with a rule: one of the kind
/// [`Busy`](agentsvc_components::RefusalKind::Busy) lets it wait until another call has come back, any other ends what calls.
pub(crate) struct CallStarts {
    /// The labels of strangers, where any of them began what calls.
    pub(crate) strangers: Taint,
    /// The session in which they began it, where that is known.
    pub(crate) began_in: Option<SessionId>,
    /// The most that it can cost.
    pub(crate) worst: Micros,
}

/// Does a code say that a budget is used up? Those of limits of other domains end like that of budgets.
pub(crate) fn is_exceeded(code: Option<ErrorCode>) -> bool {
    code.is_some_and(|code| code.as_str().ends_with(EXCEEDED.as_str()))
}

/// The budgets that have a record, and who waits for what others have reserved.
#[derive(Resource, Default)]
pub(crate) struct Budgets {
    stored: HashMap<Scope, BudgetRecord>,
    /// Turns and compactions, by the scope that had no room, in the order in which they came.
    waiting: BTreeMap<Scope, BTreeMap<u64, (Entity, Micros)>>,
    /// Who waits, and where. Nobody waits twice.
    places: HashMap<Entity, (Scope, u64)>,
    /// Numbers those that wait in the order in which they came.
    next_place: u64,
    /// When the beat last looked at those who wait.
    looked_at: Timestamp,
}

impl Budgets {
    /// Turns and compactions that wait for room.
    pub(crate) fn waiting(&self) -> usize {
        self.places.len()
    }

    /// Who waits for room.
    pub(crate) fn in_line(&self) -> impl Iterator<Item = Entity> {
        self.waiting.values().flat_map(BTreeMap::values).map(|(entity, _)| *entity)
    }

    /// The records.
    pub(crate) fn stored(&self) -> impl Iterator<Item = &BudgetRecord> {
        self.stored.values()
    }

    fn of(&self, scope: Scope) -> BudgetRecord {
        self.stored.get(&scope).copied().unwrap_or_else(|| BudgetRecord {
            agent: scope.agent(),
            user: scope.user(),
            ..Default::default()
        })
    }
}

/// Prepares a new world for budgets.
pub(crate) fn install(world: &mut World) {
    world.init_resource::<Budgets>();
    on(world, |world, gone: &Removed<AgentId>| scope_removed(world, Scope::Agent(gone.id)));
    on(world, |world, gone: &UserGone| scope_removed(world, Scope::User(gone.0)));
    on(world, |world, of: &Spent| verdict::spent(world, of.scope));
    on(world, |world, call: &CallEnded| waiting::released(world, call.agent, &call.above, call.user));
}

/// Takes in what is stored (restore).
pub(crate) fn load(world: &mut World, records: &mut Records) -> Result<(), Error> {
    let mut budgets = world.resource_mut::<Budgets>();
    for record in records.take::<BudgetRecord>() {
        budgets.stored.insert(record.scope(), record);
    }
    Ok(())
}

/// An agent or a user leaves the world, and the budget with it.
fn scope_removed(world: &mut World, scope: Scope) {
    if world.resource_mut::<Budgets>().stored.remove(&scope).is_some() {
        world.op(rows::remove_budget(scope));
    }
    // Their agents go on without it.
    waiting::limits_changed(world, scope);
}

/// Refuses the budget of an agent or a user that is not there.
fn check_scope(world: &World, scope: Scope) -> Result<(), Refusal> {
    match scope {
        Scope::Global => Ok(()),
        Scope::Agent(agent) => index::agent(world, agent).map(drop),
        Scope::User(user) if people::lives(world, user) => Ok(()),
        Scope::User(user) => Err(Refusal::not_found("user", user)),
    }
}

/// The limits in force: those of the API, else the lower of the manifest's and the configuration's, so that an agent
/// that another one spawned spends no more than others.
pub(crate) fn limits(world: &World, scope: Scope) -> Limits {
    let settings = &world.resource::<Settings>().budget;
    let set = world.resource::<Budgets>().stored.get(&scope).map(|record| record.limits).unwrap_or_default();
    let open = match scope {
        Scope::Global => settings.global,
        Scope::Agent(agent) => of_manifest(world, agent).lower(settings.agent),
        Scope::User(_) => settings.user,
    };
    set.or(open).in_force()
}

fn of_manifest(world: &World, agent: AgentId) -> Limits {
    let entity = index::agent(world, agent).ok();
    let agent = entity.and_then(|entity| world.get::<Agent>(entity));
    agent.map(|agent| agent.manifest.manifest.limits).unwrap_or_default()
}

/// Says what does not hold of budgets ([`check`](crate::kernel::check)).
pub(crate) fn check(world: &mut World, faults: &mut Faults) {
    let budgets = world.resource::<Budgets>();
    let waiting = budgets.in_line().filter(|entity| budgets.places.contains_key(entity)).count();
    faults.same("who waits for money", &(budgets.in_line().count(), budgets.waiting()), &(waiting, waiting));
    for scope in budgets.stored.keys() {
        faults.that(check_scope(world, *scope).is_ok(), || format!("budget of {scope}: there is none of this id"));
    }
}

/// Stores a changed record.
fn store(world: &mut World, scope: Scope, record: BudgetRecord) {
    world.resource_mut::<Budgets>().stored.insert(scope, record);
    world.op(rows::put_budget(&record));
}

#[cfg(test)]
mod clock_tests;
#[cfg(test)]
mod family_tests;
#[cfg(test)]
mod random_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod user_tests;
