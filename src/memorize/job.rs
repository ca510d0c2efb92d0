//! A try of the job of a turn.

use std::sync::Arc;

use agentsvc_api::http::bridge::Bridge;
use agentsvc_api::http::error::ContentError;
use agentsvc_api::knowledge::batch::{Batch, NewRelation};
use agentsvc_api::knowledge::graph::AgentGraph;
use agentsvc_api::knowledge::store::KnowledgeStore;
use agentsvc_api::proactive_memory::entries::AgentEntries;
use agentsvc_api::proactive_memory::memorize::{Fact, Learned};
use agentsvc_api::proactive_memory::search::MemorySearch;
use agentsvc_api::proactive_memory::settings::{ProactiveMemory, ProactiveMemorySettings};
use agentsvc_api::proactive_memory::store::EntryStore;
use agentsvc_api::session::content::{MessageRange, MessageRow};
use agentsvc_components::kernel::job::{RunJob, TryEnd};
use agentsvc_components::session::message::{Block, Role};
use agentsvc_components::{Actor, Refusal, RefusalKind};
use agentsvc_systems::agent::GetAgent;
use agentsvc_systems::proactive_memory::extract::{beginning, extract_all};
use agentsvc_systems::proactive_memory::{MEMORIZE_BY_MODEL, Memorized, TurnToMemorize};

use super::answer::{self, Answer};
use super::{ask, prompt};
use crate::kernel::settings::Settings;
use crate::model::call::Models;
use crate::proactive_memory::config::InForce;
use crate::proactive_memory::recall::Recaller;

/// How sure a fact is that the user stated outright.
const STATED: f32 = 1.0;
/// How sure one is that a model made of what was said.
const INFERRED: f32 = 0.8;

/// Makes entries of turns.
pub(super) struct Memorizer {
    pub(super) models: Arc<Models>,
    pub(super) entries: Arc<dyn EntryStore>,
    pub(super) knowledge: Arc<dyn KnowledgeStore>,
    pub(super) bridge: Bridge,
    pub(super) settings: Settings,
}

/// What was said in a turn.
pub(super) struct Exchange {
    /// By the user.
    pub(super) user: String,
    /// By the agent at the end; empty where it is not to be used.
    pub(super) agent: String,
}

/// What was found in it.
struct Found {
    learned: Learned,
    relations: Vec<NewRelation>,
}

impl Memorizer {
    /// Carries out a try.
    pub(super) async fn run(&self, job: RunJob) -> TryEnd {
        match self.memorized(&job).await {
            Ok(memorized) => TryEnd::Done(serde_json::to_string(&memorized).unwrap_or_default()),
            Err(end) => {
                if let TryEnd::Retry { reason, .. } | TryEnd::Failed(reason) = &end {
                    let agent = job.owner.map(|agent| agent.to_string());
                    tracing::warn!(agent, attempt = job.attempt.number, reason, "a turn was not memorised");
                }
                end
            }
        }
    }

    async fn memorized(&self, job: &RunJob) -> Result<Memorized, TryEnd> {
        let broken = || TryEnd::Failed("the job cannot be read".to_owned());
        let turn: TurnToMemorize = serde_json::from_str(&job.input).map_err(|_| broken())?;
        if let Some(written) = turn.written {
            return Ok(written);
        }
        let agent = job.owner.ok_or_else(broken)?;
        let bridge = self.bridge.acting_as(Actor::System).of_this_world();
        let own = match bridge.ask(GetAgent(agent)).await {
            Ok(view) => view.memory,
            Err(refusal) => return end_of(refusal),
        };
        if !own.memorizes() {
            return Ok(Memorized::default());
        }
        let Some(said) = self.read(turn.clone()).await? else { return Ok(Memorized::default()) };
        let settings = InForce(self.settings.clone()).now().for_agent(&own);
        let (store, by) = (Arc::clone(&self.entries), Some(turn.turn));
        let entries = AgentEntries { bridge: bridge.clone(), store, agent, by, permit: None };
        // One that was left to rules stays with them: its lane is not for models.
        let found = if own.extraction_model.is_some() && job.kind == MEMORIZE_BY_MODEL {
            self.asked(&entries, turn.clone(), said, &settings).await?
        } else {
            by_rules(turn.clone(), said, &settings).await?
        };
        let Some(Found { learned, relations }) = found else { return Ok(Memorized::default()) };
        // The graph is read by the turns of all users.
        if !relations.is_empty() && turn.user.is_none() {
            let graph = AgentGraph { bridge, store: Arc::clone(&self.knowledge), agent, by };
            // A graph that is full keeps no entry from being made.
            if let Err(refusal) = graph.write(Batch { relations, ..Batch::default() }).await {
                tracing::warn!(%agent, turn = %turn.turn, %refusal, "the relations of a turn were not stored");
            }
        }
        match entries.memorize(job.attempt, learned, &settings, self.search()).await {
            Ok(memorized) => Ok(memorized),
            Err(refusal) => end_of(refusal),
        }
    }

    /// What was said in the turn; `None` when its rows are gone, as those of a session that was deleted.
    async fn read(&self, turn: TurnToMemorize) -> Result<Option<Exchange>, TryEnd> {
        let content = Arc::clone(&self.models.content);
        let read = tokio::task::spawn_blocking(move || {
            let (ordinal, log) = (turn.ordinal, turn.log);
            let after = ordinal.checked_sub(1).map(|before| (before, u32::MAX));
            let first = content.messages(log, MessageRange::After { after, limit: 1 })?;
            let last = content.messages(log, MessageRange::NewestSince { from: ordinal, ordinal, limit: 1 })?;
            Ok::<_, ContentError>((first.into_iter().next(), last.into_iter().next()))
        });
        let failed = |reason: String| TryEnd::Retry { after_ms: None, reason };
        let (first, last) = match read.await {
            Ok(Ok(rows)) => rows,
            Ok(Err(error)) => return Err(failed(error.to_string())),
            Err(_) => return Err(failed("the messages could not be read".to_owned())),
        };
        let text = |row: Option<MessageRow>, role: Role| {
            let row = row.filter(|row| row.ordinal == turn.ordinal && row.record.role == role);
            row.filter(|row| row.record.turn == turn.turn).map(|row| texts(&row.record.blocks))
        };
        let Some(user) = text(first, Role::User).filter(|text| !text.trim().is_empty()) else { return Ok(None) };
        // What an agent says after it has read the web is not what its user says.
        let agent = if turn.taint.is_none() { text(last, Role::Assistant).unwrap_or_default() } else { String::new() };
        Ok(Some(Exchange { user, agent }))
    }

    /// What finds entries of agents that have many.
    fn search(&self) -> Option<Arc<dyn MemorySearch>> {
        self.settings.get::<Recaller>().search()
    }

    /// Facts that the model of the agent finds.
    async fn asked(
        &self,
        entries: &AgentEntries,
        turn: TurnToMemorize,
        said: Exchange,
        settings: &ProactiveMemory,
    ) -> Result<Option<Found>, TryEnd> {
        let known = match entries.neighbours(&turn, &said.user, self.search()).await {
            Ok(known) => known,
            Err(refusal) => return end_of(refusal).map(|_| None),
        };
        let asked = prompt::of(&said, &known, settings);
        let Some(text) = ask::ask(&self.models, &entries.bridge, entries.agent, turn.session, asked).await? else {
            return Ok(None);
        };
        let categories = &settings.extract_categories;
        let read = answer::read(&text, categories, turn.taint)
            .map_err(|reason| TryEnd::Failed(format!("the answer of the extraction model cannot be used: {reason}")))?;
        let Answer { facts, relations, contradicted } = read;
        let contradicted = contradicted.iter().filter_map(|at| known.get(at.checked_sub(1)?)).map(|it| it.id).collect();
        let learned = learned(turn, "model", INFERRED, facts);
        Ok(Some(Found { learned: Learned { contradicted, ..learned }, relations }))
    }
}

fn learned(turn: TurnToMemorize, source: &'static str, confidence: f32, facts: Vec<Fact>) -> Learned {
    let TurnToMemorize { session, turn, taint, user, .. } = turn;
    Learned { session, turn, user, taint, source, confidence, facts, contradicted: Vec::new() }
}

/// Facts that the user states outright.
async fn by_rules(turn: TurnToMemorize, said: Exchange, settings: &ProactiveMemory) -> Result<Option<Found>, TryEnd> {
    let wanted = settings.extract_categories.clone();
    let found = tokio::task::spawn_blocking(move || extract_all(std::iter::once(beginning(&said.user)), &wanted));
    let found = found.await.map_err(|_| TryEnd::Failed("the message could not be searched".to_owned()))?;
    let facts: Vec<Fact> = found
        .into_iter()
        .map(|fact| Fact { content: fact.content.into(), category: fact.category.into(), level: fact.level })
        .collect();
    let learned = learned(turn, "rules", STATED, facts);
    Ok((!learned.facts.is_empty()).then_some(Found { learned, relations: Vec::new() }))
}

/// The texts of a message, one after the other.
fn texts(blocks: &[Block]) -> String {
    let texts = blocks.iter().filter_map(|block| if let Block::Text { text } = block { Some(&**text) } else { None });
    texts.collect::<Vec<&str>>().join("\n")
}

/// What a refusal of the world makes of a try: of what is gone, nothing is made.
pub(super) fn end_of(refusal: Refusal) -> Result<Memorized, TryEnd> {
    match refusal.kind {
        RefusalKind::NotFound => Ok(Memorized::default()),
        RefusalKind::Busy | RefusalKind::TooMany | RefusalKind::Failed => {
            Err(TryEnd::Retry { after_ms: None, reason: refusal.to_string() })
        }
        _ => Err(TryEnd::Failed(refusal.to_string())),
    }
}
