//! The key-value memory of agents (spec 2, Memory). The entries are content and stay on disk; the world is the only
//! door for changes and keeps how much there is.
//!
//! Whether a key is new decides how the numbers change, and only the disk knows. So a writer asks for the memory's
//! *revision*, looks at the rows, and brings back with its change what it saw. If one of its keys was changed since
//! that revision, the change is refused with the code `memory_changed`, and the writer looks again: nothing is counted
//! twice, and no change is lost. A revision is answered only when everything before it is on disk.

pub mod audit_kinds;
mod delete;
pub mod error_codes;
mod put;
mod share;
mod usage;

pub use delete::{DeleteMemory, Doomed};
pub use put::{PutEntry, PutMemory};
pub use usage::{GetMemoryUse, MemoryUse};

pub(crate) use share::{admit, count, counts_also};
pub(crate) use usage::{Memories, carry, changed, check_seen, erase, load, note_change, revision, revisions};

use bevy_ecs::prelude::World;
use serde_json::json;

use agentsvc_components::kernel::audit_kind::AuditKind;
use agentsvc_components::kernel::limit;
use agentsvc_components::{Actor, AgentId, Refusal};

use crate::audit::{Audit, names};
use crate::kernel::acting::Acting;
use crate::kernel::domain::{Domain, Phase};
use crate::kernel::inputs::table::CommandDef;
use crate::kernel::reaction::{Removed, on};
use crate::kernel::record::{self, Kind, is_record};
use crate::kernel::text::check_name;
use agentsvc_components::memory::record::{MemoryRecord, MemoryUseRecord};

/// What this domain brings.
pub(crate) const DOMAIN: Domain = Domain {
    uses: &["agent", "audit", "config", "event", "taint"],
    content: &[(b'k', is_record::<MemoryRecord>)],
    kinds: &[Kind::record::<MemoryUseRecord>()],
    restore: &[(Phase::Owned, load)],
    check: share::check,
    rows: |world, rows| rows.extend(world.resource::<Memories>().records().map(|it| record::put(&it))),
    install,
    commands: &[CommandDef::of::<DeleteMemory>(), CommandDef::of::<PutMemory>()],
    error_codes: error_codes::ALL,
    audit_kinds: audit_kinds::ALL,
    ..Domain::named("memory")
};

/// Refuses what cannot be a key.
pub fn check_key(key: &str) -> Result<(), Refusal> {
    check_name("key", key, limit::MEMORY_KEY_BYTES_MAX)
}

/// Refuses a value, as compact JSON, that is too long or too deep.
pub fn check_value(value: &str) -> Result<(), Refusal> {
    let most = limit::MEMORY_VALUE_BYTES_MAX;
    if value.len() > most {
        return Err(Refusal::bad_field("value", format!("value is longer than {most} bytes of compact JSON")));
    }
    let most = limit::MEMORY_VALUE_DEPTH_MAX;
    if depth(value) > most {
        return Err(Refusal::bad_field("value", format!("value has more than {most} levels of objects and arrays")));
    }
    Ok(())
}

/// How deep objects and arrays stand in each other in a JSON text.
fn depth(json: &str) -> usize {
    let (mut depth, mut deepest, mut in_text, mut is_escaped) = (0_usize, 0, false, false);
    for byte in json.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_text => is_escaped = true,
            b'"' => in_text = !in_text,
            b'[' | b'{' if !in_text => depth += 1,
            b']' | b'}' if !in_text => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

/// Puts a change on record. One that an agent makes itself is on record as its tool call already.
fn audit<'a>(world: &mut World, kind: AuditKind, agent: AgentId, keys: impl ExactSizeIterator<Item = &'a str>) {
    if !matches!(world.resource::<Acting>().0, Actor::Agent { .. }) {
        let (entries, keys) = names(keys);
        world.audit(kind, agent, json!({ "entries": entries, "keys": keys }));
    }
}

/// Prepares a new world for memory.
fn install(world: &mut World) {
    world.init_resource::<Memories>();
    world.init_resource::<share::Remembered>();
    counts_also(world, |world, add| {
        world.resource::<Memories>().records().for_each(|used| add(used.agent, used.bytes));
    });
    on(world, |world, gone: &Removed<AgentId>| share::forget(world, gone.id));
    on(world, share::hand_over);
    on(world, |world, gone: &Removed<AgentId>| erase(world, gone.id));
}

#[cfg(test)]
mod share_tests;
#[cfg(test)]
mod tests;
