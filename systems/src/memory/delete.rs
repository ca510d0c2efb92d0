//! Entries are removed.

use bevy_ecs::prelude::World;

use agentsvc_components::audit::AuditKind;
use agentsvc_components::{AgentId, Refusal};

use super::usage::{Change, change};
use super::{MemoryUse, audit};
use crate::command::{Answer, Command};
use crate::outbox::Emit;
use crate::record;

/// Removes entries of an agent's memory that the writer has seen.
#[derive(Clone, Debug)]
pub struct DeleteMemory {
    /// Whose.
    pub agent: AgentId,
    /// The revision after which the writer looked at the rows.
    pub revision: u64,
    /// The entries, each once.
    pub entries: Vec<Doomed>,
}

/// One entry to remove.
#[derive(Clone, Debug)]
pub struct Doomed {
    /// Its key.
    pub key: Box<str>,
    /// Bytes of its key and value.
    pub bytes: u64,
}

impl Command for DeleteMemory {
    type Reply = MemoryUse;
    const NAME: &'static str = "delete_memory";
    const WRITES: bool = true;

    fn run(self, world: &mut World) -> Answer<MemoryUse> {
        Answer::stored(delete(world, &self))
    }
}

fn delete(world: &mut World, command: &DeleteMemory) -> Result<MemoryUse, Refusal> {
    let bytes: u64 = command.entries.iter().map(|entry| entry.bytes).sum();
    let fewer = Change { entries: -(command.entries.len() as i64), bytes: -bytes.cast_signed() };
    let keys = command.entries.iter().map(|entry| &*entry.key);
    let after = change(world, command.agent, command.revision, keys, &fewer)?;
    audit(world, AuditKind::MemoryDeleted, command.agent, command.entries.iter().map(|entry| &*entry.key));
    for entry in &command.entries {
        world.op(record::remove_memory(command.agent, &entry.key));
    }
    Ok(after)
}
