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
    let (title, most) = (title.trim(), limit::GOAL_TITLE_BYTES_MAX);
    if title.is_empty() {
        Err(Refusal::bad_field("title", "title must not be empty"))
    } else if title.len() > most {
        Err(Refusal::bad_field("title", format!("title is longer than {most} bytes")))
    } else if title.chars().any(char::is_control) {
        Err(Refusal::bad_field("title", "title must not contain control characters"))
    } else {
        Ok(title.into())
    }
}

/// Refuses a text of the field `field` that is longer than `most` bytes.
fn check_text(field: &str, text: &str, most: usize) -> Result<(), Refusal> {
    if text.len() > most {
        return Err(Refusal::bad_field(field, format!("{field} is longer than {most} bytes")));
    }
    Ok(())
}

#[cfg(test)]
mod share_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tree_tests;
