//! Upkeep of entries: confidence that decays, duplicates, what has expired. All of it on request, agent by agent, so that no
//! beat ever looks at all entries.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use agentsvc_components::AgentId;
use agentsvc_components::proactive_memory::MemoryEntryId;
use agentsvc_components::proactive_memory::record::MemoryEntryRecord;
use agentsvc_components::{Refusal, Timestamp};
use agentsvc_systems::proactive_memory::limits::{ENTRY_CHANGES_MAX, ENTRY_STEPS_MAX};
use agentsvc_systems::proactive_memory::{Cause, Counted, EntryPut, EntryRemove, EntryUse, ListEntryUse};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::http::call::Call;
use crate::http::error::{ContentError, Error};
use crate::http::error_codes;
use crate::http::reply::{self, Response};
use crate::http::route::{Reach, Reply, Route};
use crate::http::slots::{Slot, Slots};
use crate::proactive_memory::change::of_agent;
use crate::proactive_memory::entries::{AgentEntries, Plan, Rows, now};
use crate::proactive_memory::routes::{NO_AGENT, settings};
use crate::proactive_memory::shape::MemoryEntry;
use crate::proactive_memory::similar::{Words, groups};

/// What a request that may look at many rows costs the client's rate budget.
const COST: u32 = 50;
/// Agents whose counts are read at once.
const AGENTS_PAGE: usize = 500;
/// Requests that may look at many rows at once.
const UPKEEP_MAX: usize = 2;
/// The same of one user, so that there is one for others.
const UPKEEP_OF_USER_MAX: usize = 1;
/// Entries that one consolidation changes; as many replaced ones can be removed with it.
const MERGED_MAX: usize = ENTRY_CHANGES_MAX / 2;
/// Milliseconds of a day.
const DAY_MS: f64 = 86_400_000.0;
/// How much slower the confidence of what is often found decays, at most.
const BOOST_MAX: f64 = 10.0;

pub(crate) const ROUTES: &[Route] = &[
    Route::post("/api/memory/cleanup", "Delete memory entries that have expired or lost their confidence", |call| {
        Box::pin(cleanup(call))
    })
    .cost(COST)
    .body::<AgentBody>()
    .replies(&[Reply::json::<CleanedUp>(200, "the number of deleted entries"), NO_AGENT]),
    Route::post("/api/memory/decay", "Lower the confidence of memory entries that were not used", |call| {
        Box::pin(decay(call))
    })
    .cost(COST)
    .body::<AgentBody>()
    .replies(&[Reply::json::<Decayed>(200, "the number of changed entries"), NO_AGENT]),
    Route::get("/api/memory/agents/{id}/duplicates", "Find duplicates among an agent's memory entries", |call| {
        Box::pin(duplicates(call))
    })
    .reaching(Reach::Agent)
    .large()
    .cost(COST)
    .replies(&[Reply::json::<Duplicates>(200, "groups of entries that say the same, the newest first")]),
    Route::post("/api/memory/agents/{id}/consolidate", "Replace duplicates by the newest of them", |call| {
        Box::pin(consolidate(call))
    })
    .reaching(Reach::Agent)
    .cost(COST)
    .replies(&[Reply::json::<Consolidated>(200, "the number of replaced entries")]),
];

/// Bounds what looks at many rows at once.
struct Upkeep(Arc<Slots>);

impl Default for Upkeep {
    fn default() -> Self {
        Self(Slots::new(UPKEEP_MAX, UPKEEP_OF_USER_MAX))
    }
}

/// A permit to look at many rows. The reads must hold it, not the request: they go on when its client goes.
///
/// # Errors
/// 429 when others do.
fn permit(call: &Call) -> Result<Option<Arc<Slot>>, Error> {
    let upkeep = call.api.services.state::<Upkeep>();
    let full = || {
        let text = "too many maintenance requests of memory entries are running";
        Error::of(error_codes::TOO_MANY, text).retry_after(1)
    };
    Ok(Some(Arc::new(upkeep.0.take().ok_or_else(full)?)))
}

/// Whose entries; all agents' without it.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
struct AgentBody {
    /// Default: all agents.
    agent_id: Option<Uuid>,
}

/// Does something with the entries of one agent, or of each that has any. An agent that is deleted meanwhile is left out.
async fn each<F, Fut>(call: &Call, run: F) -> Result<usize, Error>
where
    F: Fn(AgentEntries) -> Fut,
    Fut: Future<Output = Result<usize, Refusal>>,
{
    let permit = permit(call)?;
    let permitted = |agent| Ok::<_, Error>(AgentEntries { permit: permit.clone(), ..of_agent(call, agent)? });
    let AgentBody { agent_id } = call.json_or_default()?;
    if let Some(agent) = agent_id {
        return Ok(run(permitted(AgentId(agent))?).await?);
    }
    let (mut sum, mut after) = (0, None);
    loop {
        let page = call.ask(ListEntryUse { after, limit: AGENTS_PAGE }).await?;
        for known in page.items {
            let entries = permitted(known.agent)?;
            match run(entries.clone()).await {
                Ok(count) => sum += count,
                Err(_)
                    if entries
                        .usage()
                        .await
                        .is_err_and(|gone| gone.kind == agentsvc_components::RefusalKind::NotFound) => {}
                Err(refusal) => return Err(refusal.into()),
            }
        }
        after = page.next;
        if after.is_none() {
            return Ok(sum);
        }
    }
}

/// What a cleanup deleted.
#[derive(Serialize, JsonSchema)]
struct CleanedUp {
    /// The same as `deleted_count`.
    cleaned_up: usize,
    deleted_count: usize,
}

async fn cleanup(call: Call) -> Result<Response, Error> {
    let deleted = each(&call, |entries| async move { entries.clean(true).await }).await?;
    reply::ok(&CleanedUp { cleaned_up: deleted, deleted_count: deleted })
}

/// What decayed.
#[derive(Serialize, JsonSchema)]
struct Decayed {
    /// Entries whose confidence was lowered.
    decayed: usize,
    /// `[proactive_memory] confidence_decay_rate`, per day.
    decay_rate: f64,
}

async fn decay(call: Call) -> Result<Response, Error> {
    let rate = settings(&call)?.confidence_decay_rate;
    let decayed = each(&call, |entries| async move { decay_of(&entries, rate).await }).await?;
    reply::ok(&Decayed { decayed, decay_rate: rate })
}

/// The confidence that an entry has by now, where it was not used for a day.
fn decayed(record: &MemoryEntryRecord, rate: f64, now: Timestamp) -> Option<f32> {
    let used = record.accessed_at.max(record.updated_at).max(record.decayed_at.unwrap_or_default());
    let days = now.ms_since(used) as f64 / DAY_MS;
    if days < 1.0 || !record.is_live(now) {
        return None;
    }
    let boost = (1.0 + f64::from(record.access_count.max(1)).log2()).clamp(1.0, BOOST_MAX);
    let lowered = f64::from(record.confidence) * (-rate / boost * days).exp();
    Some(lowered as f32).filter(|lowered| *lowered < record.confidence)
}

async fn decay_of(entries: &AgentEntries, rate: f64) -> Result<usize, Refusal> {
    let mut sum = 0;
    loop {
        let plan = move |_: &EntryUse, rows: &Rows<'_>| {
            let (mut puts, now) = (Vec::new(), now());
            rows.each(|id, record| {
                if puts.len() < ENTRY_CHANGES_MAX
                    && let Some(confidence) = decayed(&record, rate, now)
                {
                    let old = Some(Counted::from(&record));
                    let record = MemoryEntryRecord { confidence, decayed_at: Some(now), ..record };
                    puts.push(EntryPut { id: Some(id), record, old, is_now: false });
                }
            })?;
            let told = puts.len();
            Ok(Plan { puts, removes: Vec::new(), due: None, told })
        };
        let (count, _) = entries.change(Cause::Age, plan).await?;
        sum += count;
        if count < ENTRY_CHANGES_MAX {
            return Ok(sum);
        }
    }
}

/// Entries that say the same.
#[derive(Serialize, JsonSchema)]
struct Duplicates {
    duplicate_groups: usize,
    /// Whether there were so many similar entries that not all were compared.
    truncated: bool,
    /// The newest of each group first.
    groups: Vec<Vec<MemoryEntry>>,
}

/// When an entry changed last, its id and its words.
type Compared = (Timestamp, MemoryEntryId, Words);

/// Ids of entries that say the same, the newest of each group first, and whether all entries were compared.
type Found = (Vec<Vec<MemoryEntryId>>, bool);

/// The live entries of an agent that say the same.
fn duplicates_of(rows: &Rows<'_>, threshold: f64) -> Result<Found, ContentError> {
    let now = now();
    let mut scopes: BTreeMap<(Option<Box<str>>, u8), Vec<Compared>> = BTreeMap::new();
    // What is about one user or level never takes the place of what is about another.
    rows.each(|id, record| {
        if record.is_live(now) {
            let entry = (record.updated_at, id, Words::of(&record.content));
            scopes.entry((record.user, record.level as u8)).or_default().push(entry);
        }
    })?;
    let (mut found, mut steps) = (Vec::new(), ENTRY_STEPS_MAX);
    for mut entries in scopes.into_values() {
        entries.sort_unstable_by_key(|entry| Reverse((entry.0, entry.1)));
        let (ids, words): (Vec<MemoryEntryId>, Vec<Words>) =
            entries.into_iter().map(|(_, id, words)| (id, words)).unzip();
        let of_scope = groups(&words, threshold, &mut steps);
        found.extend(of_scope.into_iter().map(|group| group.into_iter().map(|at| ids[at]).collect()));
    }
    Ok((found, steps > 0))
}

async fn duplicates(call: Call) -> Result<Response, Error> {
    let entries = AgentEntries { permit: permit(&call)?, ..of_agent(&call, call.id("id")?)? };
    entries.usage().await?;
    let (threshold, agent) = (settings(&call)?.duplicate_threshold, entries.agent);
    let groups = entries.read(move |rows| {
        let (groups, is_complete) = duplicates_of(rows, threshold)?;
        let groups = groups.into_iter().map(|group| {
            let shown = group.into_iter().map(|id| Ok(rows.get(id)?.map(|record| MemoryEntry::of(agent, id, record))));
            Ok(shown.collect::<Result<Vec<_>, ContentError>>()?.into_iter().flatten().collect::<Vec<_>>())
        });
        Ok((groups.collect::<Result<Vec<_>, ContentError>>()?, is_complete))
    });
    let (groups, is_complete) = groups.await?;
    reply::ok(&Duplicates { duplicate_groups: groups.len(), truncated: !is_complete, groups })
}

/// What was consolidated.
#[derive(Serialize, JsonSchema)]
struct Consolidated {
    /// Groups of duplicates of which one entry is left.
    consolidated: usize,
    /// Entries that were replaced. They are kept for 30 days, hidden.
    merged_count: usize,
    /// Whether there were so many similar entries that not all were compared.
    truncated: bool,
}

async fn consolidate(call: Call) -> Result<Response, Error> {
    let entries = AgentEntries { permit: permit(&call)?, ..of_agent(&call, call.id("id")?)? };
    let threshold = settings(&call)?.duplicate_threshold;
    let (mut consolidated, mut merged_count) = (0, 0);
    loop {
        let plan = move |usage: &EntryUse, rows: &Rows<'_>| merge(usage, rows, threshold);
        let (Merged { groups, entries: merged, is_all, truncated }, _) =
            entries.change(Cause::Consolidation, plan).await?;
        (consolidated, merged_count) = (consolidated + groups, merged_count + merged);
        if is_all || merged == 0 {
            return reply::ok(&Consolidated { consolidated, merged_count, truncated });
        }
    }
}

/// What one plan merges.
struct Merged {
    groups: usize,
    /// Entries that are replaced.
    entries: usize,
    /// All groups that were found.
    is_all: bool,
    /// Not all entries were compared.
    truncated: bool,
}

/// The plan that leaves the newest of each group: it takes over the taint of the others, which are marked as replaced. Of the
/// replaced ones, no more are kept than there may be entries.
fn merge(usage: &EntryUse, rows: &Rows<'_>, threshold: f64) -> Result<Plan<Merged>, ContentError> {
    let (now, mut puts, mut counts, mut is_all) = (now(), Vec::new(), (0, 0), true);
    let (found, is_complete) = duplicates_of(rows, threshold)?;
    for group in found {
        if puts.len() + group.len().min(MERGED_MAX) > MERGED_MAX {
            is_all = false;
            break;
        }
        is_all &= group.len() <= MERGED_MAX;
        let mut read = Vec::new();
        for id in group.into_iter().take(MERGED_MAX) {
            if let Some(record) = rows.get(id)? {
                read.push((id, record));
            }
        }
        let mut read = read.into_iter();
        let Some((kept, newest)) = read.next() else { continue };
        let old = Counted::from(&newest);
        let mut newest = newest;
        for (id, record) in read {
            newest.taint = newest.taint.with(record.taint);
            newest.access_count = newest.access_count.saturating_add(record.access_count);
            newest.created_at = newest.created_at.min(record.created_at);
            let old = Some(Counted::from(&record));
            let record = MemoryEntryRecord { deleted_at: Some(now), merged_into: Some(kept), ..record };
            puts.push(EntryPut { id: Some(id), record, old, is_now: false });
            counts.1 += 1;
        }
        puts.push(EntryPut { id: Some(kept), record: newest, old: Some(old), is_now: false });
        counts.0 += 1;
    }
    let removes = oldest_replaced(usage, rows, counts.1)?;
    let told = Merged { groups: counts.0, entries: counts.1, is_all, truncated: !is_complete };
    Ok(Plan { puts, removes, due: None, told })
}

/// The replaced entries that must go so that `more` can be kept.
pub(super) fn oldest_replaced(
    usage: &EntryUse,
    rows: &Rows<'_>,
    more: usize,
) -> Result<Vec<EntryRemove>, ContentError> {
    let over = (usage.counts.replaced as usize + more).saturating_sub(usage.most as usize);
    if over == 0 {
        return Ok(Vec::new());
    }
    let mut replaced = Vec::new();
    rows.each(|id, record| {
        if let Some(at) = record.deleted_at {
            replaced.push((at, id, Counted::from(&record)));
        }
    })?;
    replaced.sort_unstable_by_key(|(at, id, _)| (*at, *id));
    Ok(replaced
        .into_iter()
        .take(over.min(ENTRY_CHANGES_MAX - MERGED_MAX))
        .map(|(_, id, old)| EntryRemove { id, old })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(days: i64, access_count: u32) -> (MemoryEntryRecord, Timestamp) {
        let now = Timestamp(1_800_000_000_000);
        let then = now.plus_ms(-days * 86_400_000);
        let record = MemoryEntryRecord {
            content: "x".into(),
            confidence: 0.8,
            created_at: then,
            updated_at: then,
            accessed_at: then,
            access_count,
            ..MemoryEntryRecord::default()
        };
        (record, now)
    }

    #[test]
    fn confidence_decays_after_a_day_and_slower_for_what_is_used() {
        let of = |days, count| {
            let (record, now) = entry(days, count);
            decayed(&record, 0.1, now)
        };
        assert_eq!(of(0, 0), None);
        let once = of(10, 1).unwrap();
        assert!((f64::from(once) - 0.8 * (-1.0_f64).exp()).abs() < 1e-6, "{once}");
        assert_eq!(of(10, 0), of(10, 1), "never found decays as found once");
        let often = of(10, 8).unwrap();
        assert!((f64::from(often) - 0.8 * (-0.25_f64).exp()).abs() < 1e-6, "{often}");
        assert!(of(10, u32::MAX).unwrap() < 0.8, "also what is used most");
    }

    #[test]
    fn what_has_decayed_does_not_decay_twice_for_the_same_days() {
        let (record, now) = entry(10, 1);
        let again = MemoryEntryRecord { decayed_at: Some(now), ..record.clone() };
        assert_eq!(decayed(&again, 0.1, now), None);
        assert_eq!(decayed(&record, 0.0, now), None, "a rate of 0 changes nothing");
        let gone = MemoryEntryRecord { deleted_at: Some(now), ..record };
        assert_eq!(decayed(&gone, 0.1, now), None);
    }
}
