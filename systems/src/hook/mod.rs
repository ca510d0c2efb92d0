//! Hooks: messages that come from outside without a conversation of their own, by a call or as a file of the inbox (spec 3,
//! Webhooks).
//!
//! | in      | by                                        | goes to   |
//! |---------|-------------------------------------------|-----------|
//! |         | send                                      | running   |
//! |         | a wake for the next heartbeat             | waiting   |
//! | waiting | a schedule wakes the agent, or an hour    | running   |
//! | waiting | its agent is removed                      | failed    |
//! | running | its turn answered                         | completed |
//! | running | its turn failed, or is gone               | failed    |
//! | running | its turn was stopped                      | stopped   |
//! | running | its timeout is over                       | timed out |
//! | ended   | a day later, or too many newer ones       | removed   |
//!
//! | rule | why |
//! |---|---|
//! | a call and its turn begin in one step; the end of the turn ends the call in its step | no kill leaves one without the other |
//! | what is sent again under the same key and digest is the same call | a caller may repeat what it heard no answer to |
//! | its message is untrusted content | what calls a hook passes on what others wrote |
//! | all that waits for an agent is told in one turn | many wakes do not cost many turns |
//! | an answer that goes to a channel is a job, added in the step in which the turn ends | it is not lost over a kill |

pub mod audit_kinds;
mod deliver;
mod end;
pub mod error_codes;
mod index;
pub mod limits;
mod list;
mod metrics;
mod restart;
mod send;
#[cfg(test)]
mod tests;
mod wake;

use agentsvc_components::AgentId;
use agentsvc_components::event::{Event, EventEnvelope};
use agentsvc_components::hook::{HookCall, HookCallId};
use agentsvc_components::turn::Origin;

pub use deliver::DELIVER;
pub use end::{AwaitHookCall, ReleaseHookCall};
pub use list::HookCallView;
pub use send::SendHookCall;

use crate::kernel::counters::Totals;
use crate::kernel::domain::{Domain, Phase, System};
use crate::kernel::entities;
use crate::kernel::footprint::{Measure, entries, of};
use crate::kernel::inputs::table::CommandDef;
use crate::kernel::reaction::{Removed, on};
use crate::kernel::record::{Kind, restore_components};
use crate::kernel::stage::Stage;
use crate::kernel::waiters::Waiters;
use crate::turn::FiredTurnEnded;

/// What this domain brings.
pub(crate) const DOMAIN: Domain = Domain {
    uses: &["agent", "audit", "event", "session", "turn"],
    kinds: &[Kind::component::<HookCall>()],
    restore: &[(Phase::Owned, restore_components::<HookCall>), (Phase::Joined, restart::restored)],
    install: |world| {
        entities::install::<HookCall>(world);
        world.init_resource::<Waiters<HookCallView>>();
        world.init_resource::<restart::Lost>();
        world.init_resource::<wake::Woken>();
        on(world, |world, event: &FiredTurnEnded| {
            if matches!(event.origin, Origin::Hook { .. }) {
                end::turn_ended(world, &event.ended);
            }
        });
        on(world, |world, EventEnvelope { event, .. }: &EventEnvelope| {
            if let Event::ScheduleFired { agent, .. } | Event::CronFired { agent, .. } = event {
                wake::heartbeat(world, *agent);
            }
        });
        on(world, |world, gone: &Removed<AgentId>| wake::agent_removed(world, gone.id));
    },
    measures: &[Measure::of::<HookCallId>("hook_calls", |world, at| of(world, at, HookCall::bytes), entries(64, 4))],
    systems: &[
        System { stage: Stage::Time, name: "hook_beat", run: restart::beat },
        System { stage: Stage::Decide, name: "hook_settle_lost", run: restart::settle_lost },
        System { stage: Stage::Decide, name: "hook_wake", run: wake::wake },
    ],
    has_work: |world| restart::has_work(world) || wake::has_work(world),
    next_due: restart::next_due,
    clock_set_back: restart::clock_set_back,
    check: index::check,
    jobs: &[deliver::DELIVERY],
    commands: &[CommandDef::of::<ReleaseHookCall>(), CommandDef::of::<SendHookCall>()],
    totals: &[Totals::of::<metrics::HookTotals>()],
    error_codes: error_codes::ALL,
    audit_kinds: audit_kinds::ALL,
    limits: limits::ALL,
    metrics: metrics::ALL,
    ..Domain::named("hook")
};
