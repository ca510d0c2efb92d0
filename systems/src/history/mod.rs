//! What happened in the whole installation, minute by minute, for those who ask about the past.
//!
//! Everything is counted in the step in which it happens, and stored in the commit of that step: a kill loses nothing that was
//! told to anybody, and nothing counts twice. The world keeps the minutes of the hour that is under way, one small record for each
//! in which anything happened. What happens first in another hour closes it: the hour becomes one row of content, and its minutes
//! leave the world. Reads put the rows from the disk and the minutes of the world together.
//!
//! The clock may be set back. By less than an hour: the newest minute counts on until the clock has caught up. Farther: the hour is
//! closed, and the earlier one opened again under a new number, so that its rows add up.
//!
//! The resident memory of the process is not in it, because the world knows nothing of its process.

mod count;
mod hours;
pub(crate) mod rows;
#[cfg(test)]
mod tests;

pub use hours::{GetOpenHours, Hour};
pub use rows::{hour_range, parse_hour_key, parse_minute};

use crate::kernel::domain::{Domain, Phase, System};
use crate::kernel::record::{Kind, is_record};
use crate::kernel::stage::Stage;
use agentsvc_components::history::HourRecord;
use hours::History;

/// What this domain brings.
pub(crate) const DOMAIN: Domain = Domain {
    uses: &["config", "model", "usage", "turn"],
    content: &[(rows::KEY, is_record::<HourRecord>)],
    kinds: &[Kind::new(rows::KEY, rows::read)],
    restore: &[(Phase::Shared, hours::load)],
    rows: |world, found| found.extend(world.resource::<History>().rows()),
    install: count::install,
    systems: &[System { stage: Stage::Seal, name: "history_store_dirty", run: count::store_dirty }],
    check: |world, faults| world.resource::<History>().check(faults),
    ..Domain::named("history")
};
