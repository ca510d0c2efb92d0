//! The entries of an agent as its own turns read, correct and forget them.

use agentsvc_components::Refusal;
use agentsvc_components::kernel::taint::Taint;
use agentsvc_components::proactive_memory::MemoryEntryId;
use agentsvc_components::proactive_memory::recall::RecallScope;
use agentsvc_components::proactive_memory::record::MemoryEntryRecord;
use agentsvc_systems::proactive_memory::{Cause, Counted, EntryPut, EntryUse, check_content, is_for, is_own};

use crate::proactive_memory::change::replace_content;
use crate::proactive_memory::entries::{AgentEntries, PAGE_ROWS, Plan, Rows, now};
use crate::proactive_memory::store::EntryRow;
use crate::proactive_memory::upkeep::oldest_replaced;

/// Rows that one page looks at.
const LOOKED_AT_MAX: usize = 10_000;

/// Which entries a turn reads.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Only entries that contain each of these words, in small letters.
    pub words: Vec<String>,
    /// Those that the turn may be given.
    pub scope: RecallScope,
    /// Those made from untrusted content too.
    pub untrusted: bool,
    /// Go on after this one.
    pub after: Option<MemoryEntryId>,
    /// At most so many.
    pub limit: usize,
    /// Bytes of their contents, about.
    pub bytes_max: usize,
}

/// Entries, and after which to go on; `None` when there are no more.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OwnPage {
    /// In the order of their ids.
    pub rows: Vec<EntryRow>,
    /// Where the next page begins.
    pub next: Option<MemoryEntryId>,
}

/// What to change of an entry.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Correction {
    /// The new content.
    pub content: Option<Box<str>>,
    /// The new category; empty for none.
    pub category: Option<Box<str>>,
    /// How sure it is, 0 to 1.
    pub confidence: Option<f32>,
}

/// Who reads and changes entries.
#[derive(Clone, Debug)]
pub struct Reader {
    /// Untrusted content that the turn has read. What strangers wrote does not change or remove what they did not write, nor what
    /// other conversations brought.
    pub taint: Taint,
    /// It consolidates the entries of all conversations.
    pub consolidates: bool,
    /// The entries that it may be given.
    pub scope: RecallScope,
}

impl Reader {
    fn sees(&self, record: &MemoryEntryRecord) -> bool {
        is_for(&self.scope, record)
    }

    fn may_change(&self, record: &MemoryEntryRecord) -> bool {
        let is_reachable = || self.consolidates || is_own(&self.scope, record);
        self.taint.is_none() || (!record.taint.is_none() && is_reachable())
    }
}

/// What became of an entry that was to be corrected or forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changed {
    /// It was: one that is forgotten is hidden, and erased later.
    Done,
    /// It was hidden before.
    Already,
    /// There is none of this id that the turn may know.
    Unknown,
    /// There is none that it could be merged into, about the same user.
    NoTarget,
    /// The turn has read untrusted content, and the entry was made from none, or another conversation brought it.
    OutOfReach,
}

impl Wanted {
    fn takes(&self, record: &MemoryEntryRecord) -> bool {
        let content = || record.content.to_lowercase();
        is_for(&self.scope, record)
            && (self.untrusted || record.taint.is_none())
            && (self.words.is_empty() || {
                let content = content();
                self.words.iter().all(|word| content.contains(word.as_str()))
            })
    }
}

impl AgentEntries {
    /// A page of the entries.
    ///
    /// # Errors
    /// The agent does not live, or the store failed.
    pub async fn page(&self, wanted: Wanted) -> Result<OwnPage, Refusal> {
        self.usage().await?;
        self.read(move |rows| {
            let (mut page, mut after, mut looked_at, mut bytes) = (OwnPage::default(), wanted.after, 0, 0);
            let now = now();
            loop {
                let place = after.map(|id| (rows.agent, id));
                let found = rows.store.entries(Some(rows.agent), place, PAGE_ROWS)?;
                let is_last = found.is_last;
                for row in found.rows {
                    if page.rows.len() == wanted.limit || bytes >= wanted.bytes_max || looked_at == LOOKED_AT_MAX {
                        page.next = after;
                        return Ok(page);
                    }
                    (after, looked_at) = (Some(row.id), looked_at + 1);
                    if row.record.is_live(now) && wanted.takes(&row.record) {
                        bytes += row.record.content.len();
                        page.rows.push(row);
                    }
                }
                if is_last {
                    return Ok(page);
                }
            }
        })
        .await
    }

    /// Corrects an entry. The content that it had is kept as a version; the entry takes the taint of the turn.
    ///
    /// # Errors
    /// The entry is not valid afterwards, or the store failed.
    pub async fn correct(&self, id: MemoryEntryId, correction: Correction, reader: Reader) -> Result<Changed, Refusal> {
        if let Some(content) = &correction.content {
            check_content(content)?;
        }
        let plan = move |_: &EntryUse, rows: &Rows<'_>| {
            let now = now();
            let known = rows.get(id)?.filter(|known| known.is_live(now) && reader.sees(known));
            let Some(mut record) = known else { return Ok(Plan::nothing(Changed::Unknown)) };
            if !reader.may_change(&record) {
                return Ok(Plan::nothing(Changed::OutOfReach));
            }
            let old = Some(Counted::from(&record));
            if let Some(content) = &correction.content {
                replace_content(&mut record, content.clone(), now);
            }
            if let Some(category) = &correction.category {
                record.category.clone_from(category);
            }
            record.confidence = correction.confidence.unwrap_or(record.confidence);
            let put = EntryPut { id: Some(id), record, old, is_now: true };
            Ok(Plan { puts: vec![put], removes: Vec::new(), due: None, told: Changed::Done })
        };
        Ok(self.change(Cause::Asked, plan).await?.0)
    }

    /// Hides an entry, because it is of no use or `merged_into` says the same. It is erased later.
    ///
    /// # Errors
    /// The store failed.
    pub async fn forget(
        &self,
        id: MemoryEntryId,
        merged_into: Option<MemoryEntryId>,
        reader: Reader,
    ) -> Result<Changed, Refusal> {
        let plan = move |usage: &EntryUse, rows: &Rows<'_>| {
            let now = now();
            let known = rows.get(id)?.filter(|known| reader.sees(known));
            let Some(record) = known else { return Ok(Plan::nothing(Changed::Unknown)) };
            if !record.is_live(now) {
                return Ok(Plan::nothing(Changed::Already));
            }
            if !reader.may_change(&record) {
                return Ok(Plan::nothing(Changed::OutOfReach));
            }
            if let Some(kept) = merged_into {
                let fits = |kept: &MemoryEntryRecord| kept.is_live(now) && kept.user == record.user;
                if kept == id || !rows.get(kept)?.as_ref().is_some_and(fits) {
                    return Ok(Plan::nothing(Changed::NoTarget));
                }
            }
            let old = Some(Counted::from(&record));
            let record = MemoryEntryRecord { deleted_at: Some(now), merged_into, ..record };
            let put = EntryPut { id: Some(id), record, old, is_now: false };
            let removes = oldest_replaced(usage, rows, 1)?;
            Ok(Plan { puts: vec![put], removes, due: None, told: Changed::Done })
        };
        Ok(self.change(Cause::Asked, plan).await?.0)
    }
}

#[cfg(test)]
mod tests {
    use agentsvc_components::SessionId;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_tainted_turn_changes_only_what_its_own_conversation_or_user_brought() {
        let session = |n: u128| SessionId(Uuid::from_u128(n));
        let entry = |taint, user: Option<&str>, of: Option<u128>| MemoryEntryRecord {
            taint,
            user: user.map(Into::into),
            metadata: of.map_or_else(Box::default, |n| format!("{{\"session_id\":\"{}\"}}", session(n).0).into()),
            ..MemoryEntryRecord::default()
        };
        let reader = |taint, consolidates| {
            let scope = RecallScope { user: Some("ann".into()), session: session(1) };
            Reader { taint, consolidates, scope }
        };
        let (tainted, run) = (reader(Taint::WEB, false), reader(Taint::WEB, true));
        for (record, own, all) in [
            (entry(Taint::WEB, None, Some(1)), true, true),
            (entry(Taint::WEB, Some("ann"), Some(2)), true, true),
            (entry(Taint::WEB, None, Some(2)), false, true),
            (entry(Taint::WEB, None, None), false, true),
            (entry(Taint::NONE, Some("ann"), Some(1)), false, false),
        ] {
            assert_eq!((tainted.may_change(&record), run.may_change(&record)), (own, all), "{record:?}");
            assert!(reader(Taint::NONE, false).may_change(&record));
        }
        // A turn without a user shares none with entries that name none.
        let scope = RecallScope { user: None, session: session(1) };
        assert!(!Reader { scope, ..tainted }.may_change(&entry(Taint::WEB, None, None)));
    }
}
