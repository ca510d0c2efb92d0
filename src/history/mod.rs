//! What happened in the installation: the hours that are on the disk, and how long they stay there.

pub mod config;
mod rows;

use std::sync::Arc;

use agentsvc_api::history::store::HistoryStore;
use agentsvc_components::Timestamp;
use agentsvc_components::history::SweepHistory;
use agentsvc_systems::history::hour_range;

use crate::kernel::cli::{Example, Group, Resource, Subcommand};
use crate::kernel::domain::Domain;
use crate::kernel::effect::performers::Performers;
use crate::kernel::retention::RetentionClock;
use crate::kernel::store::sweep::{Rows, Sweep, Sweeping};

/// What this domain brings.
pub const DOMAIN: Domain = Domain {
    name: "history",
    uses: &[],
    open: |opening| {
        opening.provide::<dyn HistoryStore>(Arc::clone(opening.store) as _);
        Ok(())
    },
    performers,
    commands: &[Subcommand::of(
        49,
        "history",
        "Show what happened by minute, hour or day",
        &[Resource::at("/api/history")
            .columns(&[
                ("FROM", "/from"),
                ("TURNS", "/turns"),
                ("FAILED", "/turns_failed"),
                ("P95", "/turn_ms_p95"),
                ("MODEL CALLS", "/model_calls"),
                ("TOOL CALLS", "/tool_calls"),
                ("TOKENS IN", "/input_tokens"),
                ("TOKENS OUT", "/output_tokens"),
                ("COST", "/cost_usd"),
            ])
            .called("activity in this time")
            .showing(has_activity)],
    )
    .examples(&[Example::new("history", "Show the last day by hour"), Example::new("history --step day", "By day")])
    .under(Group::Operations)],
    ..Domain::EMPTY
};

/// Did anything happen in an interval?
fn has_activity(interval: &serde_json::Value) -> bool {
    let counts = interval.as_object().into_iter().flatten().filter(|(key, _)| key.as_str() != "from");
    counts.into_iter().any(|(_, count)| count.as_f64().is_some_and(|count| count > 0.0))
}

/// Milliseconds of an hour.
const HOUR_MS: i64 = 60 * 60 * 1_000;

/// Erases old hours.
fn performers(performers: &mut Performers) {
    let (sweep, retention) = (performers.part::<Sweep>(), performers.part::<RetentionClock>());
    performers.on(move |of: Box<SweepHistory>| sweep(swept(retention.held_back(of.0))));
}

/// The hours that were over before a moment.
pub(crate) fn swept(before: Timestamp) -> Sweeping {
    Sweeping::of(Rows::Between(vec![hour_range(0, before.0.div_euclid(HOUR_MS))]))
}
