//! Goals: a tree of things to reach, of agents or of nobody (spec 1, Goals). One file per command or group of commands
//! that share their core.
//!
//! | rule | why |
//! |---|---|
//! | a goal's parent always exists, and no goal is above itself | the tree is a tree |
//! | at most [`limit::GOAL_DEPTH_MAX`](agentsvc_components::kernel::limit::GOAL_DEPTH_MAX) goals stand in a row | a walk up is short |
//! | removing a goal removes all that is below it | spec 1: DELETE also removes all child goals |
//! | a parent and its parts may have different agents; the status of one does not change that of another | who splits work up decides when it is done |
//! | removing an agent leaves its goals, without an agent | what is to be reached does not depend on who does it |
//! | the open goals of an agent stand in its prompt, those that are due first | it works towards them by itself |

pub mod audit_kinds;
mod create;
pub mod error_codes;
mod index;
mod list;
mod metrics;
mod prompt;
pub(crate) mod query;
mod remove;
mod tree;
mod update;

pub use create::CreateGoal;
pub use list::{GoalFilter, GoalView, ListGoals};
pub use update::{GoalPatch, UpdateGoal};

pub(crate) use index::{Goals, check, install};
pub(crate) use prompt::in_prompt;
pub(crate) use remove::agent_removed;

use crate::kernel::domain::{Domain, Phase};
use crate::kernel::entities::Remove;
use crate::kernel::footprint::{Measure, entries, of};
use crate::kernel::inputs::table::CommandDef;
use crate::kernel::record::{Kind, restore_components};
use crate::kernel::text;
use agentsvc_components::goal::Goal;
use agentsvc_components::kernel::limit;
use agentsvc_components::{GoalId, Refusal};

/// What this domain brings.
pub(crate) const DOMAIN: Domain = Domain {
    uses: &["agent", "audit", "taint"],
    kinds: &[Kind::component::<Goal>()],
    restore: &[(Phase::Owned, restore_components::<Goal>)],
    install,
    measures: &[Measure::of::<GoalId>("goals", |world, at| of(world, at, Goal::bytes), entries(32, 4))],
    check,
    commands: &[CommandDef::of::<CreateGoal>(), CommandDef::of::<Remove<Goal>>(), CommandDef::of::<UpdateGoal>()],
    error_codes: error_codes::ALL,
    audit_kinds: audit_kinds::ALL,
    metrics: metrics::ALL,
    ..Domain::named("goal")
};

/// A title as it is stored: without blanks around it.
fn checked_title(title: &str) -> Result<Box<str>, Refusal> {
    text::name("title", title, limit::GOAL_TITLE_BYTES_MAX)
}

#[cfg(test)]
mod share_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tree_tests;
