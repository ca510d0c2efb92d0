//! Rehearsals: a copy of the world runs ahead in virtual time (issue 7, Fork and rehearsal; docs/rehearsal.md).
//!
//! | file | |
//! |---|---|
//! | [`source`] | reads the records of the world that is forked, and what its agents' turns were like |
//! | [`fork`] | the copy: an engine, its virtual time, and the jumps from one due moment to the next |
//! | [`performer`], [`script`] | answer its effects; they hold data alone, so that nothing can leave |
//! | [`collect`] | keeps count of what happens, step by step, and makes the report |
//! | [`forecast`] | what it would cost, with an interval |
//! | [`spool`] | the list of fires, in a file |
//! | [`keeper`] | begins them, each on a thread of its own, and keeps what came of them |
//!
//! The live world is touched once, for a view of its store. From there on everything works on copies.

pub(crate) mod cli;
pub mod collect;
pub mod directory;
pub mod forecast;
pub mod fork;
pub mod history;
pub mod performer;
mod run;
pub mod script;
pub mod source;
pub mod spool;
mod stats;
pub mod store;
mod timeline;

#[cfg(test)]
mod source_tests;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use agentsvc_api::rehearsal::runs::Rehearsals;

use crate::kernel::cli::{Example, Group, Subcommand};
use crate::kernel::domain::Domain;
use crate::kernel::world_loop::Clock;
use store::{Places, RehearsalStore};

/// What this domain brings.
pub const DOMAIN: Domain = Domain {
    name: "rehearsal",
    uses: &[
        "budget",
        "prompt",
        "turn",
        "config",
        "event",
        "agent",
        "compaction",
        "schedule",
        "session",
        "trigger",
        "usage",
    ],
    commands: &[Subcommand::new::<cli::Rehearse>(
        16,
        "rehearse",
        "Simulate the coming days on a copy of the world: fires, overlaps, budgets and cost",
    )
    .examples(&[
        Example::new("rehearse --for 7d", "Show what the next week starts, and what it costs"),
        Example::new("rehearse --for 7d --model recorded", "With what agents answered before"),
        Example::new("rehearse --for 1d --csv fires.csv", "Write every fire to a file"),
    ])
    .under(Group::Automation)],
    open: |opening| {
        let exchange = Arc::downgrade(opening.exchange);
        let keeper = Arc::new(RehearsalStore::new(Places {
            dir: opening.data_dir.join("rehearsals"),
            snapshots: opening.data_dir.join("snapshots"),
            view: Box::new(move || Some(exchange.upgrade()?.view().ok()?.into_parts())),
            clock: Clock::system(),
        })?);
        opening.api.add_probe(Arc::clone(&keeper) as _);
        opening.provide::<dyn Rehearsals>(keeper);
        Ok(())
    },
    ..Domain::EMPTY
};
