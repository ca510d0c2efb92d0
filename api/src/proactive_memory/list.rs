//! Lists of entries: filtered, and page by page.

use agentsvc_components::proactive_memory::record::MemoryEntryRecord;
use agentsvc_components::proactive_memory::{Level, MemoryEntryId};
use agentsvc_components::{AgentId, Timestamp};
use agentsvc_systems::proactive_memory::ListEntryUse;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
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
/// Agents whose counts are read at once.
pub(crate) const AGENTS_PAGE: usize = 500;

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
    /// Cursor of the next page; null on the last one. A page ends early, even empty, after 100000 entries that do not fit.
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
    let sum = if is_all { Some(count_all(call).await?) } else { None };
    let store = call.api.service::<dyn EntryStore>()?;
    let page = read_of(move || page(&*store, &source, &filter, (after, offset, limit), sum)).await?;
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

/// How many entries all agents have.
async fn count_all(call: &Call) -> Result<u64, Error> {
    let (mut sum, mut after) = (0, None);
    loop {
        let page = call.ask(ListEntryUse { after, limit: AGENTS_PAGE }).await?;
        sum += page.items.iter().map(|known| u64::from(known.counts.entries())).sum::<u64>();
        after = page.next;
        if after.is_none() {
            return Ok(sum);
        }
    }
}

/// The page behind `after`, without the first `offset` entries. `sum` is their number where it is known.
fn page(
    store: &dyn EntryStore,
    source: &Source,
    filter: &Filter,
    (mut after, offset, limit): (Option<Place>, usize, usize),
    sum: Option<u64>,
) -> Result<Page, ContentError> {
    let (mut rows, mut matching, mut read, mut next, now) = (Vec::new(), 0_usize, 0_usize, None, now());
    let is_first = after.is_none();
    loop {
        let found = match source {
            Source::All => store.entries(None, after, PAGE_ROWS)?,
            Source::Agent(agent) => store.entries(Some(*agent), after, PAGE_ROWS)?,
            Source::User(user) => store.of_user(user, after, PAGE_ROWS)?,
        };
        let is_last = found.len() < PAGE_ROWS;
        read += found.len();
        after = found.last().map(|row| (row.agent, row.id));
        for row in found.into_iter().filter(|row| filter.takes(row.agent, &row.record, now)) {
            matching += 1;
            if matching > offset && rows.len() < limit {
                rows.push(row);
            } else if rows.len() == limit && next.is_none() {
                next = rows.last().map(|row| (row.agent, row.id));
            }
        }
        let is_counted = sum.is_none() && is_first;
        if is_last {
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

    /// So many entries of one agent, all of no category.
    pub(crate) struct Many(pub(crate) u128);

    impl EntryStore for Many {
        fn entry(&self, _: AgentId, _: MemoryEntryId) -> Result<Option<MemoryEntryRecord>, ContentError> {
            Ok(None)
        }

        fn owner(&self, _: MemoryEntryId) -> Result<Option<AgentId>, ContentError> {
            Ok(None)
        }

        fn entries(
            &self,
            _: Option<AgentId>,
            after: Option<Place>,
            limit: usize,
        ) -> Result<Vec<EntryRow>, ContentError> {
            let from = after.map_or(0, |(_, id)| id.0.as_u128() + 1);
            let row = |n| EntryRow {
                agent: AgentId(Uuid::nil()),
                id: MemoryEntryId(Uuid::from_u128(n)),
                record: MemoryEntryRecord::default(),
            };
            Ok((from..self.0).take(limit).map(row).collect())
        }

        fn of_user(&self, _: &str, _: Option<Place>, _: usize) -> Result<Vec<EntryRow>, ContentError> {
            Ok(Vec::new())
        }
    }

    #[test]
    fn a_filter_that_fits_nothing_reads_a_bounded_number_of_rows_and_goes_on_there() {
        let filter = Filter { category: Some("rare".into()), ..Filter::default() };
        let store = Many(COUNTED_MAX as u128 + 700);
        let first = page(&store, &Source::All, &filter, (None, 0, 10), None).unwrap();
        let next = first.next.unwrap();
        assert_eq!((first.rows.len(), first.total, next.1.0.as_u128()), (0, None, COUNTED_MAX as u128 - 1));
        let second = page(&store, &Source::All, &filter, (Some(next), 0, 10), None).unwrap();
        assert_eq!((second.rows.len(), second.next), (0, None));
    }
}
