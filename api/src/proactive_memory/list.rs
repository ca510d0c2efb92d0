//! Lists of entries: filtered, and page by page.

use std::collections::{HashMap, HashSet};

use agentsvc_components::kernel::limit::PAGE_ITEMS_MAX;
use agentsvc_components::proactive_memory::record::MemoryEntryRecord;
use agentsvc_components::proactive_memory::{Level, MemoryEntryId};
use agentsvc_components::{AgentId, RefusalKind, Timestamp};
use agentsvc_systems::agent::SummariseAgents;
use agentsvc_systems::proactive_memory::GetEntryTotals;
use agentsvc_systems::proactive_memory::limits::ENTRY_PAGE_BYTES_MAX;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;
use uuid::Uuid;

use crate::http::call::Call;
use crate::http::error::{ContentError, Error};
use crate::http::reply::{self, Response};
use crate::proactive_memory::entries::{PAGE_ROWS, now, read_of};
use crate::proactive_memory::shape::{MemoryEntry, level};
use crate::proactive_memory::store::{EntryRow, EntryStore};

/// Entries of a page when the query does not say.
const LIMIT_DEFAULT: usize = 100;
/// Entries of a page at most.
const LIMIT_MAX: usize = 1_000;
/// Entries that a list skips at most.
const OFFSET_MAX: usize = 100_000;
/// Rows that are read at most to count what fits a filter.
const COUNTED_MAX: usize = 100_000;

/// Which entries to list.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct EntriesQuery {
    /// Only entries of this agent.
    agent_id: Option<Uuid>,
    /// Only entries about this user.
    user_id: Option<String>,
    /// Only entries of this level: `user`, `session` or `agent`.
    level: Option<String>,
    /// Only entries of this category.
    category: Option<String>,
    /// Maximum number of entries, 1 to 1000. Default: 100.
    limit: Option<usize>,
    /// Entries to skip, at most 100000.
    offset: Option<usize>,
    /// `next_cursor` of the previous page; better than `offset` for long lists.
    cursor: Option<String>,
}

/// A page of entries, in the order of agents and of their ids, which is that of time.
#[derive(Serialize, JsonSchema)]
pub(crate) struct MemoryList {
    memories: Vec<MemoryEntry>,
    /// Entries in all; null where more than 100000 would have to be read to count them.
    total: Option<u64>,
    offset: usize,
    limit: usize,
    /// Cursor of the next page; null on the last one. A page ends early after 1 MiB of texts and, even empty, after 100000 entries
    /// that do not fit.
    next_cursor: Option<String>,
}

/// Where entries are listed from.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// All agents.
    All,
    /// One agent.
    Agent(AgentId),
    /// A user, of all agents.
    User(Box<str>),
}

/// What the listed entries have in common.
#[derive(Clone, Debug, Default)]
struct Filter {
    agent: Option<AgentId>,
    user: Option<Box<str>>,
    level: Option<Level>,
    category: Option<Box<str>>,
}

impl Filter {
    const fn is_open(&self) -> bool {
        self.agent.is_none() && self.user.is_none() && self.level.is_none() && self.category.is_none()
    }

    fn takes(&self, agent: AgentId, record: &MemoryEntryRecord, now: Timestamp) -> bool {
        record.is_live(now)
            && self.agent.is_none_or(|only| only == agent)
            && self.user.as_ref().is_none_or(|user| record.user.as_ref() == Some(user))
            && self.level.is_none_or(|level| record.level == level)
            && self.category.as_ref().is_none_or(|category| record.category == *category)
    }
}

type Place = (AgentId, MemoryEntryId);

/// A page, and how many there are in all.
struct Page {
    rows: Vec<EntryRow>,
    total: Option<u64>,
    next: Option<Place>,
}

/// Answers a list of entries from `source`.
///
/// # Errors
/// A parameter is not valid, or the store failed.
pub(crate) async fn answer(call: &Call, source: Source) -> Result<Response, Error> {
    let query: EntriesQuery = call.query()?;
    let (limit, offset) = (query.limit.unwrap_or(LIMIT_DEFAULT), query.offset.unwrap_or(0));
    if !(1..=LIMIT_MAX).contains(&limit) {
        return Err(Error::bad_field("limit", format!("limit: must be 1 to {LIMIT_MAX}")));
    }
    if offset > OFFSET_MAX {
        return Err(Error::bad_field("offset", format!("offset: more than {OFFSET_MAX}; use the cursor")));
    }
    let after = query.cursor.as_deref().map(place).transpose()?;
    let filter = Filter {
        agent: query.agent_id.map(AgentId),
        user: query.user_id.map(String::into_boxed_str),
        level: query.level.as_deref().map(level).transpose()?,
        category: query.category.map(String::into_boxed_str),
    };
    let source = match (source, filter.agent, &filter.user) {
        (Source::All, Some(agent), _) => Source::Agent(agent),
        (Source::All, None, Some(user)) => Source::User(user.clone()),
        (source, ..) => source,
    };
    let is_all = matches!(source, Source::All) && filter.is_open();
    let sum = if is_all { Some(call.ask(GetEntryTotals { named: 0 }).await?.entries()) } else { None };
    let (store, lives) = (call.api.service::<dyn EntryStore>()?, living(call)?);
    let page = read_of(move || page((&*store, &*lives), &source, &filter, (after, offset, limit), sum)).await?;
    reply::ok(&MemoryList {
        memories: page.rows.into_iter().map(MemoryEntry::from).collect(),
        total: page.total,
        offset,
        limit,
        next_cursor: page.next.map(|(agent, id)| format!("{agent}.{id}")),
    })
}

fn place(cursor: &str) -> Result<Place, Error> {
    let parts = cursor.split_once('.').and_then(|(agent, id)| Some((agent.parse().ok()?, id.parse().ok()?)));
    parts.ok_or_else(|| Error::bad_field("cursor", "cursor: not one of a previous page"))
}

/// Tells which of some agents live. Blocks.
type Living = dyn Fn(Vec<AgentId>) -> Result<HashSet<AgentId>, ContentError> + Send;

/// Asks the world.
fn living(call: &Call) -> Result<Box<Living>, Error> {
    let runtime = Handle::try_current().map_err(|error| Error::internal(error.to_string()))?;
    let bridge = call.api.bridge.clone();
    Ok(Box::new(move |agents: Vec<AgentId>| {
        let mut living = HashSet::with_capacity(agents.len());
        for some in agents.chunks(PAGE_ITEMS_MAX) {
            let asked = runtime.block_on(bridge.ask(SummariseAgents(some.to_vec())));
            let asked = asked.map_err(|refusal| match refusal.kind {
                RefusalKind::Busy => ContentError::Exchanging,
                _ => ContentError::Failed(refusal.to_string()),
            })?;
            living.extend(asked.into_iter().map(|agent| agent.id));
        }
        Ok(living)
    }))
}

/// Adds which agents of these rows live to what is known: the rows of one that was removed are there until they are erased.
fn learn(known: &mut HashMap<AgentId, bool>, rows: &[EntryRow], living: &Living) -> Result<(), ContentError> {
    let mut new: Vec<AgentId> = rows.iter().map(|row| row.agent).filter(|agent| !known.contains_key(agent)).collect();
    new.dedup();
    if !new.is_empty() {
        let living = living(new.clone())?;
        known.extend(new.into_iter().map(|agent| (agent, living.contains(&agent))));
    }
    Ok(())
}

/// The page behind `after`, without the first `offset` entries and those of agents that do not live. `sum` is their number where
/// it is known.
fn page(
    (store, living): (&dyn EntryStore, &Living),
    source: &Source,
    filter: &Filter,
    (mut after, offset, limit): (Option<Place>, usize, usize),
    sum: Option<u64>,
) -> Result<Page, ContentError> {
    let (mut rows, mut matching, mut read, mut bytes, mut next, now) = (Vec::new(), 0_usize, 0_usize, 0, None, now());
    let (is_first, mut lives) = (after.is_none(), HashMap::new());
    loop {
        let found = match source {
            Source::All => store.entries(None, after, PAGE_ROWS)?,
            Source::Agent(agent) => store.entries(Some(*agent), after, PAGE_ROWS)?,
            Source::User(user) => store.of_user(user, after, PAGE_ROWS)?,
        };
        learn(&mut lives, &found.rows, living)?;
        read += found.rows.len();
        after = found.next();
        let is_shown =
            |row: &EntryRow| filter.takes(row.agent, &row.record, now) && lives.get(&row.agent) == Some(&true);
        for row in found.rows.into_iter().filter(is_shown) {
            matching += 1;
            let is_full = rows.len() == limit || bytes >= ENTRY_PAGE_BYTES_MAX as u64;
            if matching > offset && !is_full {
                bytes += row.record.bytes();
                rows.push(row);
            } else if is_full && next.is_none() {
                next = rows.last().map(|row| (row.agent, row.id));
            }
        }
        let is_counted = sum.is_none() && is_first;
        if after.is_none() {
            return Ok(Page { rows, total: sum.or_else(|| is_first.then_some(matching as u64)), next });
        }
        if next.is_none() && read >= COUNTED_MAX {
            // What fits is rare: the page is short, and the next one goes on behind what was read.
            return Ok(Page { rows, total: sum, next: after });
        }
        if next.is_some() && (!is_counted || read >= COUNTED_MAX) {
            return Ok(Page { rows, total: sum, next });
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::proactive_memory::store::EntryPage;

    /// So many entries of one agent, all of no category; each tenth is another agent's.
    pub(crate) struct Many(pub(crate) u128);

    impl EntryStore for Many {
        fn entry(&self, _: AgentId, _: MemoryEntryId) -> Result<Option<MemoryEntryRecord>, ContentError> {
            Ok(None)
        }

        fn owner(&self, _: MemoryEntryId) -> Result<Option<AgentId>, ContentError> {
            Ok(None)
        }

        fn entries(&self, _: Option<AgentId>, after: Option<Place>, limit: usize) -> Result<EntryPage, ContentError> {
            let from = after.map_or(0, |(_, id)| id.0.as_u128() + 1);
            let row = |n| EntryRow {
                agent: AgentId(Uuid::from_u128(u128::from(n % 10 == 9))),
                id: MemoryEntryId(Uuid::from_u128(n)),
                record: MemoryEntryRecord { content: "x".repeat(2_000).into(), ..MemoryEntryRecord::default() },
            };
            let rows: Vec<EntryRow> = (from..self.0).take(limit).map(row).collect();
            Ok(EntryPage { is_last: from + rows.len() as u128 == self.0, rows })
        }

        fn of_user(&self, _: &str, _: Option<Place>, _: usize) -> Result<EntryPage, ContentError> {
            Ok(EntryPage::default())
        }
    }

    #[test]
    fn a_filter_that_fits_nothing_reads_a_bounded_number_of_rows_and_goes_on_there() {
        let filter = Filter { category: Some("rare".into()), ..Filter::default() };
        let store = Many(COUNTED_MAX as u128 + 700);
        let living = |agents: Vec<AgentId>| Ok(agents.into_iter().collect());
        let first = page((&store, &living), &Source::All, &filter, (None, 0, 10), None).unwrap();
        let next = first.next.unwrap();
        assert_eq!((first.rows.len(), first.total, next.1.0.as_u128()), (0, None, COUNTED_MAX as u128 - 1));
        let second = page((&store, &living), &Source::All, &filter, (Some(next), 0, 10), None).unwrap();
        assert_eq!((second.rows.len(), second.next), (0, None));
    }

    #[test]
    fn a_page_has_no_more_bytes_than_it_may_and_nothing_of_agents_that_are_gone() {
        let store = Many(3_000);
        let living = |agents: Vec<AgentId>| Ok(agents.into_iter().filter(|agent| agent.0.is_nil()).collect());
        let (mut after, mut rows) = (None, Vec::new());
        loop {
            let page = page((&store, &living), &Source::All, &Filter::default(), (after, 0, LIMIT_MAX), None).unwrap();
            assert!(page.rows.iter().map(|row| row.record.bytes()).sum::<u64>() < (1 << 20) + 2_000);
            assert!(after.is_some() || page.total == Some(2_700));
            rows.extend(page.rows);
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(rows.len(), 2_700);
        assert!(rows.iter().all(|row| row.agent.0.is_nil()));
    }
}
