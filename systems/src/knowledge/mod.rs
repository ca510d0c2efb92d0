//! The knowledge of agents as a graph (spec 2, Memory). Entities and relations are content and stay on disk; the world is the
//! only way to change them and keeps how much there is.
//!
//! Whether a row is new decides how the numbers change, and only the disk knows. So a writer asks for the *revision* of the
//! agent's knowledge, looks at the rows, and brings back with its change what it saw. A change by another writer in between
//! refuses it with the code `knowledge_changed`, and the writer looks again. The revision is stored, so it never means two
//! different states; it is answered only when everything before it is on disk.

pub mod audit_kinds;
mod change;
pub mod error_codes;
pub mod key;
pub mod limits;
pub mod names;
#[cfg(test)]
mod tests;
mod usage;

pub use change::{ChangeKnowledge, NOW, PutEntity, PutRelation};
pub use usage::GetKnowledgeUse;

use agentsvc_components::AgentId;
use agentsvc_components::knowledge::record::KnowledgeUseRecord;

use crate::kernel::domain::{Domain, Phase};
use crate::kernel::inputs::table::CommandDef;
use crate::kernel::reaction::{Removed, on};
use crate::kernel::record::{self, Kind};
use crate::memory;
use usage::Graphs;

/// What this domain brings.
pub(crate) const DOMAIN: Domain = Domain {
    uses: &["audit", "event", "memory", "taint"],
    install: |world| {
        world.init_resource::<Graphs>();
        memory::counts_also(world, |world, add| {
            world.resource::<Graphs>().records().for_each(|used| add(used.agent, used.bytes));
        });
        on(world, |world, gone: &Removed<AgentId>| usage::erase(world, gone.id));
    },
    content: &[(b'g', key::is_readable)],
    kinds: &[Kind::record::<KnowledgeUseRecord>()],
    restore: &[(Phase::Owned, usage::load)],
    rows: |world, rows| rows.extend(world.resource::<Graphs>().records().map(record::put)),
    check: usage::check,
    commands: &[CommandDef::of::<ChangeKnowledge>()],
    error_codes: error_codes::ALL,
    audit_kinds: audit_kinds::ALL,
    limits: limits::ALL,
    ..Domain::named("knowledge")
};
