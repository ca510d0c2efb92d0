//! Entries of the memory that agents keep (spec 2, Memory, proactive). The entries are content and stay on disk; the world is
//! the only door for changes and keeps how many there are, by level and category.
//!
//! A writer asks for the *revision* of the agent's memory, looks at the rows, and brings with its change what it saw, as those
//! of the [key-value memory](crate::memory) do, whose revision it is. Each change has a number, by which an index that is
//! derived from the rows knows how far it has come ([`EntriesChanged`]).
//!
//! [`EntriesChanged`]: agentsvc_components::proactive_memory::change::EntriesChanged

pub mod audit_kinds;
mod check;
mod counts;
pub mod extract;
pub mod keys;
pub mod limits;
mod metrics;
mod recall;
#[cfg(test)]
mod recall_tests;
#[cfg(test)]
mod tests;
mod totals;
#[cfg(test)]
mod turn_tests;
mod turns;
mod write;

pub(crate) use counts::has_entries;

pub use check::{check_content, check_entry, check_user};
pub use counts::{Counted, EntryUse, GetEntryUse, ListEntryUse};
pub(crate) use recall::{for_call, for_trace};
pub use recall::{is_for, is_own};
pub use totals::{EntryTotals, GetEntryTotals};
pub use turns::{MEMORIZE, MEMORIZE_BY_MODEL, Memorize, Memorized, TurnToMemorize};
pub(crate) use turns::{answered, states_facts};
pub use write::{CHANGED, Cause, Due, EntriesWritten, EntryPut, EntryRemove, WriteEntries, due_of, is_changed};

use agentsvc_components::AgentId;
use agentsvc_components::proactive_memory::recall::MemoryRecalled;
use agentsvc_components::proactive_memory::record::{MemoryEntriesRecord, MemoryEntryRecord};

use crate::kernel::counters::Totals;
use crate::kernel::domain::{Domain, Phase};
use crate::kernel::inputs::table::{CommandDef, OutcomeDef};
use crate::kernel::reaction::{Removed, on};
use crate::kernel::record::{self, Kind, is_record};
use crate::memory;

/// What this domain brings.
pub(crate) const DOMAIN: Domain = Domain {
    uses: &["agent", "audit", "config", "event", "memory", "session", "taint", "turn"],
    content: &[(b'e', is_record::<MemoryEntryRecord>), (keys::OWNER, keys::is_lead), (keys::USER, keys::is_lead)],
    kinds: &[Kind::record::<MemoryEntriesRecord>()],
    restore: &[(Phase::Owned, counts::load)],
    rows: |world, rows| rows.extend(counts::rows(world).map(record::put)),
    install: |world| {
        world.init_resource::<counts::Entries>();
        memory::counts_also(world, |world, add| {
            counts::rows(world).for_each(|known| add(known.agent, known.counts.bytes));
        });
        on(world, |world, gone: &Removed<AgentId>| counts::erase(world, gone.id));
    },
    outcomes: &[OutcomeDef::of::<MemoryRecalled>()],
    commands: &[CommandDef::of::<Memorize>(), CommandDef::of::<WriteEntries>()],
    jobs: &[turns::KIND, turns::KIND_BY_MODEL],
    audit_kinds: audit_kinds::ALL,
    limits: limits::ALL,
    totals: &[Totals::of::<metrics::FactTotals>()],
    metrics: metrics::ALL,
    check: counts::check,
    ..Domain::named("proactive_memory")
};
