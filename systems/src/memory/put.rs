//! Entries are stored, all or none.

use crate::memory::audit_kinds;
use bevy_ecs::prelude::World;
use serde::{Deserialize, Serialize};

use agentsvc_components::event::Event;
use agentsvc_components::memory::record::MemoryRecord;
use agentsvc_components::{AgentId, Refusal, Timestamp, TurnId};

use super::usage::{Change, change};
use super::{MemoryUse, audit, check_key, check_value};
use crate::event::told::Tell;
use crate::kernel::clock::Now;
use crate::kernel::command::{Answer, command};
use crate::kernel::outbox::Emit;
use crate::kernel::record;
use crate::taint;

/// Stores entries of an agent's memory, all or none.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PutMemory {
    /// Whose.
    pub agent: AgentId,
    /// The revision after which the writer looked at the rows.
    pub revision: u64,
    /// The entries, each key once.
    pub entries: Vec<PutEntry>,
    /// The turn that does it, if one does.
    pub by: Option<TurnId>,
}

/// One entry to store.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PutEntry {
    /// At most [`MEMORY_KEY_BYTES_MAX`](agentsvc_components::kernel::limit::MEMORY_KEY_BYTES_MAX) bytes.
    pub key: Box<str>,
    /// Compact JSON.
    pub value: Box<str>,
    /// When the key was first stored; `None` is now.
    pub created_at: Option<Timestamp>,
    /// When the value was stored; `None` is now.
    pub updated_at: Option<Timestamp>,
    /// Bytes of the key and value that this replaces; `None` when the key is new.
    pub replaces: Option<u64>,
}

impl PutEntry {
    /// Bytes of the key and the value.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        (self.key.len() + self.value.len()) as u64
    }
}

command!(write "put_memory" PutMemory => MemoryUse, Id(|it| it.agent.0), |it, world| Answer::stored(put(world, it)));

fn put(world: &mut World, command: PutMemory) -> Result<MemoryUse, Refusal> {
    let PutMemory { agent, revision, entries, by } = command;
    let mut more = Change { entries: 0, bytes: 0 };
    for entry in &entries {
        check_key(&entry.key)?;
        check_value(&entry.value)?;
        more.entries += i64::from(entry.replaces.is_none());
        more.bytes += entry.bytes().cast_signed() - entry.replaces.unwrap_or(0).cast_signed();
    }
    let after = change(world, agent, revision, entries.iter().map(|entry| &*entry.key), &more)?;
    audit(world, audit_kinds::MEMORY_WRITTEN, agent, entries.iter().map(|entry| &*entry.key));
    let (now, taint) = (world.resource::<Now>().0, taint::acting(world));
    for PutEntry { key, value, created_at, updated_at, .. } in entries {
        let (created_at, updated_at) = (created_at.unwrap_or(now), updated_at.unwrap_or(now));
        world.op(record::put_content(
            record::memory_key(agent, &key),
            &MemoryRecord { value, created_at, updated_at, taint },
        ));
        world.event(Event::MemoryUpdated { agent, key, deleted: false, by });
    }
    Ok(after)
}
