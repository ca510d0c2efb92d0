//! What a turn said becomes entries: facts are added, take the place of what an entry said, or are left out where one says so;
//! entries that a turn contradicts go. All of it is one change, and the job that asks for it notes that it was made.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use agentsvc_components::kernel::attempt::Attempt;
use agentsvc_components::kernel::taint::Taint;
use agentsvc_components::proactive_memory::recall::RecallScope;
use agentsvc_components::proactive_memory::record::MemoryEntryRecord;
use agentsvc_components::proactive_memory::{Level, MemoryEntryId};
use agentsvc_components::{AgentId, Refusal, SessionId, Timestamp, TurnId};
use agentsvc_systems::proactive_memory::limits::{ENTRY_QUERY_BYTES_MAX, MEMORIZE_NEIGHBOURS_MAX};
use agentsvc_systems::proactive_memory::{
    Cause, Counted, EntryPut, EntryUse, Memorize, Memorized, TurnToMemorize, WriteEntries, check_entry, is_for,
};
use serde_json::json;

use crate::http::bridge::Bridge;
use crate::http::error::ContentError;
use crate::proactive_memory::change::{new_record, replace_content, set_expiry, update_threshold};
use crate::proactive_memory::entries::{AgentEntries, Plan, Rows, now};
use crate::proactive_memory::search::{MemorySearch, SearchScope, SearchWait};
use crate::proactive_memory::settings::ProactiveMemory;
use crate::proactive_memory::similar::{Words, similarity};
use crate::proactive_memory::upkeep::oldest_replaced;

/// From this similarity on, an entry says the same.
const SAME: f64 = 0.999;
/// Of its words, an entry must have this share in common with a text to be a neighbour of it.
const NEIGHBOUR_SHARE: f64 = 0.3;

/// Rows of an agent that are read to find those that say the same. Where there are more, a search finds them.
const ROWS_MAX: u32 = 2_000;
/// Entries that such a search finds for one text.
const NEAR_MAX: usize = 64;

/// One fact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// As a sentence.
    pub content: Box<str>,
    /// A word such as `preference`.
    pub category: Box<str>,
    /// What it belongs to.
    pub level: Level,
}

/// What was found in a turn.
#[derive(Clone, Debug)]
pub struct Learned {
    /// In which session.
    pub session: SessionId,
    /// Which.
    pub turn: TurnId,
    /// The user that it was for.
    pub user: Option<Box<str>>,
    /// Untrusted content that it has read.
    pub taint: Taint,
    /// What found it: `rules` or `model`.
    pub source: &'static str,
    /// How sure the facts are, 0 to 1.
    pub confidence: f32,
    /// The facts.
    pub facts: Vec<Fact>,
    /// Entries that no longer hold.
    pub contradicted: Vec<MemoryEntryId>,
}

/// An entry that a turn may be about.
#[derive(Clone, Debug, PartialEq)]
pub struct Neighbour {
    /// Its id.
    pub id: MemoryEntryId,
    /// What it says.
    pub content: Box<str>,
}

impl AgentEntries {
    /// The entries that have most words in common with a text, of those that the turn may change: about its user (or about none,
    /// if it has none), not of another session, and from no more untrusted content than it has read itself.
    ///
    /// # Errors
    /// The agent does not live, or the store failed.
    pub async fn neighbours(
        &self,
        turn: &TurnToMemorize,
        text: &str,
        search: Option<Arc<dyn MemorySearch>>,
    ) -> Result<Vec<Neighbour>, Refusal> {
        let (words, taint) = (Words::of(text), turn.taint);
        let scope = RecallScope { user: turn.user.clone(), session: turn.session };
        let nearby = Nearby::new(self.agent, search, &scope, vec![text.into()]);
        let usage = self.usage().await?;
        self.read(move |rows| {
            let (mut found, now) = (Vec::new(), now());
            nearby.find(&usage)?.each(rows, |id, known| {
                if known.is_live(now) && is_about(&scope, &known) && taint.holds(known.taint) {
                    let share = Words::of(&known.content).share_within(&words);
                    if share >= NEIGHBOUR_SHARE {
                        found.push((share, Neighbour { id, content: known.content }));
                        // The best of many are kept in few.
                        if found.len() >= MEMORIZE_NEIGHBOURS_MAX * 8 {
                            keep_best(&mut found);
                        }
                    }
                }
            })?;
            keep_best(&mut found);
            Ok(found.into_iter().map(|(_, neighbour)| neighbour).collect())
        })
        .await
    }

    /// Makes entries of what was found in a turn; the try of its job notes it in the same step.
    ///
    /// # Errors
    /// The job is over or has another try out, the memory is full, others change it all the time, or the store failed.
    pub async fn memorize(
        &self,
        attempt: Attempt,
        learned: Learned,
        settings: &ProactiveMemory,
        search: Option<Arc<dyn MemorySearch>>,
    ) -> Result<Memorized, Refusal> {
        let scope = RecallScope { user: learned.user.clone(), session: learned.session };
        let texts = learned.facts.iter().map(|fact| fact.content.clone()).collect();
        let nearby = Nearby::new(self.agent, search, &scope, texts);
        let settings = settings.clone();
        // Each try searches again: what changed the entries meanwhile may say the same.
        let plan = move |usage: &EntryUse, rows: &Rows<'_>| {
            let near = nearby.find(usage)?.and(&learned.contradicted);
            plan(&learned, &settings, &near, (usage, rows))
        };
        let ask = move |bridge: Bridge, write: WriteEntries, memorized: &Memorized| {
            let command = Memorize { attempt, write, memorized: *memorized };
            async move { bridge.ask(command).await }
        };
        let (memorized, _) = self.change_by(Cause::Asked, plan, ask).await?;
        Ok(memorized)
    }
}

/// What finds the entries that may say the same as one of some texts, of those that a turn may change.
struct Nearby {
    search: Option<Arc<dyn MemorySearch>>,
    scope: SearchScope,
    texts: Vec<Box<str>>,
}

impl Nearby {
    fn new(agent: AgentId, search: Option<Arc<dyn MemorySearch>>, scope: &RecallScope, texts: Vec<Box<str>>) -> Self {
        let (user, turn) = (scope.user.clone(), Some(scope.clone()));
        Self { search, scope: SearchScope { agent: Some(agent), user, turn, level: None }, texts }
    }

    /// Finds them. All entries are compared where the index cannot be searched or does not have all of them yet: nothing is
    /// lost or stored twice for it. Blocks.
    fn find(&self, usage: &EntryUse) -> Result<Near, ContentError> {
        let is_large = usage.counts.entries() + usage.counts.replaced > ROWS_MAX;
        let Some(search) = self.search.as_ref().filter(|_| is_large) else { return Ok(Near::All) };
        let mut ids = BTreeSet::new();
        for text in &self.texts {
            let query = &text[..text.floor_char_boundary(ENTRY_QUERY_BYTES_MAX)];
            let wait = SearchWait { vector_until: Instant::now(), ..SearchWait::of_api() };
            match search.search_within(&self.scope, query, NEAR_MAX, wait) {
                Ok(found) => ids.extend(found.hits.into_iter().map(|hit| hit.id)),
                Err(ContentError::Exchanging) => return Err(ContentError::Exchanging),
                Err(error) => {
                    tracing::warn!(%error, "the memory index is not used: all entries of an agent are read");
                    return Ok(Near::All);
                }
            }
        }
        Ok(Near::These(ids))
    }
}

/// Entries that are compared with what was found in a turn.
#[derive(Debug)]
enum Near {
    /// All of the agent: it has few.
    All,
    /// Those that a search has found.
    These(BTreeSet<MemoryEntryId>),
}

impl Near {
    /// And these.
    fn and(mut self, more: &[MemoryEntryId]) -> Self {
        if let Self::These(ids) = &mut self {
            ids.extend(more);
        }
        self
    }

    /// Each of them, in the order of the ids.
    fn each(&self, rows: &Rows<'_>, mut see: impl FnMut(MemoryEntryId, MemoryEntryRecord)) -> Result<(), ContentError> {
        let Self::These(ids) = self else { return rows.each(see) };
        for id in ids {
            if let Some(record) = rows.get(*id)? {
                see(*id, record);
            }
        }
        Ok(())
    }
}

/// Is the entry about the user of the turn, and not of another session?
fn is_about(scope: &RecallScope, known: &MemoryEntryRecord) -> bool {
    known.user == scope.user && is_for(scope, known)
}

fn keep_best(found: &mut Vec<(f64, Neighbour)>) {
    found.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| b.1.id.cmp(&a.1.id)));
    found.truncate(MEMORIZE_NEIGHBOURS_MAX);
}

/// A fact on its way: what it says, and the entry that has most in common with it.
struct Candidate {
    record: MemoryEntryRecord,
    words: Words,
    best: Option<(f64, MemoryEntryId, MemoryEntryRecord)>,
}

fn plan(
    learned: &Learned,
    settings: &ProactiveMemory,
    near: &Near,
    (usage, rows): (&EntryUse, &Rows<'_>),
) -> Result<Plan<Memorized>, ContentError> {
    let (now, mut told) = (now(), Memorized::default());
    let mut candidates = candidates(learned, settings);
    let scope = RecallScope { user: learned.user.clone(), session: learned.session };
    let contradicted: BTreeSet<MemoryEntryId> = learned.contradicted.iter().copied().collect();
    let mut gone = Vec::new();
    near.each(rows, |id, known| {
        if !known.is_live(now) || !is_about(&scope, &known) {
            return;
        }
        let words = Words::of(&known.content);
        for candidate in candidates.iter_mut().filter(|candidate| candidate.record.level == known.level) {
            let likeness = similarity(&candidate.words, &words);
            if candidate.best.as_ref().is_none_or(|(most, ..)| likeness >= *most) {
                candidate.best = Some((likeness, id, known.clone()));
            }
        }
        if contradicted.contains(&id) && may_replace(learned, &known) {
            gone.push((id, known));
        }
    })?;
    let (mut puts, mut taken) = (Vec::new(), BTreeSet::new());
    for Candidate { record, best, .. } in candidates {
        match best {
            Some((likeness, id, _)) if likeness > SAME => {
                taken.insert(id);
                told.unchanged += 1;
            }
            Some((likeness, id, known))
                if likeness >= update_threshold(settings, &known, &record)
                    && may_replace(learned, &known)
                    && taken.insert(id) =>
            {
                told.updated += 1;
                let old = Some(Counted::from(&known));
                let newer = replaced(known, record, now);
                puts.push(EntryPut { id: Some(id), record: newer, old, is_now: true });
            }
            _ => {
                told.added += 1;
                puts.push(EntryPut { id: None, record, old: None, is_now: true });
            }
        }
    }
    for (id, known) in gone.into_iter().filter(|(id, _)| !taken.contains(id)) {
        told.deleted += 1;
        let old = Some(Counted::from(&known));
        let record = MemoryEntryRecord { deleted_at: Some(now), ..known };
        puts.push(EntryPut { id: Some(id), record, old, is_now: true });
    }
    let removes = if told.deleted == 0 { Vec::new() } else { oldest_replaced(usage, rows, told.deleted as usize)? };
    Ok(Plan { puts, removes, due: None, told })
}

/// The facts that can be stored, each once.
fn candidates(learned: &Learned, settings: &ProactiveMemory) -> Vec<Candidate> {
    let now = now();
    let origin = json!({ "session_id": learned.session, "turn_id": learned.turn }).to_string();
    let mut found: Vec<Candidate> = Vec::new();
    for fact in &learned.facts {
        let mut record = new_record(fact.content.clone(), learned.source);
        record.category.clone_from(&fact.category);
        record.user.clone_from(&learned.user);
        (record.level, record.confidence, record.taint) = (fact.level, learned.confidence, learned.taint);
        record.metadata = origin.as_str().into();
        set_expiry(&mut record, settings, now);
        let words = Words::of(&record.content);
        let is_known = found.iter().any(|other| similarity(&other.words, &words) >= settings.duplicate_threshold);
        if !is_known && check_entry(&record).is_ok() {
            found.push(Candidate { record, words, best: None });
        }
    }
    found
}

/// May a turn change what this entry says? What a model made of untrusted content replaces nothing that comes from less of it.
fn may_replace(learned: &Learned, known: &MemoryEntryRecord) -> bool {
    learned.source == "rules" || known.taint.holds(learned.taint)
}

/// An entry that now says something newer.
fn replaced(known: MemoryEntryRecord, newer: MemoryEntryRecord, now: Timestamp) -> MemoryEntryRecord {
    let mut record = known;
    replace_content(&mut record, newer.content, now);
    record.taint = record.taint.with(newer.taint);
    record.confidence = record.confidence.max(newer.confidence);
    (record.category, record.source, record.metadata) = (newer.category, newer.source, newer.metadata);
    record.expires_at = newer.expires_at;
    record
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::proactive_memory::search::{Found, Hit, SearchMode};
    use crate::proactive_memory::store::{EntryPage, EntryStore};

    /// Answers all searches like this.
    struct Answers(Result<Vec<Hit>, ContentError>);

    impl MemorySearch for Answers {
        fn search(&self, _: &SearchScope, _: &str, _: usize) -> Result<Found, ContentError> {
            self.0.clone().map(|hits| Found { mode: SearchMode::Lexical, hits })
        }
    }

    #[test]
    fn where_the_index_cannot_be_searched_all_entries_are_compared() {
        let near = |answer, replaced| {
            let (agent, counts) = (AgentId(Uuid::nil()), Default::default());
            let mut usage = EntryUse { agent, counts, changes: 0, due: None, most: 10, revision: 0 };
            usage.counts.replaced = replaced;
            let scope = RecallScope { user: None, session: SessionId(Uuid::nil()) };
            let search: Arc<dyn MemorySearch> = Arc::new(Answers(answer));
            Nearby::new(agent, Some(search), &scope, vec!["likes tea".into()]).find(&usage)
        };
        let hit = Hit { id: id(1), agent: AgentId(Uuid::nil()), score: 1.0 };
        assert!(matches!(near(Ok(vec![hit]), ROWS_MAX + 1), Ok(Near::These(ids)) if ids == BTreeSet::from([id(1)])));
        assert!(matches!(near(Err(ContentError::Failed("EIO".to_owned())), ROWS_MAX + 1), Ok(Near::All)));
        assert!(matches!(near(Err(ContentError::Exchanging), ROWS_MAX + 1), Err(ContentError::Exchanging)));
        assert!(matches!(near(Err(ContentError::Exchanging), ROWS_MAX), Ok(Near::All)), "few need no search");
    }

    /// Entries by number; reading all of them fails.
    struct Numbered(Vec<MemoryEntryRecord>);

    impl EntryStore for Numbered {
        fn entry(&self, _: AgentId, id: MemoryEntryId) -> Result<Option<MemoryEntryRecord>, ContentError> {
            Ok(self.0.get(id.0.as_u128() as usize).cloned())
        }

        fn owner(&self, _: MemoryEntryId) -> Result<Option<AgentId>, ContentError> {
            Ok(None)
        }

        fn entries(
            &self,
            _: Option<AgentId>,
            _: Option<(AgentId, MemoryEntryId)>,
            _: usize,
        ) -> Result<EntryPage, ContentError> {
            Err(ContentError::Failed("all rows are read".to_owned()))
        }

        fn of_user(&self, _: &str, _: Option<(AgentId, MemoryEntryId)>, _: usize) -> Result<EntryPage, ContentError> {
            Err(ContentError::Failed("all rows are read".to_owned()))
        }
    }

    fn id(number: u128) -> MemoryEntryId {
        MemoryEntryId(Uuid::from_u128(number))
    }

    #[test]
    fn of_an_agent_with_many_entries_those_are_read_that_a_search_found() {
        let entry = |content: &str| MemoryEntryRecord { content: content.into(), ..new_record("".into(), "rules") };
        let store = Numbered(vec![entry("User's name is Ana"), entry("likes tea"), entry("works at Bosch")]);
        let rows = Rows { store: &store, agent: AgentId(Uuid::nil()) };
        let fact = |content: &str| Fact { content: content.into(), category: "".into(), level: Level::User };
        let learned = Learned {
            session: SessionId(Uuid::nil()),
            turn: TurnId(Uuid::nil()),
            user: None,
            taint: Taint::NONE,
            source: "rules",
            confidence: 1.0,
            facts: vec![fact("User's name is Ana"), fact("prefers short answers")],
            contradicted: vec![id(2)],
        };
        let (agent, counts) = (AgentId(Uuid::nil()), Default::default());
        let usage = EntryUse { agent, counts, changes: 0, due: None, most: 10, revision: 0 };
        let settings = ProactiveMemory {
            enabled: true,
            auto_memorize: true,
            auto_retrieve: true,
            has_extraction_model: false,
            extract_categories: Vec::new(),
            session_ttl_hours: 24,
            duplicate_threshold: 0.9,
            update_threshold_same_category: 0.8,
            update_threshold_cross_category: 0.9,
            confidence_decay_rate: 0.0,
        };
        let near = Near::These([id(0), id(9)].into()).and(&learned.contradicted);
        let planned = plan(&learned, &settings, &near, (&usage, &rows)).unwrap();
        let expected = Memorized { added: 1, updated: 0, deleted: 1, unchanged: 1 };
        assert_eq!((planned.told, planned.puts.len()), (expected, 2));
        assert!(plan(&learned, &settings, &Near::All, (&usage, &rows)).is_err(), "of few, all are read");
    }
}
