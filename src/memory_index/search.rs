//! Answers searches.
//!
//! The entries of one agent are few, and so are those of a small home: they are read and ranked as they are, which needs no
//! index. Only where there are more is the index asked; there, vectors order what the words found.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use agentsvc_api::http::error::ContentError;
use agentsvc_api::proactive_memory::search::{
    Embeddings, Found, Hit, MemorySearch, SearchMode, SearchScope, SearchWait,
};
use agentsvc_api::proactive_memory::store::{EntryRow, EntryStore};
use agentsvc_components::{AgentId, Timestamp};
use agentsvc_systems::proactive_memory::is_for;

use super::analysis::user_term;
use super::embed::Similar;
use super::index::{fingerprint, ids_of};
use super::rank::{Query, Scan, join, order};
use super::search_parts::Within;
use super::worker::Worker;

/// Rows that are ranked without the index.
const SCAN_ROWS: usize = 2_000;
/// Bytes of the texts that are ranked without the index.
const SCAN_BYTES: usize = 1 << 20;
/// Rows that are read at once.
const PAGE_ROWS: usize = 500;
/// Entries of the index that are looked at for each hit that is wanted: some are gone, or less sure than others.
const LOOKS_PER_HIT: usize = 4;
/// Fewest, and most, of them.
const LOOKS: (usize, usize) = (100, 4_096);

/// What the search asks the world.
pub(super) trait World: Send + Sync {
    /// Those of these agents that are there. Blocks.
    ///
    /// # Errors
    /// The world does not answer.
    fn living(&self, agents: Vec<AgentId>) -> Result<HashSet<AgentId>, ContentError>;

    /// Waits until all that was answered before is stored, and the index has been told. Blocks.
    ///
    /// # Errors
    /// The world does not answer.
    fn settled(&self) -> Result<(), ContentError>;

    /// Has another world taken the place of the one that was asked before?
    fn is_another(&self) -> bool;

    /// The time.
    fn now(&self) -> Timestamp;
}

/// Searches the entries of the memory of agents.
pub(super) struct MemoryIndex {
    pub(super) entries: Arc<dyn EntryStore>,
    pub(super) world: Arc<dyn World>,
    pub(super) worker: Worker,
    /// What makes vectors, where it is configured.
    pub(super) vectors: Box<dyn Fn() -> Option<Arc<dyn Similar>> + Send + Sync>,
}

impl MemorySearch for MemoryIndex {
    fn search(&self, scope: &SearchScope, query: &str, limit: usize) -> Result<Found, ContentError> {
        self.search_within(scope, query, limit, SearchWait::of_api())
    }

    fn search_within(
        &self,
        scope: &SearchScope,
        query: &str,
        limit: usize,
        wait: SearchWait,
    ) -> Result<Found, ContentError> {
        let asked = Query::new(query);
        let (rows, scores) = match self.few(scope)? {
            Some(rows) => {
                let mut scan = Scan::new(&asked);
                rows.iter().for_each(|row| scan.add(&row.record.content));
                (rows, scan.scores())
            }
            None => self.looked_up(scope, &asked, limit, wait.index)?,
        };
        let similar = (self.vectors)().and_then(|vectors| {
            let longest = wait.vector_until.saturating_duration_since(Instant::now());
            // Where those found belong to several agents, whoever asks sees everything.
            let first = rows.first().map(|row| row.agent).filter(|first| rows.iter().all(|row| row.agent == *first));
            let similar = vectors.similarities(scope.agent.or(first), query, &rows, longest)?;
            Some((similar, vectors.share()))
        });
        let (mode, ranked) = ranked(&rows, scores, similar);
        let hits = self.of_living(ranked, limit)?;
        Ok(Found { mode, hits })
    }

    fn embeddings(&self) -> Option<Embeddings> {
        (self.vectors)().map(|vectors| vectors.state())
    }
}

impl MemoryIndex {
    /// All rows that are searched; `None` when they are too many.
    fn few(&self, scope: &SearchScope) -> Result<Option<Vec<EntryRow>>, ContentError> {
        let is_large = self.worker.size().0 > SCAN_ROWS as u64;
        if is_large && scope.agent.is_none() && scope.user.is_none() {
            return Ok(None);
        }
        let (now, mut after, mut rows) = (self.world.now(), None, Vec::new());
        let (mut read, mut bytes) = (0, 0);
        loop {
            let page = match (scope.agent, &scope.user) {
                (None, Some(user)) => self.entries.of_user(user, after, PAGE_ROWS)?,
                (agent, _) => self.entries.entries(agent, after, PAGE_ROWS)?,
            };
            after = page.next();
            read += page.rows.len();
            bytes += page.rows.iter().map(|row| row.record.content.len()).sum::<usize>();
            rows.extend(page.rows.into_iter().filter(|row| is_within(scope, row, now)));
            if read > SCAN_ROWS || bytes > SCAN_BYTES {
                return Ok(None);
            }
            if after.is_none() {
                return Ok(Some(rows));
            }
        }
    }

    /// The best entries that the index finds, and that are still there. Who may not wait is not given the latest changes.
    fn looked_up(
        &self,
        scope: &SearchScope,
        query: &Query,
        limit: usize,
        longest: Duration,
    ) -> Result<(Vec<EntryRow>, Vec<f32>), ContentError> {
        if self.world.is_another() {
            self.worker.mark_stale();
        }
        if !longest.is_zero() {
            self.world.settled()?;
        }
        let told = self.worker.told();
        let index = self.worker.index(longest);
        let index = index.ok_or_else(|| ContentError::Failed("the memory index cannot be opened".to_owned()))?;
        if scope.turn.is_some() {
            self.suffices(told, longest)?;
        }
        let within = within(scope);
        let failed = |error: std::io::Error| {
            tracing::error!(%error, "the memory index cannot be read");
            ContentError::Failed(error.to_string())
        };
        let (now, mut most) = (self.world.now(), (limit * LOOKS_PER_HIT).clamp(LOOKS.0, LOOKS.1));
        loop {
            let mut candidates = Vec::new();
            for within in &within {
                candidates.extend(index.candidates(query, within, most).map_err(failed)?);
            }
            candidates.sort_by(|one, other| other.score.total_cmp(&one.score));
            let (mut seen, mut rows, mut scores) = (HashSet::new(), Vec::new(), Vec::new());
            for candidate in &candidates {
                let (agent, id) = ids_of(&candidate.doc.key);
                if rows.len() == most || seen.contains(&(agent, id)) {
                    continue;
                }
                let Some(record) = self.entries.entry(agent, id)? else { continue };
                let row = EntryRow { agent, id, record };
                if fingerprint(&row.record) == candidate.doc.fingerprint && is_within(scope, &row, now) {
                    seen.insert((agent, id));
                    rows.push(row);
                    scores.push(candidate.score);
                }
            }
            if rows.len() >= limit || candidates.len() < most || most == LOOKS.1 {
                return Ok((rows, scores));
            }
            most = LOOKS.1;
        }
    }

    /// Does the index have what a turn needs of it? One that waits is memorised, and must not miss an entry: another would say
    /// the same. One that may not wait recalls what there is, if there is anything; else it is early, as during a restore.
    fn suffices(&self, told: u64, longest: Duration) -> Result<(), ContentError> {
        if longest.is_zero() && !self.worker.is_there() {
            return Err(ContentError::Exchanging);
        }
        if !longest.is_zero() && !self.worker.is_complete(told) {
            return Err(ContentError::Failed("the memory index is not complete yet".to_owned()));
        }
        Ok(())
    }

    /// Starts the threads of the index where there will be one: there was, or there are many entries.
    pub(super) fn begin(&self) {
        let has_many = || self.entries.entries(None, None, SCAN_ROWS).is_ok_and(|page| !page.is_last);
        if self.worker.has_folder() || has_many() {
            self.worker.begin();
        }
    }

    /// The first hits whose agents are there: the rows of one that was removed are erased later.
    fn of_living(&self, ranked: Vec<Hit>, limit: usize) -> Result<Vec<Hit>, ContentError> {
        let mut hits = Vec::with_capacity(limit.min(ranked.len()));
        for some in ranked.chunks(limit.max(1)) {
            let mut agents: Vec<AgentId> = some.iter().map(|hit| hit.agent).collect();
            agents.sort_unstable();
            agents.dedup();
            let living = self.world.living(agents)?;
            hits.extend(some.iter().filter(|hit| living.contains(&hit.agent)).take(limit - hits.len()));
            if hits.len() == limit {
                break;
            }
        }
        Ok(hits)
    }
}

/// Orders rows by how well they match: by their words, and by vectors where there are any, which count `share`
/// times as much.
fn ranked(rows: &[EntryRow], words: Vec<f32>, similar: Option<(Vec<f32>, f32)>) -> (SearchMode, Vec<Hit>) {
    let (mode, scores) = match &similar {
        Some((similar, share)) => (SearchMode::Hybrid, join(&[(&words, 1.0), (similar, *share)], rows.len())),
        None => (SearchMode::Lexical, words),
    };
    let mut hits: Vec<Hit> = order(&scores).into_iter().map(|place| hit(&rows[place], scores[place])).collect();
    sort(&mut hits);
    (mode, hits)
}

/// An entry that matches so well: the surer it is, the better.
fn hit(row: &EntryRow, score: f32) -> Hit {
    Hit { id: row.id, agent: row.agent, score: score * row.record.confidence.clamp(0.0, 1.0) }
}

/// The best first; of equal ones the newest.
fn sort(hits: &mut [Hit]) {
    hits.sort_by(|one, other| other.score.total_cmp(&one.score).then(other.id.cmp(&one.id)));
}

/// Where candidates come from. A turn of a user also has those about the user alone: among those of all users they might not be
/// the best.
fn within(scope: &SearchScope) -> Vec<Within> {
    let agent = scope.agent.map(|agent| *agent.0.as_bytes());
    let of_turn = || scope.turn.as_ref()?.user.as_deref();
    let musts = match (scope.user.as_deref(), of_turn()) {
        (Some(user), _) => vec![Some(user)],
        (None, Some(user)) => vec![None, Some(user)],
        (None, None) => vec![None],
    };
    musts.into_iter().map(|user| Within { agent, must: user.map(user_term) }).collect()
}

fn is_within(scope: &SearchScope, row: &EntryRow, now: Timestamp) -> bool {
    let record = &row.record;
    record.is_live(now)
        && scope.agent.is_none_or(|agent| row.agent == agent)
        && scope.level.is_none_or(|level| record.level == level)
        && scope.user.as_ref().is_none_or(|user| record.user.as_ref() == Some(user))
        && scope.turn.as_ref().is_none_or(|turn| is_for(turn, record))
}

#[cfg(test)]
mod tests;
