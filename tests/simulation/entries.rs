//! The client changes entries of the memory that agents keep, as the API does it: it asks what is durable, looks at the rows
//! and brings what it saw.

use std::collections::{BTreeMap, BTreeSet};

use agentsvc_components::kernel::attempt::Attempt;
use agentsvc_components::kernel::job::{Job, JobOutcome, TryEnd};
use agentsvc_components::proactive_memory::record::{EntryCounts, MemoryEntriesRecord, MemoryEntryRecord};
use agentsvc_components::proactive_memory::{Level, MemoryEntryId};
use agentsvc_components::session::message::Usage;
use agentsvc_components::usage::CallUse;
use agentsvc_components::{Actor, AgentId};
use agentsvc_systems::budget::{MEMORY, ReserveMemory, Reserved};
use agentsvc_systems::kernel::record;
use agentsvc_systems::proactive_memory::keys::{companions, parse_entry_key};
use agentsvc_systems::proactive_memory::{
    Cause, Counted, EntryPut, EntryRemove, GetEntryUse, MEMORIZE, MEMORIZE_BY_MODEL, Memorize, Memorized,
    TurnToMemorize, WriteEntries,
};
use agentsvc_systems::session::GetSession;
use agentsvc_systems::usage::NoteModelCall;

use super::action::What;
use super::harness::{CONTEXT, Harness};
use super::outside::deliver;

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
        let category = rng.pick(&["", "preference", "goal"]).into();
        let fresh = MemoryEntryRecord { content, user, level, category, confidence: 1.0, ..Default::default() };
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

/// Is a turn yet to be memorised? A try of it takes several requests.
pub(crate) fn is_memorizing(harness: &Harness) -> bool {
    let jobs = harness.disk.world.range(b"q".to_vec()..b"r".to_vec());
    jobs.filter_map(|(key, value)| record::decode::<Job>(key, value).ok())
        .any(|job| [MEMORIZE, MEMORIZE_BY_MODEL].contains(&&*job.kind))
}

/// A try to memorise a turn: the model is asked where there is money, and what it finds is written, or the try fails.
pub(crate) fn memorize(harness: &mut Harness, attempt: Attempt, input: &str) {
    let turn: TurnToMemorize = serde_json::from_str(input).expect("what an ended turn left");
    let Some(agent) = harness.read(GetSession::ById(turn.session)).ok().map(|view| view.agent) else {
        let gone = TryEnd::Done(String::new());
        return deliver(harness, JobOutcome(attempt, gone));
    };
    if let Some(written) = turn.written {
        let written = serde_json::to_string(&written).expect("plain data");
        return deliver(harness, JobOutcome(attempt, TryEnd::Done(written)));
    }
    if harness.rng.chance(20) {
        let reason = "the model is ill".to_owned();
        return deliver(harness, JobOutcome(attempt, TryEnd::Retry { after_ms: None, reason }));
    }
    let reserve =
        ReserveMemory { agent, session: turn.session, prompt_tokens_max: CONTEXT as u32, answer_tokens_max: 10 };
    harness.ask_as(Actor::System, reserve, move |harness, reserved| {
        let Ok(Reserved { grant, model }) = reserved else {
            let reason = "no money".to_owned();
            return deliver(harness, JobOutcome(attempt, TryEnd::Retry { after_ms: None, reason }));
        };
        let usage = Usage::of(harness.rng.below(50) as u64, harness.rng.below(10) as u64);
        let used = CallUse { provider: model.provider, model: model.model, usage, ..CallUse::default() };
        harness.ask(NoteModelCall { channel: MEMORY.into(), grant: Some(grant), used }, |_, _| {});
        write(harness, agent, attempt, turn);
    });
}

/// What was found in a turn is written; whether it may or not, the try ends.
fn write(harness: &mut Harness, agent: AgentId, attempt: Attempt, turn: TurnToMemorize) {
    let (content, metadata) = (harness.text("fact").into(), turn.turn.to_string().into());
    let record = MemoryEntryRecord { content, metadata, confidence: 1.0, ..MemoryEntryRecord::default() };
    harness.ask_as(Actor::System, GetEntryUse(agent), move |harness, seen| {
        let revision = seen.map(|seen| seen.revision).unwrap_or_default();
        let puts = vec![EntryPut { id: None, record, old: None, is_now: true }];
        let (removes, cause, by) = (Vec::new(), Cause::Asked, Some(turn.turn));
        let write = WriteEntries { agent, revision, puts, removes, cause, due: None, by };
        let memorized = Memorized { added: 1, ..Memorized::default() };
        harness.ask_as(Actor::System, Memorize { attempt, write, memorized }, move |harness, written| {
            let end = match written {
                Ok(_) => TryEnd::Done(serde_json::to_string(&memorized).expect("plain data")),
                Err(refusal) => TryEnd::Retry { after_ms: None, reason: refusal.to_string() },
            };
            deliver(harness, JobOutcome(attempt, end));
        });
    });
}

/// What the world is to count of these entries, categories by name.
fn counts<'e>(entries: impl Iterator<Item = &'e MemoryEntryRecord>) -> EntryCounts {
    let (mut counts, mut categories) = (EntryCounts::default(), BTreeMap::new());
    for entry in entries {
        counts.bytes += entry.bytes();
        if entry.deleted_at.is_some() {
            counts.replaced += 1;
        } else {
            counts.levels[entry.level as usize] += 1;
            *categories.entry(entry.category.clone()).or_default() += 1;
        }
    }
    counts.categories = categories.into_iter().collect();
    counts
}

/// At rest: what the world counts is what the disk holds, and what leads to entries does.
pub(crate) fn check(harness: &Harness, agent: AgentId) -> Result<(), String> {
    let row = harness.disk.world.get(&[&b"E"[..], agent.0.as_bytes()].concat());
    let counted = row.map(|row| record::decode::<MemoryEntriesRecord>(b"E", row).map_err(|error| error.to_string()));
    let mut counted = counted.transpose()?.map(|known| known.counts).unwrap_or_default();
    let known = rows(harness, agent);
    let found = counts(known.iter().map(|(_, entry)| entry));
    counted.categories.sort_unstable();
    if found != counted {
        return Err(format!("agent {agent} has memory entries {found:?}, counted {counted:?}"));
    }
    let mut turns = BTreeSet::new();
    for (_, entry) in known.iter().filter(|(_, entry)| !entry.metadata.is_empty()) {
        if !turns.insert(entry.metadata.clone()) {
            return Err(format!("turn {} of agent {agent} was memorised twice", entry.metadata));
        }
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
