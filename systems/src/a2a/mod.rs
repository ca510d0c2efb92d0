//! A2A: clients of the Agent2Agent protocol send tasks to agents of this daemon (spec 3, A2A). What agents here send to others
//! is in [`outbound`].
//!
//! | in      | by                                 | goes to   |
//! |---------|------------------------------------|-----------|
//! |         | send                               | working   |
//! | working | its turn answered                  | completed |
//! | working | its turn failed, or is gone        | failed    |
//! | working | it has been open for an hour       | failed    |
//! | working | its turn was stopped               | cancelled |
//! | working | cancel                             | cancelled |
//! | ended   | a day later, or too many newer ones | removed  |
//!
//! | rule | why |
//! |---|---|
//! | a task and its turn begin in one step; the end of the turn ends the task in its step | no kill leaves one without the other |
//! | what is sent again under the same key and digest is the same task | a client may repeat what it heard no answer to |
//! | a task is read by whoever knows its id, and listed to no client | there are no accounts |
//! | its session belongs to its conversation alone, and goes with the last task of it | no client reads what others wrote |
//! | its message is untrusted content | anyone may have written it |
//! | a client that shows a key has its own share of tasks, of what is kept and of money; all others have one together | strangers take nothing of others |
//! | tasks and all that they begin have a daily limit of their own, asked before each model call; so many are open, so many are kept | nobody else's money and memory are used up |

pub mod audit_kinds;
mod end;
pub mod error_codes;
mod index;
pub mod limits;
mod list;
mod metrics;
pub mod outbound;
mod push;
mod restart;
mod send;
#[cfg(test)]
mod share_tests;
mod spending;
#[cfg(test)]
mod spending_tests;
#[cfg(test)]
mod tests;

use agentsvc_components::a2a::outbound::{A2aAgent, A2aSent};
use agentsvc_components::a2a::{A2aDay, A2aDayId, A2aTask, A2aTaskId};
use agentsvc_components::turn::Origin;

pub use end::{AwaitA2aTask, CancelA2aTask};
pub use list::{A2aTaskView, FindA2aTask};
pub use push::{DeleteA2aPush, PUSH, SetA2aPush};
pub use send::SendA2aTask;

use crate::kernel::counters::Totals;
use crate::kernel::domain::{Domain, Phase, System};
use crate::kernel::entities;
use crate::kernel::footprint::{Measure, entries, of};
use crate::kernel::inputs::table::CommandDef;
use crate::kernel::reaction::{on, rule};
use crate::kernel::record::{Kind, restore_components};
use crate::kernel::stage::Stage;
use crate::kernel::waiters::Waiters;
use crate::turn::FiredTurnEnded;

/// What this domain brings.
pub(crate) const DOMAIN: Domain = Domain {
    uses: &["agent", "audit", "budget", "config", "session", "turn", "usage"],
    kinds: &[
        Kind::component::<A2aTask>(),
        Kind::component::<A2aDay>(),
        Kind::component::<A2aAgent>(),
        Kind::component::<A2aSent>(),
    ],
    restore: &[
        (Phase::Owned, restore_components::<A2aTask>),
        (Phase::Owned, restore_components::<A2aDay>),
        (Phase::Owned, restore_components::<A2aAgent>),
        (Phase::Owned, restore_components::<A2aSent>),
        (Phase::Joined, restart::restored),
    ],
    install: |world| {
        entities::install::<A2aTask>(world);
        entities::install::<A2aDay>(world);
        outbound::install(world);
        world.init_resource::<Waiters<A2aTaskView>>();
        world.init_resource::<restart::Lost>();
        on(world, |world, event: &FiredTurnEnded| {
            if let Origin::A2a { task } = event.origin {
                end::turn_ended(world, task, &event.ended);
            }
        });
        world.init_resource::<spending::Reserved>();
        on(world, spending::reserves);
        on(world, spending::spent_by_strangers);
        rule(world, spending::call_starts);
    },
    measures: &[
        Measure::of::<A2aTaskId>("a2a_tasks", |world, at| of(world, at, A2aTask::bytes), entries(64, 4)),
        Measure::of::<A2aDayId>("a2a_days", |_, _| 0, entries(24, 1)),
        outbound::MEASURES[0],
        outbound::MEASURES[1],
    ],
    systems: &[
        System { stage: Stage::Time, name: "a2a_beat", run: restart::beat },
        System { stage: Stage::Time, name: "a2a_sent_beat", run: outbound::beat },
        System { stage: Stage::Decide, name: "a2a_settle_lost", run: restart::settle_lost },
    ],
    has_work: restart::has_work,
    next_due: |world| outbound::earlier(restart::next_due(world), outbound::next_due(world)),
    clock_set_back: |world| {
        restart::clock_set_back(world);
        outbound::clock_set_back(world);
    },
    check: |world, faults| {
        index::check(world, faults);
        spending::check(world, faults);
        outbound::check(world, faults);
    },
    jobs: &[push::NOTIFICATION, outbound::JOBS[0], outbound::JOBS[1]],
    commands: &[
        CommandDef::of::<CancelA2aTask>(),
        CommandDef::of::<DeleteA2aPush>(),
        CommandDef::of::<SendA2aTask>(),
        CommandDef::of::<SetA2aPush>(),
        outbound::COMMANDS[0],
        outbound::COMMANDS[1],
        outbound::COMMANDS[2],
    ],
    totals: &[Totals::of::<metrics::A2aTotals>(), Totals::of::<outbound::SentTotals>()],
    error_codes: error_codes::ALL,
    audit_kinds: audit_kinds::ALL,
    limits: limits::ALL,
    metrics: metrics::ALL,
    ..Domain::named("a2a")
};
