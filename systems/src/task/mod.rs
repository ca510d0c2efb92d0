//! The task queue: work that anyone posts and agents claim (spec 2, Task queue). One file per command or group of
//! commands that share their core.
//!
//! | in        | by                                | goes to   | event            |
//! |-----------|-----------------------------------|-----------|------------------|
//! |           | post                              | pending   | `task_posted`    |
//! | pending   | claim                             | running   | `task_claimed`   |
//! | running   | complete                          | completed | `task_completed` |
//! | running   | fail                              | failed    | `task_failed`    |
//! | running   | the claim is too old              | pending   | none (spec 1, Triggers, rule 5) |
//! | running   | the agent that has it is removed  | pending   | none             |
//! | failed    | retry                             | pending   | `task_posted`    |
//! | any       | delete                            | removed   | none             |
//! | completed, failed | too many newer ones ended, or their user or family takes too much | removed | none |
//!
//! Everything else is refused with 409 and changes nothing. Two claims of one task are two commands: the first has it.

pub mod audit_kinds;
mod claim;
mod end;
pub mod error_codes;
mod index;
mod list;
mod metrics;
mod post;
pub(crate) mod query;
mod remove;
mod retry;
mod status;
mod sweep;
mod window;

pub use claim::{ClaimNextTask, ClaimTask};
pub use end::EndTask;
pub use list::{ListTasks, TaskFilter, TaskView};
pub use post::PostTask;
pub use retry::RetryTask;
pub use status::{GetQueueStatus, QueueStatus};

use crate::kernel::counters::Totals;
use crate::kernel::domain::{Domain, Phase, System};
use crate::kernel::entities::Remove;
use crate::kernel::footprint::{Measure, entries, of};
use crate::kernel::inputs::table::CommandDef;
use crate::kernel::record::{Kind, restore_components};
use crate::kernel::stage::Stage;
use agentsvc_components::TaskId;
use agentsvc_components::task::Task;
pub(crate) use index::{Tasks, check, install, restored};
pub(crate) use remove::agent_removed;
pub(crate) use sweep::{beat, clock_set_back, next_due};

/// What this domain brings.
pub(crate) const DOMAIN: Domain = Domain {
    uses: &["agent", "audit", "config", "event", "taint"],
    kinds: &[Kind::component::<Task>()],
    restore: &[(Phase::Owned, restore_components::<Task>), (Phase::Owned, restored)],
    install,
    measures: &[Measure::of::<TaskId>("tasks", |world, at| of(world, at, Task::bytes), entries(32, 5))],
    systems: &[System { stage: Stage::Time, name: "task_beat", run: beat }],
    next_due,
    clock_set_back,
    check,
    commands: &[
        CommandDef::of::<ClaimNextTask>(),
        CommandDef::of::<ClaimTask>(),
        CommandDef::of::<EndTask>(),
        CommandDef::of::<PostTask>(),
        CommandDef::of::<Remove<Task>>(),
        CommandDef::of::<RetryTask>(),
    ],
    error_codes: error_codes::ALL,
    audit_kinds: audit_kinds::ALL,
    totals: &[Totals::of::<metrics::TaskTotals>()],
    metrics: metrics::ALL,
    ..Domain::named("task")
};

#[cfg(test)]
mod share_tests;
#[cfg(test)]
mod tests;
