//! Usage of models: its events as they are stored, how long they are kept, and what models cost.

pub mod config;
mod rows;

use std::sync::Arc;

use agentsvc_api::usage::store::UsageStore;

use crate::kernel::cli::{Example, Group, Resource, Subcommand};
use crate::kernel::domain::Domain;
use crate::kernel::effect::performers::Performers;
use crate::kernel::retention::RetentionClock;
use crate::kernel::store::sweep::{Rows, Sweep, Sweeping};
use agentsvc_components::usage::record::{SweepUsage, UsageSwept};
use agentsvc_components::{AgentId, Timestamp};
use agentsvc_systems::usage::{active_key, usage_range};

/// What this domain brings.
pub const DOMAIN: Domain = Domain {
    name: "usage",
    uses: &[],
    open: |opening| {
        opening.provide::<dyn UsageStore>(Arc::clone(opening.store) as _);
        Ok(())
    },
    performers,
    commands: &[Subcommand::of(58, "usage", "Show usage and cost", &[Resource::at("/api/usage")])
        .examples(&[
            Example::new("usage", "Show what was used today"),
            Example::new("usage by-model", "Show the cost of each model"),
        ])
        .alone("summary")
        .under(Group::Operations)],
    ..Domain::EMPTY
};

/// Erases old usage events.
fn performers(performers: &mut Performers) {
    let (sweep, retention) = (performers.part::<Sweep>(), performers.part::<RetentionClock>());
    performers.on(move |of: Box<SweepUsage>| sweep(swept(retention.held_back(of.0))));
}

/// The usage events of before a moment, and the rows that say who was active on a day. The world lets go of its sums when they
/// are gone.
pub(crate) fn swept(before: Timestamp) -> Sweeping {
    let before = before.max(Timestamp(0));
    let nobody = AgentId(uuid::Uuid::nil());
    let day = before.0.div_euclid(24 * 60 * 60 * 1_000);
    let days = active_key(0, nobody)..active_key(day, nobody);
    Sweeping::telling(Rows::Between(vec![usage_range(Timestamp(0), before), days]), UsageSwept(before))
}
