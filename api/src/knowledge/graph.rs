//! Agents' knowledge for routes and tools: what the disk knows of it and the way to change it, brought together.
//!
//! A change is made of what a writer saw on disk; the world refuses it when that is out of date, and the writer looks again
//! (see `systems/src/knowledge/mod.rs`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use agentsvc_components::kernel::taint::Taint;
use agentsvc_components::knowledge::record::{EntityRecord, KnowledgeUseRecord, RelationRecord};
use agentsvc_components::knowledge::{EntityKey, RelationKey};
use agentsvc_components::{AgentId, Refusal, RefusalKind, TurnId};
use agentsvc_systems::knowledge::key::End;
use agentsvc_systems::knowledge::limits::{KNOWLEDGE_ANSWER_BYTES_MAX, KNOWLEDGE_TRIPLES_MAX};
use agentsvc_systems::knowledge::{ChangeKnowledge, GetKnowledgeUse, error_codes};

use tokio::sync::{Mutex, MutexGuard};

use crate::http::blocking::spawn_blocking;
use crate::http::bridge::{Bridge, exchanging};
use crate::http::error::ContentError;
use crate::knowledge::batch::{Batch, Written};
use crate::knowledge::plan::{Plan, Stopped};
use crate::knowledge::store::{KnowledgeStore, Rows};
use crate::knowledge::walk::{Pattern, walk};

/// How often a writer looks again before it gives up: each time another change of the same knowledge came in between.
const TRIES_MAX: usize = 32;

/// Writers of the knowledge of one agent come one after the other, so that none has to look again and again. Agents that share
/// a place here wait for each other.
static WRITERS: [Mutex<()>; 64] = [const { Mutex::const_new(()) }; 64];

/// The knowledge of one agent.
#[derive(Clone)]
pub struct AgentGraph {
    /// The way into the world.
    pub bridge: Bridge,
    /// The rows on disk.
    pub store: Arc<dyn KnowledgeStore>,
    /// Whose.
    pub agent: AgentId,
    /// The turn that uses it, if one does.
    pub by: Option<TurnId>,
}

/// What to look for, in the words of a client.
#[derive(Clone, Debug, Default)]
pub struct Query {
    /// The name or id of the entity where walks begin.
    pub source: Option<String>,
    /// The stored form of a type of relations.
    pub relation: Option<Box<str>>,
    /// The name or id of the entity where walks end.
    pub target: Option<String>,
    /// Relations that a walk follows at most.
    pub depth: u8,
    /// Relations of the answer.
    pub limit: usize,
    /// Goes on behind this relation; only with neither source nor target.
    pub after: Option<RelationKey>,
}

/// What a query found.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// The relations, nearest first.
    pub relations: Vec<(RelationKey, RelationRecord)>,
    /// The entities that they join, and those that the query names.
    pub entities: BTreeMap<EntityKey, EntityRecord>,
    /// There may be more.
    pub is_cut: bool,
    /// Where the next ones are, of a query with neither source nor target.
    pub next: Option<RelationKey>,
}

impl Found {
    /// Untrusted content that any of it comes from.
    #[must_use]
    pub fn taint(&self) -> Taint {
        let relations = self.relations.iter().map(|(_, record)| record.taint);
        relations.chain(self.entities.values().map(|record| record.taint)).fold(Taint::NONE, Taint::with)
    }
}

impl AgentGraph {
    /// How much there is.
    ///
    /// # Errors
    /// The agent does not live, or the world is not ready.
    pub async fn usage(&self) -> Result<KnowledgeUseRecord, Refusal> {
        self.bridge.ask(GetKnowledgeUse(self.agent)).await
    }

    /// Writes a batch, all or none. What is there already stays as it is.
    ///
    /// # Errors
    /// Something must not be stored, the knowledge is full, it changes too often, or the store failed.
    pub async fn write(&self, batch: Batch) -> Result<Written, Refusal> {
        let batch = Arc::new(batch);
        let _turn = self.turn().await;
        for _ in 0..TRIES_MAX {
            let revision = self.usage().await?.revision;
            let (wanted, agent, by) = (Arc::clone(&batch), self.agent, self.by);
            let planned = self.read(move |rows| match Plan::of(rows, &wanted) {
                Ok(plan) => Ok(Ok((plan.written(), plan.change(agent, revision, by)))),
                Err(Stopped::Refused(refusal)) => Ok(Err(refusal)),
                Err(Stopped::Unread(error)) => Err(error),
            });
            let (written, change) = planned.await??;
            let Some(change) = change else { return Ok(written) };
            match self.bridge.ask(change).await {
                Err(refusal) if is_changed(&refusal) => {}
                result => return result.map(|_| written),
            }
        }
        Err(busy())
    }

    /// Finds what matches.
    ///
    /// # Errors
    /// The store failed.
    pub async fn find(&self, query: Query) -> Result<Found, Refusal> {
        self.read(move |rows| found(rows, &query)).await
    }

    /// Entities in the order of their names, behind `after`.
    ///
    /// # Errors
    /// The store failed.
    pub async fn entities(
        &self,
        after: Option<EntityKey>,
        limit: usize,
    ) -> Result<Vec<(EntityKey, EntityRecord)>, Refusal> {
        self.read(move |rows| rows.entities(after.as_ref(), limit)).await
    }

    /// Deletes the relations that match, some at a time, and says how many there were.
    ///
    /// # Errors
    /// The knowledge changes too often, or the store failed.
    pub async fn delete_relations(&self, query: &Query) -> Result<usize, Refusal> {
        let query = Query { depth: 1, limit: KNOWLEDGE_TRIPLES_MAX, after: None, ..query.clone() };
        let mut deleted = 0;
        loop {
            let wanted = query.clone();
            let gone = self.delete(move |rows| {
                let pattern = pattern(rows, &wanted)?;
                let relations = walk(rows, &pattern)?.relations;
                Ok(Gone { relations: sized(rows, relations)?, entities: Vec::new() })
            });
            let Gone { relations, .. } = gone.await?;
            deleted += relations.len();
            if relations.len() < KNOWLEDGE_TRIPLES_MAX {
                return Ok(deleted);
            }
        }
    }

    /// Deletes an entity with all of its relations, some at a time. `None` when there is no such entity; else how many
    /// relations it had.
    ///
    /// # Errors
    /// The knowledge changes too often, or the store failed.
    pub async fn delete_entity(&self, id: &str) -> Result<Option<usize>, Refusal> {
        let mut deleted = 0;
        loop {
            let id = id.to_owned();
            let Gone { relations, entities } = self.delete(move |rows| last_of(rows, &id)).await?;
            deleted += relations.len();
            match (relations.is_empty(), entities.is_empty()) {
                (true, true) => return Ok(None),
                (_, false) => return Ok(Some(deleted)),
                (false, true) => {}
            }
        }
    }

    /// Deletes what `look` finds.
    async fn delete(
        &self,
        look: impl Fn(Rows<'_>) -> Result<Gone, ContentError> + Clone + Send + 'static,
    ) -> Result<Gone, Refusal> {
        let _turn = self.turn().await;
        for _ in 0..TRIES_MAX {
            let revision = self.usage().await?.revision;
            let gone = self.read(look.clone()).await?;
            if gone.relations.is_empty() && gone.entities.is_empty() {
                return Ok(gone);
            }
            let (entities, relations) = Default::default();
            let (gone_entities, gone_relations) = (gone.entities.clone(), gone.relations.clone());
            let (agent, by) = (self.agent, self.by);
            let change = ChangeKnowledge { agent, revision, entities, relations, gone_entities, gone_relations, by };
            match self.bridge.ask(change).await {
                Err(refusal) if is_changed(&refusal) => {}
                result => return result.map(|_| gone),
            }
        }
        Err(busy())
    }

    /// Waits until this writer is the one.
    async fn turn(&self) -> MutexGuard<'static, ()> {
        WRITERS[(self.agent.0.as_u128() % WRITERS.len() as u128) as usize].lock().await
    }

    /// Reads off the async threads.
    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(Rows<'_>) -> Result<T, ContentError> + Send + 'static,
    ) -> Result<T, Refusal> {
        let (store, agent) = (Arc::clone(&self.store), self.agent);
        let read = spawn_blocking(move || read(Rows { store: &*store, agent })).await;
        let failed = || Refusal::new(RefusalKind::Failed, "the knowledge could not be read");
        match read.map_err(|_| failed())? {
            Ok(read) => Ok(read),
            Err(ContentError::Exchanging) => Err(exchanging()),
            Err(error) => {
                tracing::error!(%error, %agent, "knowledge could not be read");
                Err(failed())
            }
        }
    }
}

/// What is to be deleted, each with the bytes of its row.
#[derive(Default)]
struct Gone {
    relations: Vec<(RelationKey, u64)>,
    entities: Vec<(EntityKey, u64)>,
}

/// Relations with the bytes of their rows.
fn sized(rows: Rows<'_>, relations: Vec<RelationKey>) -> Result<Vec<(RelationKey, u64)>, ContentError> {
    let mut sized = Vec::with_capacity(relations.len());
    for key in relations {
        if let Some(record) = rows.relation(&key)? {
            let bytes = record.bytes(&key);
            sized.push((key, bytes));
        }
    }
    Ok(sized)
}

/// Relations of the entity with this id, and the entity itself when these are the last.
fn last_of(rows: Rows<'_>, id: &str) -> Result<Gone, ContentError> {
    let Some((entity, record)) = rows.identified(id)? else { return Ok(Gone::default()) };
    let most = KNOWLEDGE_TRIPLES_MAX;
    let mut relations = BTreeSet::new();
    relations.extend(rows.relations(End::Source(&entity), None, None, most)?);
    relations.extend(rows.relations(End::Target(&entity), None, None, most)?);
    let is_all = relations.len() < most;
    let relations = sized(rows, relations.into_iter().take(most).collect())?;
    let bytes = record.bytes(&entity);
    Ok(Gone { relations, entities: if is_all { vec![(entity, bytes)] } else { Vec::new() } })
}

fn pattern(rows: Rows<'_>, query: &Query) -> Result<Pattern, ContentError> {
    let meant = |text: &Option<String>| text.as_deref().map(|text| rows.meant(text)).transpose();
    let Query { source, relation, target, depth, limit, after } = query;
    let (source, target) = (meant(source)?, meant(target)?);
    Ok(Pattern { source, relation: relation.clone(), target, depth: *depth, limit: *limit, after: after.clone() })
}

fn found(rows: Rows<'_>, query: &Query) -> Result<Found, ContentError> {
    let pattern = pattern(rows, query)?;
    let walked = walk(rows, &pattern)?;
    let mut found = Found { is_cut: walked.is_cut, ..Found::default() };
    let mut bytes = 0;
    for key in pattern.source.iter().chain(&pattern.target).flatten() {
        bytes += found.meet(rows, key)?;
    }
    for key in walked.relations {
        if bytes > KNOWLEDGE_ANSWER_BYTES_MAX as u64 {
            found.is_cut = true;
            break;
        }
        // It may have been deleted since the walk.
        let Some(record) = rows.relation(&key)? else { continue };
        bytes += record.bytes(&key) + found.meet(rows, &key.source)? + found.meet(rows, &key.target)?;
        found.relations.push((key, record));
    }
    if found.is_cut && query.source.is_none() && query.target.is_none() {
        found.next = found.relations.last().map(|(key, _)| key.clone());
    }
    Ok(found)
}

impl Found {
    /// Takes in an entity; gives its bytes when it is new here.
    fn meet(&mut self, rows: Rows<'_>, key: &EntityKey) -> Result<u64, ContentError> {
        if self.entities.contains_key(key) {
            return Ok(0);
        }
        let Some(record) = rows.entity(key)? else { return Ok(0) };
        let bytes = record.bytes(key);
        self.entities.insert(key.clone(), record);
        Ok(bytes)
    }
}

fn is_changed(refusal: &Refusal) -> bool {
    refusal.code == Some(error_codes::KNOWLEDGE_CHANGED)
}

fn busy() -> Refusal {
    Refusal::busy("too many concurrent changes of the same knowledge", 1).with_code(error_codes::KNOWLEDGE_CHANGED)
}
