//! What a turn said becomes entries: facts are added, take the place of what an entry said, or are left out where one says so;
//! entries that a turn contradicts go. All of it is one change, and the job that asks for it notes that it was made.

use std::collections::BTreeSet;
use std::sync::Arc;

use agentsvc_components::kernel::attempt::Attempt;
use agentsvc_components::kernel::taint::Taint;
use agentsvc_components::proactive_memory::recall::RecallScope;
use agentsvc_components::proactive_memory::record::MemoryEntryRecord;
use agentsvc_components::proactive_memory::{Level, MemoryEntryId};
use agentsvc_components::{Refusal, SessionId, Timestamp, TurnId};
use agentsvc_systems::proactive_memory::limits::MEMORIZE_NEIGHBOURS_MAX;
use agentsvc_systems::proactive_memory::{
    Cause, Counted, EntryPut, EntryUse, Memorize, Memorized, TurnToMemorize, WriteEntries, check_entry, is_for,
};
use serde_json::json;

use crate::http::bridge::Bridge;
use crate::http::error::ContentError;
use crate::proactive_memory::change::{new_record, replace_content, set_expiry, update_threshold};
use crate::proactive_memory::entries::{AgentEntries, Plan, Rows, now};
use crate::proactive_memory::settings::ProactiveMemory;
use crate::proactive_memory::similar::{Words, similarity};
use crate::proactive_memory::upkeep::oldest_replaced;

/// From this similarity on, an entry says the same.
const SAME: f64 = 0.999;
/// Of its words, an entry must have this share in common with a text to be a neighbour of it.
const NEIGHBOUR_SHARE: f64 = 0.3;

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
    /// The store failed.
    pub async fn neighbours(&self, turn: &TurnToMemorize, text: &str) -> Result<Vec<Neighbour>, Refusal> {
        let (words, taint) = (Words::of(text), turn.taint);
        let scope = RecallScope { user: turn.user.clone(), session: turn.session };
        self.read(move |rows| {
            let (mut found, now) = (Vec::new(), now());
            rows.each(|id, known| {
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
    ) -> Result<Memorized, Refusal> {
        let (settings, learned) = (settings.clone(), Arc::new(learned));
        let plan = move |usage: &EntryUse, rows: &Rows<'_>| plan(&learned, &settings, (usage, rows));
        let ask = move |bridge: Bridge, write: WriteEntries, memorized: &Memorized| {
            let command = Memorize { attempt, write, memorized: *memorized };
            async move { bridge.ask(command).await }
        };
        let (memorized, _) = self.change_by(Cause::Asked, plan, ask).await?;
        Ok(memorized)
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
    (usage, rows): (&EntryUse, &Rows<'_>),
) -> Result<Plan<Memorized>, ContentError> {
    let (now, mut told) = (now(), Memorized::default());
    let mut candidates = candidates(learned, settings);
    let scope = RecallScope { user: learned.user.clone(), session: learned.session };
    let contradicted: BTreeSet<MemoryEntryId> = learned.contradicted.iter().copied().collect();
    let mut gone = Vec::new();
    rows.each(|id, known| {
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
