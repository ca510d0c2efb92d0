//! The entries of one agent for routes and tools: the rows on disk and the door to change them, brought together.
//!
//! A change is planned from what the rows say; the world refuses it when they have changed since, and it is planned again.

use std::collections::HashSet;
use std::sync::Arc;

use agentsvc_components::proactive_memory::MemoryEntryId;
use agentsvc_components::proactive_memory::record::MemoryEntryRecord;
use agentsvc_components::{AgentId, Refusal, RefusalKind, Timestamp, TurnId};
use agentsvc_systems::proactive_memory::limits::{ENTRY_CHANGES_MAX, ENTRY_REPLACED_DAYS};
use agentsvc_systems::proactive_memory::{
    CHANGED, Cause, Counted, Due, EntriesWritten, EntryPut, EntryRemove, EntryUse, GetEntryUse, WriteEntries, due_of,
    is_changed,
};

use crate::http::blocking::spawn_blocking;
use crate::http::bridge::Bridge;
use crate::http::error::ContentError;
use crate::http::slots::Slot;
use crate::proactive_memory::change;
use crate::proactive_memory::store::EntryStore;

/// How often a change is planned again before the writer gives up.
const TRIES_MAX: usize = 32;
/// Rows that are read from the disk at once.
pub(crate) const PAGE_ROWS: usize = 500;
/// Below this confidence a cleanup deletes an entry.
const STALE_BELOW: f32 = 0.05;

/// The entries of one agent.
#[derive(Clone)]
pub struct AgentEntries {
    /// The way into the world.
    pub bridge: Bridge,
    /// The rows on disk.
    pub store: Arc<dyn EntryStore>,
    /// Whose.
    pub agent: AgentId,
    /// The turn that uses them, if one does.
    pub by: Option<TurnId>,
    /// A place that each read holds until it has ended: who asked for it may be gone by then.
    pub permit: Option<Arc<Slot>>,
}

/// The rows of one agent, on a thread that may wait for the disk.
pub struct Rows<'a> {
    /// The rows of all agents.
    pub store: &'a dyn EntryStore,
    /// Whose.
    pub agent: AgentId,
}

impl Rows<'_> {
    /// One entry.
    ///
    /// # Errors
    /// The store failed.
    pub fn get(&self, id: MemoryEntryId) -> Result<Option<MemoryEntryRecord>, ContentError> {
        self.store.entry(self.agent, id)
    }

    /// Each entry, those that were replaced or have expired too.
    ///
    /// # Errors
    /// The store failed.
    pub fn each(&self, mut see: impl FnMut(MemoryEntryId, MemoryEntryRecord)) -> Result<(), ContentError> {
        let mut after = None;
        loop {
            let page = self.store.entries(Some(self.agent), after, PAGE_ROWS)?;
            after = page.next();
            page.rows.into_iter().for_each(|row| see(row.id, row.record));
            if after.is_none() {
                return Ok(());
            }
        }
    }
}

/// What a writer wants after a look at the rows.
pub struct Plan<T> {
    /// What to store.
    pub puts: Vec<EntryPut>,
    /// What to remove.
    pub removes: Vec<EntryRemove>,
    /// When an entry is due, where all rows were seen.
    pub due: Option<Due>,
    /// What the writer wants to know afterwards.
    pub told: T,
}

impl<T> Plan<T> {
    /// Nothing is to be done.
    pub const fn nothing(told: T) -> Self {
        Self { puts: Vec::new(), removes: Vec::new(), due: None, told }
    }
}

/// This moment.
pub(crate) fn now() -> Timestamp {
    crate::http::timestamp::timestamp_now()
}

impl AgentEntries {
    /// How many there are.
    ///
    /// # Errors
    /// The agent does not live, or the world is not ready.
    pub async fn usage(&self) -> Result<EntryUse, Refusal> {
        self.bridge.ask(GetEntryUse(self.agent)).await
    }

    /// How many there are, once those that have expired are erased. That they cannot be does not matter.
    ///
    /// # Errors
    /// As [`usage`](Self::usage).
    pub async fn usage_now(&self) -> Result<EntryUse, Refusal> {
        let usage = self.usage().await?;
        if usage.due.is_none_or(|due| due > now()) {
            return Ok(usage);
        }
        match self.clean(false).await {
            Ok(_) => self.usage().await,
            Err(refusal) => {
                tracing::debug!(%refusal, agent = %self.agent, "expired memory entries cannot be erased");
                Ok(usage)
            }
        }
    }

    /// Counts that entries were found, each at most once a minute. That it fails is only logged.
    pub async fn count_found(&self, ids: Vec<MemoryEntryId>) {
        change::found(self, ids).await;
    }

    /// Reads rows off the async threads.
    ///
    /// # Errors
    /// The store failed.
    pub async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Rows<'_>) -> Result<T, ContentError> + Send + 'static,
    ) -> Result<T, Refusal> {
        let (store, agent, permit) = (Arc::clone(&self.store), self.agent, self.permit.clone());
        let read = move || {
            let found = read(&Rows { store: &*store, agent });
            drop(permit);
            found
        };
        read_of(read).await
    }

    /// Plans a change from the rows and has it done, all or nothing. The plan is made again when others changed the same.
    /// Where the agent would have too many entries, the least confident and oldest are removed with it.
    ///
    /// # Errors
    /// The change is refused, others change the same all the time, or the store failed.
    pub async fn change<T: Send + 'static>(
        &self,
        cause: Cause,
        plan: impl Fn(&EntryUse, &Rows<'_>) -> Result<Plan<T>, ContentError> + Send + Sync + 'static,
    ) -> Result<(T, EntriesWritten), Refusal> {
        self.change_by(cause, plan, |bridge, write, _| async move { bridge.ask(write).await }).await
    }

    /// The same with a command of its own, which also hears what the plan tells.
    ///
    /// # Errors
    /// As [`change`](Self::change).
    pub(crate) async fn change_by<T: Send + 'static, F: Future<Output = Result<EntriesWritten, Refusal>>>(
        &self,
        cause: Cause,
        plan: impl Fn(&EntryUse, &Rows<'_>) -> Result<Plan<T>, ContentError> + Send + Sync + 'static,
        ask: impl Fn(Bridge, WriteEntries, &T) -> F,
    ) -> Result<(T, EntriesWritten), Refusal> {
        let plan = Arc::new(plan);
        for _ in 0..TRIES_MAX {
            let usage = self.usage().await?;
            let (plan, seen) = (Arc::clone(&plan), usage.clone());
            let planned = self.read(move |rows| {
                let mut planned = plan(&seen, rows)?;
                evict(&seen, rows, &mut planned)?;
                Ok(planned)
            });
            let Plan { puts, removes, due, told } = planned.await?;
            let is_due = due.is_some_and(|Due(due)| due != usage.due);
            if puts.is_empty() && removes.is_empty() && !is_due {
                return Ok((told, EntriesWritten { ids: Vec::new(), after: usage }));
            }
            let (agent, revision, by) = (self.agent, usage.revision, self.by);
            let write = WriteEntries { agent, revision, puts, removes, cause, due, by };
            match ask(self.bridge.clone(), write, &told).await {
                Err(refusal) if is_changed(&refusal) => {}
                result => return result.map(|written| (told, written)),
            }
        }
        Err(busy())
    }

    /// Erases what has expired, what was replaced long ago and, with `stale`, what has lost its confidence. Gives the number.
    ///
    /// # Errors
    /// As [`change`](Self::change).
    pub async fn clean(&self, stale: bool) -> Result<usize, Refusal> {
        let now = now();
        self.remove_where(Cause::Age, move |record| is_spent(record, now) || stale && record.confidence < STALE_BELOW)
            .await
    }

    /// Removes the entries that `doomed` names. Gives the number of those that were still shown.
    ///
    /// # Errors
    /// As [`change`](Self::change).
    pub async fn remove_where(
        &self,
        cause: Cause,
        doomed: impl Fn(&MemoryEntryRecord) -> bool + Clone + Send + Sync + 'static,
    ) -> Result<usize, Refusal> {
        let mut count = 0;
        loop {
            let doomed = doomed.clone();
            let plan = move |_: &EntryUse, rows: &Rows<'_>| {
                let (mut removes, mut due, mut shown) = (Vec::new(), None, 0);
                rows.each(|id, record| {
                    if removes.len() < ENTRY_CHANGES_MAX && doomed(&record) {
                        shown += usize::from(record.deleted_at.is_none());
                        removes.push(EntryRemove { id, old: Counted::from(&record) });
                    } else {
                        due = due.into_iter().chain(due_of(&record)).min();
                    }
                })?;
                let told = (removes.len() == ENTRY_CHANGES_MAX, shown);
                Ok(Plan { puts: Vec::new(), removes, due: Some(Due(due)), told })
            };
            let ((may_be_more, removed), _) = self.change(cause, plan).await?;
            count += removed;
            if !may_be_more {
                return Ok(count);
            }
        }
    }
}

/// Reads on a thread that may wait.
pub(crate) async fn read_of<T: Send + 'static>(
    read: impl FnOnce() -> Result<T, ContentError> + Send + 'static,
) -> Result<T, Refusal> {
    let failed = || Refusal::new(RefusalKind::Failed, "the memory could not be read");
    match spawn_blocking(read).await.map_err(|_| failed())? {
        Err(ContentError::Exchanging) => Err(crate::http::bridge::exchanging()),
        read => read.map_err(|error| {
            tracing::error!(%error, "memory entries could not be read");
            failed()
        }),
    }
}

/// Is the row of no use any more: expired, or replaced long ago?
fn is_spent(record: &MemoryEntryRecord, now: Timestamp) -> bool {
    let kept = ENTRY_REPLACED_DAYS * 86_400_000;
    record.expires_at.is_some_and(|at| at <= now) || record.deleted_at.is_some_and(|at| at.plus_ms(kept) <= now)
}

/// Adds to the plan the removal of as many entries as there would be too many: those that have expired, then the least
/// confident, the oldest first.
fn evict<T>(usage: &EntryUse, rows: &Rows<'_>, plan: &mut Plan<T>) -> Result<(), ContentError> {
    let before = |old: &Counted| usize::from(!old.is_replaced);
    let had: usize = plan.puts.iter().filter_map(|put| put.old.as_ref()).map(before).sum();
    let gone: usize = plan.removes.iter().map(|gone| before(&gone.old)).sum();
    let shown = plan.puts.iter().filter(|put| put.record.deleted_at.is_none()).count();
    let (now_there, most) = (usage.counts.entries() as usize, usage.most as usize);
    let over = (now_there + shown).saturating_sub(had + gone).saturating_sub(most);
    if over == 0 || shown <= had {
        return Ok(());
    }
    let taken: HashSet<MemoryEntryId> =
        plan.puts.iter().filter_map(|put| put.id).chain(plan.removes.iter().map(|gone| gone.id)).collect();
    let (mut ranked, now) = (Vec::new(), now());
    rows.each(|id, record| {
        if record.deleted_at.is_none() && !taken.contains(&id) {
            let confidence = if record.is_live(now) { record.confidence } else { -1.0 };
            ranked.push((confidence, record.updated_at, id, Counted::from(&record)));
        }
    })?;
    // A large memory that is full is not read again for each entry that is added.
    // What one change has no place for, as when the limit was lowered, goes with the next ones.
    let place = ENTRY_CHANGES_MAX.saturating_sub(plan.puts.len() + plan.removes.len());
    let over = over.max(most / 1_000).min(place);
    ranked.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then_with(|| (a.1, a.2).cmp(&(b.1, b.2))));
    plan.removes.extend(ranked.into_iter().take(over).map(|(_, _, id, old)| EntryRemove { id, old }));
    Ok(())
}

fn busy() -> Refusal {
    Refusal::busy("too many concurrent changes of the same memory entries", 1).with_code(CHANGED)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use futures_util::FutureExt;
    use uuid::Uuid;

    use super::*;
    use crate::http::bridge::bridge;
    use crate::http::slots::Slots;
    use crate::proactive_memory::list::tests::Many;

    #[tokio::test]
    async fn a_read_holds_its_permit_until_it_has_ended_also_when_its_client_goes() {
        let places = Slots::new(1, 1);
        let permit = Some(Arc::new(places.take().unwrap()));
        let (bridge, _intake) = bridge();
        let agent = AgentId(Uuid::nil());
        let entries = AgentEntries { bridge, store: Arc::new(Many(0)), agent, by: None, permit };
        let (go, goes) = channel();
        // The client goes after the first poll.
        let read = entries.read(move |_| {
            goes.recv().unwrap();
            Ok(())
        });
        assert!(read.now_or_never().is_none());
        drop(entries);
        assert!(places.take().is_none());
        go.send(()).unwrap();
        while places.take().is_none() {
            tokio::task::yield_now().await;
        }
    }
}
