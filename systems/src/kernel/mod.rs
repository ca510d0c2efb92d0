//! What every domain's behaviour is built on; it names no domain.

pub(crate) mod acting;
pub mod arrivals;
pub mod check;
pub mod clock;
pub mod command;
pub mod counters;
pub mod domain;
pub mod engine;
pub mod entities;
pub(crate) mod expr;
pub mod fires;
pub mod footprint;
pub mod for_call;
pub mod glob;
pub mod id_generator;
pub mod index;
pub mod inputs;
pub mod job;
pub(crate) mod kept;
pub(crate) mod lane;
pub mod metric;
#[cfg(test)]
mod mint_tests;
pub(crate) mod outbox;
pub mod page;
pub(crate) mod patch;
pub mod pattern_bounds;
pub(crate) mod persist;
pub(crate) mod quota;
pub(crate) mod reaction;
pub mod record;
pub(crate) mod restore;
pub(crate) mod share;
pub mod stage;
pub mod stored;
pub(crate) mod table;
pub(crate) mod text;
pub mod timings;
pub(crate) mod waiters;

use domain::System;
use stage::Stage;

/// The systems of the kernel itself.
pub(crate) const SYSTEMS: &[System] = &[
    System { stage: Stage::Intake, name: "settle", run: arrivals::settle },
    System { stage: Stage::Intake, name: "end_waiting", run: fires::end_waiting },
    System { stage: Stage::Persist, name: "record_dirty", run: persist::record_dirty },
];
