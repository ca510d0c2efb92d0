//! Queries over the world: a small language that only reads (`docs/query.md`).
//!
//! ```text
//! agents where state = "Running" and tokens > 1000 sort by tokens desc limit 20
//! turns group by state count
//! schedules where next_run < now + 1h and agent.name ~ "ops-*"
//! ```
//!
//! A text becomes tokens ([`dialect`]), a query ([`ast`], [`parse`]), a plan whose names are fields and whose comparisons make
//! sense ([`check`], [`plan`]), and is then carried out in short looks ([`scan`]). Nothing of it changes the world. What can be
//! asked for is listed by each domain in its `query.rs`, and [`KINDS`] lists those.
//!
//! | bound | what happens at it |
//! |---|---|
//! | `QUERY_LOOK_MAX` rows in one look, `QUERY_LOOK_TEXT_MAX` bytes of texts | the next look goes on behind them, after whatever waits for the world |
//! | `QUERY_LOOKED_MAX` rows in all | the answer is what was found so far, and says that it is not complete |
//! | `QUERY_GROUPS_MAX` groups, `QUERY_KEPT_BYTES_MAX` bytes | further ones are not kept; the answer says so |
//! | `QUERY_KEYS_MAX` rows of a kind without an order | further ones are not looked at; the answer says so |

mod ast;
mod check;
mod collect;
mod dialect;
mod narrow;
mod parse;
mod plan;
mod scan;

use crate::kernel::domain::Domain;
pub use check::prepare;
pub use dialect::duration_ms;
pub use plan::{OutputColumn, Plan};
pub use scan::{Found, Look, Scan};

pub use crate::kernel::expr::{Error as QueryError, Type, Value};
pub use crate::kernel::table::{Field, Kind, Relation};

/// Every kind, in the order in which they are shown.
pub const KINDS: [&Kind; 16] = [
    &crate::agent::query::AGENTS,
    &crate::agent::session_table::SESSIONS,
    &crate::turn::query::TURNS,
    &crate::trigger::query::TRIGGERS,
    &crate::schedule::query::SCHEDULES,
    &crate::schedule::query::CRON_JOBS,
    &crate::goal::query::GOALS,
    &crate::task::query::TASKS,
    &crate::workflow::query::WORKFLOWS,
    &crate::workflow::query::RUNS,
    &crate::approval::query::APPROVALS,
    &crate::compaction::query::COMPACTIONS,
    &crate::budget::query::BUDGETS,
    &crate::agent::query::MANIFESTS,
    &crate::turn::query::PROVIDERS,
    &crate::usage::query::MODELS,
];

/// What this domain brings.
pub(crate) const DOMAIN: Domain = Domain {
    uses: &[
        "agent",
        "approval",
        "budget",
        "compaction",
        "goal",
        "schedule",
        "task",
        "trigger",
        "turn",
        "usage",
        "workflow",
    ],
    ..Domain::named("query")
};

#[cfg(test)]
mod made;
#[cfg(test)]
mod property_tests;
#[cfg(test)]
mod tests;
