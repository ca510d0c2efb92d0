//! Metering: one usage event for each model call, however it ends, and sums that are kept and never searched for (spec 3,
//! Usage).
//!
//! | when                       | in one commit                                                              |
//! |----------------------------|----------------------------------------------------------------------------|
//! | a call goes out            | the call's record with the reserved cost, `CallModel` or `Summarize`        |
//! | it comes back, however     | the event's row, the sums, the call's record removed, what became of the turn |
//! | the turn went before it    | the same, without a turn                                                    |
//! | restart                    | for each call that was out: an event `unknown` with the reserved cost       |
//!
//! A call belongs to the moment it went out: its event, its day and the budgets it counts at are those of that moment.
//! It counts at the sums of its agent and of all, and at the limits of the agents above its agent ([`families`]).
//! Events are content and stay on disk; the world keeps the sums by minute, hour, day, model, model and day, agent, and
//! over everything. The beat has events and sums that are older than the retention erased.

pub mod audit_kinds;
pub(crate) mod calendar;
mod calls;
mod check;
mod clip;
mod families;
mod metrics;
mod node;
mod note;
pub(crate) mod query;
mod read;
mod rollup;
pub(crate) mod rows;
#[cfg(test)]
mod rows_tests;
mod settle;
mod windows;

pub use metrics::CallTotals;
pub use rows::{active_key, parse_active_key, usage_key, usage_range};

pub use crate::config::prices::Prices;
pub use note::NoteModelCall;
pub use read::{
    DailyUsage, DayUsage, Days, GetUsage, ListDailyUsage, ListUsageByModel, ModelUsage, UsageTotals, UsageWindow,
};
pub use rollup::Correction;

pub(crate) use calls::{Calls, begin};
pub(crate) use check::check;
pub(crate) use rollup::{Rollups, agent_removed, beat, load, next_due, store_dirty};
pub(crate) use settle::{fixed, model, summary};

use bevy_ecs::prelude::World;

/// A call came back and is settled: what was reserved for it is free.
pub(crate) struct CallEnded {
    /// Whose it was; nobody's has the nil id.
    pub(crate) agent: AgentId,
    /// The agents above that one when it went out.
    pub(crate) above: Vec<AgentId>,
    /// The user whom it belonged to then.
    pub(crate) user: Option<UserId>,
}

/// The event of a call is written, however it ended.
pub(crate) struct CallBooked {
    /// What it used.
    pub(crate) usage: Usage,
    /// How it ended.
    pub(crate) end: CallEnd,
}

/// Something was spent.
pub(crate) struct Spent {
    /// Where it counts.
    pub(crate) scope: Scope,
}

/// A call that strangers began goes out, or is back.
pub(crate) struct StrangersReserve {
    /// Which.
    pub(crate) attempt: Attempt,
    /// Their labels.
    pub(crate) strangers: Taint,
    /// The session in which they began it, where that is known.
    pub(crate) began_in: Option<SessionId>,
    /// What is reserved for it while it is out.
    pub(crate) reserved: Micros,
    /// It is back.
    pub(crate) is_over: bool,
}

/// A call that strangers began cost something, or used tokens.
pub(crate) struct SpentByStrangers {
    /// Their labels.
    pub(crate) strangers: Taint,
    /// The moment at which it counts.
    pub(crate) at: Timestamp,
    /// The session in which they began it, where that is known.
    pub(crate) began_in: Option<SessionId>,
    /// How much.
    pub(crate) cost: Micros,
    /// Tokens, in and out.
    pub(crate) tokens: u64,
}

/// Prepares a new world for metering.
pub(crate) fn install(world: &mut World) {
    world.init_resource::<Rollups>();
    world.init_resource::<Calls>();
    on(world, |world, gone: &Removed<AgentId>| agent_removed(world, gone.id));
    on(world, |world, gone: &UserGone| rollup::user_removed(world, gone.0));
}

#[cfg(test)]
mod tests;
use crate::kernel::counters::Totals;
use crate::kernel::domain::{Domain, Phase, System};
use crate::kernel::inputs::table::{CommandDef, OutcomeDef};
use crate::kernel::reaction::{Removed, on};
use crate::kernel::record::Kind;
use crate::kernel::stage::Stage;
use crate::people::UserGone;
use agentsvc_components::kernel::attempt::Attempt;
use agentsvc_components::kernel::id::UserId;
use agentsvc_components::kernel::taint::Taint;
use agentsvc_components::session::message::Usage;
use agentsvc_components::usage::record::UsageSwept;
use agentsvc_components::usage::{CallEnd, Scope};
use agentsvc_components::{AgentId, Micros, SessionId, Timestamp};
#[cfg(test)]
pub(crate) use tests::{events as events_for_tests, priced as priced_for_tests};

/// What this domain brings.
pub(crate) const DOMAIN: Domain = Domain {
    uses: &["audit", "config", "people", "rehearsal", "agent", "compaction", "turn"],
    content: &[(b'b', rows::is_readable)],
    kinds: &[Kind::new(b'b', rows::read)],
    restore: &[(Phase::Owned, load), (Phase::Lost, calls::restore)],
    rows: |world, found| {
        found.extend(world.resource::<Calls>().all().map(rows::put_call));
        found.extend(world.resource::<Rollups>().scopes().map(|(_, it)| rows::put_scope_use(it)));
        let families = world.resource::<Rollups>().families.stored();
        found.extend(families.map(|(agent, it)| rows::put_family_use(agent, it)));
        found.extend(world.resource::<Rollups>().sums().map(|(bucket, sum)| rows::put_usage_sum(bucket, sum)));
    },
    install,
    systems: &[
        System { stage: Stage::Time, name: "usage_beat", run: beat },
        System { stage: Stage::Seal, name: "usage_store_dirty", run: store_dirty },
    ],
    next_due: |world| Some(next_due(world)),
    check,
    is_quiet: |world| world.resource::<Calls>().is_empty(),
    commands: &[CommandDef::of::<NoteModelCall>()],
    outcomes: &[OutcomeDef::of::<UsageSwept>()],
    audit_kinds: audit_kinds::ALL,
    totals: &[Totals::of::<metrics::CallTotals>()],
    metrics: metrics::ALL,
    ..Domain::named("usage")
};
