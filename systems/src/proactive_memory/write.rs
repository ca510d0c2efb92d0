//! Entries are added, changed and removed, all or none.

use std::collections::BTreeSet;

use bevy_ecs::prelude::World;
use serde::{Deserialize, Serialize};
use serde_json::json;

use agentsvc_components::event::Event;
use agentsvc_components::kernel::audit_kind::AuditKind;
use agentsvc_components::kernel::record::Space;
use agentsvc_components::proactive_memory::MemoryEntryId;
use agentsvc_components::proactive_memory::change::{ChangedEntries, EntriesChanged};
use agentsvc_components::proactive_memory::record::{MemoryEntriesRecord, MemoryEntryRecord};
use agentsvc_components::{Actor, AgentId, ErrorCode, Refusal, Timestamp, TurnId};

use super::counts::{self, Counted, Entries, EntryUse};
use super::keys::{entry_key, owner_key, user_key};
use super::{audit_kinds, check_entry, limits};
use crate::audit::{Audit, names};
use crate::event::told::Tell;
use crate::kernel::acting::Acting;
use crate::kernel::clock::Now;
use crate::kernel::command::{Answer, command};
use crate::kernel::id_generator::mint_beside;
use crate::kernel::outbox::Emit;
use crate::kernel::record::{self, VERSION, op, put_content};
use crate::{memory, taint};

/// Changes entries of an agent that the writer has seen, all or none.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WriteEntries {
    /// Whose.
    pub agent: AgentId,
    /// The revision after which the writer looked at the rows.
    pub revision: u64,
    /// What to store, each id once; with `removes` at most [`ENTRY_CHANGES_MAX`](limits::ENTRY_CHANGES_MAX).
    pub puts: Vec<EntryPut>,
    /// What to remove, each id once.
    pub removes: Vec<EntryRemove>,
    /// What kind of change it is.
    pub cause: Cause,
    /// The earliest moment at which an entry is due, where the writer has seen all rows; it counts when nothing has changed
    /// since.
    pub due: Option<Due>,
    /// The turn that does it, if one does.
    pub by: Option<TurnId>,
}

/// When the first of all entries expires, or is to be erased.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Due(pub Option<Timestamp>);

/// An entry to store.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EntryPut {
    /// Its id; `None` for a new one.
    pub id: Option<MemoryEntryId>,
    /// What it will say. Its `change` is set by the world.
    pub record: MemoryEntryRecord,
    /// The row that it replaces.
    pub old: Option<Counted>,
    /// It changes now: the world sets its times and adds the taint of the turn that does it.
    pub is_now: bool,
}

/// An entry to remove.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EntryRemove {
    /// Which.
    pub id: MemoryEntryId,
    /// What its row says.
    pub old: Counted,
}

/// What kind of change it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cause {
    /// A client or a turn asked for it.
    Asked,
    /// Duplicates are replaced.
    Consolidation,
    /// Entries have expired, or their confidence decays.
    Age,
    /// Entries were found: only how often and when changes.
    Access,
}

/// What was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntriesWritten {
    /// The ids of the entries that were stored, in order.
    pub ids: Vec<MemoryEntryId>,
    /// What there is now.
    pub after: EntryUse,
}

command! {
    write "write_memory_entries" WriteEntries => EntriesWritten, Id(|it| it.agent.0), |it, world|
        Answer::stored(write(world, it))
}

pub(super) fn write(world: &mut World, command: WriteEntries) -> Result<EntriesWritten, Refusal> {
    let WriteEntries { agent, revision, puts, removes, cause, due, by } = command;
    let names: Vec<Box<str>> =
        puts.iter().filter_map(|put| put.id).chain(removes.iter().map(|it| it.id)).map(name).collect();
    check_ids(&names, puts.len() + removes.len())?;
    memory::check_seen(world, agent, revision, names.iter().map(|name| &**name))?;
    let is_latest = memory::revision(world, agent) == revision;
    let mut known = known(world, agent);
    let (before, most) = (known.counts.clone(), counts::most(world));
    for put in &puts {
        check_entry(&put.record)?;
        if let Some(old) = &put.old {
            counts::remove(&mut known.counts, old);
        }
        counts::add(&mut known.counts, &Counted::from(&put.record));
    }
    removes.iter().for_each(|gone| counts::remove(&mut known.counts, &gone.old));
    counts::admit(&known.counts, &before)?;
    let more = known.counts.bytes.cast_signed() - before.bytes.cast_signed();
    memory::admit(world, agent, more, memory::error_codes::MEMORY_FULL)?;
    if known.counts.entries() > before.entries().max(most) || known.counts.entries() > limits::ENTRIES_MAX {
        // The writer removes the least valuable ones; others were added since it looked.
        return Err(memory::changed());
    }
    known.due = match due.filter(|_| is_latest) {
        Some(Due(due)) => due,
        None => known.due.into_iter().chain(puts.iter().filter_map(|put| due_of(&put.record))).min(),
    };
    if cause != Cause::Access {
        known.changes += 1;
    }
    let removed: Vec<MemoryEntryId> = removes.iter().map(|gone| gone.id).collect();
    let replaced: Vec<bool> = puts.iter().map(|put| put.record.deleted_at.is_some()).collect();
    let ids = store(world, &known, puts, removes, cause);
    // That an entry was found does not get in the way of those who plan a change of many: they may set its count back.
    if cause != Cause::Access {
        memory::note_change(world, agent, names.iter().map(|name| &**name));
    }
    memory::count(world, agent, more);
    world.op(record::put(&known));
    let number = known.changes;
    world.resource_mut::<Entries>().set(known);
    if cause != Cause::Access {
        let changed = ids.iter().chain(&removed).copied().collect();
        world.effect(EntriesChanged { agent, number, entries: ChangedEntries::These(changed) });
        tell(world, agent, cause, (&ids, &replaced, &removed), by);
    }
    Ok(EntriesWritten { ids, after: counts::shown(world, agent) })
}

/// Refuses a change that names an entry twice, since its counts would be wrong, or too many.
fn check_ids(names: &[Box<str>], changes: usize) -> Result<(), Refusal> {
    if changes > limits::ENTRY_CHANGES_MAX {
        let text = format!("more than {} memory entries in one change", limits::ENTRY_CHANGES_MAX);
        return Err(Refusal::conflict(text));
    }
    if names.iter().collect::<BTreeSet<_>>().len() < names.len() {
        return Err(Refusal::conflict("a change names a memory entry twice"));
    }
    Ok(())
}

fn known(world: &World, agent: AgentId) -> MemoryEntriesRecord {
    let none = || MemoryEntriesRecord { agent, counts: Default::default(), changes: 0, due: None };
    world.resource::<Entries>().get(agent).cloned().unwrap_or_else(none)
}

/// When the row is to be looked at again: it expires, or it was replaced and is to be erased.
#[must_use]
pub fn due_of(record: &MemoryEntryRecord) -> Option<Timestamp> {
    let erased = record.deleted_at.map(|at| at.plus_ms(limits::ENTRY_REPLACED_DAYS * 86_400_000));
    erased.into_iter().chain(record.expires_at).min()
}

/// What the entry is called among the keys of memory that changed.
fn name(id: MemoryEntryId) -> Box<str> {
    format!("\0{id}").into()
}

/// Writes the rows, and gives the ids of those that were stored.
fn store(
    world: &mut World,
    known: &MemoryEntriesRecord,
    puts: Vec<EntryPut>,
    removes: Vec<EntryRemove>,
    cause: Cause,
) -> Vec<MemoryEntryId> {
    let (agent, now, acting) = (known.agent, world.resource::<Now>().0, taint::acting(world));
    let lead = |key| op(Space::Content, key, Some(vec![VERSION]));
    let gone = |key| op(Space::Content, key, None);
    let mut ids = Vec::with_capacity(puts.len());
    for EntryPut { id, mut record, old, is_now } in puts {
        let id = id.unwrap_or_else(|| mint_beside(world, agent.0));
        if is_now {
            record.updated_at = now;
            record.taint = record.taint.with(acting);
            if old.is_none() {
                (record.created_at, record.accessed_at) = (now, now);
            }
        }
        if cause != Cause::Access {
            record.change = known.changes;
        }
        let left = old.as_ref().and_then(|old| old.user.as_ref()).filter(|user| Some(*user) != record.user.as_ref());
        if let Some(user) = left {
            world.op(gone(user_key(user, agent, id)));
        }
        if old.is_none() {
            world.op(lead(owner_key(id, agent)));
        }
        let had = old.and_then(|old| old.user);
        if let Some(user) = record.user.as_ref().filter(|user| had.as_ref() != Some(*user)) {
            world.op(lead(user_key(user, agent, id)));
        }
        world.op(put_content(entry_key(agent, id), &record));
        ids.push(id);
    }
    for EntryRemove { id, old } in removes {
        world.op(gone(entry_key(agent, id)));
        world.op(gone(owner_key(id, agent)));
        if let Some(user) = old.user {
            world.op(gone(user_key(&user, agent, id)));
        }
    }
    ids
}

/// Puts a change on record, and tells listeners: of what was stored, with it whether it is hidden now, and of what was removed.
/// One that an agent makes itself is on record as its tool call already.
fn tell(
    world: &mut World,
    agent: AgentId,
    cause: Cause,
    (stored, replaced, removed): (&[MemoryEntryId], &[bool], &[MemoryEntryId]),
    by: Option<TurnId>,
) {
    let by_agent = matches!(world.resource::<Acting>().0, Actor::Agent { .. });
    let audit = |world: &mut World, kind: AuditKind, ids: &[MemoryEntryId]| {
        if !by_agent && !ids.is_empty() {
            let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
            let (entries, ids) = names(ids.iter().map(String::as_str));
            world.audit(kind, agent, json!({ "entries": entries, "ids": ids }));
        }
    };
    match cause {
        Cause::Asked => {
            audit(world, audit_kinds::MEMORY_ENTRIES_WRITTEN, stored);
            audit(world, audit_kinds::MEMORY_ENTRIES_DELETED, removed);
        }
        Cause::Consolidation => {
            audit(world, audit_kinds::MEMORY_ENTRIES_CONSOLIDATED, stored);
            audit(world, audit_kinds::MEMORY_ENTRIES_DELETED, removed);
        }
        Cause::Age => {
            audit(world, audit_kinds::MEMORY_ENTRIES_DELETED, removed);
        }
        Cause::Access => {}
    }
    if cause == Cause::Age && !stored.is_empty() && removed.is_empty() {
        return;
    }
    let told = stored.iter().zip(replaced.iter().copied()).chain(removed.iter().map(|id| (id, true)));
    for (id, deleted) in told {
        world.event(Event::MemoryUpdated { agent, key: id.to_string().into(), deleted, by });
    }
}

/// The code of a refusal because others changed the same entries in the meantime.
pub const CHANGED: ErrorCode = memory::error_codes::MEMORY_CHANGED;

/// Was it refused because others changed the same entries in the meantime?
#[must_use]
pub fn is_changed(refusal: &Refusal) -> bool {
    refusal.code == Some(CHANGED)
}
