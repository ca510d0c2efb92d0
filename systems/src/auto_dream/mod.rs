//! Auto-dream: an agent that is idle consolidates its memory in a turn of its own (spec 3, `GET /api/auto-dream/status`).
//!
//! | rule | why |
//! |---|---|
//! | off, until the configuration and the agent both say so | no model call that was not asked for |
//! | an agent runs when enough hours have passed and enough sessions have started since its last run, it is idle, and it has memory entries | |
//! | what is due is found in an index by time; sessions are counted when they start | nothing is scanned |
//! | a run is a turn in a hidden session, with a profile: its own instructions, only memory tools, limits of calls, tokens and cost | it costs and does no more, and messages do not wait behind it |
//! | the turn is the durable part: a restart resumes it | nothing runs twice, and no run is lost |
//! | one run of an agent at once, a few of all | many that are due at once are no storm |
//! | a run reads some pages of the entries, and the next one goes on behind them | each entry is seen, however many there are |
//! | only a run that succeeds moves the time of the last consolidation | a failed one is repeated after the check interval |

pub mod audit_kinds;
mod begin;
mod end;
pub mod error_codes;
mod index;
pub mod limits;
mod list;
mod metrics;
mod prompt;
mod read;
#[cfg(test)]
mod read_tests;
mod set;
#[cfg(test)]
mod tests;
mod time;

use agentsvc_components::AgentId;
use agentsvc_components::auto_dream::{Dream, DreamId};
use agentsvc_components::turn::Origin;

pub use begin::TriggerDream;
pub use end::AbortDream;
pub use list::DreamView;
pub use read::{DreamPlace, GetDreamPlace, NoteDreamPage};
pub use set::SetAutoDream;

use crate::agent::AgentSpawned;
use crate::kernel::counters::Totals;
use crate::kernel::domain::{Domain, Phase, System};
use crate::kernel::entities;
use crate::kernel::footprint::{Measure, entries, of};
use crate::kernel::inputs::table::CommandDef;
use crate::kernel::reaction::{Removed, on};
use crate::kernel::record::{Kind, restore_components};
use crate::kernel::stage::Stage;
use crate::session::SessionStarted;
use crate::turn::FiredTurnEnded;

/// What this domain brings.
pub(crate) const DOMAIN: Domain = Domain {
    uses: &["agent", "audit", "config", "manifest", "proactive_memory", "session", "turn"],
    kinds: &[Kind::component::<Dream>()],
    restore: &[(Phase::Owned, restore_components::<Dream>), (Phase::Joined, end::restored)],
    install: |world| {
        entities::install::<Dream>(world);
        on(world, |world, new: &AgentSpawned| set::agent_spawned(world, new.agent));
        on(world, |world, started: &SessionStarted| time::session_started(world, started.agent));
        on(world, |world, gone: &Removed<AgentId>| set::agent_removed(world, gone.id));
        on(world, |world, event: &FiredTurnEnded| {
            if let Origin::Dream { agent } = event.origin {
                end::turn_ended(world, agent, &event.ended);
            }
        });
    },
    measures: &[Measure::of::<DreamId>("dreams", |world, at| of(world, at, Dream::bytes), entries(24, 3))],
    systems: &[System {
        stage: Stage::Time,
        name: "auto_dream_beat",
        run: |world| {
            time::stop_late(world);
            time::look_at_due(world);
        },
    }],
    next_due: time::next_due,
    clock_set_back: |world| {
        time::due_set_back(world);
        time::runs_set_back(world);
    },
    check: index::check,
    commands: &[
        CommandDef::of::<AbortDream>(),
        CommandDef::of::<NoteDreamPage>(),
        CommandDef::of::<SetAutoDream>(),
        CommandDef::of::<TriggerDream>(),
    ],
    totals: &[Totals::of::<metrics::DreamTotals>()],
    error_codes: error_codes::ALL,
    audit_kinds: audit_kinds::ALL,
    limits: limits::ALL,
    metrics: metrics::ALL,
    ..Domain::named("auto_dream")
};
