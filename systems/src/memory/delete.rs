//! Entries are removed.

use crate::memory::audit_kinds;
use bevy_ecs::prelude::World;
use serde::{Deserialize, Serialize};

use agentsvc_components::event::Event;
use agentsvc_components::kernel::record::Space;
use agentsvc_components::{AgentId, Refusal, TurnId};

use super::usage::{Change, change};
use super::{MemoryUse, audit};
use crate::event::told::Tell;
use crate::kernel::command::{Answer, command};
use crate::kernel::outbox::Emit;
use crate::kernel::record;

/// Removes entries of an agent's memory that the writer has seen.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DeleteMemory {
    /// Whose.
    pub agent: AgentId,
    /// The revision after which the writer looked at the rows.
    pub revision: u64,
    /// The entries, each once.
    pub entries: Vec<Doomed>,
    /// The turn that does it, if one does.
    pub by: Option<TurnId>,
}

/// One entry to remove.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Doomed {
    /// Its key.
    pub key: Box<str>,
    /// Bytes of its key and value.
    pub bytes: u64,
}

command! {
    write "delete_memory" DeleteMemory => MemoryUse, Id(|it| it.agent.0), |it, world| Answer::stored(delete(world, it))
}

fn delete(world: &mut World, command: DeleteMemory) -> Result<MemoryUse, Refusal> {
    let DeleteMemory { agent, revision, entries, by } = command;
    let bytes: u64 = entries.iter().map(|entry| entry.bytes).sum();
    let fewer = Change { entries: -(entries.len() as i64), bytes: -bytes.cast_signed() };
    let after = change(world, agent, revision, entries.iter().map(|entry| &*entry.key), &fewer)?;
    audit(world, audit_kinds::MEMORY_DELETED, agent, entries.iter().map(|entry| &*entry.key));
    for Doomed { key, .. } in entries {
        world.op(record::op(Space::Content, record::memory_key(agent, &key), None));
        world.event(Event::MemoryUpdated { agent, key, deleted: true, by });
    }
    Ok(after)
}
