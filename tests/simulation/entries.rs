//! The client changes entries of the memory that agents keep, as the API does it: it asks what is durable, looks at the rows
//! and brings what it saw.

use agentsvc_components::AgentId;
use agentsvc_components::proactive_memory::record::{MemoryEntriesRecord, MemoryEntryRecord};
use agentsvc_components::proactive_memory::{Level, MemoryEntryId};
use agentsvc_systems::kernel::record;
use agentsvc_systems::proactive_memory::keys::{companions, parse_entry_key};
use agentsvc_systems::proactive_memory::{Cause, Counted, EntryPut, EntryRemove, GetEntryUse, WriteEntries};

use super::action::What;
use super::harness::Harness;

/// What the disk holds of an agent's entries.
fn rows(harness: &Harness, agent: AgentId) -> Vec<(MemoryEntryId, MemoryEntryRecord)> {
    let prefix = record::entry_prefix(agent);
    let stored = harness.disk.content.range(prefix.clone()..).take_while(|(key, _)| key.starts_with(&prefix));
    stored.filter_map(|(key, value)| Some((parse_entry_key(key)?.1, record::decode(key, value).ok()?))).collect()
}

/// One request.
pub(crate) fn act(harness: &mut Harness, what: What, agent: AgentId) {
    let content = harness.text("fact").into();
    let user = harness.rng.chance(50).then(|| harness.rng.pick(&["ana", "bo"]).into());
    let level = harness.rng.pick(&Level::ALL);
    let mut rng = super::rng::Rng(harness.rng.roll());
    harness.ask(GetEntryUse(agent), move |harness, seen| {
        let known = rows(harness, agent);
        let old = rng.any(&known);
        let fresh = MemoryEntryRecord { content, user, level, confidence: 1.0, ..MemoryEntryRecord::default() };
        let (mut puts, mut removes) = (Vec::new(), Vec::new());
        match (what, old) {
            (What::RemoveEntry, Some((id, row))) => removes.push(EntryRemove { id, old: Counted::from(&row) }),
            (What::RemoveEntry, None) => return,
            (_, Some((id, row))) if rng.chance(50) => {
                puts.push(EntryPut { id: Some(id), record: fresh, old: Some(Counted::from(&row)), is_now: true });
            }
            _ => puts.push(EntryPut { id: None, record: fresh, old: None, is_now: true }),
        }
        let cause = Cause::Asked;
        harness
            .ask(WriteEntries { agent, revision: seen.revision, puts, removes, cause, due: None, by: None }, |_, _| {});
    });
}

/// At rest: what the world counts is what the disk holds, and what leads to entries does.
pub(crate) fn check(harness: &Harness, agent: AgentId) -> Result<(), String> {
    let row = harness.disk.world.get(&[&b"E"[..], agent.0.as_bytes()].concat());
    let counted = row.map(|row| record::decode::<MemoryEntriesRecord>(b"E", row).map_err(|error| error.to_string()));
    let counted = counted.transpose()?.map_or(0, |known| known.counts.entries());
    let known = rows(harness, agent);
    if known.len() != counted as usize {
        return Err(format!("agent {agent} has {} memory entries, counted {counted}", known.len()));
    }
    let prefix = record::entry_prefix(agent);
    let stored = harness.disk.content.range(prefix.clone()..).take_while(|(key, _)| key.starts_with(&prefix));
    for lead in stored.flat_map(|(key, value)| companions(key, value)) {
        if !harness.disk.content.contains_key(&lead) {
            return Err(format!("nothing leads to a memory entry of agent {agent}"));
        }
    }
    Ok(())
}
