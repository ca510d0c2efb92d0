//! Changes of single entries: added, replaced by a newer content, updated.

use agentsvc_components::proactive_memory::record::{EntryVersion, MemoryEntryRecord};
use agentsvc_components::proactive_memory::{Level, MemoryEntryId};
use agentsvc_components::{AgentId, Refusal, Timestamp};
use agentsvc_systems::proactive_memory::limits::ENTRY_VERSIONS_MAX;
use agentsvc_systems::proactive_memory::{Cause, Counted, EntryPut, EntryUse, check_entry};

use crate::http::call::Call;
use crate::http::error::Error;
use crate::proactive_memory::entries::{AgentEntries, Plan, Rows, now};
use crate::proactive_memory::settings::ProactiveMemory;
use crate::proactive_memory::similar::{Words, similarity};
use crate::proactive_memory::store::EntryRow;

agentsvc_components::enum_words! {
    /// What became of a fact.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum Action [as_str] {
        /// It is a new entry.
        Added = "added",
        /// It took the place of what an entry said.
        Updated = "updated",
        /// An entry says so already.
        Noop = "noop",
    }
}

/// When an entry of a session that is made now expires.
pub(crate) fn session_expiry(settings: &ProactiveMemory, now: Timestamp) -> Timestamp {
    now.plus_ms(i64::from(settings.session_ttl_hours) * 3_600_000)
}

/// The content of an entry gives way to another one, and is kept as a version.
pub(crate) fn replace_content(record: &mut MemoryEntryRecord, content: Box<str>, now: Timestamp) {
    if record.content == content {
        return;
    }
    let content = std::mem::replace(&mut record.content, content);
    record.versions.push(EntryVersion { content, replaced_at: now });
    let over = record.versions.len().saturating_sub(ENTRY_VERSIONS_MAX);
    record.versions.drain(..over);
}

/// Adds one entry, whatever there is.
///
/// # Errors
/// The entry is not valid, or the memory is full.
pub(crate) async fn add(entries: &AgentEntries, record: MemoryEntryRecord) -> Result<EntryRow, Refusal> {
    check_entry(&record)?;
    let put = EntryPut { id: None, record, old: None, is_now: true };
    let plan = move |_: &EntryUse, _: &Rows<'_>| {
        Ok(Plan { puts: vec![put.clone()], removes: Vec::new(), due: None, told: () })
    };
    let ((), written) = entries.change(Cause::Asked, plan).await?;
    let id = written.ids.first().copied().ok_or_else(|| Refusal::conflict("the entry was not stored"))?;
    row(entries, id).await
}

/// Adds a fact, replaces the content of the entry that it is about, or leaves it where an entry says so already.
///
/// # Errors
/// As [`add`].
pub(crate) async fn learn(
    entries: &AgentEntries,
    record: MemoryEntryRecord,
    settings: &ProactiveMemory,
) -> Result<(Action, EntryRow), Refusal> {
    check_entry(&record)?;
    let (settings, words) = (settings.clone(), Words::of(&record.content));
    let plan = move |_: &_, rows: &Rows<'_>| {
        let (mut best, now) = (None::<(f64, MemoryEntryId, MemoryEntryRecord)>, now());
        rows.each(|id, known| {
            if !known.is_live(now) || known.user != record.user || known.level != record.level {
                return;
            }
            let likeness = similarity(&words, &Words::of(&known.content));
            if best.as_ref().is_none_or(|(most, ..)| likeness >= *most) {
                best = Some((likeness, id, known));
            }
        })?;
        let add = |record: &MemoryEntryRecord| EntryPut { id: None, record: record.clone(), old: None, is_now: true };
        let (put, told) = match best {
            Some((likeness, id, known)) if likeness > 0.999 => {
                return Ok(Plan::nothing((Action::Noop, Some((id, known)))));
            }
            Some((likeness, id, known)) if likeness >= update_threshold(&settings, &known, &record) => {
                let old = Some(Counted::from(&known));
                let mut newer = known;
                replace_content(&mut newer, record.content.clone(), now);
                newer.category.clone_from(&record.category);
                newer.taint = newer.taint.with(record.taint);
                newer.confidence = newer.confidence.max(record.confidence);
                (EntryPut { id: Some(id), record: newer, old, is_now: true }, (Action::Updated, None))
            }
            _ => (add(&record), (Action::Added, None)),
        };
        Ok(Plan { puts: vec![put], removes: Vec::new(), due: None, told })
    };
    let ((action, known), written) = entries.change(Cause::Asked, plan).await?;
    if let Some((id, record)) = known {
        return Ok((action, EntryRow { agent: entries.agent, id, record }));
    }
    let id = written.ids.first().copied().ok_or_else(|| Refusal::conflict("the entry was not stored"))?;
    Ok((action, row(entries, id).await?))
}

/// From which similarity on a newer fact takes the place of what is known.
pub(crate) fn update_threshold(
    settings: &ProactiveMemory,
    known: &MemoryEntryRecord,
    newer: &MemoryEntryRecord,
) -> f64 {
    if known.category == newer.category {
        settings.update_threshold_same_category
    } else {
        settings.update_threshold_cross_category
    }
}

/// The row of an entry that was stored just now.
async fn row(entries: &AgentEntries, id: MemoryEntryId) -> Result<EntryRow, Refusal> {
    let record = entries.read(move |rows| rows.get(id)).await?;
    let record = record.ok_or_else(|| not_found(id))?;
    Ok(EntryRow { agent: entries.agent, id, record })
}

/// There is no such entry.
pub(crate) fn not_found(id: MemoryEntryId) -> Refusal {
    Refusal::not_found("memory entry", id)
}

/// Changes one entry that is still shown; `change` is carried out again when others change the same.
///
/// # Errors
/// There is no such entry, it is not valid after the change, or the store failed.
pub(crate) async fn update(
    entries: &AgentEntries,
    id: MemoryEntryId,
    change: impl Fn(&mut MemoryEntryRecord, Timestamp) + Send + Sync + 'static,
) -> Result<EntryRow, Refusal> {
    let plan = move |_: &_, rows: &Rows<'_>| {
        let now = now();
        let Some(known) = rows.get(id)?.filter(|known| known.is_live(now)) else { return Ok(Plan::nothing(false)) };
        let old = Some(Counted::from(&known));
        let mut record = known;
        change(&mut record, now);
        let put = EntryPut { id: Some(id), record, old, is_now: true };
        Ok(Plan { puts: vec![put], removes: Vec::new(), due: None, told: true })
    };
    let (is_there, _) = entries.change(Cause::Asked, plan).await?;
    if is_there { row(entries, id).await } else { Err(not_found(id)) }
}

/// Entries were found: counts it, each at most once a minute. That it cannot be counted does not matter.
pub(crate) async fn found(entries: &AgentEntries, ids: Vec<MemoryEntryId>) {
    const AGAIN_MS: u64 = 60_000;
    let plan = move |_: &_, rows: &Rows<'_>| {
        let (mut puts, now) = (Vec::new(), now());
        for id in &ids {
            let Some(known) = rows.get(*id)?.filter(|known| known.is_live(now)) else { continue };
            if known.access_count > 0 && now.ms_since(known.accessed_at) < AGAIN_MS {
                continue;
            }
            let old = Some(Counted::from(&known));
            let access_count = known.access_count.saturating_add(1);
            let record = MemoryEntryRecord { accessed_at: now, access_count, ..known };
            puts.push(EntryPut { id: Some(*id), record, old, is_now: false });
        }
        Ok(Plan { puts, removes: Vec::new(), due: None, told: () })
    };
    if let Err(refusal) = entries.change(Cause::Access, plan).await {
        tracing::debug!(%refusal, agent = %entries.agent, "finding memory entries is not counted");
    }
}

/// The record of a new entry with this content.
pub(crate) fn new_record(content: Box<str>, source: &str) -> MemoryEntryRecord {
    MemoryEntryRecord { content, source: source.into(), confidence: 1.0, ..MemoryEntryRecord::default() }
}

/// Gives an entry of the level `session` its expiry, and others none.
pub(crate) fn set_expiry(record: &mut MemoryEntryRecord, settings: &ProactiveMemory, now: Timestamp) {
    record.expires_at = (record.level == Level::Session).then(|| session_expiry(settings, now));
}

/// The entries of an agent.
pub(crate) fn of_agent(call: &Call, agent: AgentId) -> Result<AgentEntries, Error> {
    let (bridge, store) = (call.api.bridge.clone(), call.api.service()?);
    Ok(AgentEntries { bridge, store, agent, by: None, permit: None })
}
