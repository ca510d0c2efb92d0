//! Imports of entries: each is one piece of work with progress, and goes on when its client has gone. One that a restart
//! interrupts can be sent again: what is there already changes nothing.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use agentsvc_components::proactive_memory::MemoryEntryId;
use agentsvc_components::proactive_memory::record::MemoryEntryRecord;
use agentsvc_components::{AgentId, Refusal, Timestamp};
use agentsvc_systems::kernel::record::digest;
use agentsvc_systems::proactive_memory::limits::{ENTRY_IMPORTS_ENDED_MAX, ENTRY_IMPORTS_MAX, ENTRY_VERSIONS_MAX};
use agentsvc_systems::proactive_memory::{Cause, Counted, EntryPut, EntryUse};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use crate::http::error::{ContentError, Error};
use crate::http::timestamp::Moment;
use crate::proactive_memory::entries::{AgentEntries, Plan, Rows, now};

/// Entries that are stored at once.
const BATCH: usize = 500;

/// An entry to import.
#[derive(Clone, Debug)]
pub(crate) struct NewEntry {
    id: MemoryEntryId,
    record: MemoryEntryRecord,
}

impl NewEntry {
    /// An entry for an agent. One without an id gets one that its content makes, so that it is known again.
    pub(crate) fn new(agent: AgentId, id: Option<MemoryEntryId>, mut record: MemoryEntryRecord) -> Self {
        let over = record.versions.len().saturating_sub(ENTRY_VERSIONS_MAX);
        record.versions.drain(..over);
        let user = record.user.as_deref().unwrap_or_default();
        let id = id.unwrap_or_else(|| {
            made(&[agent.0.as_bytes(), record.level.as_str().as_bytes(), user.as_bytes(), record.content.as_bytes()])
        });
        Self { id, record }
    }
}

/// The id that the parts make.
fn made(parts: &[&[u8]]) -> MemoryEntryId {
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest(parts)[..16]);
    MemoryEntryId(uuid::Builder::from_custom_bytes(bytes).into_uuid())
}

/// One import, as it is shown.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Import {
    pub(crate) import_id: Uuid,
    agent_id: Uuid,
    /// `running`, `completed` or `failed`.
    status: &'static str,
    /// Entries that were sent.
    total: usize,
    /// Entries that were dealt with.
    done: usize,
    /// Entries that were stored: `created` and `updated`.
    imported: usize,
    /// New entries.
    created: usize,
    /// Entries that were there and are newer now.
    updated: usize,
    /// Entries that were there as they are, have expired, or have no place in the agent's memory.
    skipped: usize,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    started_at: Moment,
    ended_at: Option<Moment>,
}

/// The state of one import.
pub(crate) struct State {
    id: Uuid,
    agent: AgentId,
    total: usize,
    created: AtomicUsize,
    updated: AtomicUsize,
    skipped: AtomicUsize,
    started_at: Timestamp,
    end: Mutex<Option<(Timestamp, Option<String>)>>,
}

impl State {
    fn is_running(&self) -> bool {
        self.end.lock().is_none()
    }

    fn count(&self, counts: Counts) {
        self.created.fetch_add(counts.created, Ordering::Relaxed);
        self.updated.fetch_add(counts.updated, Ordering::Relaxed);
        self.skipped.fetch_add(counts.skipped, Ordering::Relaxed);
    }

    /// Entries that are new or were changed so far.
    pub(crate) fn imported(&self) -> usize {
        self.created.load(Ordering::Relaxed) + self.updated.load(Ordering::Relaxed)
    }

    /// As it is now.
    pub(crate) fn shown(&self) -> Import {
        let [created, updated, skipped] =
            [&self.created, &self.updated, &self.skipped].map(|count| count.load(Ordering::Relaxed));
        let end = self.end.lock().clone();
        let status = match &end {
            None => "running",
            Some((_, None)) => "completed",
            Some((_, Some(_))) => "failed",
        };
        Import {
            import_id: self.id,
            agent_id: self.agent.0,
            status,
            total: self.total,
            done: created + updated + skipped,
            imported: created + updated,
            created,
            updated,
            skipped,
            started_at: Moment(self.started_at),
            ended_at: end.as_ref().map(|(at, _)| Moment(*at)),
            error: end.and_then(|(_, error)| error),
        }
    }
}

/// Running imports, and the last ended ones.
#[derive(Default)]
pub(crate) struct Imports(Mutex<VecDeque<Arc<State>>>);

impl Imports {
    /// Begins an import of so many entries.
    ///
    /// # Errors
    /// 429 when too many run.
    pub(crate) fn begin(&self, agent: AgentId, total: usize) -> Result<Arc<State>, Error> {
        let mut known = self.0.lock();
        if known.iter().filter(|state| state.is_running()).count() >= ENTRY_IMPORTS_MAX {
            return Err(Error::too_many("imports of memory entries are running", ENTRY_IMPORTS_MAX));
        }
        while known.len() >= ENTRY_IMPORTS_ENDED_MAX + ENTRY_IMPORTS_MAX {
            let Some(oldest) = known.iter().position(|state| !state.is_running()) else { break };
            known.remove(oldest);
        }
        let started_at = now();
        let last = known.back().map_or(Uuid::nil(), |state| state.id);
        let id = made(&[agent.0.as_bytes(), last.as_bytes(), &started_at.0.to_be_bytes()]).0;
        let [created, updated, skipped] = std::array::from_fn(|_| AtomicUsize::new(0));
        let state = State { id, agent, total, created, updated, skipped, started_at, end: Mutex::new(None) };
        let state = Arc::new(state);
        known.push_back(Arc::clone(&state));
        Ok(state)
    }

    /// All that are known, the oldest first.
    pub(crate) fn list(&self) -> Vec<Import> {
        self.0.lock().iter().map(|state| state.shown()).collect()
    }
}

/// Ends the import, also when it panics.
struct End(Arc<State>, Option<String>);

impl Drop for End {
    fn drop(&mut self) {
        *self.0.end.lock() = Some((now(), self.1.take()));
    }
}

/// Carries an import out, batch by batch.
///
/// # Errors
/// A batch is refused; those before it are stored.
pub(crate) async fn run(entries: AgentEntries, new: Vec<NewEntry>, state: Arc<State>) -> Result<(), Refusal> {
    let mut end = End(Arc::clone(&state), Some("the import was interrupted".to_owned()));
    let mut known = HashSet::with_capacity(new.len());
    let (new, repeated): (Vec<_>, Vec<_>) = new.into_iter().partition(|entry| known.insert(entry.id));
    state.count(Counts { skipped: repeated.len(), ..Counts::default() });
    for batch in new.chunks(BATCH) {
        let batch: Arc<[NewEntry]> = batch.into();
        let plan = move |usage: &EntryUse, rows: &Rows<'_>| planned(usage, rows, &batch);
        match entries.change(Cause::Asked, plan).await {
            Ok((counts, _)) => state.count(counts),
            Err(refusal) => {
                end.1 = Some(refusal.message.clone());
                return Err(refusal);
            }
        }
    }
    end.1 = None;
    Ok(())
}

/// What became of the entries of a batch.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    created: usize,
    updated: usize,
    skipped: usize,
}

fn planned(usage: &EntryUse, rows: &Rows<'_>, batch: &[NewEntry]) -> Result<Plan<Counts>, ContentError> {
    let (mut puts, mut counts, now) = (Vec::new(), Counts::default(), now());
    let mut taken = HashSet::with_capacity(batch.len());
    for NewEntry { id, record } in batch {
        let (id, known) = place(rows, *id)?;
        let is_older = known.as_ref().is_some_and(|known| known.updated_at >= record.updated_at);
        // Two ids of the file can lead to one entry, which is put once.
        if !record.is_live(now) || is_older || !taken.insert(id) {
            counts.skipped += 1;
            continue;
        }
        let old = known.as_ref().map(Counted::from);
        let mut record = record.clone();
        // A file does not make trusted what was not.
        record.taint = known.map_or(record.taint, |known| known.taint.with(record.taint));
        if old.is_some() {
            counts.updated += 1;
        } else {
            counts.created += 1;
        }
        puts.push(EntryPut { id: Some(id), record, old, is_now: false });
    }
    let (there, most) = (usage.counts.entries() as usize, usage.most as usize);
    let over = (there + counts.created).saturating_sub(most);
    if over > 0 {
        let left_out = drop_least(rows, &mut puts, over)?;
        counts.created -= left_out;
        counts.skipped += left_out;
    }
    Ok(Plan { puts, removes: Vec::new(), due: None, told: counts })
}

/// The agent's entry for an id of the file, and what it says where it is there already. An entry of another agent stays there:
/// this one gets a copy under an id of its own, always the same, and keeps it when the other agent is gone.
fn place(rows: &Rows<'_>, id: MemoryEntryId) -> Result<(MemoryEntryId, Option<MemoryEntryRecord>), ContentError> {
    let copy = made(&[rows.agent.0.as_bytes(), id.0.as_bytes()]);
    for id in [id, copy] {
        if let Some(known) = rows.get(id)? {
            return Ok((id, Some(known)));
        }
    }
    let is_others = rows.store.owner(id)?.is_some_and(|owner| owner != rows.agent);
    Ok((if is_others { copy } else { id }, None))
}

/// Leaves out the new entries that would be among the `over` ones that have to go; so an import that is repeated ends with the
/// same entries.
fn drop_least(rows: &Rows<'_>, puts: &mut Vec<EntryPut>, over: usize) -> Result<usize, ContentError> {
    let (mut ranked, now): (Vec<(f32, Timestamp, Option<MemoryEntryId>)>, _) = (Vec::new(), now());
    rows.each(|_, record| {
        if record.deleted_at.is_none() {
            let confidence = if record.is_live(now) { record.confidence } else { -1.0 };
            ranked.push((confidence, record.updated_at, None));
        }
    })?;
    let new = puts.iter().filter(|put| put.old.is_none());
    ranked.extend(new.map(|put| (put.record.confidence, put.record.updated_at, put.id)));
    ranked.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then_with(|| (a.1, a.2).cmp(&(b.1, b.2))));
    let least: HashSet<MemoryEntryId> = ranked.into_iter().take(over).filter_map(|(_, _, id)| id).collect();
    puts.retain(|put| put.old.is_some() || put.id.is_none_or(|id| !least.contains(&id)));
    Ok(least.len())
}
