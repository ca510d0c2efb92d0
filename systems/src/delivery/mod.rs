//! Answers of schedules, cron jobs, triggers and workflows go to targets: chats, webhooks, files, people.
//!
//! | rule | why |
//! |---|---|
//! | a delivery is stored with its send or its job in the step in which the turn ends | no kill loses one or adds one |
//! | a delivery to a chat is a send of its channel, known by the id of the delivery | it is sent once, or its outcome is unknown |
//! | all tries to a webhook have the id of the delivery | receivers can tell repetitions: a kill may bring one |
//! | what is added to a file begins with the id of the delivery | it is there once |
//! | a target that fails changes nothing for the turn and the other targets; each has a lane of its own | one slow receiver does not hold up others |
//! | a turn that has read untrusted content sets no targets | it could send answers to strangers |
//! | only what a turn or a run completed is delivered, and nothing of an answer that says that there is none | silence is an answer |

pub mod audit_kinds;
pub mod error_codes;
mod index;
pub mod limits;
mod list;
mod send;
mod targets;
#[cfg(test)]
mod tests;

use agentsvc_components::delivery::{Receipt, ReceiptId, Targets, TargetsId};
use agentsvc_components::{AgentId, ScheduleId, TriggerId};

pub use list::{ReceiptFilter, ReceiptView};
pub use send::NAME;
pub use targets::{GetTargets, SetTargets, Source, TargetsView};

use crate::kernel::domain::{Domain, Phase};
use crate::kernel::entities;
use crate::kernel::footprint::{Measure, entries, of};
use crate::kernel::inputs::table::CommandDef;
use crate::kernel::reaction::{Removed, on};
use crate::kernel::record::{Kind, restore_components};
use crate::workflow::WorkflowRemoved;

/// What this domain brings.
pub(crate) const DOMAIN: Domain = Domain {
    uses: &["agent", "audit", "channel", "schedule", "taint", "trigger", "turn", "workflow"],
    kinds: &[Kind::component::<Targets>(), Kind::component::<Receipt>()],
    restore: &[(Phase::Owned, restore_components::<Targets>), (Phase::Owned, restore_components::<Receipt>)],
    install: |world| {
        entities::install::<Targets>(world);
        entities::install::<Receipt>(world);
        on(world, send::turn_ended);
        on(world, send::run_completed);
        on(world, send::send_ended);
        on(world, |world, gone: &Removed<ScheduleId>| targets::gone(world, gone.id.0));
        on(world, |world, gone: &Removed<TriggerId>| targets::gone(world, gone.id.0));
        on(world, |world, gone: &WorkflowRemoved| targets::gone(world, gone.0.0));
        on(world, |world, gone: &Removed<AgentId>| send::agent_removed(world, gone.id));
    },
    measures: &[
        Measure::of::<TargetsId>("targets", |world, at| of(world, at, Targets::bytes), entries(32, 1)),
        Measure::of::<ReceiptId>("receipts", |world, at| of(world, at, Receipt::bytes), entries(32, 4)),
    ],
    check: index::check,
    jobs: &[send::JOB],
    commands: &[CommandDef::of::<SetTargets>()],
    error_codes: error_codes::ALL,
    audit_kinds: audit_kinds::ALL,
    limits: limits::ALL,
    ..Domain::named("delivery")
};
